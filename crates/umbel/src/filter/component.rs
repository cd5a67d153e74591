//! The interface between a dynamic filter and its components.
//!
//! With counting components keys can be removed; standard components are smaller. Both are
//! [`Component`]s. The trait is sealed, so that no foreign type can break the promises of the
//! dynamic filter.

use std::fmt;

use super::{CountingFilter, StandardFilter};
use crate::bits::BitVector;
use crate::key_hash::{Digest, Seed, WrongSeed};
use crate::params::ParamError;
use crate::scheme::{Mismatch, Scheme};

/// A filter that a dynamic filter can be made of: [`CountingFilter`] or [`StandardFilter`].
pub trait Component: Clone + PartialEq + fmt::Debug + Send + Sync + private::Sealed {
    /// An empty component.
    ///
    /// # Errors
    /// If there is no memory for it.
    fn empty(scheme: Scheme) -> Result<Self, ParamError>;
    /// Adds a key by its digest.
    fn add(&mut self, digest: Digest);
    /// Adds many keys by their digests, prefetching memory.
    fn add_digests(&mut self, digests: &[Digest]);
    /// Whether the component claims a digest.
    #[must_use]
    fn claims(&self, digest: Digest) -> bool;
    /// Whether the component claims each of many digests, prefetching memory. Overwrites `answers`.
    fn claims_digests(&self, digests: &[Digest], answers: &mut Vec<bool>);
    /// Number of keys.
    #[must_use]
    fn items(&self) -> u64;
    /// The plain bits.
    #[must_use]
    fn bits(&self) -> &BitVector;
    /// Adds the keys of another component of the same scheme.
    ///
    /// # Errors
    /// If the schemes differ.
    fn absorb(&mut self, other: &Self) -> Result<(), Mismatch>;
    /// Number of counters that are stuck at their largest value.
    #[must_use]
    fn stuck_counters(&self) -> u64;
    /// Gives a locked component its seed.
    ///
    /// # Errors
    /// If it is not the seed the component was made with; nothing changes then.
    fn unlock(&mut self, seed: Seed) -> Result<(), WrongSeed>;
    /// Bytes of memory.
    #[must_use]
    fn memory_bytes(&self) -> usize;
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::CountingFilter {}
    impl Sealed for super::StandardFilter {}
}

/// Both kinds forward to their own methods; only counting filters have stuck counters.
macro_rules! component {
    ($kind:ty, stuck: |$filter:ident| $stuck:expr) => {
        impl Component for $kind {
            fn empty(scheme: Scheme) -> Result<Self, ParamError> {
                Self::new(scheme)
            }

            fn add(&mut self, digest: Digest) {
                self.insert_digest(digest);
            }

            fn add_digests(&mut self, digests: &[Digest]) {
                self.insert_digests(digests);
            }

            fn claims(&self, digest: Digest) -> bool {
                self.contains_digest(digest)
            }

            fn claims_digests(&self, digests: &[Digest], answers: &mut Vec<bool>) {
                self.contains_digests(digests, answers);
            }

            fn items(&self) -> u64 {
                self.items()
            }

            fn bits(&self) -> &BitVector {
                self.bits()
            }

            fn absorb(&mut self, other: &Self) -> Result<(), Mismatch> {
                self.union_with(other)
            }

            fn stuck_counters(&self) -> u64 {
                let $filter = self;
                $stuck
            }

            fn unlock(&mut self, seed: Seed) -> Result<(), WrongSeed> {
                self.unlock(seed)
            }

            fn memory_bytes(&self) -> usize {
                self.memory_bytes()
            }
        }
    };
}

component!(CountingFilter, stuck: |filter| filter.stuck_counters());
component!(StandardFilter, stuck: |_filter| 0);
