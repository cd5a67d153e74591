//! The Bloom filters that spare looking: one over each master, one over each index of changes.
//!
//! Positions and shapes are `umbel`'s; only where the bits live is decided here. A master's
//! lie in its mapped file and are never copied ([`contains_in`]); those of changes that are
//! still coming are atomic, so that readers need no lock ([`LiveFilter`]).
//!
//! Paper 2: after `u` updates over `n` records a filter of `m` bits and `h` hashes errs with
//! `p(u) = (1-1/n)^u · [1-(1-1/m)^(uh)]^h`; the best `h` is `ln 2 · m/u`.

use std::sync::atomic::{AtomicU64, Ordering};

use umbel::{KeyHash, Rate, Shape};

/// Whether the filter with these bytes may contain the key; `false` is certain.
///
/// `bytes` are little-endian words, as many as the shape has.
#[inline]
pub(crate) fn contains_in(bytes: &[u8], shape: &Shape, hash: KeyHash) -> bool {
    may_contain(shape, hash, |word| super::format::u64_at(bytes, word * 8))
}

/// Three probes without a branch between them, so that the processor has all three lines
/// under way at once: seven of eight absent keys end there. Then the rest, one by one.
#[inline]
fn may_contain(shape: &Shape, hash: KeyHash, word: impl Fn(usize) -> u64) -> bool {
    let mut positions = hash.digest(shape.digest_bits()).positions(shape);
    let mut probe = || positions.next().map(|at| word((at / 64) as usize) >> (at % 64) & 1);
    let first = probe().unwrap_or(1) & probe().unwrap_or(1) & probe().unwrap_or(1);
    first == 1 && std::iter::from_fn(probe).all(|bit| bit == 1)
}

/// A filter that takes keys while others ask it.
#[derive(Debug)]
pub(crate) struct LiveFilter {
    words: Vec<AtomicU64>,
    shape: Shape,
}

impl LiveFilter {
    pub(crate) fn new(shape: Shape) -> Self {
        let words = shape.bits().div_ceil(64) as usize;
        Self { words: std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect(), shape }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whoever learns of the key through a lock or an acknowledgement sees its bits.
    #[inline]
    pub(crate) fn insert(&self, hash: KeyHash) {
        for at in hash.digest(self.shape.digest_bits()).positions(&self.shape) {
            self.words[(at / 64) as usize].fetch_or(1 << (at % 64), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn contains(&self, hash: KeyHash) -> bool {
        may_contain(&self.shape, hash, |word| self.words[word].load(Ordering::Relaxed))
    }
}

/// Collects the filter of a file that is being written.
#[derive(Debug)]
pub(crate) struct FilterBuilder {
    words: Vec<u64>,
    shape: Shape,
}

impl FilterBuilder {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { words: vec![0; shape.bits().div_ceil(64) as usize], shape }
    }

    #[inline]
    pub(crate) fn insert(&mut self, hash: KeyHash) {
        for at in hash.digest(self.shape.digest_bits()).positions(&self.shape) {
            self.words[(at / 64) as usize] |= 1 << (at % 64);
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The shortest filter for `items` keys at `rate`; one word if there are none.
pub(crate) fn shape_for(items: u64, rate: Rate) -> Shape {
    umbel::design::standard(items.max(1), rate)
        .unwrap_or_else(|_| Shape::new(umbel::params::Bits::MAX, 1).expect("the longest filter"))
}

/// Paper 2's filter of `bits` bits for `updates` changes: the better neighbour of
/// `ln 2 · m/u`, at least one hash.
pub(crate) fn shape_for_updates(bits: u64, updates: u64) -> Shape {
    let (m, u) = (bits.max(64) as f64, updates.max(1) as f64);
    let best = std::f64::consts::LN_2 * m / u;
    let rate = |h: f64| (1.0 - (-u * h / m).exp()).powf(h);
    let (below, above) = (best.floor().clamp(1.0, 64.0), best.ceil().clamp(1.0, 64.0));
    let h = if rate(below) <= rate(above) { below } else { above };
    Shape::new(bits.max(64), h as u32).expect("bits and hashes are in range")
}

/// Paper 2's probability of a filter error after `updates` changes over `records` records.
///
/// It is the chance that a request for a random record of the master finds the filter
/// saying "maybe" though the record was never changed.
///
/// ```
/// let shape = umbel::Shape::new(1_000_000, 1)?;
/// let expected = umbel_store::filter_error(shape, 500_000, 10_000_000);
/// assert!((expected - 0.95123 * 0.39347).abs() < 1e-4);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[must_use]
pub fn filter_error(shape: Shape, updates: u64, records: u64) -> f64 {
    let (u, n) = (updates as f64, records.max(1) as f64);
    let (m, h) = (shape.bits() as f64, f64::from(shape.hashes()));
    let unchanged = if records == 0 { 1.0 } else { (u * (-1.0 / n).ln_1p()).exp() };
    let all_ones = (1.0 - (u * h * (-1.0 / m).ln_1p()).exp()).powf(h);
    unchanged * all_ones
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::KeyHasher;

    #[test]
    fn the_two_kinds_of_filter_agree_and_deny_no_member() {
        let hasher = KeyHasher::default();
        let shape = shape_for(1000, Rate::new(0.01).unwrap());
        let (live, mut built) = (LiveFilter::new(shape), FilterBuilder::new(shape));
        for i in 0..1000u32 {
            live.insert(hasher.hash(&i.to_le_bytes()));
            built.insert(hasher.hash(&i.to_le_bytes()));
        }
        let bytes = built.into_bytes();
        let mut wrong = 0;
        for i in 0..100_000u32 {
            let hash = hasher.hash(&i.to_le_bytes());
            assert_eq!(live.contains(hash), contains_in(&bytes, &shape, hash));
            assert!(i >= 1000 || live.contains(hash));
            wrong += u32::from(i >= 1000 && live.contains(hash));
        }
        assert!((850..1150).contains(&wrong), "{wrong} of 99000 at 1 %");
    }

    /// The example of paper 2: eleven bits, `x mod 11` and `2x mod 11`.
    #[test]
    fn toy_example_of_paper_2() {
        let positions = |key: u64| [key % 11, 2 * key % 11];
        let mut bits = [false; 11];
        for key in [15, 17] {
            for at in positions(key) {
                bits[at as usize] = true;
            }
        }
        let ones: Vec<usize> = (0..11).filter(|&at| bits[at]).collect();
        assert_eq!(ones, [1, 4, 6, 8]);
        let claims = |key: u64| positions(key).iter().all(|&at| bits[at as usize]);
        assert!(claims(15) && claims(17));
        assert!(claims(6), "key 6 is a filter error");
        // Its positions are 6 and 1; 3 has 3 and 6, of which only one is set.
        assert!(!claims(3));
    }

    #[test]
    fn the_best_number_of_hashes_is_the_better_neighbour() {
        for (bits, updates, hashes) in
            [(1_000_000, 500_000, 1), (2_000_000, 500_000, 3), (1_000, 1_000_000, 1)]
        {
            assert_eq!(shape_for_updates(bits, updates).hashes(), hashes, "m={bits} u={updates}");
        }
    }

    #[test]
    fn no_updates_no_errors() {
        let shape = Shape::new(1000, 3).unwrap();
        assert_eq!(filter_error(shape, 0, 1000), 0.0);
        assert!(filter_error(shape, 100, 0) > 0.0);
    }
}
