//! What a host says of itself, from any host in reach.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::greeting(bytes));
