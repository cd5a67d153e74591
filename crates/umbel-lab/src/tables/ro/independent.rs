//! Entries as the paper assumes them: k independent hash functions.
//!
//! umbel finds a key's positions by double hashing, which has a visible effect in filters of a few
//! hundred bits. So that a paper is not blamed for umbel's hashing, the same entries are also built
//! with independently drawn positions. They are stored row by row, one bit per filter, so that one
//! pass over the positions of a key tells from how many filters on a CUBF and an ABF claim it.

use umbel::Shape;

use super::ITEMS;
use crate::random::Random;

/// Up to 128 filters of one shape.
pub(super) struct Independent {
    shape: Shape,
    /// Bit `i` of row `p`: whether filter `i` has set its bit `p`.
    rows: Vec<u128>,
}

/// Minimum number of filters with which an entry claims a key; `None` if it does not with all of
/// them.
struct Claimed {
    cubf: Option<u32>,
    abf: Option<u32>,
}

impl Independent {
    /// Filters of [`ITEMS`] new keys each.
    pub(super) fn new(random: &mut Random, shape: Shape, filters: u64) -> Self {
        let mut rows = vec![0_u128; shape.bits() as usize];
        for filter in 0..filters {
            for _ in 0..ITEMS {
                let mut key = Random::of_key(random.next(), 0);
                for _ in 0..shape.hashes() {
                    rows[key.below(shape.bits() as usize)] |= 1 << filter;
                }
            }
        }
        Self { shape, rows }
    }

    fn claimed(&self, key: u64) -> Claimed {
        let mut key = Random::of_key(key, 0);
        let (mut apart, mut joined) = (u128::MAX, 0);
        for _ in 0..self.shape.hashes() {
            let row = self.rows[key.below(self.rows.len())];
            if row == 0 {
                return Claimed { cubf: None, abf: None };
            }
            apart &= row;
            joined = joined.max(row.trailing_zeros() + 1);
        }
        let cubf = (apart != 0).then(|| apart.trailing_zeros() + 1);
        Claimed { cubf, abf: Some(joined) }
    }

    /// Words that a decision reads when filters are strings: each is left at its first zero.
    pub(super) fn read_as_strings(&self, key: u64, filters: u64) -> u64 {
        let mut key = Random::of_key(key, 0);
        let mut claiming = if filters < 128 { (1_u128 << filters) - 1 } else { u128::MAX };
        let mut read = 0;
        for _ in 0..self.shape.hashes() {
            read += u64::from(claiming.count_ones());
            claiming &= self.rows[key.below(self.rows.len())];
        }
        read
    }

    /// Words that a decision reads when rows are slices: until no filter is left.
    pub(super) fn read_as_slices(&self, key: u64, filters: u64) -> u64 {
        let mut key = Random::of_key(key, 0);
        let (mut claiming, mut read) = (u128::MAX, 0);
        for _ in 0..self.shape.hashes() {
            claiming &= self.rows[key.below(self.rows.len())];
            read += filters.div_ceil(64);
            if claiming == 0 {
                break;
            }
        }
        read
    }

    /// Words that a decision reads of the union: until the first zero.
    pub(super) fn read_as_union(&self, key: u64) -> u64 {
        let mut key = Random::of_key(key, 0);
        let ones = (0..self.shape.hashes())
            .take_while(|_| self.rows[key.below(self.rows.len())] != 0)
            .count();
        (ones as u64 + 1).min(self.shape.hashes().into())
    }

    /// The shares of random keys that entries of the first so many filters claim: CUBF and ABF.
    pub(super) fn rates(
        &self,
        random: &mut Random,
        asked: usize,
        counts: &[u64],
    ) -> Vec<(f64, f64)> {
        let mut found = vec![(0_u64, 0_u64); counts.len()];
        for _ in 0..asked {
            let claimed = self.claimed(random.next());
            for (found, count) in found.iter_mut().zip(counts) {
                let within = |filters: Option<u32>| {
                    u64::from(filters.is_some_and(|filters| u64::from(filters) <= *count))
                };
                found.0 += within(claimed.cubf);
                found.1 += within(claimed.abf);
            }
        }
        let share = |count: u64| count as f64 / asked as f64;
        found.into_iter().map(|(cubf, abf)| (share(cubf), share(abf))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::shape;
    use umbel::model::routing;

    #[test]
    fn rates_are_those_of_the_closed_forms() {
        let mut random = Random::of_trial(1, "independent", 0);
        let shape = shape(4_000, 5);
        let counts = [1, 10, 100];
        let entries = Independent::new(&mut random, shape, 100);
        let rates = entries.rates(&mut random, 40_000, &counts);
        for (count, (cubf, abf)) in counts.into_iter().zip(rates) {
            let near = |found: f64, form: f64| (found - form).abs() < 0.1 * form + 0.003;
            assert!(near(cubf, routing::cubf(shape, ITEMS, count)), "{count}: {cubf}");
            assert!(near(abf, routing::abf(shape, ITEMS, count)), "{count}: {abf}");
        }
    }
}
