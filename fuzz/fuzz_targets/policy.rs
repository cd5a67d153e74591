//! A policy as people write it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::policy(bytes));
