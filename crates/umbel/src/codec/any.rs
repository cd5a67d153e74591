//! A filter of any kind, as it is read from a file or message.

use std::fmt;

use super::body::private::Body as _;
use super::frame;
use crate::filter::{
    BlockedFilter, Component, CountingFilter, DynamicFilter, Membership, StandardFilter,
};
use crate::key_hash::{Digest, Seed, WrongSeed};
use crate::scheme::Scheme;

/// The kind of contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A [`StandardFilter`].
    Standard,
    /// A [`CountingFilter`].
    Counting,
    /// A [`DynamicFilter`] of counting components.
    Dynamic,
    /// A [`DynamicFilter`] of standard components.
    PlainDynamic,
    /// A [`BlockedFilter`].
    Blocked,
    /// What turns one filter into another of the same kind.
    Delta,
}

impl Kind {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Standard => 1,
            Self::Counting => 2,
            Self::Dynamic => 3,
            Self::PlainDynamic => 4,
            Self::Blocked => 5,
            Self::Delta => 0x10,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Standard),
            2 => Some(Self::Counting),
            3 => Some(Self::Dynamic),
            4 => Some(Self::PlainDynamic),
            5 => Some(Self::Blocked),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "a standard filter",
            Self::Counting => "a counting filter",
            Self::Dynamic => "a dynamic filter",
            Self::PlainDynamic => "a dynamic filter of plain components",
            Self::Blocked => "a blocked filter",
            Self::Delta => "a delta",
        })
    }
}

/// A filter whose kind is known only once it has been read.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyFilter {
    /// Adds only.
    Standard(StandardFilter),
    /// Adds and removes.
    Counting(CountingFilter),
    /// Adds, removes, grows and shrinks.
    Dynamic(DynamicFilter),
    /// Adds and grows.
    PlainDynamic(DynamicFilter<StandardFilter>),
    /// Adds only, with one cache line per key.
    Blocked(BlockedFilter),
}

/// Runs the same code for a filter of any kind.
macro_rules! each {
    ($any:expr, $filter:ident => $action:expr) => {
        match $any {
            AnyFilter::Standard($filter) => $action,
            AnyFilter::Counting($filter) => $action,
            AnyFilter::Dynamic($filter) => $action,
            AnyFilter::PlainDynamic($filter) => $action,
            AnyFilter::Blocked($filter) => $action,
        }
    };
}

impl AnyFilter {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Standard(_) => Kind::Standard,
            Self::Counting(_) => Kind::Counting,
            Self::Dynamic(_) => Kind::Dynamic,
            Self::PlainDynamic(_) => Kind::PlainDynamic,
            Self::Blocked(_) => Kind::Blocked,
        }
    }

    /// The bytes of the filter, as a file holds them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        each!(self, filter => frame::encode(filter))
    }

    /// Shape and hasher.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        each!(self, filter => filter.scheme())
    }

    /// Gives a locked filter its seed.
    ///
    /// # Errors
    /// If it is not the seed the filter was made with; nothing changes then.
    pub fn unlock(&mut self, seed: Seed) -> Result<(), WrongSeed> {
        each!(self, filter => filter.unlock(seed))
    }

    /// Adds a key by its digest.
    ///
    /// # Panics
    /// If a dynamic filter has no memory for another component: see
    /// [`Self::memory_bytes_with`].
    pub fn insert_digest(&mut self, digest: Digest) {
        match self {
            Self::Standard(filter) => filter.add(digest),
            Self::Counting(filter) => filter.add(digest),
            Self::Dynamic(filter) => {
                filter.insert_digest(digest);
            }
            Self::PlainDynamic(filter) => {
                filter.insert_digest(digest);
            }
            Self::Blocked(filter) => {
                filter.insert_digest(digest);
            }
        }
    }

    /// Whether the filter claims a digest.
    #[must_use]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, filter => filter.contains_digest(digest))
    }

    /// Adds many keys, prefetching memory.
    ///
    /// # Panics
    /// If the hasher is locked, or a dynamic filter has no memory for another component:
    /// see [`Self::memory_bytes_with`].
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) {
        each!(self, filter => filter.insert_batch(keys));
    }

    /// Looks up many keys at once, prefetching memory. Overwrites `answers` with one answer per
    /// key, in order.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        each!(self, filter => filter.contains_batch(keys, answers));
    }

    /// A checksum of the contents. A delta contains those of its base and of its result.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        each!(self, filter => filter.checksum())
    }

    /// Number of keys.
    #[must_use]
    pub fn items(&self) -> u64 {
        each!(self, filter => filter.items())
    }

    /// The probability that a random key is claimed.
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        each!(self, filter => filter.false_positive())
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        each!(self, filter => filter.memory_bytes())
    }

    /// The most bytes of memory that the filter can take after this many more keys were added. Only
    /// dynamic filters grow.
    #[must_use]
    pub fn memory_bytes_with(&self, more: u64) -> u64 {
        match self {
            Self::Standard(_) | Self::Counting(_) | Self::Blocked(_) => self.memory_bytes() as u64,
            Self::Dynamic(filter) => filter.memory_bytes_with(more),
            Self::PlainDynamic(filter) => filter.memory_bytes_with(more),
        }
    }

    /// Set bits, all components together.
    #[must_use]
    pub fn ones(&self) -> u64 {
        match self {
            Self::Standard(filter) => filter.bits().ones(),
            Self::Blocked(filter) => filter.ones(),
            Self::Counting(filter) => filter.bits().ones(),
            Self::Dynamic(filter) => ones(filter),
            Self::PlainDynamic(filter) => ones(filter),
        }
    }

    /// Number of components; one for filters that have none.
    #[must_use]
    pub fn components(&self) -> usize {
        match self {
            Self::Standard(_) | Self::Counting(_) | Self::Blocked(_) => 1,
            Self::Dynamic(filter) => filter.components().len(),
            Self::PlainDynamic(filter) => filter.components().len(),
        }
    }

    /// Number of counters that are stuck at their largest value.
    #[must_use]
    pub fn stuck_counters(&self) -> u64 {
        match self {
            Self::Standard(_) | Self::PlainDynamic(_) | Self::Blocked(_) => 0,
            Self::Counting(filter) => filter.stuck_counters(),
            Self::Dynamic(filter) => filter.stuck_counters(),
        }
    }
}

fn ones<C: Component>(filter: &DynamicFilter<C>) -> u64 {
    filter.components().iter().map(|(_, component)| component.bits().ones()).sum()
}

impl Membership for AnyFilter {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains_digest(self.scheme().digest(key))
    }
}

/// Conversions to the enum and back. If the kind does not match, the filter is returned unchanged.
macro_rules! convert {
    ($variant:ident, $filter:ty) => {
        impl From<$filter> for AnyFilter {
            fn from(filter: $filter) -> Self {
                Self::$variant(filter)
            }
        }

        impl TryFrom<AnyFilter> for $filter {
            type Error = AnyFilter;

            fn try_from(any: AnyFilter) -> Result<Self, AnyFilter> {
                match any {
                    AnyFilter::$variant(filter) => Ok(filter),
                    other => Err(other),
                }
            }
        }
    };
}

convert!(Standard, StandardFilter);
convert!(Counting, CountingFilter);
convert!(Dynamic, DynamicFilter);
convert!(PlainDynamic, DynamicFilter<StandardFilter>);
convert!(Blocked, BlockedFilter);
