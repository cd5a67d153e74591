//! The host's own keys of the set, if it has any. A host without keys is not a home: it only
//! forwards the adverts and queries of others.

use std::fmt;
use std::time::Duration;

use super::Router;
use crate::catalogue::Catalogue;
use crate::params::ParamError;
use crate::replica::{Epoch, Home, Policy};

/// Whether a key is hidden.
type IsHidden = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Decides which own keys are no longer held although they have not been removed.
pub(crate) struct Hidden(Box<IsHidden>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

impl<C: Catalogue> Router<C> {
    /// Becomes a home with the keys that a catalogue holds, and publishes them.
    ///
    /// # Errors
    /// If there is no memory; nothing changes then.
    pub fn own(&mut self, now: Duration, catalogue: C) -> Result<(), ParamError> {
        let (plan, config) = (&self.plan.plan, &self.config);
        let (shape, capacity) = (plan.shape()?, plan.capacity());
        let (policy, intervals) = (config.policy, config.intervals);
        let home = Home::of_shape(config.hasher, (shape, capacity), policy, intervals, catalogue)?;
        self.own = Some(home);
        self.publish(now);
        Ok(())
    }

    /// Stops being a home, and withdraws what was advertised. Returns the catalogue, if there was
    /// one.
    pub fn disown(&mut self) -> Option<C> {
        let home = self.own.take()?;
        (self.published, self.hidden) = (None, None);
        self.news.insert(self.config.name.clone());
        self.advertise_changes();
        Some(home.into_catalogue())
    }

    /// Adds a key. Returns whether it is new; `false` if this host is not a home.
    pub fn add(&mut self, now: Duration, key: &[u8]) -> bool {
        let new = self.own.as_mut().is_some_and(|home| home.add(now, key));
        self.publish_if_due(now);
        new
    }

    /// Adds many keys at once, which are published in at most one update. Calls `on_result` for
    /// each key with whether it is new. Returns whether this host is a home.
    pub fn add_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        keys: &[K],
        on_result: impl FnMut(bool),
    ) -> bool {
        let Some(home) = &mut self.own else { return false };
        home.add_many(now, keys, on_result);
        self.publish_if_due(now);
        true
    }

    /// Removes a key. Returns whether it was in the set.
    pub fn remove(&mut self, now: Duration, key: &[u8]) -> bool {
        let held = self.own.as_mut().is_some_and(|home| home.remove(now, key));
        self.publish_if_due(now);
        held
    }

    /// Removes many keys at once. Calls `on_result` for each key with whether it was in the set.
    /// Returns whether this host is a home.
    pub fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        keys: &[K],
        mut on_result: impl FnMut(bool),
    ) -> bool {
        let Some(home) = &mut self.own else { return false };
        keys.iter().for_each(|key| on_result(home.remove(now, key.as_ref())));
        self.publish_if_due(now);
        true
    }

    /// Publishes everything now, clears included. Returns whether this host is a home.
    pub fn publish(&mut self, now: Duration) -> bool {
        let is_home = self.publish_everything(now);
        self.advertise_changes();
        is_home
    }

    /// Changes the policy.
    pub fn set_policy(&mut self, now: Duration, policy: Policy) {
        self.config.policy = policy;
        if let Some(home) = &mut self.own {
            home.set_policy(policy);
        }
        self.publish_if_due(now);
    }

    /// The own set, if this host is a home.
    #[must_use]
    pub const fn home(&self) -> Option<&Home<C>> {
        self.own.as_ref()
    }

    /// Hides own keys that are no longer held, such as expired ones, until they are removed.
    pub fn hide(&mut self, is_hidden: impl Fn(&[u8]) -> bool + Send + Sync + 'static) {
        self.hidden = Some(Hidden(Box::new(is_hidden)));
    }

    /// Whether this host holds a key. Exact.
    #[must_use]
    pub fn holds(&self, key: &[u8]) -> bool {
        // Check `hidden` first: a hidden key leaves the catalogue before it stops being hidden.
        let is_hidden = self.hidden.as_ref().is_some_and(|hidden| hidden.0(key));
        !is_hidden && self.own.as_ref().is_some_and(|home| home.contains(key))
    }

    /// The epoch of the last published update, counted over all times at which this host was a
    /// home. A later router of the same incarnation continues from there.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }
}
