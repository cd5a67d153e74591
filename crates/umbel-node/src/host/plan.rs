//! Own sets: reserved, changed, published, deleted.

use std::sync::Arc;
use std::time::Duration;

use umbel::replica::{Name, Policy, SetPlan};

use super::sets::{OwnSet, SetChange, Terms};
use super::{Host, Lifetime};
use crate::catalogue::Ticket;
use crate::confirm::Confirm;
use crate::error::HostError;

/// What a set is reserved for. What is left out stays as it is, or takes the host's default.
#[derive(Debug, Clone, PartialEq)]
pub struct Reserve {
    /// Chance that one lookup of an absent key names any wrong host, with all expected hosts.
    pub false_positive: f64,
    /// Keys of this host that there is room for from the start.
    pub capacity: u64,
    /// Hosts that the rate is shared among.
    pub expected_hosts: Option<u32>,
    /// When replicas are too stale.
    pub policy: Option<Policy>,
    /// How long keys live that are added from now on, unless told otherwise.
    pub lifetime: Lifetime,
    /// Whose word counts when one of its keys is confirmed.
    pub confirm: Option<Confirm>,
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
        }
    }
}

/// What is to change of a set's plan; what is left out stays as it is, or takes the host's
/// default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// Chance that one lookup of an absent key names any wrong host, with all expected hosts.
    pub false_positive: Option<f64>,
    /// Keys of this host that there is room for from the start.
    pub capacity: Option<u64>,
    /// Hosts that the rate is shared among.
    pub expected_hosts: Option<u32>,
    /// When replicas are too stale.
    pub policy: Option<Policy>,
    /// How long keys live that are added from now on, unless told otherwise.
    pub lifetime: Lifetime,
    /// Whose word counts when one of its keys is confirmed.
    pub confirm: Option<Confirm>,
}

impl Change {
    /// How long keys live, where that was `before`.
    const fn lifetime(&self, before: Option<Duration>) -> Option<Duration> {
        match self.lifetime {
            Lifetime::Default => before,
            Lifetime::For(time) => Some(time),
            Lifetime::Forever => None,
        }
    }

    /// Whether the shape of a filter follows from it.
    const fn is_of_shape(&self) -> bool {
        self.false_positive.is_some() || self.capacity.is_some() || self.expected_hosts.is_some()
    }

    fn apply(&self, mut plan: SetPlan) -> SetPlan {
        plan.false_positive = self.false_positive.unwrap_or(plan.false_positive);
        plan.capacity = self.capacity.or(plan.capacity);
        plan.expected_hosts = self.expected_hosts.or(plan.expected_hosts);
        plan.policy = self.policy.unwrap_or(plan.policy);
        plan
    }
}

impl Host {
    /// Makes an own set with this plan, or builds one that is there into it: its old filter
    /// answers until the new one is published.
    ///
    /// # Errors
    /// If the name or a number is out of range, or the catalogue has failed; nothing changes
    /// then.
    pub fn reserve(&self, set: &str, wanted: Reserve) -> Result<Ticket, HostError> {
        self.make_or_change(set, &wanted.into()).map(|(_, ticket)| ticket)
    }

    /// Makes an own set, with the host's defaults for what is left out, or changes one that is
    /// there; whether it was made.
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
            // Deleted a moment ago: it is made anew.
            let Some(mut changing) = sets.change(&own)? else { continue };
            if !made {
                self.change_own(&mut changing, own.terms(), change)?;
            }
            self.inner.wake_if_urgent(&changing);
            return Ok((made, sets.ticket()));
        }
    }

    /// Changes some of what an own set is planned for. Its filter is built again only if its
    /// shape follows from what changes.
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

    /// A filter that every other host would refuse is not built.
    pub(super) fn check_size(&self, plan: &SetPlan) -> Result<(), HostError> {
        plan.ladder()?;
        let most = self.inner.settings.limits.filter_bits;
        match plan.rung_for(0) {
            Ok(rung) if rung.bits() <= most => Ok(()),
            _ => Err(HostError::TooLarge { most }),
        }
    }

    /// A cache can be asked only if it is known where it is.
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

    /// In an overlay nobody chooses a set's shape alone.
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

    /// Deletes an own set with all its keys; whether there was one.
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

    /// Another policy for an own set.
    ///
    /// # Errors
    /// If this host has no such set of its own, or the catalogue has failed.
    pub fn set_policy(&self, set: &str, policy: Policy) -> Result<Ticket, HostError> {
        self.change(set, &Change { policy: Some(policy), ..Change::default() })
    }
}
