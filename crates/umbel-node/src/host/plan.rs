//! Own sets: reserve, change, publish, delete.

use std::sync::Arc;
use std::time::Duration;

use umbel::design::chain::ChainPromise;
use umbel::replica::{Name, Policy, SetPlan};

use super::sets::{OwnSet, SetChange, Terms};
use super::{ChainQuery, Host, Lifetime};
use crate::catalogue::Ticket;
use crate::confirm::Confirm;
use crate::error::HostError;

/// Parameters of a reservation. What is left out stays as it is, or takes the host's default.
#[derive(Debug, Clone, PartialEq)]
pub struct Reserve {
    /// Chance that one lookup of an absent key names any wrong host, with all expected hosts. In a
    /// set of chains: the chance, per host and chain, that a depth is too large by more than the
    /// step.
    pub false_positive: f64,
    /// Keys of this host for which there is room from the start.
    pub capacity: u64,
    /// Number of hosts among which the rate is divided.
    pub expected_hosts: Option<u32>,
    /// When replicas are too stale.
    pub policy: Option<Policy>,
    /// Lifetime of keys that are added from now on, unless given with the key.
    pub lifetime: Lifetime,
    /// Who confirms one of this host's keys: the catalogue or the cache.
    pub confirm: Option<Confirm>,
    /// The step of a set of chains; `None`: a new set is for single keys, an existing one stays as
    /// it is.
    pub chains: Option<u32>,
}

impl From<Reserve> for Change {
    fn from(wanted: Reserve) -> Self {
        Self {
            false_positive: Some(wanted.false_positive),
            capacity: Some(wanted.capacity),
            expected_hosts: wanted.expected_hosts,
            policy: wanted.policy,
            lifetime: wanted.lifetime,
            confirm: wanted.confirm,
            chains: wanted.chains,
        }
    }
}

/// The changes to a set's plan; what is left out stays as it is, or takes the host's default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// Chance that one lookup of an absent key names any wrong host, with all expected hosts. In a
    /// set of chains: the chance, per host and chain, that a depth is too large by more than the
    /// step.
    pub false_positive: Option<f64>,
    /// Keys of this host for which there is room from the start.
    pub capacity: Option<u64>,
    /// Number of hosts among which the rate is divided.
    pub expected_hosts: Option<u32>,
    /// When replicas are too stale.
    pub policy: Option<Policy>,
    /// Lifetime of keys that are added from now on, unless given with the key.
    pub lifetime: Lifetime,
    /// Who confirms one of this host's keys: the catalogue or the cache.
    pub confirm: Option<Confirm>,
    /// The step of a set of chains; turns the set into one.
    pub chains: Option<u32>,
}

impl Change {
    /// The new default lifetime of keys, given the one `before`.
    const fn lifetime(&self, before: Option<Duration>) -> Option<Duration> {
        match self.lifetime {
            Lifetime::Default => before,
            Lifetime::For(time) => Some(time),
            Lifetime::Forever => None,
        }
    }

    /// Whether it affects the shape of the filter.
    const fn is_of_shape(&self) -> bool {
        self.false_positive.is_some()
            || self.capacity.is_some()
            || self.expected_hosts.is_some()
            || self.chains.is_some()
    }

    fn apply(&self, mut plan: SetPlan) -> SetPlan {
        if let Some(step) = self.chains {
            plan.chains = Some(ChainPromise { step, ..plan.chains.unwrap_or(ChainQuery::PROMISE) });
        }
        match (&mut plan.chains, self.false_positive) {
            (_, None) => {}
            (Some(promise), Some(chance)) => promise.over_estimate = chance,
            (None, Some(rate)) => plan.false_positive = rate,
        }
        plan.capacity = self.capacity.or(plan.capacity);
        plan.expected_hosts = self.expected_hosts.or(plan.expected_hosts);
        plan.policy = self.policy.unwrap_or(plan.policy);
        plan
    }
}

impl Host {
    /// Creates an own set with this plan, or rebuilds an existing one with it: the old filter
    /// answers until the new one is published.
    ///
    /// # Errors
    /// If the name or a number is out of range, or the catalogue has failed; nothing changes
    /// then.
    pub fn reserve(&self, set: &str, wanted: Reserve) -> Result<Ticket, HostError> {
        self.make_or_change(set, &wanted.into()).map(|(_, ticket)| ticket)
    }

    /// Creates an own set, with the host's defaults for what is left out, or changes an existing
    /// one; returns whether it was created.
    ///
    /// # Errors
    /// If the name or a number is out of range, or the catalogue has failed; nothing changes
    /// then.
    pub fn make_or_change(&self, set: &str, change: &Change) -> Result<(bool, Ticket), HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        self.check_confirm(change)?;
        self.check_shape(change)?;
        let sets = &self.inner.sets;
        loop {
            let (own, made) = match sets.own(set) {
                Some(own) => (own, false),
                None => {
                    let live = self.inner.live.current();
                    let confirm = change.confirm.as_ref().unwrap_or(&live.set.confirm).clone();
                    let lifetime = change.lifetime(live.set.lifetime);
                    let terms = Terms { lifetime, confirm, filter: None };
                    let plan = change.apply(sets.default_plan());
                    self.check_size(&plan)?;
                    sets.own_or_create(&name, plan, terms)?
                }
            };
            // Deleted a moment ago: create it again.
            let Some(mut changing) = sets.change(&own)? else { continue };
            if !made {
                self.change_own(&mut changing, own.terms(), change)?;
            }
            self.inner.wake_if_urgent(&changing);
            return Ok((made, sets.ticket()));
        }
    }

    /// Changes parts of an own set's plan. Its filter is rebuilt only if the change affects its
    /// shape.
    ///
    /// # Errors
    /// If this host has no such set of its own, a number is out of range, or the catalogue has
    /// failed; nothing changes then.
    pub fn change(&self, set: &str, change: &Change) -> Result<Ticket, HostError> {
        self.check_confirm(change)?;
        self.check_shape(change)?;
        let own = self.inner.sets.find_own(set)?;
        let mut changing = self.changing(set, &own)?;
        self.change_own(&mut changing, own.terms(), change)?;
        self.inner.wake_if_urgent(&changing);
        Ok(self.inner.sets.ticket())
    }

    /// Rejects a filter that every other host would refuse as too large.
    pub(super) fn check_size(&self, plan: &SetPlan) -> Result<(), HostError> {
        plan.ladder()?;
        let max = self.inner.settings.limits.filter_bits;
        match plan.rung_for(0) {
            Ok(rung) if rung.bits() <= max => Ok(()),
            _ => Err(HostError::TooLarge { max }),
        }
    }

    /// Checks that the cache can be reached: the host must know its address.
    fn check_confirm(&self, change: &Change) -> Result<(), HostError> {
        match &change.confirm {
            Some(Confirm::Cache(_)) if !cfg!(feature = "http") => Err(HostError::NoWayToCache),
            Some(Confirm::Cache(template))
                if template.needs_advertise() && self.inner.settings.advertise.is_none() =>
            {
                Err(HostError::NoWayToCache)
            }
            Some(Confirm::Cache(template)) => {
                let settings = self.inner.live.current();
                match template.origin() {
                    Some(origin) if !settings.permits_cache(&origin) => {
                        Err(HostError::CacheOrigin(origin))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// An own set, to change it.
    fn changing<'a>(&'a self, set: &str, own: &'a Arc<OwnSet>) -> Result<SetChange<'a>, HostError> {
        self.inner.sets.change(own)?.ok_or_else(|| HostError::NoSuchSet(set.to_owned()))
    }

    fn change_own(
        &self,
        changing: &mut SetChange<'_>,
        mut terms: Terms,
        change: &Change,
    ) -> Result<(), HostError> {
        let Some(before) = changing.plan() else { return Ok(()) };
        let plan = change.apply(before);
        if plan == (SetPlan { policy: plan.policy, ..before }) {
            changing.set_policy(plan.policy);
        } else {
            self.check_size(&plan)?;
            changing.replan(plan)?;
        }
        terms.lifetime = change.lifetime(terms.lifetime);
        if let Some(confirm) = &change.confirm {
            terms.confirm.clone_from(confirm);
        }
        changing.set_terms(terms);
        changing.record();
        Ok(())
    }

    /// In an overlay no single host can choose a set's shape.
    fn check_shape(&self, change: &Change) -> Result<(), HostError> {
        if self.inner.settings.overlay.is_some() && change.is_of_shape() {
            return Err(HostError::InOverlay(
                "every set has the shape that all hosts agreed on: see the overlay's settings",
            ));
        }
        Ok(())
    }

    /// Publishes everything of an own set now, removals included.
    ///
    /// # Errors
    /// If this host has no such set of its own.
    pub fn publish(&self, set: &str) -> Result<(), HostError> {
        let own = self.inner.sets.find_own(set)?;
        let mut changing = self.changing(set, &own)?;
        changing.publish();
        self.inner.wake_if_urgent(&changing);
        Ok(())
    }

    /// Deletes an own set with all its keys; returns whether it existed.
    ///
    /// # Errors
    /// If the catalogue has failed.
    pub fn delete(&self, set: &str) -> Result<(bool, Ticket), HostError> {
        let sets = &self.inner.sets;
        sets.check_open()?;
        let Ok(own) = sets.find_own(set) else { return Ok((false, Ticket::NONE)) };
        let Some(changing) = sets.change(&own)? else { return Ok((false, Ticket::NONE)) };
        changing.delete();
        self.inner.cluster.wake();
        Ok((true, sets.ticket()))
    }

    /// Changes the policy of an own set.
    ///
    /// # Errors
    /// If this host has no such set of its own, or the catalogue has failed.
    pub fn set_policy(&self, set: &str, policy: Policy) -> Result<Ticket, HostError> {
        self.change(set, &Change { policy: Some(policy), ..Change::default() })
    }
}
