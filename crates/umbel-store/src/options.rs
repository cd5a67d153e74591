//! How a store is opened.

use std::time::Duration;

use umbel::Shape;

use crate::error::{Error, Result};
use crate::guard;

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Each write is synced on its own before it returns.
    EveryWrite,
    /// Writes that come at the same time are synced together; a returned write is on disk.
    #[default]
    Group,
    /// A returned write is with the system, and on disk after this time at the latest: a
    /// crash of the process loses nothing, a crash of the machine what came since the last sync.
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

    /// Whether to make a store where there is none (default: yes).
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// When a write counts as done (default: [`Durability::Group`]).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Memory for the index of changes, in bytes (default: 64 MiB). Beyond it the changes
    /// are sorted to disk, and a filter in memory decides whether they are read at all.
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Bits of the filter over the changes (default: ten for each change that the memory
    /// budget has room for).
    pub fn filter_bits(mut self, bits: u64) -> Self {
        self.filter_bits = Some(bits);
        self
    }

    /// Whether filters are asked at all (default: yes). Without, every lookup reads the
    /// index of changes: for measuring what the filter spares.
    pub fn filter(mut self, filter: bool) -> Self {
        self.filter = filter;
        self
    }

    /// Changes are integrated in the background once they take this many bytes on disk
    /// (default: 64 MiB) and the share of [`Options::integrate_share`].
    pub fn integrate_bytes(mut self, bytes: u64) -> Self {
        self.integrate_bytes = bytes;
        self
    }

    /// Changes are integrated once they take this share of the master's bytes (default:
    /// 0.25). A small share rewrites a large master often.
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

    /// Whether a thread of the store sorts and integrates in the background (default: yes).
    /// Without it, writers sort what outgrows the budget themselves, and integrating
    /// happens only when asked for.
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

    /// Changes that the memory budget has room for, about: paper 2's u at its largest.
    pub(crate) fn planned_updates(&self) -> u64 {
        (self.memory_budget / BYTES_A_CHANGE).max(1024) as u64
    }

    /// The shape of the filter over the changes.
    pub(crate) fn filter_shape(&self) -> Shape {
        let updates = self.planned_updates();
        guard::shape_for_updates(self.filter_bits.unwrap_or(updates * 10), updates)
    }
}

/// What a change of a short key and value takes in memory.
const BYTES_A_CHANGE: usize = 64;
/// Far below where 32 bits no longer tell versions apart.
const MAX_BUDGET: usize = 8 << 30;
