//! A page survives any bytes, however it is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_store::format::page::{Page, UNIT, is_sound};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (bytes, key) = input;
    let _ = is_sound(bytes, 1, 1);
    let mut whole = bytes.to_vec();
    whole.resize(UNIT, 0);
    for page in [Page::new(bytes), Page::new(&whole)].into_iter().flatten() {
        for among in [0..page.len(), 0..usize::MAX, 1..2, 5..3] {
            let _ = page.find(key, among);
        }
        let _ = page.lower_bound(key);
        for i in 0..page.len() {
            let _ = page.record(i);
        }
    }
});
