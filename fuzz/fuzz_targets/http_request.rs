//! Requests of an HTTP client, behind the parser.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::http_request(bytes));
