//! Reassembles adverts that arrive in several messages.
//!
//! Always true: only parts of the same version are combined, and at most `max_bytes` bytes are
//! buffered.

use std::collections::BTreeMap;

use super::message::{Advert, Version};
use crate::replica::Name;

/// Parts that wait for the others, by home.
#[derive(Debug, Default)]
pub(super) struct Parts {
    waiting: BTreeMap<Name, Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    version: Version,
    parts: BTreeMap<u32, Vec<u8>>,
}

impl Parts {
    /// Stores a part. Returns the advert with all its bytes once all parts have arrived.
    pub(super) fn take(&mut self, mut advert: Advert, max_bytes: usize) -> Option<Advert> {
        if advert.parts == 1 {
            self.forget(&advert.home);
            return Some(advert);
        }
        let version = advert.version;
        if self.waiting.get(&advert.home).is_some_and(|waiting| waiting.version != version) {
            self.forget(&advert.home);
        }
        if self.bytes + cost(&advert.bytes) > max_bytes {
            self.waiting.clear();
            self.bytes = 0;
            return None;
        }
        let waiting = self
            .waiting
            .entry(advert.home.clone())
            .or_insert_with(|| Waiting { version, parts: BTreeMap::new() });
        self.bytes += cost(&advert.bytes);
        if let Some(again) = waiting.parts.insert(advert.part, std::mem::take(&mut advert.bytes)) {
            self.bytes -= cost(&again);
        }
        if waiting.parts.len() < advert.parts as usize {
            return None;
        }
        advert.bytes = waiting.parts.values().flatten().copied().collect();
        self.forget(&advert.home);
        Some(advert)
    }

    fn forget(&mut self, home: &Name) {
        let gone = self.waiting.remove(home);
        let parts = gone.iter().flat_map(|waiting| waiting.parts.values());
        self.bytes -= parts.map(|part| cost(part)).sum::<usize>();
    }
}

/// Memory charged for a part, with a fixed overhead.
const fn cost(part: &[u8]) -> usize {
    part.len() + 64
}
