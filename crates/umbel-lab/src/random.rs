//! `SplitMix64`: the source of all randomness in the lab, from a seed.
//!
//! Keys are consecutive numbers hashed by the filters' own hasher, so this only chooses hash seeds
//! and members to remove. It has ten lines, and gives the same numbers on every machine and in
//! every version.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of one trial: each trial of each experiment has its own.
    pub(crate) fn of_trial(seed: u64, experiment: &str, trial: u64) -> Self {
        let mut stream = Self(seed);
        for byte in experiment.bytes() {
            stream.0 = stream.next() ^ u64::from(byte);
        }
        stream.0 = stream.next() ^ trial;
        Self(stream.next())
    }

    /// The stream of one of several numbers derived from a key.
    pub(crate) const fn of_key(key: u64, i: u64) -> Self {
        let mut stream = Self(key);
        Self(stream.next() ^ i)
    }

    /// 64 random bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`; the bias of multiply-shift is below `limit / 2^64`.
    pub(crate) const fn below(&mut self, limit: usize) -> usize {
        ((self.next() as u128 * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // Reference values of Vigna's splitmix64.c for the seed 1234567.
        let mut stream = Random(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([stream.next(), stream.next()], expected);
    }

    #[test]
    fn trials_and_experiments_have_streams_of_their_own() {
        let first = |seed, name, trial| Random::of_trial(seed, name, trial).next();
        let streams = [first(1, "a", 0), first(1, "a", 1), first(1, "b", 0), first(2, "a", 0)];
        let distinct: std::collections::BTreeSet<_> = streams.into_iter().collect();
        assert_eq!(distinct.len(), 4);
        let mut stream = Random::of_trial(1, "a", 0);
        assert!((0..1000).all(|_| stream.below(7) < 7));
    }
}
