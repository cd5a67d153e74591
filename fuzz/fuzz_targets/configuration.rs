//! A configuration file: refused in words, or settings that keep what they promise.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| umbel_node::fuzzing::configuration(bytes));
