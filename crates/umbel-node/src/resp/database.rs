//! Redis's numbered databases, mapped to names of sets.
//!
//! A host has one namespace of sets. A key of database 0 is the set of that name; the key `k` of
//! database 3 is the set `@3:k`. Commands of umbel take names of sets and ignore databases.

use std::borrow::Cow;

/// The database that a connection has selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Database(u8);

impl Database {
    /// The number of databases: Redis's default.
    pub(super) const COUNT: u8 = 16;

    /// The database of this number, if there is one.
    pub(super) const fn new(number: u8) -> Option<Self> {
        if number < Self::COUNT { Some(Self(number)) } else { None }
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    /// The name of the set for a key.
    pub(super) fn set_of(self, key: &str) -> Cow<'_, str> {
        match self.0 {
            0 => Cow::Borrowed(key),
            number => Cow::Owned(format!("@{number}:{key}")),
        }
    }

    /// The database of a set, and its key there.
    pub(super) fn key_of(set: &str) -> (Self, &str) {
        let numbered = || {
            let (number, key) = set.strip_prefix('@')?.split_once(':')?;
            let database = Self::new(number.parse().ok()?)?;
            // Other spellings, such as `@0:` and `@03:`, are plain names in database 0.
            (database.0 > 0 && database.0.to_string() == number).then_some((database, key))
        };
        numbered().unwrap_or((Self(0), set))
    }

    /// The key of a set in this database, if it belongs to it.
    pub(super) fn key_in(self, set: &str) -> Option<&str> {
        let (database, key) = Self::key_of(set);
        (database == self).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_a_key_of_one_database() {
        let of = |number| Database::new(number).unwrap();
        for (number, key) in [(0, "a"), (1, "a"), (15, "@a:b"), (3, "@4:a"), (2, "")] {
            let set = of(number).set_of(key);
            assert_eq!(Database::key_of(&set), (of(number), key), "{set}");
        }
        for set in ["@", "@:a", "@0:a", "@03:a", "@16:a", "@1a:b", "@+1:a", "a@1:b"] {
            assert_eq!(Database::key_of(set), (of(0), set));
        }
        assert_eq!((of(1).key_in("@1:a"), of(0).key_in("@1:a")), (Some("a"), None));
        assert_eq!((of(0).key_in("a"), of(1).key_in("a")), (Some("a"), None));
        assert_eq!(Database::new(16), None);
    }
}
