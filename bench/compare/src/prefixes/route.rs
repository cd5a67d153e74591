//! Prefixes with their next hops.

use crate::harness::Mix;

/// A prefix and its next hop.
#[derive(Debug, Clone)]
pub(crate) struct Route<P> {
    pub(crate) prefix: P,
    pub(crate) value: u16,
}

/// Next hops, none of them 0, which means "no route" here.
const HOPS: u64 = 1000;

/// The prefixes in random order, each with a random next hop.
pub(crate) fn routes<P>(mut prefixes: Vec<P>) -> Vec<Route<P>> {
    for (last, random) in (1..prefixes.len()).rev().zip(Mix(8)) {
        prefixes.swap(last, (random % (last as u64 + 1)) as usize);
    }
    let hops = Mix(3).map(|random| (random % HOPS + 1) as u16);
    prefixes.into_iter().zip(hops).map(|(prefix, value)| Route { prefix, value }).collect()
}
