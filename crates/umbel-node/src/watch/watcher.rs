//! Keeps a set equal to a directory: follows it, scans it when that is due, and refuses to empty
//! the set.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Changes, Follower, Tree};

/// How long to wait between two steps of a [`Watcher`].
pub const PAUSE: Duration = Duration::from_millis(100);

/// The set that becomes equal to a directory.
pub trait Target {
    /// Why a change failed.
    type Error: From<io::Error>;

    /// Makes the set equal to the directory as it is now.
    ///
    /// # Errors
    /// If the directory cannot be read, or the set not be changed; a later scan repairs it.
    fn scan(&mut self, tree: &Tree) -> Result<Synced, Self::Error>;

    /// Adds keys; returns how many of them are new.
    ///
    /// # Errors
    /// If the set cannot be changed.
    fn add(&mut self, keys: &[Vec<u8>]) -> Result<u64, Self::Error>;

    /// Removes keys; returns how many of them were held.
    ///
    /// # Errors
    /// If the set cannot be changed.
    fn remove(&mut self, keys: &[Vec<u8>]) -> Result<u64, Self::Error>;
}

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Synced {
    /// Keys that were listed.
    pub listed: u64,
    /// Keys that are new.
    pub added: u64,
    /// Keys that are gone.
    pub removed: u64,
}

/// Keeps a set equal to a directory, step by step.
#[derive(Debug)]
pub struct Watcher {
    tree: Tree,
    every: Duration,
    allow_empty: bool,
    /// `None` at the start and after an error: the directory is followed again, and scanned.
    follower: Option<Follower>,
    next_scan: Instant,
}

impl Watcher {
    /// A watch of a directory, scanned completely at this interval. A directory that has no files
    /// left does not empty the set, unless that is allowed.
    #[must_use]
    pub fn new(tree: Tree, every: Duration, allow_empty: bool) -> Self {
        Self { tree, every, allow_empty, follower: None, next_scan: Instant::now() }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.tree.root()
    }

    /// Passes on what has changed since the last step; `None` if nothing has. The first step scans.
    /// Does not wait.
    ///
    /// # Errors
    /// If the directory cannot be followed, has no files left, or as `target`. The next step
    /// follows and scans it again, so that nothing that was reported meanwhile is lost.
    pub fn step<T: Target>(&mut self, target: &mut T) -> Result<Option<Synced>, T::Error> {
        let outcome = self.try_step(target);
        if outcome.is_err() {
            self.follower = None;
        }
        outcome
    }

    fn try_step<T: Target>(&mut self, target: &mut T) -> Result<Option<Synced>, T::Error> {
        let Some(follower) = &mut self.follower else {
            let follower = Follower::new(self.tree.clone());
            self.follower = Some(follower.map_err(|error| self.named(&error))?);
            return self.scan(target).map(Some);
        };
        let changes = follower.changes();
        let changes = changes.map_err(|error| self.named(&error))?;
        if changes.is_scan_due || Instant::now() >= self.next_scan {
            return self.scan(target).map(Some);
        }
        self.pass_on(&changes, target)
    }

    fn scan<T: Target>(&mut self, target: &mut T) -> Result<Synced, T::Error> {
        let synced = target.scan(&self.tree)?;
        self.next_scan = Instant::now() + self.every;
        Ok(synced)
    }

    fn pass_on<T: Target>(
        &self,
        changes: &Changes,
        target: &mut T,
    ) -> Result<Option<Synced>, T::Error> {
        let Changes { added, removed, .. } = changes;
        let mut synced = Synced { listed: added.len() as u64, ..Synced::default() };
        if !added.is_empty() {
            synced.added = target.add(added)?;
        }
        if !removed.is_empty() {
            if !self.allow_empty && self.tree.is_empty() {
                let error = io::Error::new(ErrorKind::NotFound, NOTHING_LEFT);
                return Err(self.named(&error).into());
            }
            synced.removed = target.remove(removed)?;
        }
        Ok((synced.added + synced.removed > 0).then_some(synced))
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.tree.root().display()))
    }
}

const NOTHING_LEFT: &str =
    "the directory has no files left: nothing is removed (allow-empty permits it)";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::watch::WatchOptions;

    /// A set in memory that can be made to fail.
    #[derive(Default)]
    struct Keys {
        held: BTreeSet<Vec<u8>>,
        scans: usize,
        fails: bool,
    }

    impl Keys {
        fn check(&self) -> io::Result<()> {
            if self.fails { Err(io::Error::other("no room")) } else { Ok(()) }
        }
    }

    impl Target for Keys {
        type Error = io::Error;

        fn scan(&mut self, tree: &Tree) -> io::Result<Synced> {
            self.check()?;
            self.scans += 1;
            self.held.clear();
            tree.scan(&mut |key, _| {
                self.held.insert(key.to_vec());
                Ok(())
            })
            .map(|()| Synced::default())
        }

        fn add(&mut self, keys: &[Vec<u8>]) -> io::Result<u64> {
            self.check()?;
            Ok(keys.iter().filter(|key| self.held.insert((*key).clone())).count() as u64)
        }

        fn remove(&mut self, keys: &[Vec<u8>]) -> io::Result<u64> {
            Ok(keys.iter().filter(|key| self.held.remove(*key)).count() as u64)
        }
    }

    #[test]
    fn a_failed_change_is_made_up_for_by_a_scan() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::new(folder.path().to_owned(), WatchOptions::default());
        let mut watcher = Watcher::new(tree, Duration::from_secs(3600), false);
        let mut keys = Keys::default();
        fs::write(folder.path().join("a"), "").unwrap();
        assert!(watcher.step(&mut keys).unwrap().is_some());
        assert_eq!(watcher.step(&mut keys).unwrap(), None);
        keys.fails = true;
        fs::write(folder.path().join("b"), "").unwrap();
        watcher.step(&mut keys).unwrap_err();
        watcher.step(&mut keys).unwrap_err();
        keys.fails = false;
        watcher.step(&mut keys).unwrap();
        assert_eq!((keys.held.len(), keys.scans), (2, 2));
    }

    #[test]
    fn a_directory_without_files_removes_nothing_unless_that_is_allowed() {
        for allowed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let tree = Tree::new(folder.path().to_owned(), WatchOptions::default());
            let mut watcher = Watcher::new(tree, Duration::from_secs(3600), allowed);
            let mut keys = Keys::default();
            fs::write(folder.path().join("a"), "").unwrap();
            watcher.step(&mut keys).unwrap();
            fs::remove_file(folder.path().join("a")).unwrap();
            let outcome = watcher.step(&mut keys);
            assert_eq!((outcome.is_ok(), keys.held.is_empty()), (allowed, allowed));
        }
    }
}
