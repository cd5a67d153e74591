//! Chains of keys: how often a host's depth is too large, and what a search reads.
//!
//! A host holds the first `d` keys of a chain of `L` keys. Its filter claims each of the others
//! with probability `f`, independently. A search reports a depth `e` after a test of the `w` keys
//! before it (`bank::chain`), in multiples of the step `g`. A depth `e > d` therefore takes `min(w,
//! e - d)` wrong claims in a row, which end right before `e`.
//!
//! Hence, however the search chooses its candidates, the probability that a depth is too large by
//! more than `g` is at most
//!
//! ```text
//! f^w · (1 + (L - w) · (1 - f))  +  f^(g+1)
//! ```
//!
//! The first term bounds the probability that `w` wrong claims in a row occur anywhere in the
//! chain: such a run begins at the first absent key, or after a key that is denied. The second one
//! counts the depths between `d + g` and `d + w`, all of whose keys are wrongly claimed; it is
//! there only if `w > g + 1`.
//!
//! Letters: `f` false positive rate of a key, `L` keys of a chain, `w` window, `g` step.

/// Depths at which a search divides a range of depths at once (`bank::chain`).
pub const FAN: u64 = 7;
/// A range of at most this many depths above the lowest is divided into single depths.
pub const NARROW: u64 = 15;
/// Estimated time that a round of a search waits for memory, in nanoseconds.
pub const NS_PER_ROUND: f64 = 80.0;
/// Estimated additional time per cache line of a row, in nanoseconds.
pub const NS_PER_LINE: f64 = 5.0;

/// Bound on the probability, per host and chain, that a depth is too large by more than the step.
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

/// Bound on the probability of `window` wrong claims in a row among `length` absent keys.
#[must_use]
pub fn run(rate: f64, length: u64, window: u32) -> f64 {
    match length.checked_sub(window.into()) {
        None => 0.0,
        Some(others) => (power(rate, window) * (1.0 + others as f64 * (1.0 - rate))).min(1.0),
    }
}

/// Probability that a depth is larger than the true one rounded down to the step, for uniformly
/// distributed true depths: `Σ f^j / g` over `j` from 1 to `g`. All but the rarest of these depths
/// are one step too large.
#[must_use]
pub fn one_step_more(rate: f64, step: u32) -> f64 {
    let sum: f64 = (1..=step.max(1)).map(|keys| power(rate, keys)).sum();
    sum / f64::from(step.max(1))
}

/// What a lookup costs, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Keys whose rows are requested.
    pub keys: f64,
    /// Times that the search waits for memory, each time for the rows of several keys.
    pub rounds: f64,
}

/// What a search costs if one host of `hosts` holds a part of the chain, of any depth, and the
/// others hold nothing, as in the search before.
///
/// Depths are counted in steps. The first round asks for the keys of the pivots, at all powers of
/// two and at the end; for several keys at the first pivot, so that hardly any host that holds
/// nothing goes on. The holder's depth lies between two powers of two; [`FAN`] keys divide that
/// range into eight parts, until it has at most [`NARROW`] depths above the lowest one, each of
/// which is tried. The last round asks for the window, once more for every pivot whose keys were
/// wrongly claimed.
#[must_use]
pub fn effort(
    rate: f64,
    hosts: u64,
    hashes: u32,
    length: u64,
    (window, step): (u32, u32),
) -> Effort {
    let steps = length / u64::from(step.max(1));
    if steps == 0 {
        return Effort { keys: 0.0, rounds: 0.0 };
    }
    let pivots = steps.next_power_of_two().ilog2() + 1;
    let others = hosts.saturating_sub(1) as f64;
    let many = (hosts.max(1).ilog2() + 3).div_ceil(hashes.max(1)).min(step).min(window).max(1);
    let (mut keys, mut rounds) = (0.0, 0.0);
    for pivot in 0..pivots {
        let (from, to) = (1u64 << pivot, (2u64 << pivot).min(steps));
        let share = to.saturating_sub(from) as f64 / steps as f64;
        let (mut depths, mut more, mut times) = (to.saturating_sub(from), 0, 0);
        while depths > 1 {
            let is_narrow = depths <= NARROW + 1;
            more += if is_narrow { depths - 1 } else { FAN };
            depths = if is_narrow { 1 } else { depths.div_ceil(FAN + 1) };
            times += 1;
        }
        keys += share * more as f64;
        rounds += share * f64::from(times);
    }
    // In each round before the last one, the holder goes one pivot too far with probability `f`.
    let windows = 1.0 + rate * (rounds + 1.0) + super::any_of(power(rate, many), others);
    let window = f64::from(window.saturating_sub(1)) * windows;
    let keys = f64::from(pivots + many - 1) + keys + window;
    Effort { keys, rounds: rounds + 2.0 + rate * (rounds + 1.0) }
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
    fn the_effort_grows_with_the_logarithms_of_length_and_hosts() {
        assert!((one_step_more(0.1, 8) - 0.111 / 8.0).abs() < 1e-3);
        assert_eq!(one_step_more(0.1, 0), 0.1);
        assert_eq!(effort(0.1, 64, 3, 5, (12, 8)), Effort { keys: 0.0, rounds: 0.0 });
        let alone = effort(0.0, 1, 3, 8, (12, 8));
        assert_eq!(alone, Effort { keys: 12.0, rounds: 2.0 }, "one pivot and the window");
        let of = |hosts, length| effort(0.1, hosts, 3, length, (12, 8));
        let (short, long) = (of(64, 352), of(64, 8192));
        assert!(short.keys > 20.0 && long.keys < 65.0, "{short:?} {long:?}");
        assert!(short.rounds < long.rounds && long.rounds < 6.0, "{short:?} {long:?}");
        assert!(of(1, 8192).keys < long.keys && long.keys < of(1024, 8192).keys);
    }
}
