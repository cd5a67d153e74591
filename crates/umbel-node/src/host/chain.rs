//! Chains of keys: how many leading keys of a chain each host holds, from memory.
//!
//! The depths of other hosts come from their filters ([`Replicas::deepest`]), the depth of this
//! host from the exact catalogue. All are rounded down to a multiple of the query's step.
//!
//! Always true: names are resolved only for hosts that are returned.
//!
//! [`Replicas::deepest`]: umbel::replica::Replicas::deepest

use std::cell::RefCell;
use std::time::Instant;

use umbel::KeyHash;
use umbel::design::chain::{ChainPromise, ChainSearch};
use umbel::replica::Deepest;

use super::sets::Known;
use super::{Host, Sets};
use crate::error::HostError;

/// Parameters of a chain query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainQuery {
    /// Depths are rounded down to a multiple of this many keys.
    pub step: u32,
    /// Maximum number of hosts returned.
    pub limit: usize,
}

impl Default for ChainQuery {
    /// Steps of 8 keys, all hosts that hold one.
    fn default() -> Self {
        Self { step: Self::DEFAULT_STEP, limit: usize::MAX }
    }
}

impl ChainQuery {
    /// The default step.
    pub const DEFAULT_STEP: u32 = 8;
    /// The largest step.
    pub const MAX_STEP: u32 = 1024;
    /// Maximum number of keys in a chain.
    pub const MAX_KEYS: usize = 1 << 16;

    /// The default promise of a set of chains; a set may choose its own step and chance.
    pub(super) const PROMISE: ChainPromise = ChainPromise {
        step: Self::DEFAULT_STEP,
        over_estimate: 1e-8,
        max_length: Self::MAX_KEYS as u32,
    };

    /// How many keys before a depth are tested. So many are needed to keep the promise with the
    /// loosest filters, which claim one absent key in ten. A test computes the number.
    const WINDOW: u32 = 13;

    const fn search(self) -> ChainSearch {
        ChainSearch::new(Self::WINDOW, self.step)
    }
}

/// Buffers that a thread reuses for its queries.
#[derive(Debug, Default)]
struct Scratch {
    hashes: Vec<KeyHash>,
    found: Deepest,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Host {
    /// Calls `each` with the hosts that hold the beginning of a chain of keys, and the number of
    /// leading keys that each holds, in multiples of the step. The deepest host comes first. Hosts
    /// of equal depth come in the order of their names, this host before them. Hosts that hold less
    /// than one step are left out.
    ///
    /// From memory: the depth of this host is exact, those of other hosts may be too large by more
    /// than a step with the chance that their set promises ([`umbel::design::chain`]).
    ///
    /// # Errors
    /// If the set's name is invalid, the chain is too long, or the host is in an overlay.
    pub fn chain(
        &self,
        set: &str,
        keys: &[&[u8]],
        query: ChainQuery,
        each: &mut dyn FnMut(&str, u32),
    ) -> Result<(), HostError> {
        let (given, max) = (keys.len(), ChainQuery::MAX_KEYS);
        if given > max {
            return Err(HostError::ChainLength { given, max });
        }
        let begun = Instant::now();
        let part = self.inner.sets.directory_of(set);
        let Some(known) = Sets::look_up_in(&part, set)? else { return Ok(()) };
        let Some(replicas) = &known.replicas else {
            return Err(HostError::InOverlay(
                "nobody knows how much of a chain another host holds",
            ));
        };
        let own = own_depth(known, keys, query.step);
        let mut answer = Answer {
            own: own.map(|depth| (self.name().as_str(), depth)),
            each,
            deepest: 0,
            left: query.limit,
        };
        SCRATCH.with_borrow_mut(|Scratch { hashes, found }| {
            hashes.clear();
            hashes.extend(keys.iter().map(|key| self.inner.sets.hasher.hash(key)));
            replicas.deepest(hashes, query.search(), query.limit, found, |name, depth| {
                answer.other(name.as_str(), depth);
            });
            hashes.shrink_to(KEPT_HASHES);
        });
        answer.show_own();
        known.chains.note(answer.deepest, begun.elapsed());
        Ok(())
    }
}

/// Maximum number of hashes for which a thread keeps memory.
const KEPT_HASHES: usize = 8192;

/// How many leading keys of a chain this host holds, if at least one step: exact, from the
/// catalogue.
fn own_depth(known: &Known, keys: &[&[u8]], step: u32) -> Option<u32> {
    let held = known.held()?;
    let depth = keys.iter().take_while(|key| held.contains(key)).count() as u32;
    Some(depth - depth % step.max(1)).filter(|depth| *depth > 0)
}

/// A reply that is being built.
struct Answer<'a> {
    /// This host, until it is shown.
    own: Option<(&'a str, u32)>,
    each: &'a mut dyn FnMut(&str, u32),
    deepest: u32,
    /// How many more hosts may be shown.
    left: usize,
}

impl Answer<'_> {
    /// Shows another host; this host goes first if it is at least as deep.
    fn other(&mut self, name: &str, depth: u32) {
        if self.own.is_some_and(|(_, own)| own >= depth) {
            self.show_own();
        }
        self.show(name, depth);
    }

    fn show_own(&mut self) {
        if let Some((name, depth)) = self.own.take() {
            self.show(name, depth);
        }
    }

    fn show(&mut self, name: &str, depth: u32) {
        self.deepest = self.deepest.max(depth);
        if self.left > 0 {
            self.left -= 1;
            (self.each)(name, depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_keeps_the_promise_for_the_longest_chain() {
        let design = ChainQuery::PROMISE.design().unwrap();
        assert_eq!((design.window, design.step), (ChainQuery::WINDOW, ChainQuery::DEFAULT_STEP));
        assert!((design.rate.get() - 0.1).abs() < 1e-9, "the loosest filters");
    }
}
