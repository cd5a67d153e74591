//! Plain strings of `SET` and `GET`: few and small, for programs that need a key that is not a
//! filter.
//!
//! They are kept in the memory of this port: they are not sent to other hosts, and are lost when
//! the host stops.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::database::Database;

/// The number of a database, and a key.
type Place = (u8, Box<[u8]>);

/// The strings of a port.
#[derive(Debug, Default)]
pub(super) struct Strings {
    values: Mutex<HashMap<Place, Box<[u8]>>>,
    /// Their number, checked by filter commands without a lock: usually there are none.
    count: AtomicUsize,
}

/// A string was rejected: there are too many, or it is too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Strings {
    pub(super) const MAX_COUNT: usize = 1024;
    /// Maximum length of a key and of a value, in bytes.
    pub(super) const MAX_BYTES: usize = 1024;

    pub(super) fn set(&self, of: Database, key: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        let mut values = self.values.lock();
        let place = place(of, key);
        let is_full = values.len() >= Self::MAX_COUNT && !values.contains_key(&place);
        if is_full || key.len() > Self::MAX_BYTES || value.len() > Self::MAX_BYTES {
            return Err(NoRoom);
        }
        values.insert(place, value.into());
        self.count.store(values.len(), Ordering::SeqCst);
        Ok(())
    }

    pub(super) fn get(&self, of: Database, key: &[u8]) -> Option<Box<[u8]>> {
        if self.count.load(Ordering::SeqCst) == 0 || key.len() > Self::MAX_BYTES {
            return None;
        }
        self.values.lock().get(&place(of, key)).cloned()
    }

    pub(super) fn contains(&self, of: Database, key: &[u8]) -> bool {
        self.get(of, key).is_some()
    }

    /// Deletes a string; returns whether it existed.
    pub(super) fn remove(&self, of: Database, key: &[u8]) -> bool {
        let mut values = self.values.lock();
        let was_there = values.remove(&place(of, key)).is_some();
        self.count.store(values.len(), Ordering::SeqCst);
        was_there
    }

    /// Deletes all strings of one database, or of all databases.
    pub(super) fn clear(&self, of: Option<Database>) {
        let mut values = self.values.lock();
        values.retain(|(number, _), _| of.is_some_and(|of| of.number() != *number));
        self.count.store(values.len(), Ordering::SeqCst);
    }
}

fn place(of: Database, key: &[u8]) -> Place {
    (of.number(), key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_of_their_database_and_bounded() {
        let (strings, zero) = (Strings::default(), Database::default());
        let one = Database::new(1).unwrap();
        assert_eq!(strings.get(zero, b"a"), None);
        strings.set(zero, b"a", b"1").unwrap();
        strings.set(one, b"a", b"2").unwrap();
        assert_eq!(strings.get(one, b"a").as_deref(), Some(&b"2"[..]));
        assert!(strings.remove(one, b"a") && !strings.remove(one, b"a"));
        assert!(strings.contains(zero, b"a") && !strings.contains(one, b"a"));
        for place in 1..Strings::MAX_COUNT {
            strings.set(one, place.to_string().as_bytes(), b"").unwrap();
        }
        assert_eq!(strings.set(one, b"more", b""), Err(NoRoom));
        strings.set(zero, b"a", b"another").unwrap();
        assert_eq!(strings.set(zero, b"a", &[0; Strings::MAX_BYTES + 1]), Err(NoRoom));
        strings.clear(Some(one));
        assert!(strings.contains(zero, b"a") && !strings.contains(one, b"1"));
        strings.clear(None);
        assert!(!strings.contains(zero, b"a"));
    }
}
