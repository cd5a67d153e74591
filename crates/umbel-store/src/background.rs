//! The store's background thread, and back pressure on writers that are faster than it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::options::Durability;
use crate::shared::Shared;
use crate::view::Layer;

/// Starts the thread that sorts, integrates and syncs in the background.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("umbel-store".into())
        .spawn(move || run(&shared))
        .map_err(Error::io("start a thread for", "the store"))
}

fn run(shared: &Shared) {
    let mut oldest: Option<Instant> = None;
    loop {
        let (room, integrate) = {
            let mut signals = shared.lock_signals();
            if !signals.quit && !signals.room && !signals.integrate {
                let wait = shared.signalled.wait_timeout(signals, pause(shared));
                signals = wait.unwrap_or_else(PoisonError::into_inner).0;
            }
            if signals.quit {
                return;
            }
            (signals.room, signals.integrate)
        };
        sync(shared);
        let changed =
            shared.view.load().layers.len() > 1 || shared.view.load().active.updates() > 0;
        oldest = if changed { oldest.or_else(|| Some(Instant::now())) } else { None };
        let age = shared.options.integrate_age;
        let is_old = age.zip(oldest).is_some_and(|(age, since)| since.elapsed() >= age);
        let held = shared.progress.held.load(Ordering::Relaxed);
        let due = changed && !held && (is_old || shared.wants_integrating());
        let result = match (integrate || due, room) {
            (true, _) => shared.integrate(),
            (false, true) => shared.relieve(),
            (false, false) => continue,
        };
        if result.is_ok() {
            oldest = None;
        }
        report(shared, result);
    }
}

/// How long to sleep if no request arrives.
fn pause(shared: &Shared) -> Duration {
    let longest = match shared.options.durability {
        Durability::Interval(interval) => interval.clamp(Duration::from_millis(1), PAUSE),
        _ => PAUSE,
    };
    shared
        .options
        .integrate_age
        .map_or(longest, |age| (age / 4).clamp(Duration::from_millis(1), longest))
}

fn sync(shared: &Shared) {
    let mut log = shared.lock_log();
    if shared.poisoned.get().is_none()
        && let Err(error) = shared.sync_if_due(&mut log)
    {
        shared.poison(&error);
    }
}

fn report(shared: &Shared, result: Result<()>) {
    let mut signals = shared.lock_signals();
    signals.room = false;
    signals.integrate = false;
    signals.rounds += 1;
    signals.trouble = match result {
        Ok(()) | Err(Error::Stopped) => None,
        Err(error) => Some(error.to_string().into()),
    };
    let failed = signals.trouble.is_some();
    drop(signals);
    shared.signalled.notify_all();
    if failed {
        // Pause before the next attempt: an immediate retry would likely fail too, for example
        // because the disk is full.
        let signals = shared.lock_signals();
        let waited = shared.signalled.wait_timeout_while(signals, PAUSE, |signals| !signals.quit);
        drop(waited);
    }
}

impl Shared {
    /// Called before a write: if the changes exceed the memory budget, has them sorted to disk.
    /// Waits only if they already take twice the budget.
    pub(crate) fn make_room(&self) -> Result<()> {
        if self.view.load().active.memory() < self.options.memory_budget {
            return Ok(());
        }
        if !self.options.background {
            return match self.relieve() {
                Err(error) if self.memory() >= 2 * self.options.memory_budget => {
                    Err(Error::Behind(error.to_string().into()))
                }
                _ => Ok(()),
            };
        }
        self.ask_for_room();
        while self.memory() >= 2 * self.options.memory_budget {
            self.refuse_if_poisoned()?;
            self.wait_for_room()?;
        }
        Ok(())
    }

    fn ask_for_room(&self) {
        let mut signals = self.lock_signals();
        if !std::mem::replace(&mut signals.room, true) {
            self.signalled.notify_all();
        }
    }

    fn wait_for_room(&self) -> Result<()> {
        self.ask_for_room();
        let signals = self.lock_signals();
        let round = signals.rounds;
        let wait = self
            .signalled
            .wait_timeout_while(signals, PAUSE, |signals| signals.rounds == round && !signals.quit);
        let signals = wait.unwrap_or_else(PoisonError::into_inner).0;
        match &signals.trouble {
            Some(reason) if signals.rounds > round => Err(Error::Behind(Arc::clone(reason))),
            _ => Ok(()),
        }
    }

    /// Memory that all indexes of changes take.
    pub(crate) fn memory(&self) -> usize {
        let view = self.view.load();
        let memory = |layer: &Layer| match layer {
            Layer::Delta(delta) => delta.memory(),
            Layer::Sorted(_) => 0,
        };
        view.layers.iter().map(memory).sum()
    }

    /// Asks the background thread to integrate.
    pub(crate) fn ask_to_integrate(&self) {
        self.lock_signals().integrate = true;
        self.signalled.notify_all();
    }

    /// Ends the background thread. A running merge is stopped and can be resumed later.
    pub(crate) fn quit(&self) {
        self.lock_signals().quit = true;
        self.progress.stop.store(true, Ordering::SeqCst);
        self.signalled.notify_all();
    }
}

const PAUSE: Duration = Duration::from_secs(1);
