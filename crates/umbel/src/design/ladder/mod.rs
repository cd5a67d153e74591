//! The ladder of shapes that the filters of replicated sets use.
//!
//! A rung is a length of `2^e` bits, `e` from 10 to 40. Hashes and digest length depend only on the
//! set's false positive rate, so that rungs are nested: a key's position on a rung is its position
//! on a higher rung, shifted right. Hence:
//!
//! * the OR of neighbouring bits is the filter one rung below ([`BitVector::folded`]);
//! * a filter is sent as a refinement (`codec::refine`) to a receiver that has the rung below;
//! * a bank keeps filters of different rungs in the same rows (`bank`).
//!
//! How many keys a rung has room for depends on the number of hosts that share the promised rate,
//! but shapes do not depend on it. [`RungChoice`] decides when a set climbs and when it descends.
//!
//! Sets of chains ([`Ladder::of_chains`]) promise a rate per key and host that no other host
//! shares. Their filters have at most [`Ladder::CHAIN_HASHES_MAX`] hashes, those of other sets
//! more: the receiver of a filter can tell from its shape what kind of set it belongs to.
//!
//! Always true: a filter on a rung with at most [`Ladder::takes`] keys keeps its share of the
//! promised rate, equal digests included. Built on `design` and `params`; builds no filter.
//!
//! [`BitVector::folded`]: crate::bits::BitVector::folded

mod choice;
mod hosts;

pub use choice::{Move, RungChoice, Standing};
pub use hosts::ExpectedHosts;

use std::fmt;

use super::average;
use crate::model::standard::false_positive;
use crate::params::{DigestBits, Hashes, ParamError, Rate, Shape};

/// A length of `2^e` bits, identified by `e`: 10 to 40.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rung(u8);

impl Rung {
    /// 1024 bits: 128 bytes.
    pub const LOWEST: Self = Self(10);
    /// 2^40 bits, the longest filter.
    pub const HIGHEST: Self = Self(40);

    /// The rung of this exponent, if there is one.
    #[must_use]
    pub const fn new(exponent: u32) -> Option<Self> {
        match exponent {
            10..=40 => Some(Self(exponent as u8)),
            _ => None,
        }
    }

    /// The rung of a shape, if its length is a power of two in range.
    #[must_use]
    pub const fn of(shape: &Shape) -> Option<Self> {
        let bits = shape.bits();
        if bits.is_power_of_two() { Self::new(bits.trailing_zeros()) } else { None }
    }

    /// The exponent: the rung's length is two to this power.
    #[must_use]
    pub const fn exponent(self) -> u32 {
        self.0 as u32
    }

    /// Length in bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        1 << self.0
    }

    /// The rung this many steps above, at most the highest.
    #[must_use]
    pub fn above(self, steps: u32) -> Self {
        Self((u32::from(self.0) + steps).min(Self::HIGHEST.exponent()) as u8)
    }

    /// The next rung below, if there is one.
    #[must_use]
    pub fn below(self) -> Option<Self> {
        (self > Self::LOWEST).then(|| Self(self.0 - 1))
    }

    /// All rungs, the lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::LOWEST.0..=Self::HIGHEST.0).map(Self)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2^{}", self.0)
    }
}

/// The shapes for sets of one false positive rate.
///
/// ```
/// use umbel::Rate;
/// use umbel::design::ladder::{Ladder, Rung};
///
/// let ladder = Ladder::new(Rate::new(0.01)?);
/// let rung = Rung::new(20).unwrap();
/// assert_eq!((ladder.shape(rung).bits(), ladder.shape(rung).hashes()), (1 << 20, 12));
/// assert_eq!(ladder.takes(rung, 32), 61_464);
/// assert_eq!(ladder.rung_for(61_464, 32), Some(rung));
/// assert_eq!(ladder.rung_for(61_465, 32), Rung::new(21));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ladder {
    rate: Rate,
    kind: Kind,
}

/// What the rate refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The rate of a lookup, over all hosts together.
    Lookups,
    /// The rate of a key at each host.
    Chains,
}

/// Above this rung digests have 64 bits.
const LONG_DIGESTS_ABOVE: Rung = Rung(30);

impl Ladder {
    /// The ladder of sets that promise this rate per lookup, over all hosts together.
    #[must_use]
    pub const fn new(per_lookup: Rate) -> Self {
        Self { rate: per_lookup, kind: Kind::Lookups }
    }

    /// The most hashes of a filter of a set of chains; those of other sets have more.
    pub const CHAIN_HASHES_MAX: u32 = 5;

    /// The ladder of sets of chains in which the filter of each host claims this share of absent
    /// keys.
    #[must_use]
    pub const fn of_chains(per_key: Rate) -> Self {
        Self { rate: per_key, kind: Kind::Chains }
    }

    /// The rate of a lookup over all hosts together; for a set of chains, the rate of a key at each
    /// host.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Hashes on all rungs: `⌈log2(32/ε)⌉`. Filters are then at most 4 % longer than the best ones,
    /// for 3 to 1000 hosts at 1 %, and at most 3 % at smaller rates. For a set of chains
    /// `⌊log2(1/ε)⌋`, because a search reads rows for every hash, and at most 5.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        match self.kind {
            Kind::Lookups => {
                let hashes = (32.0 / self.rate.get()).log2().ceil();
                let fewest = f64::from(Self::CHAIN_HASHES_MAX + 1);
                hashes.clamp(fewest, f64::from(Hashes::MAX)) as u32
            }
            Kind::Chains => {
                let hashes = (1.0 / self.rate.get()).log2().floor();
                hashes.clamp(1.0, f64::from(Self::CHAIN_HASHES_MAX)) as u32
            }
        }
    }

    /// Digest length of a rung: `37 + ⌈log2(1/ε)⌉` up to 2^30 bits, 64 above that. Equal digests
    /// then reduce the number of keys of a rung by at most 3 %.
    #[must_use]
    pub fn digest_bits(&self, rung: Rung) -> DigestBits {
        let short = 37 + (1.0 / self.rate.get()).log2().ceil().min(27.0) as u32;
        let bits = if rung <= LONG_DIGESTS_ABOVE { short.min(64) } else { 64 };
        DigestBits::new(bits).unwrap_or(DigestBits::FULL)
    }

    /// The shape of a rung.
    ///
    /// # Panics
    /// Never: every rung has a valid length.
    #[must_use]
    pub fn shape(&self, rung: Rung) -> Shape {
        let shape = Shape::new(rung.bits(), self.hashes()).expect("a rung has a valid length");
        shape.with_digest_bits(self.digest_bits(rung))
    }

    /// The rate that each of `hosts` replicas must keep, so that all together keep the promised
    /// one: `1 - (1 - ε)^(1/γ)`. No hosts count as one. Filters of chains keep their rate whatever
    /// the number of hosts.
    ///
    /// # Errors
    /// If the rate is so small that it rounds to 0.
    pub fn replica_rate(&self, hosts: u32) -> Result<Rate, ParamError> {
        match self.kind {
            Kind::Lookups => {
                Rate::new(crate::model::each_of(self.rate.get(), f64::from(hosts.max(1))))
            }
            Kind::Chains => Ok(self.rate),
        }
    }

    /// The most keys that keep the promised rate on a rung with `hosts` hosts: by formula with
    /// equal digests, `p(n)^k + n/2^b`, and on average over sets of keys. Digests of 64 bits are
    /// assumed to be different: no filter, however long, could distinguish equal ones.
    #[must_use]
    pub fn capacity(&self, rung: Rung, hosts: u32) -> u64 {
        #[cfg(test)]
        SEARCHES.set(SEARCHES.get() + 1);
        let Ok(rate) = self.replica_rate(hosts) else { return 0 };
        let shape = self.shape(rung);
        let equal = match shape.digest_bits().get() {
            64 => 0.0,
            bits => f64::from(bits).exp2().recip(),
        };
        let keeps = |keys: u64| {
            false_positive(shape, keys) + keys as f64 * equal <= rate.get()
                && average::keeps(shape, keys, rate)
        };
        // Binary search: a closed form would need its rounding corrected.
        let (mut kept, mut broken) = (0, rung.bits());
        while broken - kept > 1 {
            let middle = kept.midpoint(broken);
            if keeps(middle) { kept = middle } else { broken = middle }
        }
        kept
    }

    /// Keys that a set holds on a rung before it climbs: 63/64 of the capacity. The rest is room
    /// for removed keys that are not cleared yet.
    #[must_use]
    pub fn takes(&self, rung: Rung, hosts: u32) -> u64 {
        let capacity = self.capacity(rung, hosts);
        capacity - capacity.div_ceil(64)
    }

    /// The lowest rung that takes this many keys; `None` if even the highest does not.
    #[must_use]
    pub fn rung_for(&self, keys: u64, hosts: u32) -> Option<Rung> {
        // A key takes more than one bit, whatever the rate: lower rungs need not be tried.
        let min = Rung::new(keys.max(1).ilog2()).unwrap_or(Rung::LOWEST);
        Rung::all()
            .skip_while(|rung| *rung < min)
            .find(|rung| keys == 0 || keys <= self.takes(*rung, hosts))
    }
}

#[cfg(test)]
thread_local! {
    static SEARCHES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How often this thread has searched for the capacity of a rung. For tests.
#[cfg(test)]
fn searches() -> u64 {
    SEARCHES.get()
}

/// By how many rungs `to` is above `from` (below, if negative), if positions on the lower of the
/// two are those on the higher one shifted right. The caller must compare the hashers.
#[must_use]
pub fn steps_between(from: &Shape, to: &Shape) -> Option<i32> {
    let nested = from.hashes() == to.hashes() && from.digest_bits() == to.digest_bits();
    let (Some(lower), Some(upper)) = (Rung::of(from), Rung::of(to)) else { return None };
    nested.then(|| upper.exponent() as i32 - lower.exponent() as i32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filter::{CountingFilter, StandardFilter};
    use crate::key_hash::KeyHash;

    fn ladder(rate: f64) -> Ladder {
        Ladder::new(Rate::new(rate).unwrap())
    }

    fn rung(exponent: u32) -> Rung {
        Rung::new(exponent).unwrap()
    }

    /// Bits per key at capacity for 1 % per lookup, by the number of hosts.
    #[test]
    fn bits_per_key_are_those_of_the_study() {
        let at_one_percent = ladder(0.01);
        assert_eq!(at_one_percent.hashes(), 12);
        assert_eq!(at_one_percent.digest_bits(rung(30)).get(), 44);
        assert_eq!(at_one_percent.digest_bits(rung(31)).get(), 64);
        for (hosts, expected) in [
            (4, 12.84),
            (8, 14.10),
            (16, 15.41),
            (32, 16.79),
            (64, 18.25),
            (128, 19.78),
            (256, 21.39),
            (512, 23.09),
            (1024, 24.89),
        ] {
            let bits = (1u64 << 22) as f64 / at_one_percent.capacity(rung(22), hosts) as f64;
            assert!((bits - expected).abs() < 0.011, "{hosts} hosts: {bits}");
        }
        assert_eq!(at_one_percent.takes(rung(20), 32), 61_464);
    }

    /// The best filter with any number of hashes is at most 4 % shorter.
    #[test]
    fn one_number_of_hashes_is_close_to_the_best() {
        for (rate, hosts) in [(0.01, 3), (0.01, 32), (0.01, 1000), (0.001, 3), (0.001, 1000)] {
            let ladder = ladder(rate);
            let keys = ladder.capacity(rung(24), hosts);
            let best = crate::design::standard(keys, ladder.replica_rate(hosts).unwrap()).unwrap();
            let over = rung(24).bits() as f64 / best.bits() as f64;
            assert!(over < 1.05, "{rate} and {hosts} hosts: {over}");
        }
    }

    /// Absent keys that filters at capacity claim, over all hosts together: the promise is kept,
    /// and not much more than kept.
    #[test]
    fn the_measured_rate_is_the_promised_one() {
        for (exponent, hosts, filters, min) in [(10, 32, 60, 0.0075), (14, 32, 12, 0.0092)] {
            let ladder = ladder(0.01);
            let keys = ladder.capacity(rung(exponent), hosts);
            let mut state = u64::from(exponent);
            let mut next = || {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                KeyHash::from_raw((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB))
            };
            let (mut claimed, mut asked) = (0u64, 0u64);
            for _ in 0..filters {
                let mut filter = StandardFilter::with_shape(ladder.shape(rung(exponent))).unwrap();
                (0..keys).for_each(|_| _ = filter.insert_digest(filter.scheme().digest_of(next())));
                for _ in 0..200_000 {
                    asked += 1;
                    claimed += u64::from(filter.contains_digest(filter.scheme().digest_of(next())));
                }
            }
            let each = claimed as f64 / asked as f64;
            let per_lookup = crate::model::any_of(each, hosts.into());
            assert!((min..0.0108).contains(&per_lookup), "2^{exponent}: {per_lookup}");
        }
    }

    #[test]
    fn rungs_have_ends() {
        assert_eq!(Rung::new(9), None);
        assert_eq!(Rung::new(41), None);
        assert_eq!(Rung::LOWEST.below(), None);
        assert_eq!(Rung::HIGHEST.above(3), Rung::HIGHEST);
        assert_eq!(Rung::of(&Shape::new(1 << 12, 3).unwrap()), Some(rung(12)));
        assert_eq!(Rung::of(&Shape::new((1 << 12) + 1, 3).unwrap()), None);
        assert_eq!(ladder(0.01).rung_for(0, 32), Some(Rung::LOWEST));
        assert_eq!(ladder(0.01).rung_for(u64::MAX, 32), None);
        assert_eq!(ladder(0.01).shape(rung(31)).bits(), 1 << 31);
        let between =
            |a, b| steps_between(&ladder(0.01).shape(rung(a)), &ladder(0.01).shape(rung(b)));
        assert_eq!((between(12, 15), between(15, 12), between(30, 31)), (Some(3), Some(-3), None));
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn positions_are_nested(hash in any::<u64>(), low in 10u32..=30, steps in 0u32..=20) {
            let ladder = ladder(0.01);
            let (low, high) = (rung(low), rung((low + steps).min(30)));
            let steps = high.exponent() - low.exponent();
            let digest = KeyHash::from_raw(hash).digest(ladder.digest_bits(low));
            let shifted = digest.positions(&ladder.shape(high)).map(|position| position >> steps);
            prop_assert!(digest.positions(&ladder.shape(low)).eq(shifted));
        }

        #[test]
        fn filters_and_counters_fold_to_those_of_the_rung_below(
            hashes in prop::collection::vec(any::<u64>(), 0..300),
            removed in 0usize..100, low in 10u32..=13, steps in 0u32..=9,
        ) {
            let ladder = ladder(0.05);
            let of = |exponent: u32| {
                let mut filter = CountingFilter::with_shape(ladder.shape(rung(exponent))).unwrap();
                let digest = |hash: &u64| filter.scheme().digest_of(KeyHash::from_raw(*hash));
                let digests: Vec<_> = hashes.iter().map(digest).collect();
                digests.iter().for_each(|digest| _ = filter.insert_digest(*digest));
                digests.iter().take(removed).for_each(|digest| _ = filter.remove_digest(*digest));
                filter
            };
            let (lower, upper) = (of(low), of(low + steps));
            let bits = upper.bits().folded(steps);
            prop_assert!(bits == *lower.bits());
            bits.validate();
            let folded = upper.folded(steps).unwrap();
            folded.validate();
            // Stuck counters aside, which a fold may have and a filter of its own need not.
            if folded.stuck_counters() == 0 && lower.stuck_counters() == 0 {
                prop_assert!(folded == lower);
            }
        }

        #[test]
        fn more_keys_fit_on_higher_rungs_and_with_fewer_hosts(
            exponent in 10u32..40, hosts in 1u32..5000, rate in -9.0f64..-0.5,
        ) {
            let ladder = ladder(10f64.powf(rate));
            let takes = ladder.takes(rung(exponent), hosts);
            prop_assert!(ladder.takes(rung(exponent + 1), hosts) >= takes);
            prop_assert!(ladder.takes(rung(exponent), hosts + 1) <= takes);
            prop_assert!(takes <= ladder.capacity(rung(exponent), hosts));
            if takes > 0 {
                let found = ladder.rung_for(takes, hosts).unwrap();
                prop_assert!(found <= rung(exponent) && ladder.takes(found, hosts) >= takes);
            }
        }
    }
}
