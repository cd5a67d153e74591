//! Names of hosts, sets and prefixes, and how caches are asked.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::names(bytes));
