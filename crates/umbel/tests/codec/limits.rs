//! What a decoder takes no memory for, and what a sender does not send.

use super::*;

#[test]
fn a_filter_beyond_the_limit_is_refused_before_memory_is_taken() {
    // With memory asked for first, the system would say no, not the decoder.
    let shape = Shape::new(Bits::MAX, 7).unwrap();
    for kind in [1, 2] {
        let refused = Decoder::new().filter(&snapshot(kind, &shape, &[0, 0]));
        assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    }
    for kind in [3, 4] {
        let refused = Decoder::new().filter(&snapshot(kind, &shape, &[1, 1, 1, 0, 1, 0, 0, 0, 0]));
        assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    }
    let beyond = Shape::new(Bits::MAX, 7).unwrap();
    let mut bytes = snapshot(1, &beyond, &[0, 0]);
    // The last byte of the varint 2^40.
    bytes[15] = 0x40;
    let refused = Decoder::new().limit(u64::MAX).filter(&reseal(&bytes));
    assert!(matches!(refused, Err(DecodeError::Param(_))), "{refused:?}");
}

#[test]
fn a_limit_admits_what_fits_and_nothing_more() {
    for (old, new) in pairs() {
        for (bytes, base) in [(old.encode(), None), (old.delta_to(&new, &[]).unwrap(), Some(&old))]
        {
            let decode = |limit| {
                let decoder = Decoder::new().limit(limit);
                base.map_or_else(|| decoder.filter(&bytes), |base| decoder.apply(base, &bytes))
            };
            let needed = (0..).find(|limit| decode(*limit).is_ok()).unwrap();
            let takes = decode(needed).unwrap().memory_bytes() as u64;
            // The struct itself is not on the heap.
            assert!(needed + 256 >= takes, "{:?}: {needed} for {takes}", old.kind());
            assert!(needed <= takes * 2, "{:?}: {needed} for {takes}", old.kind());
            // Counters and their bits, and two levels on the way to them.
            if old.kind() == Kind::Counting {
                assert_eq!(needed, 7 * 300_u64.div_ceil(64) * 8);
            }
        }
    }
}

/// Every eight components share a byte a position in the slices.
#[test]
fn slices_of_many_components_count_against_the_limit() {
    let shape = Shape::new(10_000, 3).unwrap();
    let mut filter = DynamicFilter::<StandardFilter>::with_shape(shape, 1).unwrap();
    (0..17u64).for_each(|key| filter.put(key));
    assert_eq!(filter.components().len(), 17);
    let (bytes, takes) = (encode(&filter), filter.memory_bytes() as u64);
    let refused = Decoder::new().limit(takes - 1000).filter(&bytes);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    assert_eq!(Decoder::new().limit(takes + 2000).filter(&bytes), Ok(filter.into()));
}

/// Components of one bit once cost nothing, so that a frame could make forty times its own
/// length of them, past any limit.
#[test]
fn many_tiny_components_count_against_the_limit() {
    let count = 20_000u64;
    let mut body = [varint(1), varint(8), varint(count), varint(0), varint(count)].concat();
    for id in 0..count {
        body.extend(varint(id));
        body.extend([0, 0, 0]);
    }
    let bytes = snapshot(4, &Shape::new(1, 1).unwrap(), &body);
    let refused = Decoder::new().limit(1 << 20).filter(&bytes);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    let admitted = Decoder::new().limit(1 << 24).filter(&bytes).unwrap();
    assert!(admitted.memory_bytes() <= 1 << 24);
}

/// Aliases were not counted at all.
#[test]
fn many_aliases_count_against_the_limit() {
    let count = 50_000u64;
    let mut body = [varint(1), varint(8), varint(count + 1), varint(count)].concat();
    for id in 1..=count {
        body.extend(varint(id));
        body.push(0);
    }
    body.extend([1, 0, 0, 0, 0]);
    let bytes = snapshot(4, &Shape::new(1, 1).unwrap(), &body);
    let refused = Decoder::new().limit(1 << 20).filter(&bytes);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    assert!(Decoder::new().filter(&bytes).is_ok());
}

/// Few bytes may name every bit: they once were set one by one from a list that took 64
/// times the filter's memory, 8 GiB here.
#[test]
fn all_bits_at_once_take_no_list_of_them() {
    let shape = Shape::new(1 << 30, 1).unwrap().with_digest_bits(DigestBits::new(30).unwrap());
    let full = Decoder::new().filter(&snapshot(1, &shape, &[&[0][..], &varint(1 << 30)].concat()));
    let full = full.unwrap();
    assert_eq!(full.ones(), 1 << 30);
    let empty = StandardFilter::with_shape(shape).unwrap();
    let body = [&[0, 0][..], &varint(1 << 30), &[0]].concat();
    let delta = delta_of(&empty, plain(&full), &body);
    let updated = Decoder::new().limit(1 << 27).apply(&empty.into(), &delta).unwrap();
    assert_eq!(updated, full);
}

/// Where nearly all digests are named by the few left out, a frame of some bytes once stood
/// for a list of 2^36 positions.
#[test]
fn more_than_half_of_all_digests_are_refused() {
    let shape = Shape::new(1 << 20, 64).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    for count in [1u64 << 20, (1 << 20) - 1, (1 << 19) + 1] {
        let body = [&[1, 1][..], &varint(count), &[0x81, 0x80, 0x80, 4, 0, 0]].concat();
        let refused = Decoder::new().apply(&old.clone().into(), &delta_of(&old, &old, &body));
        let expected = DecodeError::Malformed("more numbers than there can be");
        assert_eq!(refused, Err(expected), "{count} digests");
    }
}

/// The sender then names bits instead.
#[test]
fn a_sender_of_nearly_all_digests_names_bits() {
    let shape = Shape::new(64, 2).unwrap().with_digest_bits(DigestBits::new(3).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    let digests: Vec<Digest> =
        (0..7).filter_map(|digest| Digest::from_raw(digest, shape.digest_bits())).collect();
    let mut new = old.clone();
    new.insert_digests(&digests);
    let delta = encode_delta(&old, &new, &digests).unwrap();
    assert_eq!(Decoder::new().apply(&old.into(), &delta), Ok(new.into()));
}

/// As many bits as were set, but others.
#[test]
fn digests_of_other_keys_are_not_sent() {
    let shape = Shape::new(1 << 16, 12).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    let (mut new, mut other) = (old.clone(), old.clone());
    new.insert("added");
    other.insert("told");
    assert_eq!(new.bits().ones(), other.bits().ones());
    let message = old.scheme().digest(b"told");
    let delta = encode_delta(&old, &new, &[message]).unwrap();
    assert_eq!(Decoder::new().apply(&old.into(), &delta), Ok(new.into()));
}

/// A digest longer than the shape's has the positions of a shorter one, but no number on the
/// wire: it was sent all the same, and nobody could read the delta.
#[test]
fn digests_of_another_length_are_not_sent() {
    let shape = Shape::new(1 << 16, 12).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    let short = Digest::from_raw(12345, shape.digest_bits()).unwrap();
    let long = Digest::from_raw(12345 | 1 << 20, DigestBits::FULL).unwrap();
    let mut new = old.clone();
    new.insert_digest(short);
    let delta = encode_delta(&old, &new, &[long]).unwrap();
    assert_eq!(Decoder::new().apply(&old.into(), &delta), Ok(new.into()));
}
