//! The partition search: how deep each of many columns claims a chain of keys.
//!
//! A node is a range of depths and the columns whose depth lies in it. It is divided at several
//! depths, its pivots, at once: all columns are asked for the last key before each pivot, from the
//! lowest pivot upwards. The columns that claim the keys of some pivots and deny that of the next
//! one form a node between these two. The first pivots lie at powers of two, because most columns
//! hold a short beginning or none; later ones are spread evenly. Nodes wait in a queue, and the
//! memory of a node's keys is requested when it enters: a search waits for memory once per round,
//! not once per key.
//!
//! Filters make wrong claims: one column in eight goes one pivot too far, and one in 64 goes two
//! pivots too far. A node is suspect if wrong claims alone explain the number of its columns. Their
//! columns are asked for some further keys before anything else, and those that deny one join the
//! node below. To save a round that would do nothing else, pivots that divide many columns ask for
//! several keys at once.
//!
//! Chains often share their beginning, so that most columns end at the same depth. The first pivots
//! include the depth at which most columns ended in the search before, and the one after it. So the
//! previous search affects how long a search takes and which holes it overlooks.
//!
//! Before a depth is reported, the whole window of keys before it is tested. A column that denies
//! one of them was misled; it is searched again below that key, first down to the previous pivot.
//! After [`MAX_SEARCHES`] searches the column is walked.
//!
//! Always true of every reported depth `e` (in keys, a multiple of the step): the column claims the
//! window of keys before `e`, or all of them if there are fewer. It denies one of the `step` keys
//! from `e` on, unless the chain ends there. No reported depth is below the first denied key
//! rounded down to the step.

use std::ops::Range;

use super::super::claims::Claims;
use crate::design::chain::ChainSearch;
use crate::key_hash::KeyHash;
use crate::model::chain as model;

/// Searches of a column before it is walked. Bounds the work for columns with holes.
const MAX_SEARCHES: u32 = 4;
/// Chains of at most this many keys are walked: a search would ask for as many keys.
const SHORT: usize = 16;
/// Keys whose memory is requested ahead of a walk.
const AHEAD: usize = 6;
/// Pivots of a node that is not narrow: as many as the processor can wait for at once, at three
/// rows per key.
const FAN: usize = model::FAN as usize;
/// A range of at most this many depths is divided into single depths in one round.
const NARROW: usize = model::NARROW as usize;
/// Pivots of the first node: powers of two below 2^32, the end of the chain, and two more.
const MAX_PIVOTS: usize = 35;

/// Buffers that searches reuse, and what one search remembers for the next.
#[derive(Debug, Clone, Default)]
pub(in crate::bank) struct Memory {
    /// Nodes, in the order in which they are processed.
    queue: Vec<u64>,
    /// Per pivot, the columns that claim its keys and the keys of all lower pivots.
    claimed: Vec<u64>,
    /// The depth at which most columns ended, in keys.
    shared: usize,
    /// The largest number of columns that ended at one depth, with that depth.
    largest: (u32, usize),
    /// Number of columns that were asked, and of those among them that claim at least one step.
    asked: u32,
    found: u32,
}

impl Memory {
    /// To be called before the first group of columns is asked for a chain.
    pub(in crate::bank) const fn begin(&mut self) {
        (self.largest, self.asked, self.found) = ((0, 0), 0, 0);
    }

    /// To be called after the last group was asked.
    pub(in crate::bank) const fn end(&mut self) {
        let (columns, depth) = self.largest;
        self.shared = if columns >= self.asked - self.found { depth } else { 0 };
    }
}

/// A depth at which a node is divided, and how many keys before it are asked for.
#[derive(Clone, Copy)]
struct Pivot {
    depth: u32,
    keys: u32,
}

/// The pivots of a node, from the lowest one upwards.
struct Pivots {
    all: [Pivot; MAX_PIVOTS],
    count: usize,
}

/// Columns that share a depth, or a range of depths; depths are counted in steps.
#[derive(Clone, Copy)]
struct Node<const W: usize> {
    /// The range that contains the depths of the columns. The upper bound is certain.
    lowest: usize,
    highest: usize,
    /// Keys before `lowest` that all of the columns are known to claim.
    run: usize,
    /// The lower end of the range to try if the columns turn out to belong below this node.
    below: usize,
    /// Which block of the row holds the columns.
    block: usize,
    /// How often these columns have been misled.
    misled: u32,
    /// Whether wrong claims alone could explain that columns are in this node.
    is_suspect: bool,
    columns: [u64; W],
}

impl<const W: usize> Node<W> {
    /// Words of a node in the queue.
    const WORDS: usize = W + 3;

    #[inline(always)]
    fn write(&self, queue: &mut Vec<u64>) {
        queue.extend_from_slice(&[
            self.lowest as u64 | (self.highest as u64) << 32,
            self.run as u64 | (self.below as u64) << 32,
            self.block as u64 | u64::from(self.misled) << 32 | u64::from(self.is_suspect) << 63,
        ]);
        queue.extend_from_slice(&self.columns);
    }

    #[inline(always)]
    fn read(words: &[u64]) -> Self {
        let low = |word: u64| (word & 0xFFFF_FFFF) as usize;
        Self {
            lowest: low(words[0]),
            highest: (words[0] >> 32) as usize,
            run: low(words[1]),
            below: (words[1] >> 32) as usize,
            block: low(words[2]),
            misled: (words[2] >> 32) as u32 & 0x7FFF_FFFF,
            is_suspect: words[2] >> 63 == 1,
            columns: *words[3..].first_chunk().expect("a node of this width"),
        }
    }

    #[inline(always)]
    fn count(columns: &[u64; W]) -> u32 {
        columns.iter().map(|word| word.count_ones()).sum()
    }
}

/// One search for the depths of all columns that `claims` knows.
pub(in crate::bank) struct Search<'a, C, const W: usize> {
    claims: &'a C,
    chain: &'a [KeyHash],
    how: ChainSearch,
    memory: &'a mut Memory,
    /// The place in the queue of the next node.
    next: usize,
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
        memory: &'a mut Memory,
        depths: &'a mut [u32],
    ) {
        debug_assert!(u32::try_from(chain.len()).is_ok(), "depths are numbers of 32 bits");
        memory.queue.clear();
        let mut search = Self { claims, chain, how, memory, next: 0, depths };
        let highest = chain.len() / how.step();
        let is_walk = how.is_walk() || highest * how.step() <= SHORT;
        let misled = if is_walk { MAX_SEARCHES } else { 0 };
        for (block, live) in live.chunks(W).enumerate() {
            let mut columns = [0; W];
            columns[..live.len()].copy_from_slice(live);
            search.memory.asked += Node::count(&columns);
            search.push(&Node {
                lowest: 0,
                highest,
                run: 0,
                below: 0,
                block,
                misled,
                is_suspect: false,
                columns,
            });
        }
        search.work();
    }

    #[inline(always)]
    fn work(&mut self) {
        while self.next < self.memory.queue.len() {
            let node = Node::<W>::read(&self.memory.queue[self.next..]);
            self.next += Node::<W>::WORDS;
            if node.misled >= MAX_SEARCHES {
                self.walk(&node);
            } else if node.is_suspect {
                self.confirm(&node);
            } else if node.lowest == node.highest {
                self.verify(&node);
            } else {
                self.divide(&node);
            }
        }
    }

    /// Appends a node to the queue and requests the memory of the keys that it will be asked for.
    /// If the depth is known already, it is reported instead.
    #[inline(always)]
    fn push(&mut self, node: &Node<W>) {
        if is_none(&node.columns) || node.highest == 0 {
            return;
        }
        if node.misled >= MAX_SEARCHES {
            self.fetch(node.block, 0..AHEAD.min(node.highest * self.how.step()));
        } else if node.is_suspect {
            self.fetch(node.block, self.confirmed(node));
        } else if node.lowest < node.highest {
            let Pivots { all, count } = self.pivots(node);
            all[..count].iter().for_each(|pivot| self.fetch(node.block, self.asked(*pivot)));
        } else if node.run >= self.window_before(node.lowest) {
            return self.report(node.block, &node.columns, node.lowest);
        } else {
            self.fetch(node.block, self.unverified(node));
        }
        node.write(&mut self.memory.queue);
    }

    #[inline(always)]
    fn fetch(&self, block: usize, keys: Range<usize>) {
        keys.rev().for_each(|key| self.claims.fetch(block, self.chain[key]));
    }

    /// The pivots of a node with several depths.
    #[inline(always)]
    fn pivots(&self, node: &Node<W>) -> Pivots {
        let mut pivots = Pivots { all: [Pivot { depth: 0, keys: 0 }; MAX_PIVOTS], count: 0 };
        let depths = node.highest - node.lowest;
        let mut add = |depth: usize, keys: u32| {
            pivots.all[pivots.count] = Pivot { depth: depth as u32, keys };
            pivots.count += 1;
        };
        if node.lowest == 0 {
            let shared = if node.misled == 0 { self.memory.shared / self.how.step() } else { 0 };
            let many = self.keys_for(&node.columns);
            let (mut power, mut is_tried) = (1, shared >= node.highest);
            while power < node.highest || !is_tried {
                if !is_tried && (power > shared || power >= node.highest) {
                    is_tried = true;
                    if shared > power / 2 {
                        add(shared, 1);
                    }
                    if shared + 1 < node.highest {
                        add(shared + 1, many);
                    }
                    power = if power == shared + 1 { 2 * power } else { power };
                } else {
                    add(power, 1);
                    power *= 2;
                }
            }
            add(node.highest, if node.highest == shared + 1 { many } else { 1 });
        } else if depths <= NARROW {
            let many = self.keys_for(&node.columns);
            (1..=depths).for_each(|depth| add(node.lowest + depth, many));
        } else {
            (1..=FAN).for_each(|part| add(node.lowest + part * (depths + 1) / (FAN + 1), 1));
        }
        pivots
    }

    /// The number of keys to ask for such that, if none of these columns holds them, on average one
    /// eighth of a column claims them all. At most a step and at most a window.
    #[inline(always)]
    fn keys_for(&self, columns: &[u64; W]) -> u32 {
        let keys = (Node::count(columns).ilog2() + 3).div_ceil(self.claims.hashes());
        keys.min(self.how.step() as u32).min(self.how.window() as u32)
    }

    /// Keys that a pivot asks for.
    #[inline(always)]
    fn asked(&self, pivot: Pivot) -> Range<usize> {
        let end = pivot.depth as usize * self.how.step();
        end - pivot.keys as usize..end
    }

    /// Divides the columns of a node between its pivots.
    #[inline(always)]
    fn divide(&mut self, node: &Node<W>) {
        let (Pivots { all, count }, hashes) = (self.pivots(node), self.claims.hashes());
        let pivots = &all[..count];
        // Per pivot, how many columns wrong claims are expected to bring there, in 64ths.
        let mut explained = [0u32; MAX_PIVOTS + 1];
        self.memory.claimed.clear();
        let (mut columns, mut here) = (node.columns, Node::count(&node.columns));
        let mut last = 0;
        for (index, pivot) in pivots.iter().enumerate() {
            self.memory.claimed.extend_from_slice(&columns);
            for key in self.asked(*pivot).rev() {
                self.claims.and(node.block, self.chain[key], &mut columns);
            }
            if is_none(&columns) {
                break;
            }
            let before = std::mem::replace(&mut here, Node::count(&columns));
            explained[index + 1] =
                (explained[index] + 64 * (before - here)) >> (hashes * pivot.keys).min(31);
            last = index + 1;
        }
        let depth = |number: usize| match number.checked_sub(1) {
            None => node.lowest,
            Some(index) => pivots[index].depth as usize,
        };
        let mut highest = if last < count { depth(last + 1) - 1 } else { node.highest };
        self.memory.claimed.extend_from_slice(&columns);
        let mut above = [0; W];
        // The deepest first: columns of a suspect node that deny a key join the node below.
        for number in (0..=last).rev() {
            let claimed: [u64; W] = *self.memory.claimed[number * W..]
                .first_chunk()
                .expect("a set of columns for each pivot");
            let columns = without(&claimed, &above);
            above = claimed;
            let lowest = depth(number);
            let (run, below) = match number.checked_sub(1) {
                None => (node.run, node.below),
                Some(index) => (pivots[index].keys as usize, depth(index)),
            };
            let is_suspect = number > 0 && 2 * explained[number] >= 64 * Node::count(&columns);
            self.push(&Node { lowest, highest, run, below, is_suspect, columns, ..*node });
            highest = lowest.saturating_sub(1);
        }
    }

    /// Keys that the columns of a suspect node are asked for.
    #[inline(always)]
    fn confirmed(&self, node: &Node<W>) -> Range<usize> {
        let end = node.lowest * self.how.step() - node.run;
        let count = 2 + Node::count(&node.columns).ilog2() / self.claims.hashes();
        let window = self.window_before(node.lowest).saturating_sub(node.run);
        end - (count as usize).min(window)..end
    }

    /// Asks the columns of a suspect node for some more keys. Those that deny one join the node
    /// below.
    #[inline(always)]
    fn confirm(&mut self, node: &Node<W>) {
        let keys = self.confirmed(node);
        let (mut columns, run) = (node.columns, node.run + keys.len());
        for key in keys.rev() {
            self.claims.and(node.block, self.chain[key], &mut columns);
            if is_none(&columns) {
                break;
            }
        }
        self.push(&Node { run, is_suspect: false, columns, ..*node });
        self.fall(node, &without(&node.columns, &columns));
    }

    /// Columns of a node turn out to belong below it.
    #[inline(always)]
    fn fall(&mut self, node: &Node<W>, columns: &[u64; W]) {
        if is_none(columns) {
            return;
        }
        let highest = node.lowest - 1;
        if self.next < self.memory.queue.len() {
            let below = Node::<W>::read(&self.memory.queue[self.next..]);
            if below.highest == highest && below.block == node.block && below.misled < MAX_SEARCHES
            {
                let words = &mut self.memory.queue[self.next..][..Node::<W>::WORDS];
                // Reset `run`: these columns may not have been asked for the keys before `lowest`.
                words[1] &= !0xFFFF_FFFF;
                words[3..].iter_mut().zip(columns).for_each(|(word, more)| *word |= more);
                return;
            }
        }
        self.search_again(node, highest, *columns);
    }

    /// Searches columns that were misled again, at depths up to `highest`.
    #[inline(always)]
    fn search_again(&mut self, node: &Node<W>, highest: usize, columns: [u64; W]) {
        let (lowest, misled) = (node.below.min(highest), node.misled + 1);
        let is_suspect = false;
        self.push(&Node {
            lowest,
            highest,
            run: 0,
            below: 0,
            misled,
            is_suspect,
            columns,
            ..*node
        });
    }

    /// Keys of a depth's window.
    #[inline(always)]
    fn window_before(&self, depth: usize) -> usize {
        self.how.window().min(depth * self.how.step())
    }

    /// Keys of the window that the columns of a node with a single depth were not asked for yet.
    #[inline(always)]
    fn unverified(&self, node: &Node<W>) -> Range<usize> {
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
            let columns = without(&node.columns, &columns);
            self.search_again(node, key / self.how.step(), columns);
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
        let count = Node::count(columns);
        self.memory.found += count;
        if count > self.memory.largest.0 {
            self.memory.largest = (count, keys as usize);
        }
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
