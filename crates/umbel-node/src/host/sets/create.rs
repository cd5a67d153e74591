//! How own sets come to be: made, found in the folder, or handed over by the embedder.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use umbel::catalogue::{Catalogue as _, MemoryCatalogue};
use umbel::design::ladder::{RungChoice, Standing};
use umbel::replica::{Name, SetPlan};

use super::{OwnSet, Sets, State};
use crate::catalogue::{
    FolderCatalogue, HostCatalogue, Journal, OwnCatalogue, SetNumber, SetRecord,
};
use crate::confirm::Confirm;
use crate::error::HostError;
use crate::lifetimes::Lifetimes;

impl Sets {
    /// Makes an own set with the host's defaults.
    pub(in crate::host) fn create_default(
        &self,
        state: &mut State,
        set: &str,
    ) -> Result<Name, HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let live = self.live.current();
        self.create(state, &name, self.default_plan(), live.set.lifetime, &live.set.confirm)?;
        Ok(name)
    }

    /// What a set is planned for unless told otherwise.
    pub(in crate::host) fn default_plan(&self) -> SetPlan {
        let set = &self.live.current().set;
        SetPlan {
            false_positive: set.false_positive.get(),
            capacity: set.capacity,
            expected_hosts: set.expected_hosts,
            policy: set.policy,
            ..SetPlan::default()
        }
    }

    /// Makes an own set.
    ///
    /// # Errors
    /// If there are too many already, or the plan is out of range; nothing changes then.
    pub(in crate::host) fn create(
        &self,
        state: &mut State,
        name: &Name,
        plan: SetPlan,
        lifetime: Option<Duration>,
        confirm: &Confirm,
    ) -> Result<(), HostError> {
        let most = self.live.current().limits.sets;
        if state.own.len() >= most {
            return Err(HostError::TooManySets(most));
        }
        let number = SetNumber(state.next_number);
        let catalogue = match &self.journal {
            Some(journal) => {
                HostCatalogue::Folder(FolderCatalogue::empty(Arc::clone(journal), number))
            }
            None => {
                let keys = MemoryCatalogue::with_seed(self.seed);
                HostCatalogue::Memory(Arc::new(RwLock::new(keys)))
            }
        };
        self.adopt(state, name, plan, lifetime, catalogue, None)?;
        if let Some(own) = state.own.get_mut(name).filter(|own| own.confirm != *confirm) {
            own.confirm.clone_from(confirm);
            self.refresh_directory(state);
        }
        self.record(state, name);
        Ok(())
    }

    /// A set whose keys the embedder's own catalogue holds.
    pub(crate) fn open_external(&self, set: &str, keys: OwnCatalogue) -> Result<(), HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let mut state = self.lock();
        let catalogue = HostCatalogue::Own(Arc::new(RwLock::new(keys)));
        let (plan, lifetime) = (self.default_plan(), self.live.current().set.lifetime);
        self.adopt(&mut state, &name, plan, lifetime, catalogue, None)
    }

    /// The sets that the folder holds, with the keys in them.
    pub(crate) fn open_stored(&self) -> Result<(), HostError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        for (set, record) in journal.sets()? {
            self.open_record(journal, &set, &record)?;
        }
        journal.check()
    }

    fn open_record(
        &self,
        journal: &Arc<Journal>,
        set: &str,
        record: &SetRecord,
    ) -> Result<(), HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let damaged = |what: &str| HostError::Catalogue(format!("the {what} of set '{set}'"));
        let policy = record.policy.parse().map_err(|_| damaged("policy"))?;
        let plan = SetPlan {
            false_positive: record.false_positive,
            capacity: record.capacity,
            expected_hosts: record.expected_hosts,
            policy,
            ..SetPlan::default()
        };
        let catalogue = FolderCatalogue::open(Arc::clone(journal), record.number);
        journal.check()?;
        let catalogue = HostCatalogue::Folder(catalogue);
        tracing::info!(set, keys = catalogue.len(), "building the filter");
        let mut state = self.lock();
        let lifetime = record.lifetime_ms.map(Duration::from_millis);
        self.adopt(&mut state, &name, plan, lifetime, catalogue, record.standing())?;
        if let Some(own) = state.own.get_mut(&name) {
            own.number = record.number;
            // Of a record that is older than this: as the host's settings say.
            if let Some(confirm) = &record.confirm {
                own.confirm = confirm.parse().map_err(|_| damaged("confirmation"))?;
            }
            for (key, at) in journal.lifetimes(record.number) {
                own.lifetimes.set(&key, Some(at));
            }
        }
        state.next_number = state.next_number.max(record.number.0 + 1);
        self.refresh_directory(&state);
        Ok(())
    }

    /// An own set whose keys are in a catalogue that is there already.
    fn adopt(
        &self,
        state: &mut State,
        name: &Name,
        plan: SetPlan,
        lifetime: Option<Duration>,
        catalogue: HostCatalogue,
        before: Option<Standing>,
    ) -> Result<(), HostError> {
        state.protocol.restore(self.clock.now(), name, plan, catalogue, before)?;
        let number = SetNumber(state.next_number);
        state.next_number += 1;
        let confirm = self.live.current().set.confirm.clone();
        let own = OwnSet { number, lifetime, confirm, lifetimes: Lifetimes::default() };
        state.own.insert(name.clone(), own);
        self.refresh_directory(state);
        Ok(())
    }

    /// Writes down what a set is planned for, and where it stands.
    pub(crate) fn record(&self, state: &State, name: &Name) {
        let (Some(journal), Some(own), Some(plan)) =
            (&self.journal, state.own.get(name), state.protocol.plan(name))
        else {
            return;
        };
        let standing = state.protocol.home(name).and_then(|home| home.rung());
        let standing = standing.map(RungChoice::standing);
        let record = SetRecord {
            number: own.number,
            false_positive: plan.false_positive,
            capacity: plan.capacity,
            expected_hosts: plan.expected_hosts,
            rung: standing.map(|standing| standing.rung.exponent()),
            planned_hosts: standing.map(|standing| standing.hosts),
            policy: plan.policy.to_string(),
            lifetime_ms: own.lifetime.map(|time| time.as_millis() as u64),
            confirm: Some(own.confirm.to_string()),
        };
        journal.put_set(name.as_str(), &record);
    }
}
