//! Sorts many keys that are scattered in memory, reading each key a few times instead of at every
//! comparison.
//!
//! The prefix that all keys share is skipped; the eight bytes after it are compared as a number.
//! Keys whose numbers are equal are sorted again among themselves, by the eight bytes after the
//! prefix that *they* share, and so on. So one key that differs from the others costs nothing.

use crate::format::{head, shared_prefix};

/// Sorts entries by their keys.
pub(crate) fn sort<'a>(entries: &mut [u32], key: impl Fn(u32) -> &'a [u8]) {
    let mut keyed: Vec<(u64, u32)> = entries.iter().map(|&entry| (0, entry)).collect();
    let shared = shared(&keyed, 0, &key);
    sort_after(&mut keyed, shared, &key);
    for (place, (_, entry)) in entries.iter_mut().zip(keyed) {
        *place = entry;
    }
}

/// Sorts keys that share their first bytes.
fn sort_after<'a>(keyed: &mut [(u64, u32)], shared: usize, key: &impl Fn(u32) -> &'a [u8]) {
    for (number, entry) in keyed.iter_mut() {
        *number = head(&key(*entry)[shared..]);
    }
    keyed.sort_unstable_by_key(|(number, _)| *number);
    for alike in keyed.chunk_by_mut(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1) {
        let more = if alike.len() > FEW { self::shared(alike, shared, key) } else { 0 };
        if more >= shared + 8 {
            sort_after(alike, more, key);
        } else {
            // Only a few keys, or one of them ends here and is equal only because of its zero
            // padding.
            alike.sort_unstable_by(|a, b| key(a.1).cmp(key(b.1)));
        }
    }
}

/// Length of the prefix that all keys share; they are known to share the first `known` bytes.
fn shared<'a>(keyed: &[(u64, u32)], known: usize, key: &impl Fn(u32) -> &'a [u8]) -> usize {
    let Some(&(_, first)) = keyed.first() else { return 0 };
    let first = &key(first)[known..];
    let more = keyed
        .iter()
        .fold(first.len(), |more, &(_, entry)| shared_prefix(&first[..more], &key(entry)[known..]));
    known + more
}

/// At most this many keys are compared directly.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(keys: &[Vec<u8>]) -> Vec<&[u8]> {
        let mut entries: Vec<u32> = (0..keys.len() as u32).collect();
        sort(&mut entries, |entry| &keys[entry as usize]);
        entries.iter().map(|&entry| &keys[entry as usize][..]).collect()
    }

    proptest! {
        #[test]
        fn sorts_as_comparing_does(
            tails in prop::collection::vec(prop::collection::vec(0u8..3, 0..20), 0..200),
            prefixes in prop::collection::vec(prop::collection::vec(0u8..2, 0..30), 1..4),
        ) {
            let keys: Vec<Vec<u8>> = tails.iter().enumerate()
                .map(|(i, tail)| [&prefixes[i % prefixes.len()][..], tail].concat())
                .collect();
            let mut expected: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            expected.sort_unstable();
            prop_assert_eq!(sorted(&keys), expected);
        }
    }

    #[test]
    fn a_key_that_ends_where_others_go_on_with_zeros_comes_first() {
        let keys: Vec<Vec<u8>> = (0..100).rev().map(|zeros| vec![0; zeros]).collect();
        let expected: Vec<&[u8]> = keys.iter().rev().map(|key| &key[..]).collect();
        assert_eq!(sorted(&keys), expected);
    }
}
