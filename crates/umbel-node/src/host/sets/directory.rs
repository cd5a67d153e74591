//! The directory of known sets, for queries that must not wait for the state's lock.
//!
//! The directory is divided into parts, each of which is replaced as a whole: readers take no lock,
//! and adding a set copies only the entries of its part.
//!
//! Always true: a part is changed only by the holder of the state's lock.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use umbel::KeyHash;
use umbel::protocol::Event;
use umbel::replica::{Name, Replicas};

use super::own::HeldKeys;
use super::{OwnSet, Sets, State};
use crate::confirm::Confirm;
use crate::error::HostError;
use crate::host::chain_counts::ChainCounts;
use crate::host::lookups::Lookups;
use crate::huge_rows::HugeRows;

/// Sets by name.
#[derive(Debug)]
pub(in crate::host) struct Directory {
    parts: Box<[ArcSwap<Part>]>,
    /// Chooses the part of a set. Has a random seed, so that nobody can choose names that all fall
    /// into one part.
    hasher: RandomState,
}

/// The sets of a part.
pub(in crate::host) type Part = HashMap<Arc<str>, Arc<Known>>;

/// With ten thousand sets at each of three hosts a part has about a hundred entries.
const PARTS: usize = 256;

impl Directory {
    pub(super) fn new() -> Self {
        let parts = (0..PARTS).map(|_| ArcSwap::default()).collect();
        Self { parts, hasher: RandomState::new() }
    }

    fn number_of(&self, set: &str) -> usize {
        self.hasher.hash_one(set) as usize % PARTS
    }

    /// The part that contains a set, if the set is known.
    fn part_of(&self, set: &str) -> &ArcSwap<Part> {
        &self.parts[self.number_of(set)]
    }
}

/// A set that any host has.
#[derive(Debug)]
pub(in crate::host) struct Known {
    pub(in crate::host) name: Name,
    /// What other hosts published; `None` in an overlay, where routers store it.
    pub(in crate::host) replicas: Option<Arc<Replicas<HugeRows>>>,
    /// The own set, if this host has it too.
    pub(in crate::host) own: Option<Arc<OwnSet>>,
    pub(in crate::host) confirmed: Arc<Confirmed>,
    /// Lookups that were answered from memory.
    pub(in crate::host) lookups: Arc<Lookups>,
    /// Chain queries.
    pub(in crate::host) chains: Arc<ChainCounts>,
    /// Who confirms one of this host's keys: the catalogue or the cache.
    pub(in crate::host) confirm: Confirm,
}

impl Known {
    /// The own keys that are held now, if this host has the set too.
    pub(in crate::host) fn held(&self) -> Option<HeldKeys<'_>> {
        self.own.as_ref().map(|own| own.held())
    }
}

/// Lookups that were confirmed by asking the candidates.
#[derive(Debug, Default)]
pub(in crate::host) struct Confirmed {
    lookups: AtomicU64,
    wrong: AtomicU64,
    /// Own claims: the cache was asked; it did not hold the object; it did not answer.
    asked: AtomicU64,
    disagreed: AtomicU64,
    silent: AtomicU64,
}

impl Confirmed {
    /// Counts one lookup, and whether any of its candidates did not hold the key.
    pub(in crate::host) fn count(&self, named_wrong_host: bool) {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.wrong.fetch_add(named_wrong_host.into(), Ordering::Relaxed);
    }

    /// Counts one own claim about which the cache was asked.
    #[cfg(feature = "http")]
    pub(in crate::host) fn count_cache(&self, answer: u8) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.disagreed.fetch_add((answer == crate::host::ABSENT).into(), Ordering::Relaxed);
        self.silent.fetch_add((answer == crate::host::UNKNOWN).into(), Ordering::Relaxed);
    }

    /// Own claims about which the cache was asked, that it denied, and that it did not answer.
    pub(in crate::host) fn cache(&self) -> [u64; 3] {
        [&self.asked, &self.disagreed, &self.silent].map(|count| count.load(Ordering::Relaxed))
    }

    /// Lookups, and the share of them that named a wrong host.
    pub(in crate::host) fn rate(&self) -> (u64, Option<f64>) {
        let lookups = self.lookups.load(Ordering::Relaxed);
        let wrong = self.wrong.load(Ordering::Relaxed);
        (lookups, (lookups > 0).then(|| wrong as f64 / lookups as f64))
    }
}

impl Sets {
    /// Whether an event makes the directory differ from the protocol's sets. Updates are frequent,
    /// and most belong to sets that are listed already.
    pub(crate) fn is_outdated_by(&self, state: &State, event: &Event) -> bool {
        let Some(engine) = state.protocol.mesh() else { return event.changes_sets() };
        let Event::Updated { set, .. } = event else {
            // Sets appear with an update; all sets of a host disappear with it.
            return matches!(event, Event::Down(_));
        };
        let part = self.directory_of(set.as_str());
        let listed = part.get(set.as_str()).map(|known| known.replicas.as_ref());
        match (listed, engine.shared_replicas(set)) {
            (None, None) => false,
            (Some(Some(listed)), Some(there)) => !Arc::ptr_eq(listed, there),
            _ => true,
        }
    }

    /// The part of the directory that contains a set, if the set is known. Reading it writes to no
    /// memory that other readers use.
    pub(in crate::host) fn directory_of(&self, set: &str) -> impl Deref<Target = Arc<Part>> {
        self.directory.part_of(set).load()
    }

    /// Updates the directory from the protocol, for all sets. The caller holds the state's lock.
    pub(crate) fn refresh_directory(&self, state: &State) {
        let mut names: HashSet<&Name> = state.protocol.sets().into_iter().collect();
        let parts: Vec<Arc<Part>> = self.directory.parts.iter().map(ArcSwap::load_full).collect();
        names.extend(parts.iter().flat_map(|part| part.values()).map(|known| &known.name));
        self.refresh_sets(state, names);
    }

    /// As [`Self::refresh_directory`], for some sets.
    pub(crate) fn refresh_sets<'a>(
        &self,
        state: &State,
        names: impl IntoIterator<Item = &'a Name>,
    ) {
        let numbered = |name: &'a Name| (self.directory.number_of(name.as_str()), name);
        let mut names: Vec<(usize, &Name)> = names.into_iter().map(numbered).collect();
        names.sort_unstable();
        for names in names.chunk_by(|one, other| one.0 == other.0) {
            let part = &self.directory.parts[names[0].0];
            let mut new = Part::clone(&part.load());
            for (_, name) in names {
                match self.known_now(state, name, new.get(name.as_str())) {
                    None => drop(new.remove(name.as_str())),
                    Some(known) => drop(new.insert(Arc::from(name.as_str()), Arc::new(known))),
                }
            }
            part.store(Arc::new(new));
        }
    }

    /// The new entry of a set, if any host has it; counters are kept.
    fn known_now(&self, state: &State, name: &Name, before: Option<&Arc<Known>>) -> Option<Known> {
        if !state.protocol.has_set(name) {
            return None;
        }
        let replicas = state.protocol.mesh().and_then(|engine| engine.shared_replicas(name));
        let own = state.own.get(name).cloned();
        let confirmed = before.map(|known| Arc::clone(&known.confirmed)).unwrap_or_default();
        let lookups = before.map(|known| Arc::clone(&known.lookups)).unwrap_or_default();
        let chains = before.map(|known| Arc::clone(&known.chains)).unwrap_or_default();
        let confirm = match &own {
            Some(own) => own.terms().confirm,
            None => self.live.current().set.confirm.clone(),
        };
        let name = name.clone();
        let replicas = replicas.cloned();
        Some(Known { name, replicas, own, confirmed, lookups, chains, confirm })
    }

    /// Called when a home's replica has changed: repeats the lookups since `since` that named no
    /// host. Returns how many of them came too early.
    pub(crate) fn recheck_lookups(&self, set: &Name, home: &Name, since: Duration) -> u64 {
        let Some(known) = self.known(set.as_str()) else { return 0 };
        let Some(replicas) = &known.replicas else { return 0 };
        let claims = |hashes: &[KeyHash]| replicas.claims(home, hashes).unwrap_or_default();
        let late = known.lookups.recheck(since, claims);
        self.late_lookups.fetch_add(late, Ordering::Relaxed);
        late
    }

    /// Lookups of a set that came too early, as a share of these and of lookups that named a host.
    pub(crate) fn late_share(&self, set: &str) -> Option<f64> {
        self.known(set)?.lookups.late().share
    }

    /// A set that any host is known to have. Waits for no change of any set.
    pub(in crate::host) fn known(&self, set: &str) -> Option<Arc<Known>> {
        self.directory_of(set).get(set).cloned()
    }

    /// An own set of this host. Waits for no change of any set.
    pub(in crate::host) fn own(&self, set: &str) -> Option<Arc<OwnSet>> {
        self.directory_of(set).get(set)?.own.clone()
    }

    /// As [`Self::known`].
    ///
    /// # Errors
    /// If no host has it.
    pub(in crate::host) fn find(&self, set: &str) -> Result<Arc<Known>, HostError> {
        self.known(set).ok_or_else(|| HostError::NoSuchSet(set.to_owned()))
    }

    /// Finds a set for a lookup. `None` if no host is known to have it: callers then answer as for
    /// an empty set, because the update with its first key may still be on its way.
    ///
    /// # Errors
    /// If the set's name is invalid.
    pub(in crate::host) fn look_up(&self, set: &str) -> Result<Option<Arc<Known>>, HostError> {
        Ok(Self::look_up_in(&self.directory_of(set), set)?.cloned())
    }

    /// As [`Self::look_up`], for callers that have loaded the set's part already.
    pub(in crate::host) fn look_up_in<'a>(
        part: &'a Part,
        set: &str,
    ) -> Result<Option<&'a Arc<Known>>, HostError> {
        match part.get(set) {
            None if Name::new(set).is_none() => Err(HostError::SetName),
            known => Ok(known),
        }
    }

    /// The names of the sets that any host is known to have, in order.
    pub(in crate::host) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for part in &self.directory.parts {
            names.extend(part.load().keys().map(ToString::to_string));
        }
        names.sort_unstable();
        names
    }

    /// The number of sets that any host is known to have.
    pub(in crate::host) fn count(&self) -> usize {
        self.directory.parts.iter().map(|part| part.load().len()).sum()
    }

    /// Whether the cache is asked before a key of this set is confirmed.
    pub(crate) fn asks_its_cache(&self, set: &str) -> bool {
        self.known(set)
            .is_some_and(|known| known.own.is_some() && matches!(known.confirm, Confirm::Cache(_)))
    }

    /// Which of the keys of these names this host holds, according to its catalogue.
    pub(crate) fn holds(&self, set: &str, names: &[&[u8]]) -> Vec<u8> {
        let known = self.known(set);
        let own = known.as_ref().and_then(|known| known.held());
        let holds = |key: &&[u8]| own.is_some_and(|own| own.contains(key)).into();
        self.with_keys(set, names, |keys| keys.iter().map(holds).collect())
    }
}
