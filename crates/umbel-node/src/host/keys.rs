//! Own keys, exact; and who else may hold one, from memory.

use std::cell::RefCell;

use umbel::KeyHash;
use umbel::bank::BatchCandidates;
use umbel::replica::Name;

use super::{Host, Lifetime, Sets};
use crate::catalogue::{KeyPage, Ticket};
use crate::error::HostError;

/// Buffers that questions of one thread use again and again.
#[derive(Debug, Default)]
struct Scratch {
    hashes: Vec<KeyHash>,
    found: BatchCandidates,
    /// Keys of which nobody was named.
    denied: Vec<KeyHash>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Host {
    /// Adds keys to an own set, which is made if it is not there. For each key, whether it is
    /// new is appended to `answers`; a key that was held already gets its lifetime anew. The
    /// keys may be called safe once [`Host::settled`] has returned for the ticket.
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
            // Deleted a moment ago: it is made anew.
            let Some(mut change) = sets.change(&own)? else { continue };
            change.add(keys, lifetime, &mut |is_new| answers.push(is_new));
            self.inner.wake_if_urgent(&change);
            return sets.checked_ticket();
        }
    }

    /// Waits, as a task, until it is the caller's turn to change an own set; to be kept until that
    /// is done. A set that is not there needs no turn.
    #[cfg(any(feature = "resp", feature = "http"))]
    pub(crate) async fn turn(&self, set: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        match self.inner.sets.own(set) {
            Some(own) => Some(own.turn().await),
            None => None,
        }
    }

    /// As [`Self::turn`], for a thread.
    #[cfg(feature = "http")]
    pub(crate) fn blocking_turn(&self, set: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.inner.sets.own(set).map(|own| own.blocking_turn())
    }

    /// Takes a lane for long work, as a task; to be kept for about a millisecond. Before any turn.
    #[cfg(feature = "http")]
    pub(crate) async fn lane(&self) -> impl Drop + Send + use<> {
        self.inner.sets.lane().await
    }

    /// Whether keys may be keys at all.
    ///
    /// # Errors
    /// If one is empty or too long.
    pub(crate) fn check_keys(keys: &[&[u8]]) -> Result<(), HostError> {
        match keys.iter().find(|key| key.is_empty() || key.len() > Self::MAX_KEY) {
            Some(key) => Err(HostError::KeyLength { given: key.len(), most: Self::MAX_KEY }),
            None => Ok(()),
        }
    }

    /// Removes keys from an own set; for each key, whether it was held is appended.
    ///
    /// # Errors
    /// If nobody has the set, or the catalogue has failed.
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
            // Others have the set; of this host's keys there are none.
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
    /// If no set can have that name.
    pub fn has(&self, set: &str, keys: &[&[u8]], answers: &mut Vec<bool>) -> Result<(), HostError> {
        let part = self.inner.sets.directory_of(set);
        let own = Sets::look_up_in(&part, set)?.and_then(|known| known.held());
        answers.extend(keys.iter().map(|key| own.is_some_and(|own| own.contains(key))));
        Ok(())
    }

    /// Shows, for each key in turn, the names of the hosts that may hold it: this host first
    /// if it does, then the others in the order of their names. From memory; in an overlay
    /// others within range only. A set that nobody is known to have answers as an empty one
    /// ([`Host::knows`] tells which it is).
    ///
    /// # Errors
    /// If no set can have that name; in an overlay whose entries do not keep hosts apart.
    pub fn who(
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
    /// If nobody has the set.
    pub fn keys(&self, set: &str, cursor: &[u8], count: usize) -> Result<KeyPage, HostError> {
        let known = self.inner.sets.find(set)?;
        let page = known.held().map(|own| own.page(cursor, count));
        Ok(page.unwrap_or_default())
    }
}

/// Shows the names of one key's hosts; few names need no memory of their own.
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
