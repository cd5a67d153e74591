//! The manifest's parser survives any bytes, and what it accepts it writes back alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_store::format::manifest::Manifest;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
});
