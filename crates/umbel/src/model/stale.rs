//! What a stale replica answers: its home has changed since the last update.
//!
//! The replica is the home's filter as last published. Bits that are one at home and zero
//! in the replica are dirty ones (they deny), the other way round dirty zeros (they claim).
//! All forms take the home's fill and the two shares of dirty bits and refuse shares that
//! cannot be: `0 <= δ1 <= p`, `0 <= δ0 <= 1 - p`.
//!
//! The papers' *false negative* is the chance that home and replica differ on a random key.
//! It says little about members that are missed, so it is called disagreement here; the
//! miss rate is counted, not estimated (`replica`), and planned for in [`super::churn`].
//!
//! Papers 1 and 3, equations 6 to 17. Their table 2 holds the host rate of equation 16.

use super::standard::{self, power};
use super::{ModelError, any_of, ln_none_of, one_minus_exp};
use crate::params::Shape;

/// Shares of the bits in which a replica differs from its home.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Dirty {
    /// `δ1`: one at home, zero in the replica.
    pub ones: f64,
    /// `δ0`: zero at home, one in the replica.
    pub zeros: f64,
}

impl Dirty {
    /// `δ1 + δ0`, what Summary Cache compares with a threshold of 10 %.
    #[must_use]
    pub fn total(self) -> f64 {
        self.ones + self.zeros
    }
}

/// The costs of a false positive and of a false negative (papers 1 and 3, equation 17); both 1 in
/// the papers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// `w+`.
    pub false_positive: f64,
    /// `w-`.
    pub disagreement: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { false_positive: 1.0, disagreement: 1.0 }
    }
}

/// A home's filter together with a replica of it that went stale.
///
/// ```
/// use umbel::model::stale::{Dirty, Replica};
///
/// // The first row of table 2, papers 1 and 3: five hosts.
/// let shape = umbel::Shape::new(1200, 6)?;
/// let replica = Replica::new(shape, 240, Dirty { ones: 0.1705, zeros: 0.0100 })?;
/// assert!((replica.host(5).overall - 0.4622).abs() < 0.0001);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replica {
    shape: Shape,
    /// Share of ones at home, `p`.
    ones: f64,
    /// Share of zeros at home, `1 - p`, kept apart so that a nearly full filter keeps its digits.
    zeros: f64,
    dirty: Dirty,
}

impl Replica {
    /// A replica whose home holds `items` keys.
    ///
    /// # Errors
    /// If a share of dirty bits is outside its range.
    pub fn new(shape: Shape, items: u64, dirty: Dirty) -> Result<Self, ModelError> {
        let zeros = (-standard::load(&shape, items as f64)).exp();
        Self { shape, ones: standard::fill(shape, items), zeros, dirty }.checked()
    }

    /// A replica whose home has this measured fill.
    ///
    /// # Errors
    /// If the fill or a share of dirty bits is outside its range.
    pub fn of_fill(shape: Shape, fill: f64, dirty: Dirty) -> Result<Self, ModelError> {
        if !(0.0..=1.0).contains(&fill) {
            return Err(ModelError::Fill(fill));
        }
        Self { shape, ones: fill, zeros: 1.0 - fill, dirty }.checked()
    }

    fn checked(self) -> Result<Self, ModelError> {
        let Dirty { ones, zeros } = self.dirty;
        if !(0.0..=self.ones).contains(&ones) {
            return Err(ModelError::DirtyOnes { given: ones, fill: self.ones });
        }
        if !(0.0..=self.zeros).contains(&zeros) {
            return Err(ModelError::DirtyZeros { given: zeros, zeros: self.zeros });
        }
        Ok(self)
    }

    /// Share of zeros in the replica: `1 - p + δ1 - δ0` (equation 7).
    fn replica_zeros(&self) -> f64 {
        (self.zeros - self.dirty.zeros + self.dirty.ones).clamp(0.0, 1.0)
    }

    /// Share of ones in the replica: `p + δ0 - δ1` (equation 9).
    #[must_use]
    pub fn fill(&self) -> f64 {
        (self.ones - self.dirty.ones + self.dirty.zeros).clamp(0.0, 1.0)
    }

    /// How many keys the replica stands for: `n̂ = -(m/k) ln(e^(-kn/m) + δ1 - δ0)` (equation 6).
    ///
    /// # Errors
    /// If the replica is all ones.
    pub fn items(&self) -> Result<f64, ModelError> {
        let (m, k) = (self.shape.bits() as f64, f64::from(self.shape.hashes()));
        match self.replica_zeros() {
            0.0 => Err(ModelError::AllOnes),
            // Near an empty replica the fill has the digits, near a full one the zeros have.
            zeros if zeros > 0.5 => Ok(-m / k * (-self.fill()).ln_1p() + 0.0),
            zeros => Ok(-m / k * zeros.ln()),
        }
    }

    /// Probability that a random key is claimed: `f+ = (p + δ0 - δ1)^k` (equation 12).
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        power(self.fill(), self.shape.hashes())
    }

    /// Probability that the home claims a random key and the replica denies it: the papers' false
    /// negative, `f- = p^k - (p - δ1)^k` (equation 10).
    #[must_use]
    pub fn disagreement(&self) -> f64 {
        if self.ones == 0.0 {
            return 0.0;
        }
        // p^k (1 - (1 - δ1/p)^k): the difference of the powers would lose a small δ1.
        let k = self.shape.hashes();
        power(self.ones, k) * any_of(self.dirty.ones / self.ones, f64::from(k))
    }

    /// The two rates, weighted: `w+ f+ + w- f-` (equations 13 and 17).
    #[must_use]
    pub fn overall(&self, weights: Weights) -> f64 {
        weights.false_positive * self.false_positive() + weights.disagreement * self.disagreement()
    }

    /// The rates of a host that asks its own filter and replicas of all other hosts, each as stale
    /// as this one (equations 14 to 16). `hosts` counts itself.
    #[must_use]
    pub fn host(&self, hosts: u64) -> Host {
        let others = hosts.saturating_sub(1) as f64;
        let own = power(self.ones, self.shape.hashes());
        let none = ln_none_of(own, 1.0) + ln_none_of(self.false_positive(), others);
        Host::of(one_minus_exp(none), any_of(self.disagreement(), others))
    }
}

/// The rates of a host over its own filter and all its replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// `F+`: some filter claims a random key (equation 14).
    pub false_positive: f64,
    /// `F-`: some replica and its home disagree on a random key (equation 15).
    pub disagreement: f64,
    /// `F+ + F- - F+ F-` (equation 16).
    pub overall: f64,
}

impl Host {
    /// The rates of a host whose own filter has the rate `own`, over replicas that differ
    /// from each other (equations 14 to 16).
    #[must_use]
    pub fn over(own: f64, replicas: &[Replica]) -> Self {
        let none = |rate: fn(&Replica) -> f64| {
            replicas.iter().map(|replica| ln_none_of(rate(replica), 1.0)).sum::<f64>()
        };
        let claimed = ln_none_of(own, 1.0) + none(Replica::false_positive);
        Self::of(one_minus_exp(claimed), one_minus_exp(none(Replica::disagreement)))
    }

    fn of(false_positive: f64, disagreement: f64) -> Self {
        let none = ln_none_of(false_positive, 1.0) + ln_none_of(disagreement, 1.0);
        Self { false_positive, disagreement, overall: one_minus_exp(none) }
    }
}

/// Chance that a replica of several components claims a random key: `1 - Π (1 - fill_i^k)`.
#[must_use]
pub fn several_components(hashes: u32, fills: &[f64]) -> f64 {
    one_minus_exp(fills.iter().map(|&fill| ln_none_of(power(fill, hashes), 1.0)).sum())
}

#[cfg(test)]
mod tests;
