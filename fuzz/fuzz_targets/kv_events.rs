//! Messages of an inference engine.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_fuzz::events::events(bytes));
