//! Bytes of a Redis client, cut anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::resp_request(bytes));
