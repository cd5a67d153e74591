//! Opening and reading a store survives any damage to its files, checksums put right or not.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use umbel_store::storage::Storage;
use umbel_store::storage::testing::{Fate, TestDisk};
use umbel_store::{Options, Store};

fn options() -> Options {
    Options::new().background(false).memory_budget(2200).integrate_bytes(1 << 30).filter_bits(1024)
}

/// Long enough for what is left of it behind a page's prefix to be searched by heads.
fn key(i: u32) -> [u8; 12] {
    let mut key = [7; 12];
    key[..4].copy_from_slice(&i.wrapping_mul(0x9E37_79B9).to_be_bytes());
    key
}

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    thread_local! {
        static SOUND: TestDisk = {
            let disk = TestDisk::new();
            let store = Store::open_on(Arc::new(disk.clone()), options()).expect("opens");
            for i in 0..80u32 {
                store.put(&key(i), &[i as u8; 20]).expect("puts");
                if i == 30 {
                    store.integrate().expect("integrates");
                }
            }
            disk
        };
    }
    let (file, at, junk) = input;
    let disk = SOUND.with(|disk| disk.crash(Fate::KeepAll));
    let names = disk.list().expect("lists");
    let name = &names[file as usize % names.len()];
    let mut bytes = disk.bytes(name).expect("reads");
    for (place, byte) in bytes.iter_mut().skip(at as usize).zip(junk) {
        *place ^= byte;
    }
    disk.set_bytes(name, bytes);
    if let Ok(store) = Store::open_on(Arc::new(disk), options()) {
        let _ = store.verify(|_| {});
        let _ = store.stat();
        for record in store.scan(..).into_iter().flatten() {
            let _ = record;
        }
        for i in 0..100 {
            let _ = store.get(&key(i));
        }
        let _ = store.put(b"key", b"value");
    }
});
