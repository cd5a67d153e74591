//! Searches the few records of a page that can match, if all have the same length.

/// The value of the key `rest` among rows of `len` bytes; each row is a key without its prefix,
/// followed by a value. `None` if the full search has to decide. The first eight bytes of all rows
/// are compared, without a branch: a binary search with mispredicted branches waits for memory at
/// each of them, and keeps the processor from other work such as the next lookup.
#[inline(always)]
pub(super) fn find<'a>(rows: &'a [u8], len: usize, rest: &[u8]) -> Option<Option<&'a [u8]>> {
    let wanted = u64::from_ne_bytes(*rest.first_chunk()?);
    let (mut at, mut found) = (0, usize::MAX);
    while let Some(start) = rows.get(at..).and_then(|rows| rows.first_chunk()) {
        let is_it = u64::from_ne_bytes(*start) == wanted;
        found = std::hint::select_unpredictable(is_it, at, found);
        at += len;
    }
    if found == usize::MAX {
        return Some(None);
    }
    let (key, value) = rows.get(found..found + len)?.split_at_checked(rest.len())?;
    // Two keys may have the same first eight bytes.
    is_same(key, rest).then_some(Some(value))
}

/// Whether two keys of equal length, at least eight, are equal: inlined, eight bytes at a time.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let (Some(last_a), Some(last_b)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) else {
        return a == b;
    };
    let pairs = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let differ = |a: &[u8; 8], b: &[u8; 8]| u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b);
    pairs.fold(differ(last_a, last_b), |all, (a, b)| all | differ(a, b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn finds_what_a_map_finds(
            records in prop::collection::btree_map(
                prop::collection::vec(0u8..3, 12), prop::collection::vec(any::<u8>(), 3), 0..20),
            asked in prop::collection::vec(prop::collection::vec(0u8..3, 12), 20),
        ) {
            let records: BTreeMap<Vec<u8>, Vec<u8>> = records;
            let rows: Vec<u8> =
                records.iter().flat_map(|(key, value)| [&key[..], value].concat()).collect();
            for key in asked.iter().chain(records.keys()) {
                if let Some(found) = find(&rows, 15, key) {
                    prop_assert_eq!(found, records.get(key).map(|value| &value[..]));
                }
            }
        }

        #[test]
        fn same_is_equal(a in prop::collection::vec(0u8..2, 0..30), at in 0usize..30) {
            let mut b = a.clone();
            prop_assert!(is_same(&a, &b));
            if let Some(byte) = b.get_mut(at) {
                *byte ^= 1;
                prop_assert!(!is_same(&a, &b));
            }
        }
    }
}
