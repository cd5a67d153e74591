//! An LRU cache.
//!
//! A linked list in an array, with the newest entry first: a hit moves an entry to the front, and a
//! full cache evicts its last entry, both in constant time.

use super::ids::{Id, IdMap};

/// The keys that were requested most recently.
#[derive(Debug)]
pub(crate) struct Lru {
    capacity: usize,
    places: IdMap<usize>,
    entries: Vec<Entry>,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct Entry {
    id: Id,
    newer: usize,
    older: usize,
}

/// Result of a request to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// The key was there.
    Hit,
    /// The key was added; a full cache evicted another key for it.
    Miss { evicted: Option<Id> },
}

const NOWHERE: usize = usize::MAX;

impl Lru {
    /// An empty cache with room for `capacity` keys, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            places: IdMap::default(),
            entries: Vec::new(),
            newest: NOWHERE,
            oldest: NOWHERE,
        }
    }

    /// Whether a key is in the cache; does not change its age.
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.places.contains_key(&id)
    }

    /// Number of keys in the cache.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Requests a key, which becomes the newest.
    pub(crate) fn request(&mut self, id: Id) -> Request {
        if let Some(place) = self.places.get(&id).copied() {
            self.unlink(place);
            self.link(place);
            return Request::Hit;
        }
        let entry = Entry { id, newer: NOWHERE, older: NOWHERE };
        let (place, evicted) = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            (self.entries.len() - 1, None)
        } else {
            let place = self.oldest;
            self.unlink(place);
            let gone = std::mem::replace(&mut self.entries[place], entry).id;
            self.places.remove(&gone);
            (place, Some(gone))
        };
        self.places.insert(id, place);
        self.link(place);
        Request::Miss { evicted }
    }

    fn unlink(&mut self, place: usize) {
        let Entry { newer, older, .. } = self.entries[place];
        match self.entries.get_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Links an unlinked entry to the front.
    fn link(&mut self, place: usize) {
        let second = std::mem::replace(&mut self.newest, place);
        self.entries[place].newer = NOWHERE;
        self.entries[place].older = second;
        match self.entries.get_mut(second) {
            Some(entry) => entry.newer = place,
            None => self.oldest = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_cache_behaves_as_a_list_that_is_searched() {
        for capacity in [1, 2, 3, 10] {
            let mut cache = Lru::new(capacity);
            let mut naive: Vec<Id> = Vec::new();
            let mut random = Random::of_trial(1, "lru", capacity as u64);
            for _ in 0..2000 {
                let id = random.below(15) as Id;
                let place = naive.iter().position(|other| *other == id);
                place.map(|place| naive.remove(place));
                naive.insert(0, id);
                let evicted = if naive.len() > capacity { naive.pop() } else { None };
                let expected = place.map_or(Request::Miss { evicted }, |_| Request::Hit);
                assert_eq!(cache.request(id), expected);
            }
        }
    }
}
