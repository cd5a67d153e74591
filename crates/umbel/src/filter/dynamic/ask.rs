//! Lookups: whether any component claims a key, for one key or many, and which components do.

use super::super::{BATCH, Component};
use super::{ComponentId, DynamicFilter};
use crate::key_hash::Digest;

impl<C: Component> DynamicFilter<C> {
    /// Whether any component claims a key.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[must_use]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_digest(self.scheme.digest(key.as_ref()))
    }

    /// Whether any component claims a key, by its digest.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        match &self.slices {
            Some(slices) => slices.claim(digest, self.scheme.shape()),
            None => self.contains_digest_listed(digest),
        }
    }

    /// Looks up many keys at once, prefetching memory. Overwrites `answers` with one answer per
    /// key, in order.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        let digests: Vec<_> = keys.iter().map(|key| self.scheme.digest(key.as_ref())).collect();
        self.contains_digests(&digests, answers);
    }

    /// Looks up many keys by their digests. Overwrites `answers`.
    pub fn contains_digests(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        answers.clear();
        let shape = self.scheme.shape();
        match (&self.slices, &self.components[..]) {
            (Some(slices), _) => {
                for batch in digests.chunks(BATCH) {
                    batch.iter().for_each(|digest| slices.prefetch(&digest.positions(shape)));
                    answers.extend(batch.iter().map(|digest| slices.claim(*digest, shape)));
                }
            }
            (None, [(_, only)]) => only.claims_digests(digests, answers),
            (None, _) => {
                answers.extend(digests.iter().map(|digest| self.contains_digest_listed(*digest)));
            }
        }
    }

    /// Asks the components one after the other, whatever their number. The simple implementation,
    /// against which the sliced one is tested and benchmarked.
    #[must_use]
    pub fn contains_digest_listed(&self, digest: Digest) -> bool {
        self.components.iter().any(|(_, component)| component.claims(digest))
    }

    /// The components that claim a key, by its digest.
    #[must_use]
    pub fn claimants(&self, digest: Digest) -> Vec<ComponentId> {
        match &self.slices {
            Some(slices) => {
                let indices = slices.claimants(digest, self.scheme.shape());
                indices.map(|index| self.components[index].0).collect()
            }
            None => {
                let claiming = self.components.iter().filter(|(_, c)| c.claims(digest));
                claiming.map(|(id, _)| *id).collect()
            }
        }
    }

    /// The first two of [`Self::claimants`], if there are that many.
    pub(super) fn first_claimants(&self, digest: Digest) -> [Option<ComponentId>; 2] {
        match &self.slices {
            Some(slices) => {
                let mut indices = slices.claimants(digest, self.scheme.shape());
                [indices.next(), indices.next()].map(|index| Some(self.components[index?].0))
            }
            None => {
                let claiming = self.components.iter().filter(|(_, c)| c.claims(digest));
                let mut ids = claiming.map(|(id, _)| *id);
                [ids.next(), ids.next()]
            }
        }
    }
}
