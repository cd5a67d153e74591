//! Filters: standard, blocked, counting, and dynamic ones that grow and shrink.
//!
//! | kind | adds | removes | grows | bits per key at 1 % |
//! |---|---|---|---|---|
//! | [`StandardFilter`] | yes | no | no | 9.6 |
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
pub use counting::CountingFilter;
pub use dynamic::{ComponentId, DynamicFilter, Merge, Removal};
pub use estimate::{estimate_intersection, estimate_items, estimate_union};
pub(crate) use slices::slices_bytes;
pub use standard::StandardFilter;
pub(crate) use standard::{claims, claims_of};

use crate::key_hash::Digest;

/// Anything that can be asked whether it may hold a key.
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
    /// Whether the key may be held.
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

extend!(StandardFilter);
extend!(BlockedFilter);
extend!(CountingFilter);
extend!(DynamicFilter);
extend!(DynamicFilter<StandardFilter>);

/// How many keys a batch works on at once: enough to hide a memory access behind the
/// others, few enough that their prefetched lines are still there when their turn comes.
const BATCH: usize = 32;

/// How many keys a batch of questions works on at once: each round asks for few lines a key,
/// and the last ones for few keys, so that only many keep the memory busy.
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
