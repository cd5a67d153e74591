//! What happens to a set between two updates: keys are added and removed, the replica does not
//! change.
//!
//! Added keys are misses until they are published, unless the replica happens to claim them.
//! Removed keys are ghosts until their bits are cleared, unless they had never been published.
//! These forms give the averages of steady churn: adds and removes at constant rates, any member
//! equally likely to go. `design::replica` plans with them.
//!
//! Not from the papers: they estimate from dirty bits, which say nothing about members.

use super::one_minus_exp;
use super::standard::load;
use crate::params::Shape;

/// Steady churn of one set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Churn {
    /// Members when the replica was last published, `N`.
    pub items: f64,
    /// Keys added per second, `A`.
    pub adds_per_second: f64,
    /// Members removed per second, `R`.
    pub removes_per_second: f64,
}

impl Churn {
    /// Members after some seconds: `S = N + (A - R) t`, at least 0.
    #[must_use]
    pub fn members_after(&self, seconds: f64) -> f64 {
        (self.items + (self.adds_per_second - self.removes_per_second) * seconds).max(0.0)
    }

    /// Members left after some seconds of those that were published:
    /// `V = N (S/N)^(-R/(A-R))`, and `N e^(-Rt/N)` for `A = R`.
    #[must_use]
    pub fn published_after(&self, seconds: f64) -> f64 {
        self.items * self.ln_left(seconds).exp()
    }

    /// Published members removed within some seconds, `N - V`: the replica still claims them.
    #[must_use]
    pub fn ghosts_after(&self, seconds: f64) -> f64 {
        // A separate formula, because the difference would lose precision for few ghosts among many
        // keys.
        self.items * one_minus_exp(self.ln_left(seconds))
    }

    /// `ln V/N`.
    fn ln_left(&self, seconds: f64) -> f64 {
        let drift = (self.adds_per_second - self.removes_per_second) * seconds / self.items;
        if drift <= -1.0 {
            return f64::NEG_INFINITY;
        }
        let slope = if drift == 0.0 { 1.0 } else { drift.ln_1p() / drift };
        -self.removes_per_second * seconds / self.items * slope
    }

    /// Seconds until this share of the members is not yet published, the answer to
    /// `1 - V/S = share`: `t = (N/A) w (e^y - 1)/y` with `w = -ln(1 - share)` and
    /// `y = w (A-R)/A`. Never, without adds.
    #[must_use]
    pub fn seconds_until_unpublished(&self, share: f64) -> Option<f64> {
        if self.adds_per_second <= 0.0 || !(0.0..1.0).contains(&share) {
            return None;
        }
        let w = -(-share).ln_1p();
        let y = w * (self.adds_per_second - self.removes_per_second) / self.adds_per_second;
        let growth = if y == 0.0 { 1.0 } else { y.exp_m1() / y };
        Some(self.items / self.adds_per_second * w * growth)
    }

    /// Seconds until there are this many ghosts per member, if it takes at most `longest`.
    #[must_use]
    pub fn seconds_until_ghosts(&self, per_member: f64, longest: f64) -> Option<f64> {
        let passed =
            |seconds| self.ghosts_after(seconds) > per_member * self.members_after(seconds);
        if !passed(longest) {
            return None;
        }
        let (mut before, mut after) = (0.0, longest);
        for _ in 0..64 {
            let middle = 0.5 * (before + after);
            if passed(middle) { after = middle } else { before = middle }
        }
        Some(after)
    }
}

/// Bits that `these` keys set and `others` do not: `m e^(-k·others/m) (1 - e^(-k·these/m))`.
///
/// With the replica's keys as `others` and added keys as `these`: bits to set. With members
/// as `others` and ghosts as `these`: bits to clear.
#[must_use]
pub fn bits_of_these_only(shape: Shape, others: f64, these: f64) -> f64 {
    let untouched = (-load(&shape, others)).exp();
    shape.bits() as f64 * untouched * one_minus_exp(-load(&shape, these))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn churn(adds_per_second: f64, removes_per_second: f64) -> Churn {
        Churn { items: 1000.0, adds_per_second, removes_per_second }
    }

    #[test]
    fn without_removals_the_share_is_that_of_the_added_keys() {
        // a/(1000 + a) = 0.2 at a = 250.
        let seconds = churn(5.0, 0.0).seconds_until_unpublished(0.2).unwrap();
        assert!((seconds - 50.0).abs() < 1e-9);
        assert_eq!(churn(5.0, 0.0).published_after(50.0), 1000.0);
        assert_eq!(churn(0.0, 5.0).seconds_until_unpublished(0.2), None);
    }

    #[test]
    fn equal_churn_forgets_exponentially() {
        let half = churn(10.0, 10.0).seconds_until_unpublished(0.5).unwrap();
        assert!((half - 100.0 * std::f64::consts::LN_2).abs() < 1e-9);
        assert!((churn(10.0, 10.0).published_after(half) - 500.0).abs() < 1e-9);
    }

    #[test]
    fn removals_alone_leave_only_published_members() {
        let alone = churn(0.0, 10.0);
        assert!((alone.published_after(30.0) - 700.0).abs() < 1e-9);
        assert_eq!(alone.published_after(100.0), 0.0);
        assert_eq!(alone.members_after(200.0), 0.0);
        // Long after the last one went.
        assert_eq!((alone.published_after(200.0), alone.ghosts_after(200.0)), (0.0, 1000.0));
    }

    #[test]
    fn ghosts_are_counted_against_those_who_stay() {
        // 48 ghosts among 952 who stay are the first above 5 %.
        let seconds = churn(0.0, 10.0).seconds_until_ghosts(0.05, 100.0).unwrap();
        assert!((seconds - 0.05 * 1000.0 / 1.05 / 10.0).abs() < 1e-9, "{seconds}");
        assert_eq!(churn(10.0, 0.0).seconds_until_ghosts(0.05, 1e9), None);
        assert!((churn(10.0, 10.0).ghosts_after(1e-12) - 1e-11).abs() < 1e-20);
    }

    #[test]
    fn bits_of_nothing_are_none() {
        let shape = Shape::new(9593, 7).unwrap();
        assert_eq!(bits_of_these_only(shape, 1000.0, 0.0), 0.0);
        // One key more in an empty filter sets k bits, but for a collision now and then.
        assert!((bits_of_these_only(shape, 0.0, 1.0) - 7.0).abs() < 0.01);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn the_share_at_the_stated_time_is_the_stated_share(
            adds in 0.01_f64..1000.0, removes_per_add in 0.0_f64..10.0, share in 1e-6_f64..0.7,
        ) {
            let churn = churn(adds, removes_per_add * adds);
            let seconds = churn.seconds_until_unpublished(share).unwrap();
            let found = 1.0 - churn.published_after(seconds) / churn.members_after(seconds);
            prop_assert!((found - share).abs() < 1e-6, "{found} for {share}");
        }
    }
}
