//! Keys as numbers, and a catalogue of them.
//!
//! Histories number their keys, so that catalogues hash eight bytes instead of names. The order in
//! which the catalogue returns its keys depends only on its history: a filter that is rebuilt is
//! the same in every run.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use umbel::catalogue::Catalogue;
use umbel::filter::ComponentId;

/// A key of a history.
pub(crate) type Id = u64;

/// A map by key, with the same order in every run.
pub(crate) type IdMap<V> = HashMap<Id, V, BuildHasherDefault<IdHasher>>;

/// The bytes that a home hashes.
pub(crate) const fn bytes(id: Id) -> [u8; 8] {
    id.to_be_bytes()
}

/// The exact keys of one host.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    keys: IdMap<ComponentId>,
}

impl Ids {
    fn id(key: &[u8]) -> Id {
        Id::from_be_bytes(key.try_into().expect("homes of the lab see keys of eight bytes"))
    }
}

impl Catalogue for Ids {
    fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains_key(&Self::id(key))
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        self.keys.insert(Self::id(key), component);
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        self.keys.remove(&Self::id(key))
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        self.keys.iter().for_each(|(id, component)| show(&bytes(*id), *component));
    }

    fn len(&self) -> u64 {
        self.keys.len() as u64
    }
}

/// A hasher of one multiplication: ids are not chosen by an attacker.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(number ^ self.0) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
