//! A stop flag that is set by Ctrl-C, SIGTERM and SIGHUP.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::SignalKind;

use crate::signals::on_first;

/// A flag that is set once, by a signal or by the thread that ends the work.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// A flag that is set when a signal asks the process to end. The signals no longer end it by
    /// themselves, so that it can clean up.
    pub(super) fn on_signals() -> anyhow::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let stop = Self::default();
        let stopped = stop.clone();
        on_first(kinds, move |_| stopped.set()).context("cannot wait for signals")?;
        Ok(stop)
    }

    pub(super) fn set(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps, but returns at once when the flag is set.
    pub(super) fn wait(&self, time: Duration) {
        let (flag, changed) = &*self.0;
        let flag = flag.lock().unwrap_or_else(PoisonError::into_inner);
        _ = changed.wait_timeout_while(flag, time, |set| !*set);
    }

    /// A guard that sets the flag when dropped, also by a panic.
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
