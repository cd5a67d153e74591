//! Ctrl-C, SIGTERM and SIGHUP as a flag that everybody looks at.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// Set once, by a signal or by whoever ends the work.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Set when the process is asked to end. The signals no longer end it on their own: what
    /// must be cleaned up is cleaned up.
    pub(super) fn on_signals() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot wait for signals")?;
        let stop = Self::default();
        let listening = {
            // Signals are caught from here on, not from when the thread runs.
            let _inside = runtime.enter();
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()
        };
        let mut listening = listening.context("cannot wait for signals")?;
        let told = stop.clone();
        std::thread::spawn(move || {
            runtime.block_on(std::future::poll_fn(|context| {
                let came = listening.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
                if came { Poll::Ready(()) } else { Poll::Pending }
            }));
            told.set();
        });
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
