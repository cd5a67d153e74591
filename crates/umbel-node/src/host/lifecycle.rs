//! The lifecycle of a host: ready, failed, stopping; and the threads that end with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The state of a host's lifecycle, its threads and its runtime.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    /// Where the host's tasks run.
    pub(crate) runtime: Handle,
    ready: AtomicBool,
    /// Set with `ready`, for those who wait for it.
    became_ready: watch::Sender<bool>,
    stopping: AtomicBool,
    /// For how long others are asked to keep naming the host after it stops, if that was set.
    absence: Mutex<Option<Duration>>,
    /// Why the host cannot continue.
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
            became_ready: watch::channel(false).0,
            stopping: AtomicBool::new(false),
            absence: Mutex::default(),
            failed: watch::channel(None).0,
            stopped: watch::channel(false).0,
            threads: Mutex::default(),
        }
    }

    /// Whether answers have been complete once, or the deadline for that has passed.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
        self.became_ready.send_replace(true);
    }

    /// Waits until the host is ready or stops; returns whether it is ready.
    pub(super) async fn ready(&self) -> bool {
        let mut ready = self.became_ready.subscribe();
        tokio::select! {
            _ = ready.wait_for(|ready| *ready) => true,
            () = self.stopped() => self.is_ready(),
        }
    }

    /// Reports that the host cannot continue.
    pub(crate) fn fail(&self, reason: &str) {
        self.failed.send_replace(Some(reason.into()));
    }

    /// Waits until the host cannot continue; returns the reason.
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

    /// For how long others are asked to keep naming the host after it stops, if that was set.
    pub(super) fn absence(&self) -> Option<Duration> {
        *self.absence.lock()
    }

    pub(super) fn set_absence(&self, absence: Duration) {
        *self.absence.lock() = Some(absence);
    }

    /// Marks the host as stopping; returns false if it was stopping already.
    pub(super) fn begin_stop(&self) -> bool {
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Wakes all who wait in [`Self::stopped`].
    pub(super) fn notify_stopped(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until the host stops.
    pub(super) async fn stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Registers a thread that ends when the host stops.
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
