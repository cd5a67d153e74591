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
            &[16, 20, 50, 42],
            &[63, 31, 0, 36]),
        ((64, 4, 1),
            &[0, 0, 0, 0],
            &[32, 19, 2, 43]),
        ((9593, 7, 64),
            &[2433, 3100, 7625, 6414, 9059, 5969, 6737],
            &[9511, 4663, 138, 5529, 1650, 7687, 4454]),
        ((9593, 7, 31),
            &[2433, 1871, 8816, 4081, 6852, 7537, 6135],
            &[9511, 7657, 2039, 2249, 8288, 970, 9073]),
        ((1048576, 20, 64),
            &[265985, 338943, 833509, 701107, 990313, 652552, 736398, 193277, 71764, 371859,
              44987, 139723, 656067, 545443, 856427, 540443, 646068, 124725, 24990, 346863],
            &[1039635, 509763, 15180, 604461, 180455, 840313, 486884, 168744, 934468, 686905,
              474630, 297644, 155946, 49537, 1026992, 991160, 990617, 1025362, 46820, 152142]),
        ((1048576, 20, 40),
            &[265985, 26439, 191994, 762649, 689828, 1022108, 710913, 804818, 255247, 110777,
              371407, 1037138, 10817, 438173, 222053, 411034, 1005115, 955721, 262851, 1023657],
            &[1039635, 267807, 111527, 570796, 597039, 190254, 399018, 174755, 566041, 524300,
              49532, 190312, 946642, 221369, 111644, 617469, 690266, 330036, 585356, 407648]),
        ((1099511627689, 5, 64),
            &[278906170008, 355407835204, 873997742220, 735164263367, 1038419026334],
            &[1090137206558, 534526220472, 15917982055, 633824118996, 189221375917]),
        ((1099511627776, 5, 50),
            &[278906170030, 355589409688, 596050680350, 1000289982016, 468795686910],
            &[1090137206644, 881008017463, 219329104810, 204612096463, 836856992421]),
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
            &[42, 6, 59, 9],
            &[38, 36, 38, 46]),
        ((64, 4, 1),
            &[32, 19, 2, 43],
            &[32, 19, 2, 43]),
        ((9593, 7, 64),
            &[6297, 917, 8900, 1470, 7403, 7515, 1805],
            &[5784, 5410, 5824, 7026, 9015, 2199, 5765]),
        ((9593, 7, 31),
            &[6297, 8499, 228, 671, 233, 8508, 6309],
            &[5784, 8512, 4979, 4778, 7910, 4780, 4983]),
        ((1048576, 20, 64),
            &[688361, 100239, 972923, 160685, 809253, 821475, 197352, 1034034, 185795, 798361,
              774582, 114457, 915138, 30897, 607462, 547681, 900130, 616233, 744567, 236555],
            &[632299, 591413, 636644, 767993, 985460, 240468, 630170, 57414, 619351, 218830,
              953002, 724716, 582547, 526497, 556563, 672748, 875050, 114893, 489430, 950085]),
        ((1048576, 20, 40),
            &[688361, 142375, 23274, 331059, 17154, 130135, 670002, 588178, 933241, 656614,
              806873, 335441, 290896, 673236, 433887, 621423, 187269, 180001, 599619, 397548],
            &[632299, 796426, 801043, 646148, 331741, 906399, 272970, 528606, 624730, 561342,
              338444, 1004609, 462688, 809831, 997463, 1025583, 894192, 603290, 152876, 591527]),
        ((1099511627689, 5, 64),
            &[721799849986, 105109027937, 1020184421245, 168491146844, 848564087801],
            &[663013770114, 620141609898, 667570298958, 805299837295, 1033330224909]),
        ((1099511627776, 5, 50),
            &[721799850043, 1038039037227, 315285615346, 752562839954, 150847455498],
            &[663013770166, 435667065903, 352527073989, 413593794423, 618867227207]),
    ]);
}
