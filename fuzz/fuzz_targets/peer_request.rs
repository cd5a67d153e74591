//! What one host asks another.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::peer_request(bytes));
