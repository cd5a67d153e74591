//! Commands of a Redis client, behind the parser.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::resp_command(bytes));
