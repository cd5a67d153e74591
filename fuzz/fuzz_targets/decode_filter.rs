//! Any bytes decode to a sound filter or to an error.
//!
//! The last four bytes are replaced by the checksum of the others, so that the fuzzer gets
//! past it. What decodes must keep its promises, stay within the limit, and be usable: asked,
//! added to, joined with itself, merged, written, read again, and told as a delta.

#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::Digest;
use umbel::codec::{AnyFilter, Decoder};
use umbel::filter::Removal;

const LIMIT: u64 = 1 << 22;

fuzz_target!(|bytes: &[u8]| {
    let decoder = Decoder::new().limit(LIMIT).accept_locked();
    let _ = decoder.filter(bytes);
    let Some((body, _)) = bytes.split_last_chunk::<4>() else { return };
    let sealed = [body, &crc32c::crc32c(body).to_le_bytes()].concat();
    if let Ok(filter) = decoder.filter(&sealed) {
        assert!(filter.memory_bytes() as u64 <= LIMIT + 512, "the limit holds");
        use_up(filter);
    }
});

fn use_up(mut filter: AnyFilter) {
    validate(&filter);
    let old = filter.clone();
    let _ = (filter.items(), filter.ones(), filter.false_positive(), filter.stuck_counters());
    let digest_bits = filter.scheme().shape().digest_bits();
    let digest = Digest::from_raw(1, digest_bits).expect("a digest has at least one bit");
    filter.insert_digest(digest);
    assert!(filter.contains_digest(digest));
    match (&mut filter, &old) {
        (AnyFilter::Standard(a), AnyFilter::Standard(b)) => {
            a.union_with(b).expect("one scheme");
            a.intersect_with(&a.clone()).expect("one scheme");
        }
        (AnyFilter::Counting(a), AnyFilter::Counting(b)) => {
            a.union_with(b).expect("one scheme");
            a.remove_digest(digest);
        }
        (AnyFilter::Dynamic(a), AnyFilter::Dynamic(b)) => {
            a.union_with(b).expect("one scheme");
            a.shrink();
            let _: Removal = a.remove_digest(digest);
        }
        (AnyFilter::PlainDynamic(a), AnyFilter::PlainDynamic(b)) => {
            a.union_with(b).expect("one scheme");
            a.shrink();
        }
        _ => unreachable!("a copy is of the same kind"),
    }
    validate(&filter);
    let decoder = Decoder::new().accept_locked();
    assert_eq!(decoder.filter(&filter.encode()).as_ref(), Ok(&filter));
    let delta = old.delta_to(&filter, &[digest]).expect("one scheme");
    assert_eq!(decoder.apply(&old, &delta), Ok(filter));
}

fn validate(filter: &AnyFilter) {
    match filter {
        AnyFilter::Standard(filter) => filter.bits().validate(),
        AnyFilter::Counting(filter) => filter.validate(),
        AnyFilter::Dynamic(filter) => {
            filter.validate();
            filter.components().iter().for_each(|(_, component)| component.validate());
        }
        AnyFilter::PlainDynamic(filter) => filter.validate(),
    }
}
