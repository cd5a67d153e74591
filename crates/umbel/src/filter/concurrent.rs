//! A standard filter that several threads can add to and query at the same time, without a lock.
//!
//! Always true: once an insert has returned, every thread that learns of it (through a channel, a
//! lock, a joined thread) finds the key. Bits are only ever set, so no order between threads is
//! needed beyond that.
//!
//! Not here: removal and growth, which need more than one bit to change together.

use std::fmt;

use super::{Membership, StandardFilter};
use crate::bits::BitVector;
use crate::key_hash::{Digest, Walk};
use crate::params::ParamError;
use crate::scheme::Scheme;
use crate::sync::{AtomicU64, Ordering};

/// A [`StandardFilter`] that many threads may add to and query through a shared reference.
///
/// ```
/// use umbel::ConcurrentFilter;
///
/// let filter = ConcurrentFilter::for_target(10_000, 0.01)?;
/// std::thread::scope(|scope| {
///     for part in 0..4 {
///         let filter = &filter;
///         scope.spawn(move || (0..1000).for_each(|key| _ = filter.insert(format!("{part}/{key}"))));
///     }
/// });
/// assert!(filter.contains("3/999"));
/// assert_eq!(filter.into_standard().items(), 4000);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
pub struct ConcurrentFilter {
    scheme: Scheme,
    words: Vec<AtomicU64>,
    items: AtomicU64,
}

impl ConcurrentFilter {
    /// The smallest filter that keeps `rate` while it holds up to `items` keys.
    ///
    /// # Errors
    /// If `items` is zero, `rate` is not between 0 and 1, or there is no memory for it.
    pub fn for_target(items: u64, rate: f64) -> Result<Self, ParamError> {
        StandardFilter::for_target(items, rate).map(Self::from)
    }

    /// An empty filter of this shape and hasher.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(scheme: Scheme) -> Result<Self, ParamError> {
        StandardFilter::new(scheme).map(Self::from)
    }

    /// Adds a key; returns whether the filter changed. If several threads add the same new key at
    /// once, more than one of them may get `true`.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn insert(&self, key: impl AsRef<[u8]>) -> bool {
        self.insert_digest(self.scheme.digest(key.as_ref()))
    }

    /// Adds a key by its digest; returns whether the filter changed.
    pub fn insert_digest(&self, digest: Digest) -> bool {
        let mut walk = Walk::new(digest, self.scheme.shape());
        let mut has_changed = false;
        for _ in 0..self.scheme.shape().hashes() {
            let position = walk.next();
            let (word, bit) = (&self.words[(position >> 6) as usize], 1 << (position & 63));
            // Read first: most bits of a nearly full filter are set, and a read keeps the cache
            // line shared.
            if word.load(Ordering::Relaxed) & bit == 0 {
                has_changed |= word.fetch_or(bit, Ordering::Relaxed) & bit == 0;
            }
        }
        self.items.fetch_add(1, Ordering::Relaxed);
        has_changed
    }

    /// Whether the filter claims a key.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[must_use]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_digest(self.scheme.digest(key.as_ref()))
    }

    /// Whether the filter claims a key, by its digest.
    #[must_use]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        let mut walk = Walk::new(digest, self.scheme.shape());
        (0..self.scheme.shape().hashes()).all(|_| {
            let position = walk.next();
            let word = self.words[(position >> 6) as usize].load(Ordering::Relaxed);
            (word >> (position & 63)) & 1 == 1
        })
    }

    /// How often keys were added, repeats included.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items.load(Ordering::Relaxed)
    }

    /// Shape and hasher.
    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// A copy as it is now. Keys that other threads are adding may be in it or not.
    #[must_use]
    pub fn to_standard(&self) -> StandardFilter {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        self.standard(words)
    }

    /// Converts it to a filter for one thread, to be saved, sent or merged.
    #[must_use]
    pub fn into_standard(mut self) -> StandardFilter {
        let words = std::mem::take(&mut self.words);
        self.standard(words.into_iter().map(AtomicU64::into_inner).collect())
    }

    fn standard(&self, words: Vec<u64>) -> StandardFilter {
        let bits = BitVector::from_words(self.scheme.shape().length(), words);
        StandardFilter::from_parts(self.scheme, bits, self.items())
    }
}

impl From<StandardFilter> for ConcurrentFilter {
    fn from(filter: StandardFilter) -> Self {
        let words = filter.bits().words().iter().copied().map(AtomicU64::new).collect();
        Self { scheme: *filter.scheme(), words, items: AtomicU64::new(filter.items()) }
    }
}

impl Membership for ConcurrentFilter {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl<K: AsRef<[u8]>> Extend<K> for &ConcurrentFilter {
    /// Adds keys, one by one.
    ///
    /// # Panics
    /// If the hasher is locked.
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl fmt::Debug for ConcurrentFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConcurrentFilter({:?}, {} items)", self.scheme, self.items())
    }
}
