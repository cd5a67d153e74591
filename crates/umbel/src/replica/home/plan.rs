//! What a set promises, and how its replicas are kept fresh.

use crate::design::chain::{ChainError, ChainPromise};
use crate::design::ladder::{ExpectedHosts, Ladder, Rung};
use crate::params::{ParamError, Rate};
use crate::replica::policy::Policy;

/// What a set promises, and how its replicas are kept fresh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetPlan {
    /// Probability that one lookup of an absent key returns any wrong host. Ignored in a set of
    /// chains.
    pub false_positive: f64,
    /// What a set of chains promises; `None` for a set of single keys.
    pub chains: Option<ChainPromise>,
    /// Number of hosts that share the rate; `None` means the number of homes of the set, with some
    /// reserve.
    pub expected_hosts: Option<u32>,
    /// Number of keys that the home always has room for. `None` means that its filter starts on the
    /// lowest rung.
    pub capacity: Option<u64>,
    /// When replicas are too stale.
    pub policy: Policy,
    /// Whether updates may contain the digests of added keys, which is shortest for few keys.
    /// Otherwise they contain only changed bits.
    pub by_digests: bool,
}

impl Default for SetPlan {
    fn default() -> Self {
        Self {
            false_positive: 0.01,
            chains: None,
            expected_hosts: None,
            capacity: None,
            policy: Policy::default(),
            by_digests: true,
        }
    }
}

impl SetPlan {
    /// The shapes that the set's filters may have.
    ///
    /// # Errors
    /// If the promised rate is not between 0 and 1, no host is expected, or no filter keeps the
    /// promise of a set of chains.
    pub fn ladder(&self) -> Result<Ladder, ParamError> {
        match (self.expected_hosts, self.chains) {
            (Some(0), _) => Err(ParamError::Items(0)),
            (_, None) => Ok(Ladder::new(Rate::new(self.false_positive)?)),
            (_, Some(promise)) => match promise.design() {
                Ok(design) => Ok(design.ladder()),
                Err(ChainError::Step { given, min, .. }) => Err(ParamError::Step { given, min }),
                Err(ChainError::Zero) => Err(ParamError::Items(0)),
                Err(_) => Err(ParamError::Rate(promise.over_estimate)),
            },
        }
    }

    /// Whether a lookup of a single key is of little use: the filters of chains claim one absent
    /// key in ten, at every host.
    #[must_use]
    pub const fn is_loose(&self) -> bool {
        self.chains.is_some()
    }

    /// Hosts that a new set is planned for.
    #[must_use]
    pub fn initial_hosts(&self) -> u32 {
        self.expected_hosts.unwrap_or(ExpectedHosts::FEWEST)
    }

    /// The rung that a set of this many keys starts on.
    ///
    /// # Errors
    /// If the promised rate is not between 0 and 1, no host is expected, or no rung has room for
    /// this many keys.
    pub fn rung_for(&self, keys: u64) -> Result<Rung, ParamError> {
        let wanted = keys.max(self.capacity.unwrap_or(0));
        let rung = self.ladder()?.rung_for(wanted, self.initial_hosts());
        rung.ok_or(ParamError::Items(wanted))
    }
}
