//! A home with one replica: the building block of the papers' experiments.
//!
//! The home is a counting filter with its members, the replica a plain copy of it as last
//! published. Keys are numbers that are never used twice, hashed by the filters' own hasher. Keys
//! for queries come from the same source, so they are never members.
//!
//! The papers assume k independent hash functions. umbel's filters use double hashing, which makes
//! no difference in filters of useful length, but a visible one at 1200 bits and tiny rates.
//! [`Hashing::Independent`] builds the home as the papers assume it: a filter with one hash, to
//! which k numbers derived from each key are added.

use umbel::model::churn::bits_of_these_only;
use umbel::model::stale::Dirty;
use umbel::model::standard;
use umbel::{CountingFilter, Digest, DigestBits, KeyHasher, Scheme, Seed, Shape, StandardFilter};

use crate::random::Random;

/// A shape of the papers.
pub(crate) fn shape(bits: u64, hashes: u32) -> Shape {
    Shape::new(bits, hashes).expect("the papers' shapes are in range")
}

/// A source of keys that were never drawn before.
pub(crate) struct Keys {
    hasher: KeyHasher,
    next: u64,
}

impl Keys {
    /// A source with its own hash seed.
    pub(crate) fn new(random: &mut Random) -> Self {
        let seed = Seed::from_number(random.next());
        Self { hasher: KeyHasher::new(umbel::HashId::Xxh3, seed), next: 0 }
    }

    pub(crate) fn draw(&mut self) -> Digest {
        self.next += 1;
        self.hasher.hash(&self.next.to_le_bytes()).digest(DigestBits::FULL)
    }

    pub(crate) fn draw_many(&mut self, count: usize) -> Vec<Digest> {
        (0..count).map(|_| self.draw()).collect()
    }

    /// The shape with the hasher of these keys.
    pub(crate) fn scheme(&self, shape: Shape) -> Scheme {
        Scheme::new(shape, self.hasher)
    }

    pub(crate) fn counting(&self, shape: Shape) -> CountingFilter {
        CountingFilter::new(self.scheme(shape)).expect("memory for a small filter")
    }

    pub(crate) fn standard(&self, shape: Shape) -> StandardFilter {
        StandardFilter::new(self.scheme(shape)).expect("memory for a small filter")
    }
}

/// A home and the replica that all others hold.
#[derive(Clone)]
pub(crate) struct Home {
    filter: CountingFilter,
    replica: StandardFilter,
    members: Vec<Digest>,
    /// Numbers derived from each key: 1 (the key itself), or one per hash if hashes are
    /// independent.
    parts: u64,
}

/// How a key's positions are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hashing {
    /// By umbel's filters.
    Filters,
    /// Independently of each other, as the papers assume.
    Independent,
}

impl Home {
    /// A home of new keys, all of them published.
    pub(crate) fn new(shape: Shape, keys: &mut Keys, items: u64) -> Self {
        Self::hashed(Hashing::Filters, shape, keys, items)
    }

    /// The same, with the given way to find positions.
    pub(crate) fn hashed(hashing: Hashing, shape: Shape, keys: &mut Keys, items: u64) -> Self {
        let (parts, hashes) = match hashing {
            Hashing::Filters => (1, shape.hashes()),
            Hashing::Independent => (shape.hashes().into(), 1),
        };
        let shape = self::shape(shape.bits(), hashes);
        let (filter, replica) = (keys.counting(shape), keys.standard(shape));
        let mut home = Self { filter, replica, members: Vec::new(), parts };
        home.add(keys, items);
        home.publish();
        home
    }

    /// The numbers that are added to the filters for a key.
    fn parts(&self, key: Digest) -> impl Iterator<Item = Digest> + use<> {
        let one = self.parts == 1;
        (0..self.parts).map(move |i| if one { key } else { part(key, i) })
    }

    /// A home after a history of changes since its publication.
    pub(crate) fn aged(
        shape: Shape,
        keys: &mut Keys,
        random: &mut Random,
        history: &History,
    ) -> Self {
        let mut home = Self::new(shape, keys, history.kept + history.removed);
        home.remove(random, history.removed);
        home.add(keys, history.added);
        home
    }

    pub(crate) fn publish(&mut self) {
        self.replica = self.filter.to_standard();
    }

    pub(crate) fn add(&mut self, keys: &mut Keys, count: u64) {
        for _ in 0..count {
            let digest = keys.draw();
            for part in self.parts(digest) {
                self.filter.insert_digest(part);
            }
            self.members.push(digest);
        }
    }

    /// Removes members, each equally likely.
    pub(crate) fn remove(&mut self, random: &mut Random, count: u64) {
        for _ in 0..count {
            let member = self.members.swap_remove(random.below(self.members.len()));
            for part in self.parts(member) {
                self.filter.remove_digest(part).expect("members are claimed");
            }
        }
    }

    pub(crate) fn items(&self) -> u64 {
        self.members.len() as u64
    }

    pub(crate) fn claims(&self, digest: Digest) -> bool {
        self.parts(digest).all(|part| self.filter.contains_digest(part))
    }

    pub(crate) fn replica_claims(&self, digest: Digest) -> bool {
        self.parts(digest).all(|part| self.replica.contains_digest(part))
    }

    /// The exact shares of dirty bits.
    pub(crate) fn dirty(&self) -> Dirty {
        let (home, replica) = (self.filter.bits(), self.replica.bits());
        let share = |bits: u64| bits as f64 / home.len() as f64;
        Dirty { ones: share(home.count_beyond(replica)), zeros: share(replica.count_beyond(home)) }
    }

    /// The share of members that the replica denies.
    pub(crate) fn miss(&self) -> f64 {
        let denied = self.members.iter().filter(|member| !self.replica_claims(**member));
        denied.count() as f64 / self.members.len() as f64
    }

    /// Number of saturated counters: 4 bits were too few for them.
    pub(crate) fn stuck_counters(&self) -> u64 {
        self.filter.stuck_counters()
    }

    /// The share of random keys that the replica claims.
    pub(crate) fn false_positive(&self, asked: &[Digest]) -> f64 {
        let claimed = asked.iter().filter(|key| self.replica_claims(**key));
        claimed.count() as f64 / asked.len() as f64
    }

    /// The share of random keys that the home claims and the replica denies: the papers'
    /// false negative.
    pub(crate) fn disagreement(&self, asked: &[Digest]) -> f64 {
        let disagreed =
            asked.iter().filter(|key| !self.replica_claims(**key) && self.claims(**key));
        disagreed.count() as f64 / asked.len() as f64
    }
}

/// The i-th of several independent numbers derived from a key.
fn part(key: Digest, i: u64) -> Digest {
    let mixed = Random::of_key(key.get(), i).next();
    Digest::from_raw(mixed, DigestBits::FULL).expect("a full digest")
}

/// What happened since a publication of `kept + removed` keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) kept: u64,
    pub(crate) removed: u64,
    pub(crate) added: u64,
}

impl History {
    /// The history that ends with `items` members and, on average, with these dirty bits:
    /// `δ0 = q (1 - e^(-k·removed/m))` and `δ1 = e^(-k·removed/m) (e^(-k·kept/m) - q)` with
    /// `q = e^(-kn/m)`, solved for the keys.
    pub(crate) fn towards(shape: Shape, items: u64, dirty: Dirty) -> Self {
        let zeros = 1.0 - standard::fill(shape, items);
        let spared = 1.0 - dirty.zeros / zeros;
        let removed = standard::items_of_fill(shape, 1.0 - spared);
        let kept = standard::items_of_fill(shape, 1.0 - zeros - dirty.ones / spared);
        let (removed, kept) = (removed.round() as u64, (kept.round() as u64).min(items));
        Self { kept, removed, added: items - kept }
    }

    /// The dirty bits to expect.
    pub(crate) fn dirty(&self, shape: Shape) -> Dirty {
        let [kept, removed, added] = [self.kept, self.removed, self.added].map(|n| n as f64);
        let share = |others, these| bits_of_these_only(shape, others, these) / shape.bits() as f64;
        Dirty { ones: share(kept + removed, added), zeros: share(kept + added, removed) }
    }

    /// The expected share of denied members: those added since, unless claimed by chance.
    pub(crate) fn miss(&self, shape: Shape) -> f64 {
        let by_chance = standard::false_positive(shape, self.kept + self.removed);
        self.added as f64 / (self.kept + self.added) as f64 * (1.0 - by_chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_replica_has_no_dirty_bits_and_misses_nothing() {
        let mut random = Random::of_trial(1, "home", 0);
        let mut keys = Keys::new(&mut random);
        let mut home = Home::new(shape(1200, 6), &mut keys, 150);
        assert_eq!((home.dirty(), home.miss(), home.items()), (Dirty::default(), 0.0, 150));
        home.add(&mut keys, 100);
        assert!(home.dirty().ones > 0.1 && home.miss() > 0.3);
        home.publish();
        assert_eq!((home.dirty(), home.miss()), (Dirty::default(), 0.0));
        home.remove(&mut random, 100);
        assert!(home.dirty().zeros > 0.05 && home.miss() == 0.0);
    }

    #[test]
    fn a_history_leads_to_the_dirty_bits_it_was_made_for() {
        let shape = shape(80_000, 6);
        for (ones, zeros) in [(0.0, 0.0), (0.05, 0.0), (0.0, 0.1), (0.1, 0.05)] {
            let history = History::towards(shape, 10_000, Dirty { ones, zeros });
            assert_eq!(history.kept + history.added, 10_000);
            let expected = history.dirty(shape);
            assert!((expected.ones - ones).abs() < 1e-4, "{expected:?} for {ones}");
            assert!((expected.zeros - zeros).abs() < 1e-4, "{expected:?} for {zeros}");
            let mut random = Random::of_trial(1, "history", 0);
            let home = Home::aged(shape, &mut Keys::new(&mut random), &mut random, &history);
            let found = home.dirty();
            assert!((found.ones - ones).abs() < 0.005, "{found:?} for {ones}");
            assert!((found.zeros - zeros).abs() < 0.005, "{found:?} for {zeros}");
        }
    }
}
