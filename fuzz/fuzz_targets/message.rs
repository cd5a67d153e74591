//! Messages to hosts of a mesh.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_fuzz::replica::message(bytes));
