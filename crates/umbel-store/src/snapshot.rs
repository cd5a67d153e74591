//! The store as it was at one moment.

use std::borrow::Cow;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use umbel::KeyHasher;

use crate::delta::Published;
use crate::error::Result;
use crate::scan::{End, Scan};
use crate::view::View;
use crate::visit::Visit;

/// The store as it was when the snapshot was taken, whatever is written or integrated since.
///
/// It keeps the files and indexes that were current when it was taken. Their disk space and memory
/// are freed only when the snapshot is dropped.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) view: Arc<View>,
    pub(crate) state: Published,
    pub(crate) hasher: KeyHasher,
}

impl Snapshot {
    /// The value of a key; borrowed if it comes from the master.
    ///
    /// # Errors
    /// If what should be read is damaged.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let hash = self.hasher.hash(key);
        let sequence = self.state.sequence;
        match self.view.changed(&self.view.layers, hash, key, sequence, <[u8]>::to_vec)? {
            Some(change) => Ok(change.map(Cow::Owned)),
            None => Ok(self.view.in_master(hash, key)?.map(Cow::Borrowed)),
        }
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// If what should be read is damaged.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let hash = self.hasher.hash(key);
        Ok(self.view.get(hash, key, self.state.sequence, |_| ())?.is_some())
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.state.records
    }

    /// Whether the snapshot has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state.records == 0
    }

    /// Records in key order, from a range of keys.
    ///
    /// # Errors
    /// If what should be read is damaged.
    pub fn scan<'a>(&self, range: impl RangeBounds<&'a [u8]>) -> Result<Scan> {
        let end = End::Bound(range.end_bound().map(|key| key.to_vec()));
        match range.start_bound() {
            Bound::Unbounded => Scan::new(&self.view, self.state.sequence, &[], end),
            Bound::Included(from) => Scan::new(&self.view, self.state.sequence, from, end),
            Bound::Excluded(after) => {
                // The smallest key above `after`.
                let from = [after, &[0][..]].concat();
                Scan::new(&self.view, self.state.sequence, &from, end)
            }
        }
    }

    /// Records whose keys start with `prefix`, in key order.
    ///
    /// # Errors
    /// If what should be read is damaged.
    pub fn scan_prefix(&self, prefix: &[u8]) -> Result<Scan> {
        let end = End::Prefix(prefix.to_vec());
        Scan::new(&self.view, self.state.sequence, prefix, end)
    }

    /// Calls `show` once for each record whose key starts with `prefix`, in no particular order. To
    /// visit all of many records, this is about twice as fast as [`Self::scan_prefix`], and seven
    /// times as fast while they are recent changes, because it does not sort and allocates no
    /// copies.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("catalogue");
    /// use umbel_store::{Options, Store};
    ///
    /// let store = Store::open(&path, Options::new())?;
    /// for key in ["a/1", "a/2", "b/1"] {
    ///     store.put(key.as_bytes(), b"")?;
    /// }
    /// let mut shown = 0;
    /// store.snapshot().visit_prefix(b"a/", |_key, _value| shown += 1)?;
    /// assert_eq!(shown, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If what should be read is damaged. `show` may have been called for some records by then.
    pub fn visit_prefix(&self, prefix: &[u8], show: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let (view, hasher) = (&*self.view, &self.hasher);
        Visit { view, sequence: self.state.sequence, hasher, prefix }.run(show)
    }
}
