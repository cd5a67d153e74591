//! The sets that exist when a host starts: in its folder, or provided by the embedding program.
//!
//! Their filters are built before the host joins its cluster, so that it can publish its keys from
//! the first moment.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use umbel::catalogue::Catalogue as _;
use umbel::design::ladder::Standing;
use umbel::replica::{Home, Intervals, Name, SetPlan};

use super::Sets;
use super::create::{default_plan, default_terms};
use super::own::Terms;
use crate::catalogue::{
    FolderCatalogue, HostCatalogue, Journal, OwnCatalogue, SetNumber, SetRecord,
};
use crate::counts::Counts;
use crate::error::HostError;
use crate::settings::Settings;

/// A set that exists already, with its filter.
#[derive(Debug)]
pub(crate) struct StoredSet {
    name: Name,
    /// Its number in the folder, if it is stored there.
    number: Option<SetNumber>,
    plan: SetPlan,
    terms: Terms,
    catalogue: HostCatalogue,
    before: Option<Standing>,
    /// `None` in an overlay, which decides on the shape.
    home: Option<Home<HostCatalogue>>,
    lifetimes: Vec<(Box<[u8]>, u64)>,
    counts: Counts,
}

impl StoredSet {
    /// All sets of a folder, and those of the embedding program. Takes a pass over all their keys.
    ///
    /// # Errors
    /// If the folder is damaged, or there is not enough memory.
    pub(crate) fn open_all(
        settings: &Settings,
        journal: Option<&Arc<Journal>>,
        external: Vec<(String, OwnCatalogue)>,
    ) -> Result<Vec<Self>, HostError> {
        let mut sets = Vec::new();
        if let Some(journal) = journal {
            let stored = journal.sets()?;
            journal.prepare_passes(stored.len());
            for (set, record) in stored {
                sets.push(Self::of_record(settings, journal, &set, &record)?);
            }
            journal.check()?;
        }
        for (set, keys) in external {
            let name = Name::new(&set).ok_or(HostError::SetName)?;
            let stored = Self {
                name,
                number: None,
                plan: default_plan(&settings.set),
                terms: default_terms(&settings.set),
                catalogue: HostCatalogue::Own(Arc::new(RwLock::new(keys))),
                before: None,
                home: None,
                lifetimes: Vec::new(),
                counts: Counts::default(),
            };
            sets.push(stored.built(settings)?);
        }
        Ok(sets)
    }

    fn of_record(
        settings: &Settings,
        journal: &Arc<Journal>,
        set: &str,
        record: &SetRecord,
    ) -> Result<Self, HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let damaged = |what: &str| HostError::Catalogue(format!("the {what} of set '{set}'"));
        let plan = SetPlan {
            false_positive: record.false_positive,
            capacity: record.capacity,
            expected_hosts: record.expected_hosts,
            policy: record.policy.parse().map_err(|_| damaged("policy"))?,
            chains: record.chains.map(Into::into),
            ..SetPlan::default()
        };
        let catalogue = FolderCatalogue::open(Arc::clone(journal), record.number);
        journal.check()?;
        let terms = Terms {
            lifetime: record.lifetime_ms.map(Duration::from_millis),
            // Records of older versions have no such field: use the host's settings.
            confirm: match &record.confirm {
                Some(confirm) => confirm.parse().map_err(|_| damaged("confirmation"))?,
                None => settings.set.confirm.clone(),
            },
            filter: record.filter,
        };
        let stored = Self {
            name,
            number: Some(record.number),
            plan,
            terms,
            catalogue: HostCatalogue::Folder(catalogue),
            before: record.standing(),
            home: None,
            lifetimes: journal.lifetimes(record.number),
            counts: journal.counts(record.number),
        };
        stored.built(settings)
    }

    /// Builds the set's filter from its keys.
    fn built(mut self, settings: &Settings) -> Result<Self, HostError> {
        if settings.overlay.is_none() {
            let keys = self.catalogue.len();
            tracing::info!(set = %self.name, keys, "building the filter");
            let (hasher, intervals) = (settings.hasher(), Intervals::default());
            let catalogue = self.catalogue.clone();
            self.home =
                Some(Home::restarted(hasher, self.plan, intervals, catalogue, self.before)?);
        }
        Ok(self)
    }
}

impl Sets {
    /// Registers sets that exist already.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(crate) fn enter_stored(&self, sets: Vec<StoredSet>) -> Result<(), HostError> {
        for set in sets {
            let mut state = self.lock();
            let (now, number) = (self.clock.now(), SetNumber(state.next_number));
            match set.home {
                Some(home) => state.protocol.adopt(now, &set.name, home, set.before),
                None => {
                    let catalogue = set.catalogue.clone();
                    state.protocol.restore(now, &set.name, set.plan, catalogue, set.before)?;
                }
            }
            let number = set.number.unwrap_or(number);
            let own = self.enter(&mut state, &set.name, number, set.terms, set.catalogue);
            drop(state);
            if let Some(mut change) = self.change(&own)? {
                change.restore_lifetimes(set.lifetimes);
                change.restore_counts(set.counts);
            }
        }
        Ok(())
    }
}
