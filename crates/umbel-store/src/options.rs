//! How a store is opened.

use std::time::Duration;

use umbel::Shape;

use crate::error::{Error, Result};
use crate::guard;

/// When a write returns: how durable it is by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Each write is synced on its own before it returns.
    EveryWrite,
    /// Concurrent writes share one sync. A write that returned is on disk.
    #[default]
    Group,
    /// A write that returned was handed to the operating system, and is on disk after this interval
    /// at the latest. A crash of the process loses nothing; a crash of the machine loses the writes
    /// since the last sync.
    Interval(Duration),
}

/// How a store is opened. The defaults suit a host's catalogue.
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) durability: Durability,
    pub(crate) memory_budget: usize,
    pub(crate) filter: bool,
    pub(crate) filter_bits: Option<u64>,
    pub(crate) integrate_bytes: u64,
    pub(crate) integrate_share: f64,
    pub(crate) integrate_age: Option<Duration>,
    pub(crate) background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            durability: Durability::default(),
            memory_budget: 64 << 20,
            filter: true,
            filter_bits: None,
            integrate_bytes: 64 << 20,
            integrate_share: 0.25,
            integrate_age: None,
            background: true,
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to create the store if there is none (default: yes).
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How durable a write is when it returns (default: [`Durability::Group`]).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Memory for the index of changes, in bytes (default: 64 MiB). When the index grows beyond it,
    /// the changes are sorted to disk. A filter in memory then decides whether a lookup reads them.
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Bits of the filter over the changes (default: ten per change that fits into the memory
    /// budget).
    pub fn filter_bits(mut self, bits: u64) -> Self {
        self.filter_bits = Some(bits);
        self
    }

    /// Whether lookups use the filters (default: yes). Without them every lookup reads the index of
    /// changes; this is for measuring how many reads the filter saves.
    pub fn filter(mut self, filter: bool) -> Self {
        self.filter = filter;
        self
    }

    /// Changes are integrated in the background once they take at least this many bytes on disk
    /// (default: 64 MiB) and also at least the share of [`Options::integrate_share`].
    pub fn integrate_bytes(mut self, bytes: u64) -> Self {
        self.integrate_bytes = bytes;
        self
    }

    /// Changes are integrated once they take this share of the master's bytes (default:
    /// 0.25). With a small share a large master is rewritten often.
    pub fn integrate_share(mut self, share: f64) -> Self {
        self.integrate_share = share;
        self
    }

    /// Changes are integrated once the oldest was made this long ago while the store was
    /// open (default: never by age alone).
    pub fn integrate_age(mut self, age: Option<Duration>) -> Self {
        self.integrate_age = age;
        self
    }

    /// Whether the store starts a thread that sorts and integrates in the background (default:
    /// yes). Without it, a writer that exceeds the memory budget sorts or integrates the changes
    /// itself. Otherwise integration then happens only on request.
    pub fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.memory_budget > MAX_BUDGET {
            return Err(Error::Options("the memory budget is at most 8 GiB"));
        }
        if self.integrate_share.is_nan() || self.integrate_share < 0.0 {
            return Err(Error::Options("the share at which to integrate is at least 0"));
        }
        if self.filter_bits.is_some_and(|bits| !(64..=umbel::params::Bits::MAX).contains(&bits)) {
            return Err(Error::Options("the filter over the changes has 64 to 2^40 bits"));
        }
        Ok(())
    }

    /// About how many changes fit into the memory budget: the largest value of paper 2's u.
    pub(crate) fn planned_updates(&self) -> u64 {
        (self.memory_budget / BYTES_A_CHANGE).max(1024) as u64
    }

    /// The shape of the filter over the changes.
    pub(crate) fn filter_shape(&self) -> Shape {
        let updates = self.planned_updates();
        guard::shape_for_updates(self.filter_bits.unwrap_or(updates * 10), updates)
    }
}

/// Memory that one change of a short key and value takes.
const BYTES_A_CHANGE: usize = 64;
/// Far below the 32 GiB that the 32-bit places of versions can address (see `versions`).
const MAX_BUDGET: usize = 8 << 30;
