//! The directories that a host watches: a thread per directory keeps an own set equal to it.
//!
//! Always true: at the end of a scan, a key that the set held when it began and whose file was not
//! seen is removed. A key that was added meanwhile stays until the next scan. A scan takes 17 bytes
//! of memory per key held.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::{Host, Lifetime};
use crate::catalogue::Ticket;
use crate::error::HostError;
use crate::priority;
use crate::settings::WatchedDirectory;
use crate::watch::{PAUSE, Synced, Target, Tree, Watcher};

/// How long to wait after a failure: at first, and at most.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(30);
/// Keys that are changed per turn, and keys for which a lane is held.
const BATCH: usize = 64;
const LANE: usize = 1024;

/// The watched directories of a host.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    running: Mutex<Vec<Running>>,
}

/// A thread that watches a directory; it ends when this is dropped.
#[derive(Debug)]
struct Running {
    watch: WatchedDirectory,
    failure: Arc<Mutex<Option<String>>>,
    _stop: Sender<()>,
}

impl Watches {
    /// Ends all of them.
    pub(super) fn stop(&self) {
        self.running.lock().clear();
    }

    /// How many directories are watched.
    pub(super) fn count(&self) -> u64 {
        self.running.lock().len() as u64
    }

    /// How many sets do not follow their directories now.
    #[cfg(feature = "http")]
    pub(crate) fn failing(&self) -> u64 {
        self.failures().len() as u64
    }

    /// The directories that cannot be followed now, each with the set and the reason.
    pub(super) fn failures(&self) -> Vec<String> {
        let running = self.running.lock();
        let failures = running.iter().filter_map(|Running { watch, failure, .. }| {
            failure.lock().as_ref().map(|reason| format!("{}: {reason}", watch.set))
        });
        failures.collect()
    }
}

impl Host {
    /// Watches these directories and no others. Those that are watched already go on undisturbed;
    /// the keys of a directory that is not watched any more stay.
    pub(crate) fn watch(&self, wanted: &[WatchedDirectory]) -> io::Result<()> {
        let mut running = self.inner.watches.running.lock();
        running.retain(|running| wanted.contains(&running.watch));
        for watch in wanted {
            if running.iter().any(|running| running.watch == *watch) {
                continue;
            }
            let (stop, stopped) = channel();
            let failure = Arc::default();
            let directory = Directory {
                host: self.clone(),
                watch: watch.clone(),
                failure: Arc::clone(&failure),
            };
            let thread = std::thread::Builder::new().name("umbel-watch".into());
            let thread = thread.spawn(move || directory.run(&stopped))?;
            self.inner.lifecycle.add_thread(thread);
            running.push(Running { watch: watch.clone(), failure, _stop: stop });
        }
        Ok(())
    }
}

/// What a thread works with.
struct Directory {
    host: Host,
    watch: WatchedDirectory,
    failure: Arc<Mutex<Option<String>>>,
}

impl Directory {
    /// Runs until the sender of `stopped` is dropped.
    fn run(self, stopped: &Receiver<()>) {
        priority::work_long();
        let WatchedDirectory { every, allow_empty, .. } = self.watch;
        let mut watcher = Watcher::new(self.watch.tree(), every, allow_empty);
        let mut keys = Keys { host: self.host.clone(), watch: self.watch.clone() };
        let mut retry = RETRY;
        loop {
            let outcome = watcher.step(&mut keys);
            let pause = if outcome.is_ok() { PAUSE } else { retry };
            retry = if outcome.is_ok() { RETRY } else { (2 * retry).min(MAX_RETRY) };
            self.report(outcome);
            match stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) if !self.host.inner.lifecycle.is_stopping() => {}
                _ => return,
            }
        }
    }

    /// Logs a failure once, until the reason changes or it is over.
    fn report(&self, outcome: Result<Option<Synced>, Failure>) {
        let (set, dir) = (&self.watch.set, self.watch.dir.display());
        let mut failure = self.failure.lock();
        match outcome {
            Ok(synced) => {
                if failure.take().is_some() {
                    tracing::info!(%set, %dir, "the watched directory is followed again");
                }
                if let Some(Synced { listed, added, removed }) = synced {
                    tracing::debug!(%set, %dir, listed, added, removed, "files came or went");
                }
            }
            Err(Failure(reason)) if failure.as_ref() != Some(&reason) => {
                // A host that stops changes nothing any more: that is no failure.
                if !self.host.inner.lifecycle.is_stopping() {
                    tracing::error!(%set, %dir, %reason, "the set does not follow its directory");
                    *failure = Some(reason);
                }
            }
            Err(_) => {}
        }
    }
}

/// Why a set does not follow its directory.
struct Failure(String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self(error.to_string())
    }
}

/// The set of a watched directory.
struct Keys {
    host: Host,
    watch: WatchedDirectory,
}

impl Target for Keys {
    type Error = Failure;

    fn scan(&mut self, tree: &Tree) -> Result<Synced, Failure> {
        tree.check().map_err(|error| named(tree, &error))?;
        let mut held = Held::of(self)?;
        let (mut batch, mut synced) = (Vec::with_capacity(LANE), Synced::default());
        tree.scan::<Failure>(&mut |key, _| {
            held.mark(key);
            synced.listed += 1;
            batch.push(key.to_vec());
            if batch.len() == LANE {
                synced.added += self.change(&batch, ADD)?;
                batch.clear();
            }
            Ok(())
        })?;
        if synced.listed == 0 && !held.is_empty() && !self.watch.allow_empty {
            return Err(named(tree, &io::Error::other(NOTHING_IN_IT)));
        }
        synced.added += self.change(&batch, ADD)?;
        self.for_each_page(|page| {
            let is_gone = |key: &Vec<u8>| held.is_unmarked(key) && !tree.has(key);
            let gone: Vec<Vec<u8>> = page.into_iter().filter(is_gone).collect();
            synced.removed += self.change(&gone, REMOVE)?;
            Ok(())
        })?;
        Ok(synced)
    }

    fn add(&mut self, keys: &[Vec<u8>]) -> Result<u64, Failure> {
        self.change(keys, ADD)
    }

    fn remove(&mut self, keys: &[Vec<u8>]) -> Result<u64, Failure> {
        self.change(keys, REMOVE)
    }
}

const NOTHING_IN_IT: &str =
    "there is nothing in it, and the set would be emptied (allow_empty permits it)";

fn named(tree: &Tree, error: &io::Error) -> Failure {
    Failure(format!("{}: {error}", tree.root().display()))
}

type Change = fn(&Host, &str, &[&[u8]], &mut Vec<bool>) -> Result<Ticket, HostError>;

/// The file decides how long a key stays, not the set's lifetime.
const ADD: Change = |host, set, keys, answers| host.add(set, keys, Lifetime::Forever, answers);
const REMOVE: Change = |host, set, keys, answers| host.remove(set, keys, answers);

impl Keys {
    /// Changes keys, and waits until that is durable; returns how many changed the set.
    fn change(&self, keys: &[Vec<u8>], change: Change) -> Result<u64, Failure> {
        let (host, set) = (&self.host, self.watch.set.as_str());
        let runtime = &host.inner.lifecycle.runtime;
        let (mut changed, mut last) = (0, None);
        for lane_keys in keys.chunks(LANE) {
            let lane = runtime.block_on(host.lane());
            for batch in lane_keys.chunks(BATCH) {
                let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
                let mut answers = Vec::with_capacity(BATCH);
                let turn = host.blocking_turn(set);
                last = Some(change(host, set, &batch, &mut answers)?);
                drop(turn);
                changed += answers.iter().filter(|changed| **changed).count() as u64;
                priority::let_others_run();
            }
            drop(lane);
        }
        if let Some(ticket) = last {
            runtime.block_on(host.settled(ticket))?;
        }
        Ok(changed)
    }

    /// All keys that the set holds; a set that does not exist holds none.
    fn for_each_page(
        &self,
        mut each: impl FnMut(Vec<Vec<u8>>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut cursor = Vec::new();
        loop {
            let (page, next) = match self.host.keys(self.watch.set.as_str(), &cursor, LANE) {
                Err(HostError::NoSuchSet(_)) => return Ok(()),
                page => page?,
            };
            each(page)?;
            match next {
                Some(next) => cursor = next,
                None => return Ok(()),
            }
        }
    }
}

/// The hashes of the keys that a set held at the beginning of a scan, and which of them were seen.
/// With 10^14 keys, a key would be kept wrongly with a probability of 10^-24.
struct Held {
    /// Sorted.
    hashes: Vec<u128>,
    seen: Vec<bool>,
    seed: u64,
}

impl Held {
    fn of(keys: &Keys) -> Result<Self, Failure> {
        // A random seed per scan: nobody can choose keys that collide.
        let (mut hashes, seed) = (Vec::new(), RandomState::new().hash_one(0));
        keys.for_each_page(|page| {
            hashes.extend(page.iter().map(|key| xxh3_128_with_seed(key, seed)));
            Ok(())
        })?;
        hashes.sort_unstable();
        hashes.dedup();
        let seen = vec![false; hashes.len()];
        Ok(Self { hashes, seen, seed })
    }

    fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    fn place(&self, key: &[u8]) -> Option<usize> {
        self.hashes.binary_search(&xxh3_128_with_seed(key, self.seed)).ok()
    }

    fn mark(&mut self, key: &[u8]) {
        if let Some(place) = self.place(key) {
            self.seen[place] = true;
        }
    }

    /// Whether a key was held at the beginning and was not seen.
    fn is_unmarked(&self, key: &[u8]) -> bool {
        self.place(key).is_some_and(|place| !self.seen[place])
    }
}
