//! Positions never move: the same key, hash, seed and shape name the same bits on every
//! platform and in every release, or filters could not travel.
//!
//! The numbers were computed by an independent implementation of both hashes and of the walk
//! described in docs/wire.md. A change that fails here breaks every file and every replica.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use umbel::{DigestBits, HashId, KeyHasher, Seed, Shape};

const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";

fn seeds() -> [Seed; 3] {
    [Seed::default(), Seed::from_number(1), Seed::from_secret(b"only for us")]
}

#[test]
fn seeds_and_their_fingerprints_stay() {
    let fingerprints = seeds().map(|seed| seed.fingerprint().get());
    assert_eq!(fingerprints, [0x5E72_99CC_0D36_66AC, 0xC499_4D85_3B59_983B, 0xB297_9F1C_6A85_C646]);
    let secret = u128::from_le_bytes(*seeds()[2].bytes());
    assert_eq!(secret, 0xBA55_8B43_41C7_7521_7206_2747_5F43_E67E);
    assert_eq!(seeds()[0].bytes(), &[0; 16]);
}

/// Keys of no byte, of less than a word, of every length class of XXH3.
#[test]
fn hashes_of_keys_stay() {
    let bytes: Vec<u8> = (0..=255).collect();
    let long = vec![b'x'; 1000];
    let keys: [&[u8]; 6] = [b"", b"a", b"umbel", FOX, &bytes, &long];
    let expected = [
        [
            0x2D06_8005_38D3_94C2,
            0xE6C6_32B6_1E96_4E1F,
            0x2EAC_F0A1_DAFF_5036,
            0xCE7D_19A5_418F_B365,
            0x9408_A443_3B95_2D71,
            0xC0A4_877B_962C_BA82,
        ],
        [
            0x4DC5_B0CC_826F_6703,
            0xD2F6_D099_6F37_A720,
            0x1B85_8678_D9AC_8463,
            0x1E09_8210_B55F_AD4A,
            0x524D_D680_2085_15EB,
            0x9172_0B7C_9DD4_E0D1,
        ],
        [
            0xA66E_C51B_86F6_E68E,
            0xDC2B_8518_5555_5728,
            0x40F0_1A6A_AEFD_0A18,
            0xFDD1_3DAF_7495_C84F,
            0xD43F_A1D9_A9D8_A20F,
            0x652A_6B8A_FC21_A626,
        ],
        [
            0xD1FB_A762_150C_532C,
            0x4074_48D2_B89B_1813,
            0x8989_6DF2_E9E0_3E00,
            0x8DF6_76D3_D00C_451E,
            0x31AE_646A_FBA7_0308,
            0x1B47_C0CC_4DD2_1F05,
        ],
        [
            0xC44A_0EBF_4E96_2581,
            0x4F42_5C98_590C_1157,
            0x329D_C630_E126_BD7B,
            0xFF25_639B_B183_FE27,
            0x8FC9_5164_75F1_8092,
            0xD044_7DF9_A805_C9CF,
        ],
        [
            0xC034_7444_BAC9_8989,
            0x7045_F502_FC59_A441,
            0xA80E_9FA8_3BE2_E944,
            0x9A5E_B343_B6C2_7F2E,
            0x7478_E0C3_1C3F_B682,
            0x66D2_E3D3_B7FF_0D77,
        ],
    ];
    let hashers =
        [HashId::Xxh3, HashId::SipHash13].map(|id| seeds().map(|seed| KeyHasher::new(id, seed)));
    for (hasher, expected) in hashers.iter().flatten().zip(expected) {
        let hashes = keys.map(|key| hasher.hash(key).get());
        assert_eq!(hashes, expected, "{hasher:?}");
    }
}

/// One row: bits, hashes, digest bits, positions of two keys.
type Row<'a> = ((u64, u32, u32), &'a [u64], &'a [u64]);

fn check(id: HashId, rows: &[Row<'_>]) {
    let hasher = KeyHasher::new(id, seeds()[2]);
    for ((bits, hashes, digest_bits), umbel, fox) in rows {
        let shape = Shape::new(*bits, *hashes).unwrap();
        let shape = shape.with_digest_bits(DigestBits::new(*digest_bits).unwrap());
        for (key, expected) in [(&b"umbel"[..], umbel), (FOX, fox)] {
            let digest = hasher.hash(key).digest(shape.digest_bits());
            assert!(digest.positions(&shape).eq(expected.iter().copied()), "{id} {shape:?}");
        }
    }
}

#[test]
fn positions_by_xxh3_stay() {
    #[rustfmt::skip]
    check(HashId::Xxh3, &[
        ((1, 3, 64),
            &[0, 0, 0],
            &[0, 0, 0]),
        ((64, 4, 64),
            &[16, 20, 5, 34],
            &[63, 31, 26, 49]),
        ((64, 4, 1),
            &[0, 0, 0, 0],
            &[32, 19, 55, 11]),
        ((9593, 7, 64),
            &[2433, 3100, 831, 5218, 6667, 5180, 756],
            &[9511, 4663, 3942, 7347, 5285, 7349, 3947]),
        ((9593, 7, 31),
            &[2433, 1871, 7420, 9486, 8069, 3170, 4381],
            &[9511, 7657, 593, 7504, 9205, 5695, 6568]),
        ((1048576, 20, 64),
            &[265985, 338943, 90880, 570373, 728845, 566298, 82729, 326716, 249683, 900206,
              181132, 189614, 925651, 292092, 386088, 159064, 659596, 839107, 697598, 235069],
            &[1039635, 509763, 430917, 803095, 577723, 803377, 431479, 510607, 1040760, 973363,
              308414, 94491, 331593, 1019721, 61722, 603324, 547376, 942452, 739978, 988530]),
        ((1048576, 20, 40),
            &[265985, 26439, 84252, 439423, 43376, 993264, 143359, 639388, 384199, 426369,
              765897, 354208, 239877, 422904, 903290, 632459, 658986, 982871, 555539, 425566],
            &[1039635, 267807, 408812, 414074, 283593, 17370, 663979, 126271, 501395, 740777,
              844416, 812313, 644466, 340877, 950122, 375047, 712806, 914822, 981096, 911626]),
        ((1099511627689, 5, 64),
            &[278906170008, 355407835204, 95295213852, 598079933641, 764250366883],
            &[1090137206558, 534526220472, 451849530795, 842107137528, 605787412980]),
        ((1099511627776, 5, 50),
            &[278906170030, 355589409688, 337586508180, 224897465506, 17522281665],
            &[1090137206644, 881008017463, 407476306120, 769053700393, 866228572506]),
    ]);
}

#[test]
fn positions_by_siphash_stay() {
    #[rustfmt::skip]
    check(HashId::SipHash13, &[
        ((1, 3, 64),
            &[0, 0, 0],
            &[0, 0, 0]),
        ((64, 4, 64),
            &[42, 6, 45, 32],
            &[38, 36, 42, 58]),
        ((64, 4, 1),
            &[32, 19, 55, 11],
            &[32, 19, 55, 11]),
        ((9593, 7, 64),
            &[6297, 917, 6851, 4913, 4697, 6203, 9430],
            &[5784, 5410, 6408, 8779, 2928, 8043, 4937]),
        ((9593, 7, 31),
            &[6297, 8499, 7580, 3538, 5967, 5275, 1460],
            &[5784, 8512, 339, 451, 8849, 6345, 2534]),
        ((1048576, 20, 64),
            &[688361, 100239, 748868, 537094, 513496, 678071, 1030822, 523170, 203694, 72391,
              129264, 374310, 807532, 380351, 141346, 90514, 227858, 553375, 18492, 720358],
            &[632299, 591413, 700518, 959615, 320127, 879206, 539701, 350188, 310665, 421135,
              681595, 43471, 603915, 265773, 77624, 39465, 151298, 413123, 824938, 338170]),
        ((1048576, 20, 40),
            &[688361, 142375, 670159, 174564, 752739, 307535, 936101, 541288, 171670, 875823,
              556596, 262564, 1042304, 798664, 580219, 386969, 218915, 76057, 1006970, 914502],
            &[632299, 796426, 984307, 147364, 382750, 641889, 924780, 182848, 513245, 867395,
              196721, 598377, 1023785, 424369, 897283, 345373, 865792, 361388, 929312, 472414]),
        ((1099511627689, 5, 64),
            &[721799849986, 105109027937, 785245092298, 563184787690, 538439741803],
            &[663013770114, 620141609898, 734546838459, 1006229455799, 335677834226]),
        ((1099511627776, 5, 50),
            &[721799850043, 1038039037227, 182475407203, 354132215526, 453497834418],
            &[663013770166, 435667065903, 726599606899, 436299765377, 664279169115]),
    ]);
}
