//! Frames that are cut, damaged, crafted or of another filter: refused, and nothing changes.

use super::*;

#[test]
fn truncated_anywhere_a_frame_is_refused() {
    for (old, new) in pairs() {
        let (whole, delta) = (old.encode(), old.delta_to(&new, &[]).unwrap());
        for cut in 0..whole.len() {
            assert!(Decoder::new().filter(&whole[..cut]).is_err(), "{:?} at {cut}", old.kind());
            let resealed = seal(whole[..cut.min(whole.len() - 5)].to_vec());
            assert!(Decoder::new().filter(&resealed).is_err(), "{:?} at {cut}", old.kind());
        }
        for cut in 0..delta.len() {
            assert!(Decoder::new().apply(&old, &delta[..cut]).is_err(), "{:?} {cut}", old.kind());
            let resealed = seal(delta[..cut.min(delta.len() - 5)].to_vec());
            assert!(Decoder::new().apply(&old, &resealed).is_err(), "{:?} {cut}", old.kind());
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for (old, new) in pairs() {
        for extra in [0, 1, 0x80] {
            let mut whole = old.encode();
            whole.insert(whole.len() - 4, extra);
            assert!(Decoder::new().filter(&reseal(&whole)).is_err());
            let mut delta = old.delta_to(&new, &[]).unwrap();
            delta.insert(delta.len() - 4, extra);
            assert!(Decoder::new().apply(&old, &reseal(&delta)).is_err());
        }
    }
}

#[test]
fn any_flipped_bit_is_noticed_and_changes_nothing() {
    for (old, new) in pairs() {
        let (whole, delta) = (old.encode(), old.delta_to(&new, &[]).unwrap());
        let before = old.clone();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Decoder::new().filter(&damaged).is_err(), "{:?}, bit {bit}", old.kind());
        }
        for bit in 0..delta.len() * 8 {
            let mut damaged = delta.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Decoder::new().apply(&old, &damaged).is_err(), "{:?}, bit {bit}", old.kind());
        }
        assert_eq!(old, before);
    }
}

/// A checksum that fits proves nothing about what is inside.
#[test]
fn flipped_bits_under_a_checksum_that_fits_give_an_error_or_a_sound_filter() {
    let decoder = Decoder::new().limit(1 << 20);
    for (old, new) in pairs() {
        let (whole, delta) = (old.encode(), old.delta_to(&new, &[]).unwrap());
        for bit in 0..(whole.len() - 4) * 8 {
            let mut crafted = whole.clone();
            crafted[bit / 8] ^= 1 << (bit % 8);
            if let Ok(filter) = decoder.filter(&reseal(&crafted)) {
                use_up(&filter);
            }
        }
        for bit in 0..(delta.len() - 4) * 8 {
            let mut crafted = delta.clone();
            crafted[bit / 8] ^= 1 << (bit % 8);
            if let Ok(filter) = decoder.apply(&old, &reseal(&crafted)) {
                validate(&filter);
            }
        }
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn nonsense_under_a_checksum_that_fits_gives_an_error_or_a_sound_filter(
        pick in 0usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let (old, new) = pairs().swap_remove(pick);
        let decoder = Decoder::new().limit(1 << 20);
        for (bytes, is_delta) in [(old.encode(), false), (old.delta_to(&new, &[]).unwrap(), true)] {
            let mut body = bytes[..bytes.len() - 4].to_vec();
            // Edits stay behind magic and version, most of them behind the header.
            for (at, byte) in &edits {
                let at = 5 + at.index(body.len() - 5);
                body[at] = *byte;
            }
            if tail.len() > 4 {
                body.truncate(5 + cut.index(body.len() - 5));
                body.extend(&tail);
            }
            let crafted = seal(body);
            let outcome =
                if is_delta { decoder.apply(&old, &crafted) } else { decoder.filter(&crafted) };
            if let Ok(filter) = outcome {
                validate(&filter);
            }
        }
    }
}

#[test]
fn a_delta_is_refused_by_any_other_filter() {
    let decoder = Decoder::new();
    let pairs = pairs();
    for (old, new) in &pairs {
        let delta = old.delta_to(new, &[]).unwrap();
        let refused = decoder.apply(new, &delta).unwrap_err();
        assert!(matches!(refused, DecodeError::WrongBase { .. }), "{refused}");
        for (other, _) in pairs.iter().filter(|(other, _)| other.kind() != old.kind()) {
            let refused = decoder.apply(other, &delta).unwrap_err();
            let expected = DecodeError::Kind { expected: other.kind(), found: old.kind() };
            assert_eq!(refused, expected);
            assert!(old.delta_to(other, &[]).is_err());
        }
        let refused = decoder.filter(&delta).unwrap_err();
        assert_eq!(refused, DecodeError::Kind { expected: old.kind(), found: Kind::Delta });
        let refused = decoder.apply(old, &new.encode()).unwrap_err();
        assert_eq!(refused, DecodeError::Kind { expected: Kind::Delta, found: new.kind() });
    }
}

#[test]
fn a_delta_for_another_shape_hash_or_seed_is_refused() {
    let shape = Shape::new(300, 4).unwrap();
    let own = Scheme::from(shape);
    let others = [
        Scheme::from(Shape::new(301, 4).unwrap()),
        Scheme::from(Shape::new(300, 5).unwrap()),
        Scheme::from(shape.with_digest_bits(DigestBits::new(63).unwrap())),
        Scheme::new(shape, KeyHasher::new(HashId::SipHash13, Seed::default())),
        Scheme::new(shape, KeyHasher::new(HashId::Xxh3, Seed::from_number(1))),
        Scheme::new(shape, KeyHasher::secret(HashId::Xxh3, Seed::from_number(1))),
    ];
    let base = StandardFilter::new(own).unwrap();
    for other in others {
        let old = StandardFilter::new(other).unwrap();
        assert!(encode_delta(&base, &old, &[]).is_err());
        let delta = encode_delta(&old, &old, &[]).unwrap();
        let refused = Decoder::new().apply(&base.clone().into(), &delta).unwrap_err();
        assert!(matches!(refused, DecodeError::Mismatch(_)), "{refused}");
    }
}

#[test]
fn a_delta_that_leads_elsewhere_than_it_says_is_refused() {
    let old = StandardFilter::with_shape(Shape::new(64, 3).unwrap()).unwrap();
    let mut new = old.clone();
    new.insert("a");
    // One key, no bits set, none cleared: it should lead to another checksum.
    let refused = Decoder::new().apply(&old.clone().into(), &delta_of(&old, &new, &[1, 0, 0, 0]));
    assert!(matches!(refused, Err(DecodeError::WrongResult { .. })), "{refused:?}");
}

#[test]
fn other_files_and_newer_versions_are_named() {
    let decoder = Decoder::new();
    assert_eq!(decoder.filter(b""), Err(DecodeError::NotUmbel));
    assert_eq!(decoder.filter(b"PK\x03\x04 and so on"), Err(DecodeError::NotUmbel));
    assert_eq!(decoder.filter(b"UMB"), Err(DecodeError::Truncated));
    assert_eq!(decoder.filter(b"UMBL"), Err(DecodeError::Truncated));
    assert_eq!(decoder.filter(b"UMBL\x02 whatever"), Err(DecodeError::Version(2)));
}
