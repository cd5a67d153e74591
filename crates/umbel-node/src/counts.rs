//! How often keys of a set were added, if more than once: cuckoo filters count.
//!
//! Always true: a key with repeats is in the set's catalogue; `total` is the sum of all repeats.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// How often each key was added after the first time.
    repeats: HashMap<Box<[u8]>, u32>,
    total: u64,
    /// Items that clients deleted since the set was created.
    deleted: u64,
}

impl Counts {
    /// How often a key was added after the first time.
    pub(crate) fn repeats(&self, key: &[u8]) -> u32 {
        self.repeats.get(key).copied().unwrap_or(0)
    }

    /// Sets the repeats of a key; returns whether that changes anything.
    pub(crate) fn set_repeats(&mut self, key: &[u8], repeats: u32) -> bool {
        let before = match repeats {
            0 => self.repeats.remove(key),
            _ => self.repeats.insert(key.into(), repeats),
        };
        let before = before.unwrap_or(0);
        self.total = self.total - u64::from(before) + u64::from(repeats);
        before != repeats
    }

    /// The keys among these that have repeats.
    pub(crate) fn repeated<'k>(&self, keys: &[&'k [u8]]) -> Vec<&'k [u8]> {
        match self.repeats.is_empty() {
            true => Vec::new(),
            false => keys.iter().copied().filter(|key| self.repeats.contains_key(*key)).collect(),
        }
    }

    /// The sum of all repeats.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Items that clients deleted since the set was created.
    pub(crate) const fn deleted(&self) -> u64 {
        self.deleted
    }

    pub(crate) const fn set_deleted(&mut self, deleted: u64) {
        self.deleted = deleted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_and_summed() {
        let mut counts = Counts::default();
        assert!(counts.set_repeats(b"a", 2) && counts.set_repeats(b"b", 1));
        assert!(!counts.set_repeats(b"a", 2) && !counts.set_repeats(b"c", 0));
        assert_eq!((counts.repeats(b"a"), counts.repeats(b"c"), counts.total()), (2, 0, 3));
        assert_eq!(counts.repeated(&[b"c", b"a"]), [b"a"]);
        assert!(counts.set_repeats(b"a", 0) && counts.set_repeats(b"b", 0));
        assert_eq!((counts.total(), counts.repeated(&[b"a"]).len()), (0, 0));
    }
}
