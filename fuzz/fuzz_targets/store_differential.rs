//! Header and records of a differential file survive any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_store::format::record::{Header, Record};

fuzz_target!(|bytes: &[u8]| {
    let salt = Header::decode(bytes).map_or(0, |header| header.salt);
    let mut rest = bytes;
    while let Ok(record) = Record::decode(salt, rest) {
        let mut again = Vec::new();
        record.encode(salt, &mut again);
        rest = &rest[again.len()..];
    }
});
