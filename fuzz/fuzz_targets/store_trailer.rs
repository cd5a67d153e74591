//! Head and trailer of a master survive any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_store::format::trailer::{Head, Trailer};

fuzz_target!(|bytes: &[u8]| {
    let _ = Head::decode(bytes);
    let _ = Trailer::decode(bytes);
});
