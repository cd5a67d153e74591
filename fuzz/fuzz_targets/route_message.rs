//! Messages to a host of an overlay.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_fuzz::replica::route_message(bytes));
