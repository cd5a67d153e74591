//! A sink in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use umbel_kv::{BlockKey, Changes, Sink, SinkError};

/// Keys by tier; shared, so that a test sees what a sidecar does.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemorySink(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    tiers: BTreeMap<String, BTreeSet<BlockKey>>,
    fails: bool,
}

impl MemorySink {
    pub(crate) fn keys(&self, tier: &str) -> BTreeSet<BlockKey> {
        self.0.lock().expect("no panic").tiers.get(tier).cloned().unwrap_or_default()
    }

    /// Loses everything, and fails from now on or no longer.
    pub(crate) fn fail(&self, fails: bool) {
        let mut state = self.0.lock().expect("no panic");
        *state = State { fails, ..State::default() };
    }

    fn check(&self) -> Result<std::sync::MutexGuard<'_, State>, SinkError> {
        let state = self.0.lock().expect("no panic");
        if state.fails { Err(SinkError("it is gone".into())) } else { Ok(state) }
    }
}

impl Sink for MemorySink {
    fn begin(&mut self) -> Result<(), SinkError> {
        self.check()?.tiers.clear();
        Ok(())
    }

    fn apply(&mut self, changes: &Changes) -> Result<(), SinkError> {
        let mut state = self.check()?;
        let tier = state.tiers.entry(changes.tier.clone()).or_default();
        if changes.is_cleared {
            tier.clear();
        }
        changes.removed.iter().for_each(|key| assert!(tier.remove(key), "it was there"));
        changes.added.iter().for_each(|key| assert!(tier.insert(key.clone()), "it is new"));
        Ok(())
    }
}
