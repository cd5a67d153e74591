//! One filter per length, up to eight lengths a group.
//!
//! Every length has a filter of its own in the sense of the paper: it is asked for the first
//! `l` bits and claims them or not. They are laid out so that few cache lines are touched:
//!
//! ```text
//! group   lengths base+1 … base+8 at most, answered together
//! span    the lengths of a group that share blocks: addresses have up to two spans of four
//!         lengths, whose block is picked by the bits before them (the anchor), so that one line
//!         answers four lengths; names have eight spans of one length
//! block   256 bits; a key picks one of its eight words and sets up to three bits there
//! ```
//!
//! Deletion needs counters. Two bit planes count to two: a bit that a second key sets is
//! *shared*, and stays when a key goes. Bits that stay so are counted, and the filters are
//! made anew before they matter.
//!
//! A group of one length has no filters: its only block claims everything, so that lookups need
//! not branch.
//!
//! Always true: a prefix that was added and not removed is claimed.

use super::plan::Lengths;

/// A cache-line half: what one span reads for an address.
pub(super) type Block = [u32; 8];

/// Spans have at least so many blocks: half a kilobyte for the rarest lengths.
const FEWEST_BLOCKS: usize = 16;

pub(super) const FIRST: u32 = 0x85EB_CA6B;
pub(super) const SECOND: u32 = 0xC2B2_AE35;
/// The word is picked by the highest three bits.
pub(super) const WORD_SHIFT: u32 = 29;

/// A well-mixed number: the halves of a 128-bit product, folded.
#[inline(always)]
pub(super) const fn mix(number: u64) -> u64 {
    let product = (number ^ 0x2D35_8DCC_AA6C_78A5) as u128 * 0x9E37_79B9_7F4A_7C15;
    (product as u64) ^ ((product >> 64) as u64)
}

/// Where in a block a key stands: its word and its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point(u32);

impl Point {
    /// The point of the key that has `bits` (at most four) more bits than its anchor, the
    /// first ones of `nibble`.
    #[inline(always)]
    pub(super) const fn below(seed: u32, bits: u32, nibble: u32) -> Self {
        let sub = (16 | nibble) >> (4 - bits);
        let mixed = (seed ^ sub).wrapping_mul(FIRST);
        Self((mixed ^ (mixed >> 15)).wrapping_mul(SECOND))
    }

    /// The point of a key that is a hash already.
    #[inline(always)]
    pub(super) const fn of_hash(hash: u32) -> Self {
        Self(hash)
    }

    #[inline(always)]
    const fn word(self) -> usize {
        (self.0 >> WORD_SHIFT) as usize
    }

    #[inline(always)]
    const fn mask(self) -> u32 {
        1 << ((self.0 >> 24) & 31) | 1 << ((self.0 >> 19) & 31) | 1 << ((self.0 >> 14) & 31)
    }

    #[inline(always)]
    pub(super) const fn is_claimed(self, block: &Block) -> bool {
        block[self.word()] & self.mask() == self.mask()
    }
}

/// Where a key stands in a span: what picks the block, and the point in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Spread over 32 bits.
    pub(super) pick: u32,
    pub(super) point: Point,
}

/// Where a key stands in the blocks of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    span: usize,
    block: u32,
    point: Point,
}

/// The blocks of the lengths that share them.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    first: u32,
    blocks: u32,
    items: u32,
    /// More are too many.
    max: u32,
}

impl Span {
    #[inline(always)]
    const fn place(self, pick: u32) -> u32 {
        self.first + ((pick as u64 * self.blocks as u64) >> 32) as u32
    }
}

/// Blocks with their counters of two.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    spans: [Span; 8],
    set: Vec<Block>,
    shared: Vec<Block>,
    stuck: usize,
}

impl Blocks {
    /// Blocks for so many keys in each span.
    pub(super) fn for_items(items: &[usize], bits_a_key: usize) -> Self {
        let mut spans = [Span::default(); 8];
        let mut first = 0;
        for (span, items) in spans.iter_mut().zip(items) {
            let blocks = (items * bits_a_key).div_ceil(256).max(FEWEST_BLOCKS) as u32;
            let max = blocks as usize * 256 / bits_a_key * 3 / 2;
            *span = Span { first, blocks, items: 0, max: max as u32 };
            first += blocks;
        }
        // Two vectors of zeros, which the system need not write before they are used.
        let empty = || vec![[0; 8]; first as usize];
        Self { spans, set: empty(), shared: empty(), stuck: 0 }
    }

    /// One block that claims everything.
    pub(super) fn direct() -> Self {
        let set = vec![[u32::MAX; 8]];
        Self { spans: [Span::default(); 8], set, shared: Vec::new(), stuck: 0 }
    }

    const fn is_direct(&self) -> bool {
        self.shared.is_empty()
    }

    /// Which block a span's `pick` leads to.
    #[inline(always)]
    pub(super) const fn place(&self, span: usize, pick: u32) -> u32 {
        self.spans[span].place(pick)
    }

    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> &Block {
        &self.set[place as usize]
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, place: u32) {
        crate::prefetch::prefetch(&self.set, place as usize);
    }

    #[inline(always)]
    pub(super) const fn seat(&self, span: usize, spot: Spot) -> Seat {
        Seat { span, block: self.place(span, spot.pick), point: spot.point }
    }

    #[inline(always)]
    pub(super) fn prefetch_change(&self, seat: Seat) {
        self.prefetch(seat.block);
        crate::prefetch::prefetch(&self.shared, seat.block as usize);
    }

    #[inline(always)]
    pub(super) fn claims(&self, seat: Seat) -> bool {
        seat.point.is_claimed(self.at(seat.block))
    }

    /// Adds a key; true if the filters should be made anew for more keys.
    #[inline(always)]
    pub(super) fn add(&mut self, Seat { span, block, point }: Seat) -> bool {
        if self.is_direct() {
            return false;
        }
        let (block, word, mask) = (block as usize, point.word(), point.mask());
        self.shared[block][word] |= self.set[block][word] & mask;
        self.set[block][word] |= mask;
        self.spans[span].items += 1;
        self.spans[span].items > self.spans[span].max
    }

    /// Removes a key that was added; true if so many bits were left behind, because other
    /// keys had set them as well, that the filters should be made anew.
    #[inline(always)]
    pub(super) fn remove(&mut self, Seat { span, block, point }: Seat) -> bool {
        if self.is_direct() {
            return false;
        }
        let (block, word, mask) = (block as usize, point.word(), point.mask());
        let shared = self.shared[block][word] & mask;
        self.set[block][word] &= !(mask & !shared);
        self.spans[span].items -= 1;
        self.stuck += shared.count_ones() as usize;
        self.stuck > self.set.len() * 256 / 16
    }

    /// The chance that the block which `pick` leads to claims a key it does not have.
    pub(super) fn false_positive(&self, span: usize, pick: u32) -> f64 {
        let block = self.at(self.place(span, pick));
        block.iter().map(|word| (f64::from(word.count_ones()) / 32.0).powi(3)).sum::<f64>() / 8.0
    }

    /// Blocks that a lookup reads.
    pub(super) fn spans(&self) -> u32 {
        self.spans.iter().map(|span| u32::from(span.blocks > 0)).sum()
    }

    /// Bits of the filters themselves, without their counters.
    pub(super) const fn bits(&self) -> usize {
        self.shared.len() * 256
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        (self.set.capacity() + self.shared.capacity()) * size_of::<Block>()
    }
}

/// The filters of up to eight neighbouring lengths.
#[derive(Debug, Clone)]
pub struct Group {
    pub(super) lengths: Lengths,
    /// A bit for each of them.
    pub(super) lanes: u32,
    /// Whether it is asked only where a mark is set.
    pub(super) is_marked: bool,
    /// Levels of marks that its prefixes are marked at.
    pub(super) levels: usize,
    pub(super) blocks: Blocks,
}
