//! Own keys, exact; and which other hosts may hold a key, from memory.

use std::cell::RefCell;

use umbel::KeyHash;
use umbel::bank::BatchCandidates;
use umbel::replica::Name;

use super::{Host, Lifetime, Sets};
use crate::catalogue::{KeyPage, Ticket};
use crate::error::HostError;

/// Buffers that a thread reuses for its queries.
#[derive(Debug, Default)]
struct Scratch {
    hashes: Vec<KeyHash>,
    found: BatchCandidates,
    /// Keys for which no host was named.
    denied: Vec<KeyHash>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Host {
    /// Adds keys to an own set, which is created if it does not exist. For each key, whether it is
    /// new is appended to `answers`; the lifetime of a key that was held already starts again. The
    /// keys are durable once [`Host::settled`] has returned for the ticket.
    ///
    /// # Errors
    /// If a key or the set's name is too long, or the catalogue has failed; nothing changes
    /// then.
    pub fn add(
        &self,
        set: &str,
        keys: &[&[u8]],
        lifetime: Lifetime,
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        Self::check_keys(keys)?;
        let sets = &self.inner.sets;
        loop {
            let own = sets.own_or_default(set)?;
            // Deleted a moment ago: create it again.
            let Some(mut change) = sets.change(&own)? else { continue };
            change.add(keys, lifetime, &mut |is_new| answers.push(is_new));
            self.inner.wake_if_urgent(&change);
            return sets.checked_ticket();
        }
    }

    /// Waits asynchronously for the caller's turn to change an own set; keep the guard until the
    /// change is done. A set that does not exist needs no turn.
    #[cfg(any(feature = "resp", feature = "http"))]
    pub(crate) async fn turn(&self, set: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        match self.inner.sets.own(set) {
            Some(own) => Some(own.turn().await),
            None => None,
        }
    }

    /// As [`Self::turn`], but blocks the thread.
    pub(crate) fn blocking_turn(&self, set: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.inner.sets.own(set).map(|own| own.blocking_turn())
    }

    /// Waits asynchronously for a lane for long work; keep it for about a millisecond. Take it
    /// before any turn.
    pub(crate) async fn lane(&self) -> impl Drop + Send + use<> {
        self.inner.sets.lane().await
    }

    /// Whether these can be keys.
    ///
    /// # Errors
    /// If one is empty or too long.
    pub(crate) fn check_keys(keys: &[&[u8]]) -> Result<(), HostError> {
        match keys.iter().find(|key| key.is_empty() || key.len() > Self::MAX_KEY) {
            Some(key) => Err(HostError::KeyLength { given: key.len(), max: Self::MAX_KEY }),
            None => Ok(()),
        }
    }

    /// Removes keys from an own set; appends for each key whether it was held.
    ///
    /// # Errors
    /// If no host has the set, or the catalogue has failed.
    pub fn remove(
        &self,
        set: &str,
        keys: &[&[u8]],
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        Self::check_keys(keys)?;
        let sets = &self.inner.sets;
        let known = sets.find(set)?;
        let change = known.own.as_ref().map(|own| sets.change(own)).transpose()?.flatten();
        let Some(mut change) = change else {
            // Only other hosts have the set; this host holds none of its keys.
            sets.check_open()?;
            answers.extend(keys.iter().map(|_| false));
            return Ok(Ticket::NONE);
        };
        change.remove(keys, &mut |was_held| answers.push(was_held));
        self.inner.wake_if_urgent(&change);
        sets.checked_ticket()
    }

    /// Whether this host holds each key: exact.
    ///
    /// # Errors
    /// If the set's name is invalid.
    pub fn has(&self, set: &str, keys: &[&[u8]], answers: &mut Vec<bool>) -> Result<(), HostError> {
        let part = self.inner.sets.directory_of(set);
        let own = Sets::look_up_in(&part, set)?.and_then(|known| known.held());
        answers.extend(keys.iter().map(|key| own.is_some_and(|own| own.contains(key))));
        Ok(())
    }

    /// Calls `each` for every key, in order, with the names of the hosts that may hold it: this
    /// host first if it does, then the others in the order of their names. From memory; in an
    /// overlay only hosts within range are named. A set that no host is known to have answers like
    /// an empty one ([`Host::knows`] distinguishes the two).
    ///
    /// Here and in [`Host::locate`], [`Host::missing`] and [`Host::fetch`], keys of a set with a
    /// transform are given as the names from which its keys are made.
    ///
    /// # Errors
    /// If the set's name is invalid; in an overlay, if its entries do not distinguish hosts.
    pub fn who(
        &self,
        set: &str,
        keys: &[&[u8]],
        each: &mut dyn FnMut(&[&str]),
    ) -> Result<(), HostError> {
        self.inner.sets.with_keys(set, keys, |keys| self.who_holds(set, keys, each))
    }

    fn who_holds(
        &self,
        set: &str,
        keys: &[&[u8]],
        each: &mut dyn FnMut(&[&str]),
    ) -> Result<(), HostError> {
        let part = self.inner.sets.directory_of(set);
        let Some(known) = Sets::look_up_in(&part, set)? else {
            keys.iter().for_each(|_| each(&[]));
            return Ok(());
        };
        let Some(replicas) = &known.replicas else { return self.who_in_range(known, keys, each) };
        SCRATCH.with_borrow_mut(|Scratch { hashes, found, denied }| {
            hashes.clear();
            hashes.extend(keys.iter().map(|key| self.inner.sets.hasher.hash(key)));
            denied.clear();
            let (mut asked, held) = (keys.iter().zip(&*hashes), known.held());
            replicas.who(hashes, found, |hosts| {
                let Some((key, hash)) = asked.next() else { return };
                let own = held.is_some_and(|own| own.contains(key));
                if hosts.is_empty() && !own {
                    denied.push(*hash);
                }
                let own = own.then(|| self.name().as_str());
                show(own, hosts, each);
            });
            let found = (keys.len() - denied.len()) as u64;
            known.lookups.note(found, denied, || self.inner.now());
        });
        Ok(())
    }

    /// Some keys of an own set: a page of about `count`, and the cursor of the next page.
    /// Start with an empty cursor.
    ///
    /// # Errors
    /// If no host has the set.
    pub fn keys(&self, set: &str, cursor: &[u8], count: usize) -> Result<KeyPage, HostError> {
        let known = self.inner.sets.find(set)?;
        let page = known.held().map(|own| own.page(cursor, count));
        Ok(page.unwrap_or_default())
    }
}

/// Calls `each` with the hosts of one key; a few names need no allocation.
pub(super) fn show(own: Option<&str>, hosts: &[&Name], each: &mut dyn FnMut(&[&str])) {
    let names = own.into_iter().chain(hosts.iter().map(|host| host.as_str()));
    let mut few = [""; 16];
    if hosts.len() < few.len() {
        let count = few.iter_mut().zip(names).map(|(place, name)| *place = name).count();
        each(&few[..count]);
    } else {
        each(&names.collect::<Vec<_>>());
    }
}
