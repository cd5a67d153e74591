//! How own sets are created while a host runs.

use std::sync::Arc;

use parking_lot::RwLock;
use umbel::catalogue::MemoryCatalogue;
use umbel::design::ladder::RungChoice;
use umbel::replica::{Name, SetPlan};

use super::own::Terms;
use super::{OwnSet, Sets, State};
use crate::catalogue::{FolderCatalogue, HostCatalogue, SetNumber};
use crate::error::HostError;
use crate::settings;

impl Sets {
    /// An own set, created with the host's defaults if it does not exist.
    ///
    /// # Errors
    /// If it cannot be made; nothing changes then.
    pub(in crate::host) fn own_or_default(&self, set: &str) -> Result<Arc<OwnSet>, HostError> {
        if let Some(own) = self.own(set) {
            return Ok(own);
        }
        let name = Name::new(set).ok_or(HostError::SetName)?;
        self.own_or_create(&name, self.default_plan(), self.default_terms()).map(|(own, _)| own)
    }

    /// The default terms of a set.
    pub(in crate::host) fn default_terms(&self) -> Terms {
        default_terms(&self.live.current().set)
    }

    /// The default plan of a set.
    pub(in crate::host) fn default_plan(&self) -> SetPlan {
        default_plan(&self.live.current().set)
    }

    /// An own set, created if it does not exist; and whether it was created.
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
        let max = self.live.current().limits.sets;
        if state.own.len() >= max {
            return Err(HostError::TooManySets(max));
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
        state.protocol.create(self.clock.now(), name, plan, catalogue.clone())?;
        let own = self.enter(&mut state, name, number, terms, catalogue);
        let standing = state.protocol.home(name).and_then(|home| {
            let rung = home.rung();
            rung.map(RungChoice::standing)
        });
        self.write_record(&own, &plan, standing);
        Ok((own, true))
    }

    /// Registers an own set that the protocol knows already.
    pub(super) fn enter(
        &self,
        state: &mut State,
        name: &Name,
        number: SetNumber,
        terms: Terms,
        catalogue: HostCatalogue,
    ) -> Arc<OwnSet> {
        state.next_number = state.next_number.max(number.0 + 1);
        let local = state.protocol.mesh().and_then(|engine| engine.local_set(name)).cloned();
        let own = Arc::new(OwnSet::new(name.clone(), number, catalogue, local, terms));
        state.own.insert(name.clone(), Arc::clone(&own));
        if let Some(overlay) = state.protocol.overlay_mut() {
            let own = Arc::downgrade(&own);
            overlay.hide(name, move |key| own.upgrade().is_some_and(|own| own.has_expired(key)));
        }
        self.refresh_sets(state, [name]);
        own
    }
}

/// The default plan of a set.
pub(super) fn default_plan(set: &settings::SetPlan) -> SetPlan {
    SetPlan {
        false_positive: set.false_positive.get(),
        capacity: set.capacity,
        expected_hosts: set.expected_hosts,
        policy: set.policy,
        ..SetPlan::default()
    }
}

/// The default terms of a set: lifetime and confirmation.
pub(super) fn default_terms(set: &settings::SetPlan) -> Terms {
    Terms { lifetime: set.lifetime, confirm: set.confirm.clone(), filter: None }
}
