//! Ctrl-C, SIGTERM and SIGHUP as a flag that everybody looks at.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::SignalKind;

use crate::signals::on_first;

/// Set once, by a signal or by whoever ends the work.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Set when the process is asked to end. The signals no longer end it on their own: what
    /// must be cleaned up is cleaned up.
    pub(super) fn on_signals() -> anyhow::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let stop = Self::default();
        let told = stop.clone();
        on_first(kinds, move |_| told.set()).context("cannot wait for signals")?;
        Ok(stop)
    }

    pub(super) fn set(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, but not once it is set.
    pub(super) fn wait(&self, time: Duration) {
        let (flag, changed) = &*self.0;
        let flag = flag.lock().unwrap_or_else(PoisonError::into_inner);
        _ = changed.wait_timeout_while(flag, time, |set| !*set);
    }

    /// Sets it when dropped, by a panic too.
    pub(super) fn guard(&self) -> impl Drop + use<> {
        struct Guard(Stop);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        Guard(self.clone())
    }
}
