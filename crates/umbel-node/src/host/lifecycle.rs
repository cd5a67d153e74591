//! Whether a host runs, is ready or stops, and what has to end with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The stages of a host's life, its threads and its runtime.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    /// Where the host's tasks run.
    pub(crate) runtime: Handle,
    ready: AtomicBool,
    stopping: AtomicBool,
    /// For how long others are asked to go on naming the host when it stops, if somebody said so.
    absence: Mutex<Option<Duration>>,
    /// Why the host cannot go on.
    failed: watch::Sender<Option<Arc<str>>>,
    /// Set when the host stops, so that its ports close.
    stopped: watch::Sender<bool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Lifecycle {
    /// A host that runs and is not ready yet.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            ready: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            absence: Mutex::default(),
            failed: watch::channel(None).0,
            stopped: watch::channel(false).0,
            threads: Mutex::default(),
        }
    }

    /// Whether answers are complete, or the deadline for that has passed.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// The host cannot go on.
    pub(crate) fn fail(&self, reason: &str) {
        self.failed.send_replace(Some(reason.into()));
    }

    /// Waits until the host cannot go on: why.
    pub(super) async fn failed(&self) -> Arc<str> {
        let mut failed = self.failed.subscribe();
        let reason = failed.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// For how long others are asked to go on naming the host when it stops, if somebody said so.
    pub(super) fn absence(&self) -> Option<Duration> {
        *self.absence.lock()
    }

    pub(super) fn set_absence(&self, absence: Duration) {
        *self.absence.lock() = Some(absence);
    }

    /// The host stops from now on; returns whether it did not before.
    pub(super) fn begin_stop(&self) -> bool {
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Tells everybody who waits in [`Self::stopped`].
    pub(super) fn notify_stopped(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until the host stops.
    pub(super) async fn stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// A thread that ends when the host stops.
    pub(crate) fn add_thread(&self, thread: JoinHandle<()>) {
        self.threads.lock().push(thread);
    }

    /// Waits until all threads have ended.
    pub(super) async fn join_threads(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        let joined = tokio::task::spawn_blocking(move || {
            threads.into_iter().for_each(|thread| drop(thread.join()));
        });
        let _ = joined.await;
    }
}
