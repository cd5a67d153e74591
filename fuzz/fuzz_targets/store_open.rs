//! A store whose files are damaged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_fuzz::store::store_open(bytes));
