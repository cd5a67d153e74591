//! What encoded updates save: bytes at equal mean miss rate.
//!
//! The papers send the whole filter when a share of its bits is dirty. Each such policy is compared
//! with the `miss` policy that has the same mean share of denied members, found by bisection: with
//! encoded updates, with digests and without.

use serde::Serialize;
use umbel::params::ParamError;
use umbel::replica::{Policy, Rule};

use super::{History, Outcome, Setting, compare, replay_all};

/// A policy with whole filters, and `miss` with encoded updates, at equal mean miss rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EqualMiss {
    /// The policy.
    pub policy: String,
    /// Its mean miss rate.
    pub mean_miss: f64,
    /// Bytes of its updates as whole plain filters.
    pub full_broadcast_bytes: u64,
    /// The `miss` policy with the closest mean miss rate.
    pub miss_policy: String,
    /// Its mean miss rate.
    pub miss_policy_mean_miss: f64,
    /// Bytes of its updates, encoded.
    pub bytes: u64,
    /// Bytes of its updates, encoded without digests.
    pub bytes_by_bits: u64,
    /// How many times smaller the encoded updates are.
    pub ratio: f64,
    /// The same without digests.
    pub ratio_by_bits: f64,
}

/// Number of bisection steps for the target of `miss`.
const ROUNDS: u32 = 12;

/// Finds for each policy the `miss` policy with the same mean miss rate. Ghosts are limited only by
/// the promised false positive rate, because the other policies do not consider them either.
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

impl EqualMiss {
    /// How often the history is replayed for each policy.
    pub const REPLAYS: u64 = 1 + ROUNDS as u64 + 2;
}

fn miss_policy(beside: &Policy, miss: f64) -> Policy {
    Policy { rule: Rule::Miss { miss, ghost: 1.0 }, ..*beside }
}

/// The target of `miss` that results in this mean miss rate.
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
    // Round to three digits, as people would write it.
    let found = 0.5 * (low + high);
    Ok(format!("{found:.2e}").parse().unwrap_or(found))
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
