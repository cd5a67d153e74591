//! The keys that every host holds, and its filter.
//!
//! A key is identified by its home and its number there. Homes may have different numbers of keys,
//! and hold copies of keys of others; the keys that they hold now may differ from those they
//! published.

use umbel::bits::BitVector;
use umbel::params::ParamError;
use umbel::replica::Name;
use umbel::route::{EntryKind, Filters, HomeId, Plan, Stored, advert_bytes, reach_bytes};
use umbel::{HashId, KeyHash, KeyHasher, Scheme, Seed, Shape, StandardFilter};

use crate::random::Random;

/// How keys are distributed among homes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stock {
    /// Keys of a home, on average.
    pub items: u64,
    /// Exponent of Zipf's law for the number of keys: 0 gives every home the same number.
    pub skew: f64,
    /// Share of keys added after the filter was published; as many published keys were removed.
    pub stale: f64,
    /// Copies of popular keys at other hosts: `copies / (i + 1)` of the i-th key of every home.
    pub copies: u32,
    /// Exponent of Zipf's law for which key of a home is queried: 0 makes all equally likely.
    pub popularity: f64,
}

impl Stock {
    /// The same number of fresh keys everywhere, each held once.
    #[must_use]
    pub const fn equal(items: u64) -> Self {
        Self { items, skew: 0.0, stale: 0.0, copies: 0, popularity: 0.0 }
    }
}

/// The homes of a network.
#[derive(Debug)]
pub(crate) struct Homes {
    stock: Stock,
    pub(crate) scheme: Scheme,
    counts: Vec<u64>,
    /// Components of each home's filter.
    filters: Vec<Vec<BitVector>>,
    /// Probability that a home's filter denies a key that it does not contain.
    pub(crate) denies: Vec<f64>,
    /// Bytes of the message that carries the filter, and of one that carries only its distance.
    pub(crate) advert: Vec<u32>,
    pub(crate) reach: Vec<u32>,
    /// Other hosts that hold a key, sorted by home and number.
    copies: Vec<(u32, u32, u32)>,
}

impl Homes {
    /// Fills the filters of `nodes` homes; with a CUBF a home of more keys than planned has
    /// several components.
    pub(crate) fn new(
        nodes: usize,
        stock: Stock,
        plan: &Plan,
        shape: Shape,
        seed: u64,
    ) -> Result<Self, ParamError> {
        let hasher = KeyHasher::new(HashId::Xxh3, Seed::from_number(seed));
        let scheme = Scheme::new(shape, hasher);
        let counts = counts(nodes, stock, seed);
        let copies = copies(&counts, stock, seed);
        let mut homes = Self {
            stock,
            scheme,
            counts,
            filters: Vec::new(),
            denies: Vec::new(),
            advert: Vec::new(),
            reach: Vec::new(),
            copies,
        };
        let capacity = if plan.kind == EntryKind::Cubf { plan.items } else { u64::MAX };
        let mut foreign: Vec<(u32, u32, u32)> = homes.copies.clone();
        foreign.sort_unstable_by_key(|(home, number, holder)| (*holder, *home, *number));
        let set = Name::new("set").expect("a name");
        for node in 0..nodes as u32 {
            let from = foreign.partition_point(|copy| copy.2 < node);
            let to = foreign.partition_point(|copy| copy.2 <= node);
            let copied = foreign[from..to].iter().map(|(home, number, _)| (*home, *number));
            let own = (0..homes.counts[node as usize] as u32).map(|number| (node, number));
            let keys: Vec<KeyHash> = own.chain(copied).map(|(h, n)| homes.hash(h, n)).collect();
            let components = keys.chunks((capacity.min(1 << 30) as usize).max(1)).map(|keys| {
                let mut filter = StandardFilter::new(scheme)?;
                for key in keys {
                    filter.insert_digest(scheme.digest_of(*key));
                }
                Ok(filter.bits().clone())
            });
            let components: Result<Vec<BitVector>, ParamError> = components.collect();
            homes.filters.push(components?);
            let rate = |bits: &BitVector| bits.fill().powi(shape.hashes() as i32);
            let all = homes.filters[node as usize].iter().map(|bits| 1.0 - rate(bits));
            homes.denies.push(all.product());
            let name = Name::new(&format!("n{node}")).expect("a name");
            homes.advert.push(advert_bytes(&set, &name, &homes.of(node)) as u32);
            homes.reach.push(reach_bytes(&set, &name) as u32);
        }
        Ok(homes)
    }

    /// A home's filter.
    pub(crate) fn of(&self, node: u32) -> Filters<'_> {
        let components = self.filters[node as usize].iter().collect();
        Filters { scheme: &self.scheme, components }
    }

    /// Number of components of a home's filter.
    pub(crate) fn components(&self, node: u32) -> u32 {
        self.filters[node as usize].len() as u32
    }

    pub(crate) fn hash(&self, home: u32, number: u32) -> KeyHash {
        self.scheme.hasher().hash(&(u64::from(home) << 32 | u64::from(number)).to_le_bytes())
    }

    /// The number of a random key that a home holds now, by popularity.
    pub(crate) fn pick(&self, home: u32, random: &mut Random) -> u32 {
        let (count, gone) = (self.counts[home as usize], self.gone(home));
        if self.stock.popularity == 0.0 {
            return (gone + random.below(count as usize) as u64) as u32;
        }
        let weight = |rank: u64| (rank as f64 + 1.0).powf(-self.stock.popularity);
        let total: f64 = (0..count).map(weight).sum();
        let mut left = total * (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = (0..count).position(|rank| {
            left -= weight(rank);
            left < 0.0
        });
        (gone + rank.map_or(count - 1, |rank| rank as u64)) as u32
    }

    /// How many keys a home holds.
    #[cfg(test)]
    pub(crate) fn items(&self, home: u32) -> u64 {
        self.counts[home as usize]
    }

    /// Number of published keys that a home removed since, and of keys that it added since.
    fn gone(&self, home: u32) -> u64 {
        (self.stock.stale * self.counts[home as usize] as f64).round() as u64
    }

    /// Whether a host holds a key now.
    pub(crate) fn holds(&self, node: u32, home: u32, number: u32) -> bool {
        let number_here = u64::from(number);
        let own = node == home
            && (self.gone(home)..self.gone(home) + self.counts[home as usize])
                .contains(&number_here);
        own || self.copies.binary_search(&(home, number, node)).is_ok()
    }

    /// All hosts whose filter contains a key: its home, if it was published, and hosts with copies.
    pub(crate) fn holders(&self, home: u32, number: u32) -> impl Iterator<Item = u32> {
        let published = u64::from(number) < self.counts[home as usize];
        let from = self.copies.partition_point(|copy| *copy < (home, number, 0));
        let copies =
            self.copies[from..].iter().take_while(move |copy| (copy.0, copy.1) == (home, number));
        published.then_some(home).into_iter().chain(copies.map(|copy| copy.2))
    }
}

impl Stored for Homes {
    fn load(&self, home: HomeId) -> Option<(Scheme, Vec<BitVector>)> {
        Some((self.scheme, self.filters.get(home.0 as usize)?.clone()))
    }
}

/// Numbers of keys by Zipf's law over random ranks, with the requested mean and at least one per
/// home.
fn counts(nodes: usize, stock: Stock, seed: u64) -> Vec<u64> {
    let mut ranks: Vec<usize> = (0..nodes).collect();
    let mut random = Random::of_trial(seed, "counts", nodes as u64);
    for i in (1..nodes).rev() {
        ranks.swap(i, random.below(i + 1));
    }
    let weight = |rank: &usize| (*rank as f64 + 1.0).powf(-stock.skew);
    let total: f64 = ranks.iter().map(weight).sum();
    let share = (stock.items * nodes as u64) as f64 / total;
    ranks.iter().map(|rank| ((weight(rank) * share).round() as u64).max(1)).collect()
}

/// Copies of popular keys at random other hosts, sorted.
fn copies(counts: &[u64], stock: Stock, seed: u64) -> Vec<(u32, u32, u32)> {
    let mut random = Random::of_trial(seed, "copies", counts.len() as u64);
    let mut all = Vec::new();
    for (home, count) in counts.iter().enumerate() {
        for number in 0..*count {
            let copies = u64::from(stock.copies) / (number + 1);
            if copies == 0 {
                break;
            }
            for _ in 0..copies {
                let holder = random.below(counts.len());
                if holder != home {
                    all.push((home as u32, number as u32, holder as u32));
                }
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}
