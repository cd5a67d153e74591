//! The cursors of filter dumps: `SCANDUMP` uses numbers as cursors, catalogues use bytes.
//!
//! A limited number of cursors is kept. Beyond it the least recently used ones are dropped, and a
//! client that uses a dropped one must start again.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The cursor at which a dump's keys begin, after its header.
pub(super) const BEGIN: i64 = 1;
/// The cursor that comes with a dump's last keys: nothing is left.
pub(super) const END: i64 = 2;

/// The cursors of the dumps of all clients of a port.
#[derive(Debug)]
pub(super) struct Dumps {
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    next: i64,
    /// The least recently used first.
    known: VecDeque<Place>,
}

#[derive(Debug)]
struct Place {
    number: i64,
    set: Box<str>,
    cursor: Vec<u8>,
}

impl Default for Dumps {
    fn default() -> Self {
        Self { places: Mutex::new(Places { next: END + 1, known: VecDeque::new() }) }
    }
}

impl Dumps {
    /// Maximum number of cursors; each takes as much memory as a key.
    const MAX_PLACES: usize = 128;

    /// Stores a cursor and returns its number.
    pub(super) fn note(&self, set: &str, cursor: Vec<u8>) -> i64 {
        let mut places = self.places.lock();
        let number = places.next;
        places.next += 1;
        if places.known.len() == Self::MAX_PLACES {
            places.known.pop_front();
        }
        places.known.push_back(Place { number, set: set.into(), cursor });
        number
    }

    /// The cursor of this number in a dump of this set.
    pub(super) fn find(&self, set: &str, number: i64) -> Option<Vec<u8>> {
        if number == BEGIN {
            return Some(Vec::new());
        }
        let mut places = self.places.lock();
        let is_it = |place: &Place| place.number == number && &*place.set == set;
        let at = places.known.iter().position(is_it)?;
        let place = places.known.remove(at)?;
        let cursor = place.cursor.clone();
        places.known.push_back(place);
        Some(cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_until_many_others_came() {
        let dumps = Dumps::default();
        assert_eq!(dumps.find("a", BEGIN), Some(Vec::new()));
        let first = dumps.note("a", vec![1]);
        assert!(first > END);
        for other in 0..Dumps::MAX_PLACES - 1 {
            dumps.note("b", vec![other as u8]);
            assert_eq!(dumps.find("a", first), Some(vec![1]), "asked for lately");
        }
        let last = dumps.note("b", vec![7]);
        assert_eq!(dumps.find("b", last), Some(vec![7]));
        for _ in 0..Dumps::MAX_PLACES {
            dumps.note("b", Vec::new());
        }
        assert_eq!(dumps.find("a", first), None);
        let other = dumps.note("a", vec![1]);
        assert_eq!(dumps.find("b", other), None, "of another set");
    }
}
