//! How own sets come to be: made, found in the folder, or handed over by the embedder.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use umbel::catalogue::{Catalogue as _, MemoryCatalogue};
use umbel::design::ladder::{RungChoice, Standing};
use umbel::replica::{Name, SetPlan};

use super::own::Terms;
use super::{OwnSet, Sets, State};
use crate::catalogue::{
    FolderCatalogue, HostCatalogue, Journal, OwnCatalogue, SetNumber, SetRecord,
};
use crate::error::HostError;

impl Sets {
    /// An own set, which is made with the host's defaults if it is not there.
    ///
    /// # Errors
    /// If it cannot be made; nothing changes then.
    pub(in crate::host) fn own_or_default(&self, set: &str) -> Result<Arc<OwnSet>, HostError> {
        if let Some(own) = self.own(set) {
            return Ok(own);
        }
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let live = self.live.current();
        let terms = Terms { lifetime: live.set.lifetime, confirm: live.set.confirm.clone() };
        self.own_or_create(&name, self.default_plan(), terms).map(|(own, _)| own)
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

    /// An own set, which is made if it is not there; whether it was made.
    ///
    /// # Errors
    /// If there are too many already, or the plan is out of range; nothing changes then.
    pub(in crate::host) fn own_or_create(
        &self,
        name: &Name,
        plan: SetPlan,
        terms: Terms,
    ) -> Result<(Arc<OwnSet>, bool), HostError> {
        let mut state = self.lock();
        self.check_open()?;
        if let Some(own) = state.own.get(name) {
            return Ok((Arc::clone(own), false));
        }
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
        let own = self.adopt(&mut state, name, number, plan, terms, catalogue, None)?;
        let standing = state.protocol.home(name).and_then(|home| {
            let rung = home.rung();
            rung.map(RungChoice::standing)
        });
        self.write_record(&own, &plan, standing);
        Ok((own, true))
    }

    /// A set whose keys the embedder's own catalogue holds.
    pub(crate) fn open_external(&self, set: &str, keys: OwnCatalogue) -> Result<(), HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let mut state = self.lock();
        let catalogue = HostCatalogue::Own(Arc::new(RwLock::new(keys)));
        let live = self.live.current();
        let terms = Terms { lifetime: live.set.lifetime, confirm: live.set.confirm.clone() };
        let number = SetNumber(state.next_number);
        self.adopt(&mut state, &name, number, self.default_plan(), terms, catalogue, None)?;
        Ok(())
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
        let terms = Terms {
            lifetime: record.lifetime_ms.map(Duration::from_millis),
            // Of a record that is older than this: as the host's settings say.
            confirm: match &record.confirm {
                Some(confirm) => confirm.parse().map_err(|_| damaged("confirmation"))?,
                None => self.live.current().set.confirm.clone(),
            },
        };
        let mut state = self.lock();
        let before = record.standing();
        let own = self.adopt(&mut state, &name, record.number, plan, terms, catalogue, before)?;
        drop(state);
        if let Some(mut change) = self.change(&own)? {
            change.restore_lifetimes(journal.lifetimes(record.number));
        }
        Ok(())
    }

    /// An own set whose keys are in a catalogue that is there already.
    #[expect(clippy::too_many_arguments, reason = "each is another fact of a set")]
    fn adopt(
        &self,
        state: &mut State,
        name: &Name,
        number: SetNumber,
        plan: SetPlan,
        terms: Terms,
        catalogue: HostCatalogue,
        before: Option<Standing>,
    ) -> Result<Arc<OwnSet>, HostError> {
        state.protocol.restore(self.clock.now(), name, plan, catalogue.clone(), before)?;
        state.next_number = state.next_number.max(number.0 + 1);
        let local = state.protocol.mesh().and_then(|engine| engine.local_set(name)).cloned();
        let own = Arc::new(OwnSet::new(name.clone(), number, catalogue, local, terms));
        state.own.insert(name.clone(), Arc::clone(&own));
        self.refresh_directory(state);
        Ok(own)
    }
}
