//! The current settings: some of them can change while a host runs.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::settings::Settings;

/// The current settings.
#[derive(Debug)]
pub(crate) struct LiveSettings {
    current: RwLock<Arc<Settings>>,
}

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { current: RwLock::new(Arc::new(settings)) }
    }

    pub(crate) fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.current.read())
    }

    pub(super) fn replace(&self, settings: Settings) {
        *self.current.write() = Arc::new(settings);
    }
}
