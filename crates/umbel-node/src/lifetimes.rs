//! When keys of one set expire, for keys that have a lifetime.
//!
//! Times are milliseconds since 1970, so that they stay valid after a restart.

use std::collections::{BTreeSet, HashMap};

#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    ends: HashMap<Box<[u8]>, u64>,
    order: BTreeSet<(u64, Box<[u8]>)>,
}

impl Lifetimes {
    /// Sets when a key expires (`None`: never); returns whether that changes anything.
    pub(crate) fn set(&mut self, key: &[u8], at: Option<u64>) -> bool {
        let before = match at {
            Some(at) => self.ends.insert(key.into(), at),
            None => self.ends.remove(key),
        };
        if before == at {
            return false;
        }
        if let Some(before) = before {
            self.order.remove(&(before, key.into()));
        }
        if let Some(at) = at {
            self.order.insert((at, key.into()));
        }
        true
    }

    /// When the next key expires.
    pub(crate) fn next(&self) -> Option<u64> {
        self.order.first().map(|(at, _)| *at)
    }

    /// At most `max` keys that have expired by `now`: those that expired first.
    pub(crate) fn expired(&self, now: u64, max: usize) -> Vec<Box<[u8]>> {
        let expired = self.order.iter().take_while(|(at, _)| *at <= now).take(max);
        expired.map(|(_, key)| key.clone()).collect()
    }

    /// Whether a key has expired by `now`.
    pub(crate) fn is_expired(&self, key: &[u8], now: u64) -> bool {
        self.ends.get(key).is_some_and(|at| *at <= now)
    }

    /// The number of keys that have a lifetime.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_expire_in_order_and_once() {
        let mut lifetimes = Lifetimes::default();
        assert!(lifetimes.set(b"b", Some(20)) && lifetimes.set(b"a", Some(10)));
        assert!(lifetimes.set(b"c", Some(30)) && !lifetimes.set(b"c", Some(30)));
        assert_eq!(lifetimes.next(), Some(10));
        assert!(lifetimes.set(b"a", Some(25)), "seen again: lives longer");
        assert!(lifetimes.set(b"c", None), "for ever now");
        assert_eq!(lifetimes.expired(9, 10), Vec::<Box<[u8]>>::new());
        assert_eq!(lifetimes.expired(30, 1), [Box::from(*b"b")]);
        assert!(lifetimes.is_expired(b"b", 20) && !lifetimes.is_expired(b"b", 19));
        assert!(lifetimes.set(b"b", None) && !lifetimes.is_expired(b"b", 20));
        assert_eq!(lifetimes.expired(30, 10), [Box::from(*b"a")]);
        assert!(lifetimes.set(b"a", None));
        assert_eq!((lifetimes.next(), lifetimes.len()), (None, 0));
    }
}
