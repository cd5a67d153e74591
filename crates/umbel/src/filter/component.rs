//! What a dynamic filter needs of the filters it is made of.
//!
//! Counting filters make it removable, standard ones make it small: both are [`Component`]s,
//! and nothing else can be, so that the promises of the dynamic filter stay ours to keep.

use std::fmt;

use super::{CountingFilter, StandardFilter};
use crate::bits::BitVector;
use crate::key_hash::Digest;
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
    /// Whether the component claims a digest.
    #[must_use]
    fn claims(&self, digest: Digest) -> bool;
    /// Keys held.
    #[must_use]
    fn items(&self) -> u64;
    /// The plain bits.
    #[must_use]
    fn bits(&self) -> &BitVector;
    /// Takes over the keys of another component of the same scheme.
    ///
    /// # Errors
    /// If the schemes differ.
    fn absorb(&mut self, other: &Self) -> Result<(), Mismatch>;
    /// Counters that stick at their largest value.
    #[must_use]
    fn stuck_counters(&self) -> u64;
    /// Shape and hasher, to unlock the hasher.
    fn scheme_mut(&mut self) -> &mut Scheme;
    /// Bytes of memory.
    #[must_use]
    fn memory_bytes(&self) -> usize;
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::CountingFilter {}
    impl Sealed for super::StandardFilter {}
}

impl Component for CountingFilter {
    fn empty(scheme: Scheme) -> Result<Self, ParamError> {
        Self::new(scheme)
    }

    fn add(&mut self, digest: Digest) {
        self.insert_digest(digest);
    }

    fn claims(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
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
        self.stuck_counters()
    }

    fn scheme_mut(&mut self) -> &mut Scheme {
        self.scheme_mut()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}

impl Component for StandardFilter {
    fn empty(scheme: Scheme) -> Result<Self, ParamError> {
        Self::new(scheme)
    }

    fn add(&mut self, digest: Digest) {
        self.insert_digest(digest);
    }

    fn claims(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
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
        0
    }

    fn scheme_mut(&mut self) -> &mut Scheme {
        self.scheme_mut()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}
