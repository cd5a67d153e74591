//! Chains of keys: how often a host's depth is too large, and what a search reads.
//!
//! A host holds the first `d` keys of a chain of `L` keys. Its filter claims each of the others
//! with chance `f`, independently. A search reports a depth `e` after a test of the `w` keys
//! before it (`bank::chain`), in multiples of the step `g`. A depth `e > d` therefore takes
//! `min(w, e - d)` wrong claims in a row, which end right before `e`.
//!
//! Hence, however the search chose its candidates, the chance that a depth is too large by more
//! than `g` is at most
//!
//! ```text
//! f^w · (1 + (L - w) · (1 - f))  +  f^(g+1)
//! ```
//!
//! The first term bounds the chance that `w` wrong claims in a row lie anywhere in the chain: such
//! a run begins at the first absent key, or after a key that is denied. The second one counts
//! the depths between `d + g` and `d + w`, all of whose keys are wrongly claimed; it is there only
//! if `w > g + 1`.
//!
//! Letters: `f` false positive rate of a key, `L` keys of a chain, `w` window, `g` step.

/// What a round of a search waits for memory, in nanoseconds: an estimate, for rows in a shared cache.
pub const NS_PER_ROUND: f64 = 80.0;
/// What a cache line of a row costs beyond that, in nanoseconds: an estimate.
pub const NS_PER_LINE: f64 = 5.0;

/// Bound on the chance, of one host and one chain, that a depth is too large by more than the
/// step.
///
/// ```
/// use umbel::model::chain::over_estimate;
///
/// // One key in ten is wrongly claimed; chains of 8192 keys; 12 keys tested; steps of 8.
/// assert!(over_estimate(0.1, 8192, 12, 8) < 1e-8);
/// assert!(over_estimate(0.1, 8192, 6, 8) > 1e-4);
/// ```
#[must_use]
pub fn over_estimate(rate: f64, length: u64, window: u32, step: u32) -> f64 {
    if length <= u64::from(step) {
        return 0.0;
    }
    let between = if window > step.saturating_add(1) { power(rate, step + 1) } else { 0.0 };
    (run(rate, length, window) + between).min(1.0)
}

/// Bound on the chance that `window` wrong claims in a row lie among `length` absent keys.
#[must_use]
pub fn run(rate: f64, length: u64, window: u32) -> f64 {
    match length.checked_sub(window.into()) {
        None => 0.0,
        Some(others) => (power(rate, window) * (1.0 + others as f64 * (1.0 - rate))).min(1.0),
    }
}

/// Chance that a depth is larger than the true one rounded down to the step, for true depths that
/// are spread evenly: `Σ f^j / g` over `j` from 1 to `g`. All but the rarest of these depths are
/// one step too large.
#[must_use]
pub fn one_step_more(rate: f64, step: u32) -> f64 {
    let sum: f64 = (1..=step.max(1)).map(|keys| power(rate, keys)).sum();
    sum / f64::from(step.max(1))
}

/// Keys that are asked for before no host of `hosts` is left, at most `limit`, if none of them
/// holds any: `Σ 1 - (1 - f^j)^hosts` over `j` from 0.
#[must_use]
pub fn keys_until_none(rate: f64, hosts: u64, limit: u32) -> f64 {
    (0..limit).map(|keys| super::any_of(power(rate, keys), hosts as f64)).sum()
}

/// Keys that a probe asks `hosts` hosts for: so many that one host in `2^5` that should not goes
/// on, if a key leaves `2^-hashes` of them.
#[must_use]
pub fn keys_of_probe(hosts: u64, hashes: u32, window: u32) -> u32 {
    (hosts.max(1).ilog2() + 5).div_ceil(hashes.max(1)).min(window)
}

/// Keys whose rows a lookup reads, on average: of `hosts` hosts one holds a part of the chain, of
/// any depth, and the others nothing.
#[must_use]
pub fn keys_read(
    rate: f64,
    hosts: u64,
    hashes: u32,
    length: u64,
    (window, step): (u32, u32),
) -> f64 {
    let steps = length / u64::from(step.max(1));
    if steps == 0 {
        return 0.0;
    }
    let rounds = (steps as f64 + 1.0).log2();
    // All others go down at every round, until they and the holder part; then each for itself.
    let many = keys_until_none(rate, hosts, keys_of_probe(hosts, hashes, window));
    let alone = f64::from(keys_of_probe(1, hashes, window));
    // Of the holder's probes half go up, and ask for all of their keys; half end at the first.
    let holder = (rounds - 1.0).max(0.0) * (alone + 1.0) / 2.0;
    rounds * many + holder + f64::from(window)
}

fn power(rate: f64, exponent: u32) -> f64 {
    rate.powi(exponent.min(i32::MAX as u32) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Runs of wrong claims in coin tosses: the bound holds, and is not twice as large.
    #[test]
    fn runs_are_as_rare_as_the_bound_says() {
        let mut toss = noise(1);
        for (rate, length, window) in [(0.1, 1000, 4), (0.25, 300, 6), (0.5, 2000, 14)] {
            let has_run = |toss: &mut dyn FnMut() -> f64| {
                let mut claimed = 0;
                (0..length).any(|_| {
                    claimed = if toss() < rate { claimed + 1 } else { 0 };
                    claimed >= window
                })
            };
            let trials = 20_000;
            let runs = (0..trials).filter(|_| has_run(&mut toss)).count() as f64;
            let (share, bound) = (runs / f64::from(trials), run(rate, length, window));
            let noise = 4.0 * (bound / f64::from(trials)).sqrt();
            assert!(share <= bound + noise, "{rate}: {share}, bound {bound}");
            assert!(share >= bound / 2.0 - noise, "{rate}: {share}, bound {bound}");
        }
    }

    #[test]
    fn the_bound_has_ends() {
        assert_eq!(over_estimate(0.1, 8, 3, 8), 0.0, "a chain of one step");
        assert_eq!(over_estimate(1.0, 1000, 3, 8), 1.0);
        assert_eq!(over_estimate(0.0, 1000, 3, 8), 0.0);
        assert_eq!(run(0.5, 3, 4), 0.0);
        assert_eq!(run(0.5, 4, 4), 0.0625);
        assert!(over_estimate(0.1, 1 << 40, 3, 8) <= 1.0);
        let longer = |window| over_estimate(0.1, 8192, window, 8);
        assert!((3..20).all(|window| longer(window + 1) <= longer(window)));
    }

    #[test]
    fn few_keys_rule_out_many_hosts() {
        assert!((keys_until_none(0.1, 1, 10) - 1.111).abs() < 1e-3);
        assert!(keys_until_none(0.1, 64, 10) < 3.2);
        assert_eq!(keys_until_none(1.0, 5, 4), 4.0);
        assert_eq!(keys_until_none(0.1, 0, 4), 0.0);
        assert_eq!((keys_of_probe(64, 3, 12), keys_of_probe(1, 3, 12)), (4, 2));
        assert_eq!((keys_of_probe(64, 3, 2), keys_of_probe(0, 0, 9)), (2, 5));
        assert!((one_step_more(0.1, 8) - 0.111 / 8.0).abs() < 1e-3);
        assert_eq!(one_step_more(0.1, 0), 0.1);
        assert_eq!(keys_read(0.1, 64, 3, 5, (12, 8)), 0.0);
    }
}
