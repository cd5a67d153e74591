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
            &[16, 20, 25, 29],
            &[63, 31, 62, 30]),
        ((64, 4, 1),
            &[0, 0, 0, 0],
            &[32, 19, 7, 59]),
        ((9593, 7, 64),
            &[2433, 3100, 3768, 4435, 5103, 5770, 6438],
            &[9511, 4663, 9409, 4561, 9306, 4459, 9204]),
        ((9593, 7, 31),
            &[2433, 1871, 1310, 748, 187, 9218, 8657],
            &[9511, 7657, 5803, 3950, 2096, 242, 7982]),
        ((1048576, 20, 64),
            &[265985, 338943, 411900, 484858, 557816, 630774, 703731, 776689, 849647, 922604,
              995562, 19944, 92901, 165859, 238817, 311774, 384732, 457690, 530647, 603605],
            &[1039635, 509763, 1028468, 498596, 1017300, 487428, 1006132, 476260, 994964, 465092,
              983796, 453924, 972628, 442756, 961460, 431588, 950293, 420421, 939125, 409253]),
        ((1048576, 20, 40),
            &[265985, 26439, 835469, 595923, 356378, 116832, 925862, 686316, 446770, 207224,
              1016254, 776708, 537162, 297617, 58071, 867101, 627555, 388009, 148463, 957493],
            &[1039635, 267807, 544554, 821302, 49473, 326221, 602968, 879715, 107887, 384634,
              661382, 938129, 166301, 443048, 719796, 996543, 224714, 501462, 778209, 6381]),
        ((1099511627689, 5, 64),
            &[278906170008, 355407835204, 431909500400, 508411165595, 584912830791],
            &[1090137206558, 534526220472, 1078426862075, 522815875989, 1066716517592]),
        ((1099511627776, 5, 50),
            &[278906170030, 355589409688, 432272649346, 508955889004, 585639128662],
            &[1090137206644, 881008017463, 671878828281, 462749639099, 253620449918]),
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
            &[42, 6, 34, 62],
            &[38, 36, 33, 31]),
        ((64, 4, 1),
            &[32, 19, 7, 59],
            &[32, 19, 7, 59]),
        ((9593, 7, 64),
            &[6297, 917, 5129, 9342, 3961, 8174, 2793],
            &[5784, 5410, 5036, 4662, 4288, 3914, 3540]),
        ((9593, 7, 31),
            &[6297, 8499, 1109, 3311, 5513, 7715, 325],
            &[5784, 8512, 1647, 4375, 7102, 237, 2965]),
        ((1048576, 20, 64),
            &[688361, 100239, 560693, 1021147, 433025, 893478, 305356, 765810, 177688, 638142,
              50019, 510473, 970927, 382805, 843259, 255137, 715590, 127468, 587922, 1048376],
            &[632299, 591413, 550527, 509640, 468754, 427868, 386982, 346096, 305210, 264324,
              223438, 182552, 141666, 100780, 59894, 19008, 1026697, 985811, 944925, 904039]),
        ((1048576, 20, 40),
            &[688361, 142375, 644964, 98977, 601566, 55579, 558169, 12182, 514771, 1017360,
              471373, 973963, 427976, 930565, 384578, 887167, 341180, 843770, 297783, 800372],
            &[632299, 796426, 960554, 76106, 240233, 404361, 568489, 732616, 896744, 12296,
              176423, 340551, 504679, 668807, 832934, 997062, 112614, 276741, 440869, 604997]),
        ((1099511627689, 5, 64),
            &[721799849986, 105109027937, 587929833577, 1070750639216, 454059817167],
            &[663013770114, 620141609898, 577269449682, 534397289466, 491525129250]),
        ((1099511627776, 5, 50),
            &[721799850043, 1038039037227, 254766596634, 571005783817, 887244971000],
            &[663013770166, 435667065903, 208320361640, 1080485285152, 853138580889]),
    ]);
}
