//! Head and trailer of a master or sorted file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_fuzz::store::store_trailer(bytes));
