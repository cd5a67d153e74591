//! The partition search: how deep each of many columns claims a chain of keys.
//!
//! A node is a range of depths and the columns whose depth lies in it. A probe asks all of them
//! for some keys before the middle of the range: columns that claim these keys go to the upper
//! half, the others to the lower one. Neighbouring keys act as further hash functions, so that
//! loose filters are enough. Nodes wait in a queue, and the memory of a node's keys is requested
//! when it enters: nodes of the same round wait for memory together.
//!
//! A probe asks for few keys: as many as leave one column in thirty misled. Before a depth is
//! reported, the whole window of keys before it is tested. A column that denies one of them was
//! misled; it is searched again below that key, and walked after [`MAX_SEARCHES`] searches.
//!
//! Always true, of every reported depth `e` (in keys, a multiple of the step): the column claims
//! the window of keys before `e`, or all of them if there are fewer. It denies one of the `step`
//! keys from `e` on, unless the chain ends there. No reported depth is below the first denied key
//! rounded down to the step.

use super::super::claims::Claims;
use crate::design::chain::ChainSearch;
use crate::key_hash::KeyHash;

/// Searches of a column before it is walked. Bounds the work for columns with holes.
const MAX_SEARCHES: u32 = 3;
/// Keys up to which a chain is walked: a probe of every round would ask for as many.
const SHORT: usize = 16;
/// Keys whose memory is requested ahead of a walk.
const AHEAD: usize = 6;

/// Columns that share a depth, or a range of depths; depths are counted in steps.
struct Node<const W: usize> {
    /// The depths between which those of the columns lie.
    lowest: usize,
    highest: usize,
    /// Keys before `lowest` that all of the columns are known to claim.
    run: usize,
    /// Which part of the row the columns stand in.
    block: usize,
    /// How often these columns have been misled.
    misled: u32,
    columns: [u64; W],
}

impl<const W: usize> Node<W> {
    /// Words that a node takes in the queue.
    const WORDS: usize = W + 3;

    #[inline(always)]
    fn write(&self, queue: &mut Vec<u64>) {
        queue.extend_from_slice(&[
            self.lowest as u64 | (self.highest as u64) << 32,
            self.run as u64,
            self.block as u64 | u64::from(self.misled) << 32,
        ]);
        queue.extend_from_slice(&self.columns);
    }

    #[inline(always)]
    fn read(words: &[u64]) -> Self {
        let low = |word: u64| (word & 0xFFFF_FFFF) as usize;
        Self {
            lowest: low(words[0]),
            highest: (words[0] >> 32) as usize,
            run: words[1] as usize,
            block: low(words[2]),
            misled: (words[2] >> 32) as u32,
            columns: *words[3..].first_chunk().expect("a node of this width"),
        }
    }
}

/// One search for the depths of all columns that `claims` knows.
pub(in crate::bank) struct Search<'a, C, const W: usize> {
    claims: &'a C,
    chain: &'a [KeyHash],
    how: ChainSearch,
    /// Nodes, in the order in which they are looked at.
    queue: &'a mut Vec<u64>,
    /// By column: its depth in keys. Zero until it is known.
    depths: &'a mut [u32],
}

impl<'a, C: Claims<W>, const W: usize> Search<'a, C, W> {
    /// `depths` has 64 places for every word of `live`, all zero.
    #[inline(always)]
    pub(in crate::bank) fn run(
        claims: &'a C,
        chain: &'a [KeyHash],
        how: ChainSearch,
        live: &[u64],
        queue: &'a mut Vec<u64>,
        depths: &'a mut [u32],
    ) {
        debug_assert!(u32::try_from(chain.len()).is_ok(), "depths are numbers of 32 bits");
        queue.clear();
        let mut search = Self { claims, chain, how, queue, depths };
        let highest = chain.len() / how.step();
        let is_walk = how.is_walk() || highest * how.step() <= SHORT;
        for (block, live) in live.chunks(W).enumerate() {
            let mut columns = [0; W];
            columns[..live.len()].copy_from_slice(live);
            let misled = if is_walk { MAX_SEARCHES } else { 0 };
            search.push(&Node { lowest: 0, highest, run: 0, block, misled, columns });
        }
        search.work();
    }

    #[inline(always)]
    fn work(&mut self) {
        let mut next = 0;
        while next < self.queue.len() {
            let node = Node::<W>::read(&self.queue[next..]);
            next += Node::<W>::WORDS;
            if node.misled >= MAX_SEARCHES {
                self.walk(&node);
            } else if node.lowest == node.highest {
                self.verify(&node);
            } else {
                self.probe(&node);
            }
        }
    }

    /// Appends a node to the queue and requests the memory of the keys that it will be asked
    /// for. What is known already is reported instead.
    #[inline(always)]
    fn push(&mut self, node: &Node<W>) {
        if is_none(&node.columns) {
            return;
        }
        let keys = match node.lowest == node.highest {
            _ if node.misled >= MAX_SEARCHES => 0..AHEAD.min(node.highest * self.how.step()),
            true if node.run >= self.window_before(node.lowest) => {
                return self.report(node.block, &node.columns, node.lowest);
            }
            true => self.unverified(node),
            false => self.probed(node).1,
        };
        keys.rev().for_each(|key| self.claims.fetch(node.block, self.chain[key]));
        node.write(self.queue);
    }

    /// Divides the columns of a node between the halves of its range.
    #[inline(always)]
    fn probe(&mut self, node: &Node<W>) {
        let (middle, keys) = self.probed(node);
        let (mut upper, count) = (node.columns, keys.len());
        for key in keys.rev() {
            self.claims.and(node.block, self.chain[key], &mut upper);
            if is_none(&upper) {
                break;
            }
        }
        let is_whole = count == (middle - node.lowest) * self.how.step();
        let run = if is_whole { node.run + count } else { count };
        let (block, misled) = (node.block, node.misled);
        let lower = without(&node.columns, &upper);
        let (lowest, highest) = (node.lowest, node.highest);
        let upper = Node { lowest: middle, highest, run, block, misled, columns: upper };
        self.push(&upper);
        let run = node.run;
        self.push(&Node { lowest, highest: middle - 1, run, block, misled, columns: lower });
    }

    /// The middle of a node's range, and the keys before it that are asked for.
    #[inline(always)]
    fn probed(&self, node: &Node<W>) -> (usize, std::ops::Range<usize>) {
        let middle = node.lowest + (node.highest - node.lowest).div_ceil(2);
        let step = self.how.step();
        let (start, end) = (node.lowest * step, middle * step);
        // One column in 2^5 that should not is misled: a key asked for is one more for every node.
        let columns: u32 = node.columns.iter().map(|word| word.count_ones()).sum();
        let keys = (columns.ilog2() + 5).div_ceil(self.claims.hashes()) as usize;
        (middle, end - keys.min(self.how.window()).min(end - start)..end)
    }

    /// Keys of a depth's window.
    #[inline(always)]
    fn window_before(&self, depth: usize) -> usize {
        self.how.window().min(depth * self.how.step())
    }

    /// Keys of the window that a node with one depth was not asked for yet.
    #[inline(always)]
    fn unverified(&self, node: &Node<W>) -> std::ops::Range<usize> {
        let end = node.lowest * self.how.step();
        end - self.window_before(node.lowest)..end - node.run
    }

    /// Tests the rest of the window before a depth. Columns that deny a key of it are searched
    /// again below that key.
    #[inline(always)]
    fn verify(&mut self, node: &Node<W>) {
        let (mut columns, mut denied) = (node.columns, None);
        for key in self.unverified(node).rev() {
            self.claims.and(node.block, self.chain[key], &mut columns);
            if denied.is_none() && columns != node.columns {
                denied = Some(key);
            }
            if is_none(&columns) {
                break;
            }
        }
        self.report(node.block, &columns, node.lowest);
        if let Some(key) = denied {
            let (highest, misled) = (key / self.how.step(), node.misled + 1);
            let columns = without(&node.columns, &columns);
            self.push(&Node { lowest: 0, highest, run: 0, misled, columns, ..*node });
        }
    }

    /// Asks for every key from the first on, until all columns of the node have denied one.
    #[inline(always)]
    fn walk(&mut self, node: &Node<W>) {
        let (step, mut columns) = (self.how.step(), node.columns);
        for depth in 0..node.highest {
            let before = columns;
            for key in depth * step..(depth + 1) * step {
                if let Some(later) = self.chain.get(key + AHEAD) {
                    self.claims.fetch(node.block, *later);
                }
                self.claims.and(node.block, self.chain[key], &mut columns);
            }
            if columns != before {
                self.report(node.block, &without(&before, &columns), depth);
            }
            if is_none(&columns) {
                return;
            }
        }
        self.report(node.block, &columns, node.highest);
    }

    #[inline(always)]
    fn report(&mut self, block: usize, columns: &[u64; W], depth: usize) {
        if depth == 0 {
            return;
        }
        let keys = (depth * self.how.step()) as u32;
        let depths = self.depths[block * W * 64..].chunks_exact_mut(64);
        for (word, depths) in columns.iter().zip(depths) {
            assign(*word, keys, depths);
        }
    }
}

/// Gives every column of a word its depth.
#[inline(always)]
fn assign(mut columns: u64, depth: u32, depths: &mut [u32]) {
    if columns.count_ones() > 16 {
        for (index, place) in depths.iter_mut().enumerate() {
            *place = if columns >> index & 1 == 1 { depth } else { *place };
        }
        return;
    }
    while columns != 0 {
        depths[columns.trailing_zeros() as usize] = depth;
        columns &= columns - 1;
    }
}

#[inline(always)]
fn is_none<const W: usize>(columns: &[u64; W]) -> bool {
    columns.iter().fold(0, |any, word| any | word) == 0
}

#[inline(always)]
fn without<const W: usize>(columns: &[u64; W], others: &[u64; W]) -> [u64; W] {
    std::array::from_fn(|word| columns[word] & !others[word])
}
