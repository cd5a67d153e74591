//! Numbers at their ends: full filters, largest counts, longest shapes.

use super::*;

/// The fill of two full filters tells nothing of their intersection, which was said to hold
/// the largest number of keys. Such a filter could not be read again, and the next key
/// overflowed.
#[test]
fn the_intersection_of_full_filters_travels_and_keeps_counting() {
    let shape = Shape::new(1, 1).unwrap();
    let mut full = StandardFilter::with_shape(shape).unwrap();
    full.insert("a");
    let twin = full.clone();
    full.intersect_with(&twin).unwrap();
    assert_eq!(full.items(), 1, "no more than either side");
    assert_eq!(Decoder::new().filter(&encode(&full)), Ok(full.clone().into()));
    full.insert("b");
    assert_eq!(full.items(), 2);
}

#[test]
fn components_with_the_largest_numbers_of_items_do_not_overflow() {
    let max = varint(u64::MAX);
    let component = |id: u8| [&[id, 0][..], &max, &[0]].concat();
    for capacity in [1, u64::MAX] {
        let head = [&varint(capacity)[..], &[8, 2, 0, 2]].concat();
        let body = [head, component(0), component(1)].concat();
        let bytes = snapshot(4, &Shape::new(100, 3).unwrap(), &body);
        let filter = Decoder::new().filter(&bytes).unwrap();
        assert_eq!(filter.items(), u64::MAX);
        use_up(&filter);
    }
}

#[test]
fn stuck_counters_travel() {
    let mut filter = CountingFilter::with_shape(Shape::new(130, 3).unwrap()).unwrap();
    (0..40).for_each(|_| {
        filter.insert("a");
    });
    assert!(filter.stuck_counters() > 0);
    let received = Decoder::new().filter(&encode(&filter)).unwrap();
    assert_eq!(received, filter.clone().into());
    assert_eq!(received.stuck_counters(), filter.stuck_counters());
    let empty = CountingFilter::with_shape(Shape::new(130, 3).unwrap()).unwrap();
    for (old, new) in [(&filter, &empty), (&empty, &filter)] {
        let delta = encode_delta(old, new, &[]).unwrap();
        let updated = Decoder::new().apply(&old.clone().into(), &delta).unwrap();
        assert_eq!(updated, new.clone().into());
        validate(&updated);
    }
}

/// Levels of counters that do not nest, as no honest writer makes them.
#[test]
fn levels_that_do_not_nest_leave_no_counter_outside_its_range() {
    let shape = Shape::new(64, 1).unwrap();
    let mut old = CountingFilter::with_shape(shape).unwrap();
    (0..9).for_each(|_| {
        old.insert("a");
    });
    // Fifteen levels; each sets all of its zeros and clears all of its ones.
    let mut body = vec![0, 15];
    for level in 1..=15u8 {
        let ones = u8::from(level <= 9);
        body.extend([64 - ones, ones]);
    }
    let header = delta_header(2, &shape);
    let mut bytes = header.clone();
    // A first try tells the checksums that it should have had.
    bytes.extend([0; 16]);
    bytes.extend(&body);
    let base = AnyFilter::from(old);
    let Err(DecodeError::WrongBase { have, .. }) = Decoder::new().apply(&base, &seal(bytes)) else {
        panic!("the base has another checksum");
    };
    let with = |result: u64| {
        let sums = [have.to_le_bytes(), result.to_le_bytes()].concat();
        Decoder::new().apply(&base, &seal([&header[..], &sums, &body].concat()))
    };
    let Err(DecodeError::WrongResult { found, .. }) = with(0) else {
        panic!("the result has another checksum");
    };
    let crafted = with(found).unwrap();
    validate(&crafted);
    assert_eq!(crafted.ones(), 64);
}

#[test]
fn a_dynamic_filter_that_contradicts_itself_is_refused() {
    let shape = Shape::new(8, 1).unwrap();
    // Capacity, most components, next id, aliases, components.
    let bodies: [&[u8]; 12] = [
        &[0, 8, 1, 0, 1, 0, 0, 0, 0],             // no capacity
        &[1, 0, 1, 0, 1, 0, 0, 0, 0],             // no components allowed
        &[1, 8, 1, 0, 0],                         // no component
        &[1, 8, 1, 0, 1, 1, 0, 0, 0],             // an id never given
        &[1, 8, 2, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0], // ids descend
        &[1, 8, 2, 0, 2, 1, 0, 0, 0, 1, 0, 0, 0], // an id twice
        &[1, 8, 1, 0, 1, 0, 1, 0, 0, 0, 0],       // a change against nothing
        &[1, 8, 1, 0, 1, 0, 2, 0, 0],             // an unknown kind
        &[1, 8, 2, 1, 1, 1, 1, 0, 0, 0, 0],       // an alias of itself
        &[1, 8, 2, 1, 0, 0, 1, 0, 0, 0, 0],       // an alias that lives
        &[1, 8, 2, 1, 2, 0, 1, 0, 0, 0, 0],       // an alias never given
        &[1, 8, 3, 2, 2, 0, 1, 0, 1, 0, 0, 0, 0], // aliases descend
    ];
    for body in bodies {
        let refused = Decoder::new().filter(&snapshot(4, &shape, body));
        assert!(matches!(refused, Err(DecodeError::Malformed(_))), "{body:?}: {refused:?}");
    }
    // Ids are left for components to come.
    for (next_id, is_valid) in [(1_u64 << 31, true), ((1 << 31) + 1, false), (1 << 32, false)] {
        let body = [&[1, 8][..], &varint(next_id), &[0, 1, 0, 0, 0, 0]].concat();
        assert_eq!(Decoder::new().filter(&snapshot(4, &shape, &body)).is_ok(), is_valid);
    }
    let is_valid = snapshot(4, &shape, &[1, 8, 2, 1, 1, 0, 1, 0, 0, 0, 0]);
    let AnyFilter::PlainDynamic(filter) = Decoder::new().filter(&is_valid).unwrap() else {
        panic!("a dynamic filter of plain components");
    };
    assert_eq!(filter.components()[0].0, ComponentId(0));
}

#[test]
fn flips_agree_with_the_bits_they_came_from() {
    let zeros = BitVector::zeros(Bits::new(200).unwrap()).unwrap();
    let mut ones = zeros.clone();
    [0, 63, 64, 199].into_iter().for_each(|position| {
        ones.set(position);
    });
    let flips = Flips::between(&zeros, &ones);
    assert_eq!((flips.sets.len(), flips.clears.len()), (4, 0));
    let mut bits = zeros.clone();
    flips.apply(&mut bits);
    assert_eq!(bits, ones);
    Flips::between(&ones, &zeros).apply(&mut bits);
    assert_eq!(bits, zeros);
}
