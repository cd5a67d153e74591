//! What coded updates save: bytes at equal mean miss.
//!
//! The papers send the whole filter when a share of its bits is dirty. Beside each such
//! policy stands the `miss` policy that leaves the same share of members denied in the mean,
//! found by bisection: with its updates coded, with digests and without.

use serde::Serialize;
use umbel::params::ParamError;
use umbel::replica::{Policy, Rule};

use super::{History, Outcome, Setting, compare, replay_all};

/// A policy with whole filters, and `miss` with coded updates, at equal mean miss.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EqualMiss {
    /// The policy.
    pub policy: String,
    /// Its mean miss.
    pub mean_miss: f64,
    /// Its updates as whole plain filters.
    pub full_broadcast_bytes: u64,
    /// The `miss` policy that comes nearest.
    pub miss_policy: String,
    /// The mean miss of that.
    pub miss_policy_mean_miss: f64,
    /// Its updates, coded.
    pub bytes: u64,
    /// Its updates, coded without digests.
    pub bytes_by_bits: u64,
    /// How many times less the coded updates take.
    pub ratio: f64,
    /// The same without digests.
    pub ratio_by_bits: f64,
}

/// Bisections of the target of `miss`.
const ROUNDS: u32 = 12;

/// Finds for each policy the `miss` policy of the same mean miss. Ghosts are left to the
/// promised false positive rate, since the policies beside it do not see them either.
///
/// # Errors
/// If a number of the setting is outside its range, or there is no memory.
pub fn at_equal_miss(
    history: &History,
    setting: &Setting,
    policies: &[Policy],
    second: impl Fn() + Sync,
) -> Result<Vec<EqualMiss>, ParamError> {
    let wanted = compare(history, setting, policies, &second)?;
    let beside = |(outcome, policy): (&Outcome, &Policy)| {
        let target = target_of(history, setting, policy, outcome.mean_miss, &second)?;
        let by_bits = Setting { by_digests: false, ..*setting };
        let miss = miss_policy(policy, target);
        let runs = replay_all(history, &[(miss, *setting), (miss, by_bits)], &second)?;
        Ok(row(outcome, &runs[0], &runs[1]))
    };
    wanted.iter().zip(policies).map(beside).collect()
}

/// Replays that [`at_equal_miss`] makes for each policy.
impl EqualMiss {
    /// How often the history is replayed for each policy.
    pub const REPLAYS: u64 = 1 + ROUNDS as u64 + 2;
}

fn miss_policy(beside: &Policy, miss: f64) -> Policy {
    Policy { rule: Rule::Miss { miss, ghost: 1.0 }, ..*beside }
}

/// The target of `miss` that leads to this mean miss.
fn target_of(
    history: &History,
    setting: &Setting,
    beside: &Policy,
    mean_miss: f64,
    second: &(impl Fn() + Sync),
) -> Result<f64, ParamError> {
    let (mut low, mut high) = (0.0, 1.0_f64.min(4.0 * mean_miss));
    for _ in 0..ROUNDS {
        let middle = 0.5 * (low + high);
        let found = compare(history, setting, &[miss_policy(beside, middle)], second)?;
        if found[0].mean_miss < mean_miss { low = middle } else { high = middle }
    }
    Ok(0.5 * (low + high))
}

fn row(beside: &Outcome, coded: &Outcome, by_bits: &Outcome) -> EqualMiss {
    let whole = beside.full_broadcast_bytes;
    let times = |bytes: u64| whole as f64 / bytes.max(1) as f64;
    EqualMiss {
        policy: beside.policy.clone(),
        mean_miss: beside.mean_miss,
        full_broadcast_bytes: whole,
        miss_policy: coded.policy.clone(),
        miss_policy_mean_miss: coded.mean_miss,
        bytes: coded.bytes,
        bytes_by_bits: by_bits.bytes,
        ratio: times(coded.bytes),
        ratio_by_bits: times(by_bits.bytes),
    }
}
