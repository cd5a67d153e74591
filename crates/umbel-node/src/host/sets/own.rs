//! An own set of a host: its keys and their expiry, its terms, and the lock that changes take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedMutexGuard;
use umbel::catalogue::Catalogue as _;
use umbel::design::ladder::{RungChoice, Standing};
use umbel::mesh::LocalSet;
use umbel::replica::{Name, Policy, SetPlan};

use super::Sets;
use crate::catalogue::{HostCatalogue, KeyPage, SetNumber, SetRecord};
use crate::confirm::Confirm;
use crate::counts::Counts;
use crate::error::HostError;
use crate::filter_kind::FilterKind;
use crate::host::clock::wall_clock_ms;
use crate::lifetimes::Lifetimes;

/// A filter of at least so many bits takes more than a millisecond to publish.
const LONG_BITS: u64 = 1 << 20;

/// An own set of a host.
#[derive(Debug)]
pub(crate) struct OwnSet {
    pub(in crate::host) name: Name,
    pub(super) number: SetNumber,
    /// The exact keys; can be read by any thread.
    pub(in crate::host) catalogue: HostCatalogue,
    /// Catalogue, filter and publisher; `None` in an overlay, whose routers are behind the lock of
    /// the state.
    pub(super) local: Option<Arc<LocalSet<HostCatalogue>>>,
    /// The filter kind with which a Redis client created it, as in its terms: it never changes, and
    /// is read without a lock.
    pub(in crate::host) filter: Option<FilterKind>,
    terms: Mutex<Terms>,
    changes: Mutex<Changes>,
    lifetimes: Mutex<Lifetimes>,
    /// How often keys were added, if it is a cuckoo filter.
    pub(super) counts: Mutex<Counts>,
    /// When the first key expires, in milliseconds since 1970; `u64::MAX`: none does. With it,
    /// queries check lifetimes only while expired keys wait to be removed.
    first_expiry: AtomicU64,
    /// Whether the builder has it in its queue or builds it.
    is_in_builder: AtomicBool,
    /// The turn to change the set, among tasks.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// How long a key is held unless it is removed or added again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifetime {
    /// The set's default: for ever unless the set was reserved with another lifetime.
    #[default]
    Default,
    /// For this long from now.
    For(Duration),
    /// Until it is removed, whatever lifetime it had before.
    Forever,
}

/// How an own set's keys expire and are confirmed, and which filter the set is for Redis clients.
#[derive(Debug, Clone)]
pub(in crate::host) struct Terms {
    /// Default lifetime of keys.
    pub(in crate::host) lifetime: Option<Duration>,
    /// Who confirms one of this host's keys: the catalogue or the cache.
    pub(in crate::host) confirm: Confirm,
    /// The filter kind with which a Redis client created the set.
    pub(in crate::host) filter: Option<FilterKind>,
}

/// The state behind the lock of changes.
#[derive(Debug, Default)]
struct Changes {
    is_deleted: bool,
}

/// The keys of an own set that are held at one moment: expired keys are not, whether or not they
/// have been removed yet.
#[derive(Debug, Clone, Copy)]
pub(in crate::host) struct HeldKeys<'a> {
    own: &'a OwnSet,
    /// The current time, if there may be expired keys that are not removed yet.
    overdue_at: Option<u64>,
}

impl HeldKeys<'_> {
    /// Whether a key is held.
    pub(in crate::host) fn contains(&self, key: &[u8]) -> bool {
        // In this order: an expired key is removed from the catalogue first, and its lifetime after
        // that.
        !self.is_expired(key) && self.own.catalogue.contains(key)
    }

    /// A page of keys, and the cursor of the next page: see [`HostCatalogue::page`].
    pub(in crate::host) fn page(&self, cursor: &[u8], count: usize) -> KeyPage {
        let (mut keys, next) = self.own.catalogue.page(cursor, count);
        // Expired keys may be removed while the page is collected: so test whether they are held,
        // and not only whether they have expired.
        if self.overdue_at.is_some() {
            keys.retain(|key| self.contains(key));
        }
        (keys, next)
    }

    fn is_expired(&self, key: &[u8]) -> bool {
        self.overdue_at.is_some_and(|now| self.own.lifetimes.lock().is_expired(key, now))
    }
}

impl OwnSet {
    pub(super) fn new(
        name: Name,
        number: SetNumber,
        catalogue: HostCatalogue,
        local: Option<Arc<LocalSet<HostCatalogue>>>,
        terms: Terms,
    ) -> Self {
        Self {
            name,
            number,
            catalogue,
            local,
            filter: terms.filter,
            terms: Mutex::new(terms),
            changes: Mutex::default(),
            lifetimes: Mutex::default(),
            counts: Mutex::default(),
            first_expiry: AtomicU64::new(u64::MAX),
            is_in_builder: AtomicBool::new(false),
            turn: Arc::default(),
        }
    }

    /// Whether it is a set of chains.
    pub(in crate::host) fn is_loose(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.home().plan().is_loose())
    }

    /// Whether its keys are stored in a folder.
    pub(super) const fn is_durable(&self) -> bool {
        matches!(self.catalogue, HostCatalogue::Folder(_))
    }

    /// Its terms: how its keys expire and are confirmed.
    pub(in crate::host) fn terms(&self) -> Terms {
        self.terms.lock().clone()
    }

    /// Waits asynchronously for the caller's turn to change the set. With the turn, the wait for
    /// the set's lock is at most as long as a short change by another thread.
    pub(in crate::host) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// As [`Self::turn`], but blocks the thread.
    pub(in crate::host) fn blocking_turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).blocking_lock_owned()
    }

    /// Whether it is due to be published, and that would hold its lock for long.
    pub(super) fn is_long_due(&self, now: Duration) -> bool {
        self.local.as_ref().is_some_and(|local| {
            local.bits() >= LONG_BITS && local.next_timeout().is_some_and(|timeout| timeout <= now)
        })
    }

    /// The chance that filter and published copy differ on a random key; takes a pass over all
    /// bits.
    pub(in crate::host) fn disagreement(&self, sets: &Sets) -> Option<f64> {
        let freshness = match &self.local {
            Some(local) => local.home().freshness(),
            None => sets.lock().protocol.home(&self.name)?.freshness(),
        };
        Some(freshness.disagreement)
    }

    /// The keys that are held now.
    pub(in crate::host) fn held(&self) -> HeldKeys<'_> {
        let overdue_at = self
            .next_expiry()
            .map(|first| (first, wall_clock_ms()))
            .filter(|(first, now)| first <= now);
        HeldKeys { own: self, overdue_at: overdue_at.map(|(_, now)| now) }
    }

    /// Whether a key has expired, whether or not it has been removed.
    pub(super) fn has_expired(&self, key: &[u8]) -> bool {
        self.held().is_expired(key)
    }

    /// The number of keys that have a lifetime.
    pub(in crate::host) fn expiring(&self) -> u64 {
        self.lifetimes.lock().len() as u64
    }

    /// When the next key expires, in milliseconds since 1970. Takes no lock.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        Some(self.first_expiry.load(Ordering::SeqCst)).filter(|at| *at != u64::MAX)
    }

    /// Changes lifetimes, and updates when the next key expires.
    fn with_lifetimes<T>(&self, change: impl FnOnce(&mut Lifetimes) -> T) -> T {
        let mut lifetimes = self.lifetimes.lock();
        let changed = change(&mut lifetimes);
        self.first_expiry.store(lifetimes.next().unwrap_or(u64::MAX), Ordering::SeqCst);
        changed
    }

    /// Whether a filter is to be built and the set is not in the builder yet; marks it as being
    /// there.
    pub(super) fn wants_builder(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.is_building())
            && !self.is_in_builder.swap(true, Ordering::SeqCst)
    }

    /// Marks that the set is no longer in the builder.
    pub(super) fn leave_builder(&self) {
        self.is_in_builder.store(false, Ordering::SeqCst);
    }

    /// Whether the filter holds more keys than planned while a longer one is being built.
    pub(super) fn is_outgrown(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.is_outgrown())
    }

    /// Continues to build, by about `keys` keys; returns whether there is more to do.
    pub(super) fn build_part(&self, now: Duration, keys: usize) -> bool {
        self.local.as_ref().is_some_and(|local| local.build_part(now, keys))
    }

    /// Cancels the current build.
    pub(super) fn cancel_build(&self) {
        if let Some(local) = &self.local {
            local.cancel_build();
        }
    }

    /// Waits until a running change is done.
    pub(super) fn wait_for_change(&self) {
        drop(self.changes.lock());
    }
}

/// An own set that is locked for a change: others wait until it is dropped.
#[derive(Debug)]
pub(in crate::host) struct Change<'a> {
    pub(super) sets: &'a Sets,
    pub(super) own: &'a Arc<OwnSet>,
    changes: MutexGuard<'a, Changes>,
}

impl Sets {
    /// Locks an own set for a change; `None` if it was deleted a moment ago.
    ///
    /// # Errors
    /// If the host stops or the catalogue has failed.
    pub(in crate::host) fn change<'a>(
        &'a self,
        own: &'a Arc<OwnSet>,
    ) -> Result<Option<Change<'a>>, HostError> {
        let changes = own.changes.lock();
        self.check_open()?;
        Ok((!changes.is_deleted).then_some(Change { sets: self, own, changes }))
    }
}

impl Change<'_> {
    /// Adds keys; `on_result` is called for each with whether it is new.
    pub(in crate::host) fn add(
        &mut self,
        keys: &[&[u8]],
        lifetime: Lifetime,
        on_result: &mut dyn FnMut(bool),
    ) {
        self.expire_among(keys);
        let now = self.sets.clock.now();
        match &self.own.local {
            Some(local) => local.add_many(now, keys, on_result),
            None => self.sets.lock().protocol.add_many(now, &self.own.name, keys, on_result),
        };
        self.set_lifetimes(keys, lifetime);
    }

    /// Removes keys; `on_result` is called for each with whether it was held.
    pub(in crate::host) fn remove(&mut self, keys: &[&[u8]], on_result: &mut dyn FnMut(bool)) {
        self.expire_among(keys);
        self.forget_repeats(keys);
        self.remove_keys(keys, on_result);
        self.set_lifetimes(keys, Lifetime::Forever);
    }

    fn remove_keys(&self, keys: &[&[u8]], on_result: &mut dyn FnMut(bool)) {
        let now = self.sets.clock.now();
        match &self.own.local {
            Some(local) => local.remove_many(now, keys, on_result),
            None => self.sets.lock().protocol.remove_many(now, &self.own.name, keys, on_result),
        };
    }

    /// Sets how long keys live from now.
    fn set_lifetimes(&mut self, keys: &[&[u8]], lifetime: Lifetime) {
        let lifetime = match lifetime {
            Lifetime::Default => self.own.terms.lock().lifetime,
            Lifetime::For(time) => Some(time),
            Lifetime::Forever => None,
        };
        let at = lifetime.map(|time| {
            let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            wall_clock_ms().saturating_add(time)
        });
        self.let_live_until(keys, at);
    }

    /// Sets when keys expire; `None`: never.
    fn let_live_until(&self, keys: &[&[u8]], at: Option<u64>) {
        if at.is_none() && self.own.next_expiry().is_none() {
            return;
        }
        let changed: Vec<&[u8]> = self.with_lifetimes(|lifetimes| {
            keys.iter().copied().filter(|key| lifetimes.set(key, at)).collect()
        });
        if let Some(journal) = &self.sets.journal {
            changed.iter().for_each(|key| journal.set_lifetime(self.own.number, key, at));
        }
    }

    /// Changes lifetimes, and updates when the next key expires in the list that the driver reads.
    fn with_lifetimes<T>(&self, change: impl FnOnce(&mut Lifetimes) -> T) -> T {
        let listed = self.own.next_expiry();
        let changed = self.own.with_lifetimes(change);
        self.sets.expiries.change(&self.own.name, listed, self.own.next_expiry());
        changed
    }

    /// Restores lifetimes that the journal has stored.
    pub(super) fn restore_lifetimes(&mut self, lifetimes: Vec<(Box<[u8]>, u64)>) {
        self.with_lifetimes(|known| {
            lifetimes.into_iter().for_each(|(key, at)| _ = known.set(&key, Some(at)));
        });
    }

    /// Removes at most `max` expired keys.
    pub(super) fn expire(&mut self, wall_clock_ms: u64, max: usize) {
        let keys = self.own.lifetimes.lock().expired(wall_clock_ms, max);
        self.remove_expired(&keys.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    }

    /// Removes those of these keys that have expired: adding one of them then adds a new key.
    fn expire_among(&mut self, keys: &[&[u8]]) {
        if let HeldKeys { overdue_at: Some(now), .. } = self.own.held() {
            let lifetimes = self.own.lifetimes.lock();
            let expired = keys.iter().copied().filter(|key| lifetimes.is_expired(key, now));
            let expired: Vec<&[u8]> = expired.collect();
            drop(lifetimes);
            self.remove_expired(&expired);
        }
    }

    /// Removes expired keys. Their lifetimes are deleted after the keys, so that no concurrent
    /// query takes them for held.
    fn remove_expired(&self, keys: &[&[u8]]) {
        if !keys.is_empty() {
            self.forget_repeats(keys);
            self.remove_keys(keys, &mut |_| ());
            self.let_live_until(keys, None);
        }
    }

    /// The plan of the set.
    pub(in crate::host) fn plan(&self) -> Option<SetPlan> {
        match &self.own.local {
            Some(local) => Some(*local.home().plan()),
            None => self.sets.lock().protocol.plan(&self.own.name),
        }
    }

    /// Changes the plan.
    ///
    /// # Errors
    /// If its numbers are out of range, or there is not enough memory; nothing changes then.
    pub(in crate::host) fn replan(&mut self, plan: SetPlan) -> Result<(), HostError> {
        let now = self.sets.clock.now();
        match &self.own.local {
            Some(local) => local.replan(now, plan)?,
            None => self.sets.lock().protocol.replan(now, &self.own.name, plan)?,
        };
        Ok(())
    }

    /// Changes the policy.
    pub(in crate::host) fn set_policy(&mut self, policy: Policy) {
        let now = self.sets.clock.now();
        match &self.own.local {
            Some(local) => local.set_policy(now, policy),
            None => self.sets.lock().protocol.set_policy(now, &self.own.name, policy),
        };
    }

    /// Requests that everything is published, removals included.
    pub(in crate::host) fn publish(&mut self) {
        let now = self.sets.clock.now();
        match &self.own.local {
            Some(local) => local.request_publish(now),
            None => self.sets.lock().protocol.publish(now, &self.own.name),
        };
    }

    /// Changes its terms: how its keys expire and are confirmed.
    pub(in crate::host) fn set_terms(&mut self, terms: Terms) {
        let refreshes = terms.confirm != self.own.terms.lock().confirm;
        *self.own.terms.lock() = terms;
        if refreshes {
            self.sets.refresh_sets(&self.sets.lock(), [&self.own.name]);
        }
    }

    /// Deletes the set with all its keys.
    pub(in crate::host) fn delete(self) {
        let Self { sets, own, mut changes } = self;
        changes.is_deleted = true;
        sets.expiries.change(&own.name, own.next_expiry(), None);
        let mut state = sets.lock();
        state.protocol.delete(&own.name);
        state.own.remove(&own.name);
        if let Some(journal) = &sets.journal {
            journal.delete_set(own.name.as_str());
        }
        sets.refresh_sets(&state, [&own.name]);
        drop((state, changes));
        // This is a pass over its keys, so do it after the locks are released.
        if let Some(journal) = &sets.journal {
            journal.delete_keys(own.number);
        }
    }

    /// Writes the plan of the set and its current rung to the journal.
    pub(in crate::host) fn record(&self) {
        if let Some(plan) = self.plan() {
            let standing = match &self.own.local {
                Some(local) => local.home().rung().map(RungChoice::standing),
                None => None,
            };
            self.sets.write_record(self.own, &plan, standing);
        }
    }

    /// Queues the filter for the builder if the change made that necessary; returns whether the
    /// sleeping driver should be woken.
    pub(in crate::host) fn is_urgent(&self) -> bool {
        self.sets.builder.offer(self.own);
        let (until, now) = (self.sets.sleeping_until(), self.sets.clock.now());
        let expires_first = self.own.next_expiry().is_some_and(|at| {
            now + Duration::from_millis(at.saturating_sub(wall_clock_ms())) < until
        });
        expires_first
            || match &self.own.local {
                Some(local) => local.next_timeout().is_some_and(|timeout| timeout < until),
                None => self.sets.lock().protocol.is_urgent(&self.own.name, until),
            }
    }
}

impl Sets {
    /// Writes the plan of an own set and its current rung to the journal.
    pub(crate) fn record(&self, set: &Name) {
        if let Some(own) = self.own(set.as_str())
            && let Ok(Some(change)) = self.change(&own)
        {
            change.record();
        }
    }

    /// As [`Self::record`], with given values.
    pub(super) fn write_record(&self, own: &OwnSet, plan: &SetPlan, standing: Option<Standing>) {
        let Some(journal) = &self.journal else { return };
        let terms = own.terms();
        let record = SetRecord {
            number: own.number,
            false_positive: plan.false_positive,
            capacity: plan.capacity,
            expected_hosts: plan.expected_hosts,
            rung: standing.map(|standing| standing.rung.exponent()),
            planned_hosts: standing.map(|standing| standing.hosts),
            policy: plan.policy.to_string(),
            lifetime_ms: terms.lifetime.map(|time| time.as_millis() as u64),
            confirm: Some(terms.confirm.to_string()),
            filter: terms.filter,
            chains: plan.chains.map(Into::into),
        };
        journal.put_set(own.name.as_str(), &record);
    }
}
