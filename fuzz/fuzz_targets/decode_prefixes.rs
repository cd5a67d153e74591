//! A file of prefixes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_fuzz::replica::decode_prefixes(bytes));
