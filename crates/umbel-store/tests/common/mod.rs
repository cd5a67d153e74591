//! What the tests of the store share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test uses its part, and fails by panicking"
)]

use std::collections::BTreeMap;

use umbel_store::{Batch, Store};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A seeded generator (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// Few enough keys to meet again; of several lengths, with common starts.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        let number = self.below(200);
        match number % 4 {
            0 => format!("https://example.com/objects/{number:05}").into_bytes(),
            1 => vec![number as u8],
            2 => [vec![0xFF; 3], number.to_be_bytes().to_vec()].concat(),
            _ => format!("{number}").into_bytes(),
        }
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        // Now and then one that is longer than a page.
        let len = if self.below(50) == 0 { 5000 + self.below(9000) } else { self.below(30) };
        let byte = self.roll() as u8;
        vec![byte; len as usize]
    }
}

/// Everything in the store is in the model, and the other way round.
pub(crate) fn check_equal(store: &Store, model: &Model) {
    let all: Vec<_> = store.scan(..).unwrap().map(Result::unwrap).collect();
    assert_eq!(all.len(), model.len());
    assert!(all.iter().map(|(k, v)| (k, v)).eq(model.iter()));
    assert_eq!(store.len(), model.len() as u64);
    for (key, value) in model {
        assert_eq!(store.get(key).unwrap().as_ref(), Some(value));
        assert!(store.contains(key).unwrap());
    }
}

/// Key number `i`: 24 bytes, spread evenly.
pub(crate) fn key(i: u64) -> Vec<u8> {
    let mut dice = Dice::new(i);
    [dice.roll(), dice.roll(), i].map(u64::to_be_bytes).concat()
}

/// Writes records `0..end` in batches.
pub(crate) fn fill(store: &Store, end: u64) {
    for start in (0..end).step_by(1000) {
        let mut batch = Batch::new();
        for i in start..(start + 1000).min(end) {
            batch.put(&key(i), &i.to_le_bytes());
        }
        store.write(batch).unwrap();
    }
}
