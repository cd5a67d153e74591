//! Filters: standard, blocked, counting, and dynamic ones that grow and shrink.
//!
//! | kind | adds | removes | grows | bits per key at 1 % |
//! |---|---|---|---|---|
//! | [`StandardFilter`] | yes | no | no | 9.6 |
//! | [`ConcurrentFilter`] | yes, from many threads | no | no | 9.6 |
//! | [`BlockedFilter`] | yes | no | no | 10.6, in one cache line per key |
//! | [`CountingFilter`] | yes | yes | no | 48 (its plain bits included) |
//! | [`DynamicFilter`] | yes | yes | yes | as its components |
//! | [`AttributeFilter`] | yes | no | yes | one filter an attribute, one for combinations |
//!
//! All promise the same: a key that was added and not removed is always claimed; a key
//! that was never added is claimed with a small, known probability. Removing a key that
//! was never added breaks the first promise for others; callers who cannot rule that out
//! keep an exact catalogue beside the filter.

mod attributes;
mod blocked;
mod component;
mod concurrent;
mod counting;
mod dynamic;
mod estimate;
mod slices;
mod standard;
#[cfg(test)]
mod tests;

pub use attributes::{Answer, AttributeError, AttributeFilter, Combinations};
pub use blocked::BlockedFilter;
pub use component::Component;
pub use concurrent::ConcurrentFilter;
pub use counting::CountingFilter;
pub use dynamic::{ComponentId, DynamicFilter, Merge, Removal};
pub use estimate::{estimate_intersection, estimate_items, estimate_union};
pub(crate) use slices::slices_bytes;
pub use standard::StandardFilter;
pub(crate) use standard::{claims, claims_in, claims_of};

use crate::key_hash::Digest;

/// Anything that can tell whether it may contain a key.
///
/// `false` is certain, `true` may be wrong with the filter's false positive rate.
///
/// ```
/// use umbel::{CountingFilter, Membership, StandardFilter};
///
/// /// What is certainly not there has to be fetched.
/// fn missing<'a>(filter: &impl Membership, keys: &[&'a str]) -> Vec<&'a str> {
///     keys.iter().copied().filter(|key| !filter.may_contain(key.as_bytes())).collect()
/// }
///
/// let mut filter = CountingFilter::for_target(1000, 0.001)?;
/// filter.insert("apple");
/// assert_eq!(missing(&filter, &["apple", "pear"]), ["pear"]);
/// assert_eq!(missing(&filter.to_standard(), &["apple", "pear"]), ["pear"]);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
pub trait Membership {
    /// Whether it may contain the key.
    #[must_use]
    fn may_contain(&self, key: &[u8]) -> bool;
}

impl Membership for StandardFilter {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl Membership for BlockedFilter {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl Membership for CountingFilter {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl<C: Component> Membership for DynamicFilter<C> {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

/// Adds all keys of an iterator.
macro_rules! extend {
    ($filter:ty) => {
        impl<K: AsRef<[u8]>> Extend<K> for $filter {
            /// Adds keys, one by one.
            ///
            /// # Panics
            /// If the hasher is locked; if a dynamic filter has no memory for another component.
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                keys.into_iter().for_each(|key| _ = self.insert(key));
            }
        }
    };
}

/// The rate of a filter that is collected from an iterator.
const COLLECTED_RATE: f64 = 0.01;

/// The fewest keys that a component of a collected filter has room for.
const COLLECTED_KEYS: u64 = 1024;

impl<K: AsRef<[u8]>> FromIterator<K> for DynamicFilter {
    /// A filter of all these keys, at 1 % false positives for each of its components. Where the
    /// number of keys is known, [`StandardFilter::for_target`] takes fewer bits.
    ///
    /// # Panics
    /// If there is no memory for it.
    ///
    /// ```
    /// use umbel::DynamicFilter;
    ///
    /// let filter: DynamicFilter = ["apple", "pear"].into_iter().collect();
    /// assert!(filter.contains("pear"));
    /// ```
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let keys = keys.into_iter();
        let expected = (keys.size_hint().0 as u64).max(COLLECTED_KEYS);
        let mut filter =
            Self::for_target(expected, COLLECTED_RATE).expect("memory for a collected filter");
        filter.extend(keys);
        filter
    }
}

extend!(StandardFilter);
extend!(BlockedFilter);
extend!(CountingFilter);
extend!(DynamicFilter);
extend!(DynamicFilter<StandardFilter>);

/// How many keys a batch works on at once: enough to overlap memory accesses, few enough that
/// prefetched lines are still in the cache when they are used.
const BATCH: usize = 32;

/// How many keys a batch of lookups works on at once. Each round prefetches few lines per key, and
/// the last rounds do so for few keys, so that many keys are needed to keep the memory busy.
const ASKED: usize = 128;

/// Runs `work` on the digests of `keys`, a batch at a time.
fn in_batches<const N: usize, K: AsRef<[u8]>>(
    keys: &[K],
    digest: impl Fn(&[u8]) -> Digest,
    mut work: impl FnMut(&[Digest]),
) {
    let mut digests = Vec::with_capacity(N);
    for batch in keys.chunks(N) {
        digests.clear();
        digests.extend(batch.iter().map(|key| digest(key.as_ref())));
        work(&digests);
    }
}
