//! Any bytes applied to a filter give a sound filter or an error, and leave it as it was.
//!
//! Frame checksum, checksum of the base and checksum of the result are put right on the way,
//! so that the fuzzer gets past them; the base is a golden file of the kind that the bytes
//! name. What a decoder accepts as a change must also be one for `decode_change`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use umbel::codec::{AnyFilter, DecodeError, Decoder, decode_change};

static BASES: LazyLock<[AnyFilter; 4]> = LazyLock::new(|| {
    let files: [&[u8]; 4] = [
        include_bytes!("../../crates/umbel/tests/golden/v1/standard.umbel"),
        include_bytes!("../../crates/umbel/tests/golden/v1/counting.umbel"),
        include_bytes!("../../crates/umbel/tests/golden/v1/dynamic.umbel"),
        include_bytes!("../../crates/umbel/tests/golden/v1/plain-dynamic.umbel"),
    ];
    files.map(|bytes| Decoder::new().filter(bytes).expect("a golden file"))
});

/// Where the kind stands, and the varint of the length.
const KIND: usize = 5;
const LENGTH: usize = 10;

fuzz_target!(|bytes: &[u8]| {
    let kind = bytes.get(KIND).map_or(0, |kind| usize::from(kind & 0x0F));
    let base = &BASES[kind.saturating_sub(1) % 4];
    let before = base.clone();
    let mut frame = bytes.to_vec();
    for _ in 0..3 {
        seal(&mut frame);
        match Decoder::new().limit(1 << 22).apply(base, &frame) {
            Ok(filter) => validate(&filter),
            Err(DecodeError::WrongBase { have, .. }) => put(&mut frame, 8, have),
            Err(DecodeError::WrongResult { found, .. }) => put(&mut frame, 16, found),
            Err(_) => break,
        }
    }
    assert_eq!(*base, before);
    if let AnyFilter::Standard(base) = base {
        let shape = base.scheme().shape();
        if let Ok(flips) = decode_change(bytes, shape, base.bits()) {
            let mut bits = base.bits().clone();
            flips.apply(&mut bits);
            bits.validate();
        }
    }
});

fn seal(frame: &mut Vec<u8>) {
    let body = frame.len().saturating_sub(4);
    let checksum = crc32c::crc32c(&frame[..body]);
    frame.truncate(body);
    frame.extend(checksum.to_le_bytes());
}

/// Puts a number behind the length; 8 bytes of fingerprint stand there first.
fn put(frame: &mut [u8], offset: usize, number: u64) {
    let Some(tail) = frame.get_mut(LENGTH..) else { return };
    let Some(last) = tail.iter().position(|byte| byte & 0x80 == 0) else { return };
    if let Some(bytes) = tail.get_mut(last + 1 + offset..last + 9 + offset) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
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
