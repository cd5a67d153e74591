//! Files that come and go, as the system reports them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};

use super::Tree;
use super::tree::State;

/// Bytes of events that are read at once.
const EVENT_BYTES: usize = 64 << 10;

/// What has changed since it was asked before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys whose files are there now.
    pub added: Vec<Vec<u8>>,
    /// Keys whose files are not there any more.
    pub removed: Vec<Vec<u8>>,
    /// Whether more may have changed: the whole tree is to be scanned.
    pub is_scan_due: bool,
}

/// Follows the files of a tree.
#[derive(Debug)]
pub struct Follower {
    tree: Tree,
    inotify: Inotify,
    /// Paths below the root.
    directories: HashMap<WatchDescriptor, PathBuf>,
    /// Files that are too young to count, and when they are looked at again.
    young: BTreeMap<PathBuf, Instant>,
    is_scan_due: bool,
}

impl Follower {
    /// Begins to follow a tree. A scan that is done after this misses nothing.
    ///
    /// # Errors
    /// If the directory cannot be read, or the system permits no more watches.
    pub fn new(tree: Tree) -> io::Result<Self> {
        tree.check()?;
        let inotify = Inotify::init()?;
        let (directories, young) = (HashMap::new(), BTreeMap::new());
        let mut follower = Self { tree, inotify, directories, young, is_scan_due: false };
        follower.add_directories(Path::new(""))?;
        Ok(follower)
    }

    /// What has changed since this was called before. Does not wait.
    ///
    /// # Errors
    /// If events cannot be read, or a new directory not be followed.
    pub fn changes(&mut self) -> io::Result<Changes> {
        let mut touched = BTreeSet::new();
        let mut buffer = vec![0; EVENT_BYTES];
        loop {
            let events = match self.inotify.read_events(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                events => events?,
            };
            let events: Vec<_> = events
                .map(|event| (event.wd.clone(), event.mask, event.name.map(PathBuf::from)))
                .collect();
            if events.is_empty() {
                break;
            }
            for (watch, mask, name) in events {
                self.note(&watch, mask, name, &mut touched)?;
            }
        }
        let now = Instant::now();
        let (due, later) =
            std::mem::take(&mut self.young).into_iter().partition(|(_, due)| *due <= now);
        self.young = later;
        let due: BTreeMap<PathBuf, Instant> = due;
        touched.extend(due.into_keys());
        Ok(self.look_at(touched))
    }

    fn note(
        &mut self,
        watch: &WatchDescriptor,
        mask: EventMask,
        name: Option<PathBuf>,
        touched: &mut BTreeSet<PathBuf>,
    ) -> io::Result<()> {
        if mask.contains(EventMask::Q_OVERFLOW) {
            self.is_scan_due = true;
            return Ok(());
        }
        if mask.contains(EventMask::IGNORED) {
            self.directories.remove(watch);
            return Ok(());
        }
        let Some(directory) = self.directories.get(watch) else { return Ok(()) };
        let Some(name) = name else {
            // The directory itself was removed or moved.
            self.is_scan_due = true;
            return Ok(());
        };
        let path = directory.join(name);
        if mask.contains(EventMask::ISDIR) {
            if mask.intersects(EventMask::CREATE | EventMask::MOVED_TO) {
                self.add_directories(&path)?;
            }
            // What is in it came or went with it.
            self.is_scan_due = true;
        } else if !mask.contains(EventMask::CREATE) || self.is_complete(&path) {
            touched.insert(path);
        }
        Ok(())
    }

    /// Whether a file that has just been created is whole: links are, others are being written.
    fn is_complete(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::symlink_metadata(self.tree.root().join(path));
        metadata.is_ok_and(|metadata| metadata.is_symlink() || metadata.nlink() > 1)
    }

    fn look_at(&mut self, touched: BTreeSet<PathBuf>) -> Changes {
        let mut changes =
            Changes { is_scan_due: std::mem::take(&mut self.is_scan_due), ..Changes::default() };
        for path in touched {
            match self.tree.look(&path) {
                State::Present(key) => changes.added.push(key),
                State::Absent(key) => changes.removed.push(key),
                State::Young(left) => {
                    self.young.insert(path, Instant::now() + left);
                }
                State::Ignored => {}
            }
        }
        changes
    }

    /// Follows a directory and all below it. One that is gone by now is no error.
    fn add_directories(&mut self, below: &Path) -> io::Result<()> {
        self.add_directory(below)?;
        let mut found = Vec::new();
        let walked = self.tree.walk::<io::Error>(below, &mut |path, kind| {
            if kind.is_dir() {
                found.push(path.to_owned());
            }
            Ok(())
        });
        match walked {
            Err(error) if error.kind() == ErrorKind::NotFound && below != Path::new("") => {}
            walked => walked?,
        }
        found.into_iter().try_for_each(|path| self.add_directory(&path))
    }

    fn add_directory(&mut self, path: &Path) -> io::Result<()> {
        let mask = WatchMask::CREATE
            | WatchMask::CLOSE_WRITE
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        match self.inotify.watches().add(self.tree.root().join(path), mask) {
            Ok(watch) => {
                self.directories.insert(watch, path.to_owned());
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound && path != Path::new("") => Ok(()),
            Err(error) if error.kind() == ErrorKind::StorageFull => Err(io::Error::new(
                ErrorKind::StorageFull,
                "the system permits no more watches: raise fs.inotify.max_user_watches (sysctl)",
            )),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{KeyForm, WatchOptions};
    use std::fs;
    use std::time::Duration;

    fn follow(root: &Path, options: WatchOptions) -> Follower {
        Follower::new(Tree::new(root.to_owned(), options)).unwrap()
    }

    fn text(keys: &[Vec<u8>]) -> Vec<&str> {
        keys.iter().map(|key| std::str::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn files_that_come_and_go_are_reported_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("sub/old"), "").unwrap();
        let mut follower = follow(folder.path(), WatchOptions::default());
        assert_eq!(follower.changes().unwrap(), Changes::default());
        fs::write(path("a"), "x").unwrap();
        fs::write(path("b.tmp"), "x").unwrap();
        fs::rename(path("b.tmp"), path("sub/b")).unwrap();
        fs::remove_file(path("sub/old")).unwrap();
        let changes = follower.changes().unwrap();
        assert_eq!(text(&changes.added), ["a", "sub/b"]);
        assert_eq!(text(&changes.removed), ["sub/old"]);
        assert!(!changes.is_scan_due);
        // A directory brings files that were never reported, so the tree is scanned.
        fs::create_dir(path("new")).unwrap();
        assert!(follower.changes().unwrap().is_scan_due);
        fs::write(path("new/c"), "x").unwrap();
        assert_eq!(text(&follower.changes().unwrap().added), ["new/c"]);
        fs::remove_dir_all(path("new")).unwrap();
        assert!(follower.changes().unwrap().is_scan_due);
    }

    #[test]
    fn links_out_of_the_tree_and_directories_are_no_keys() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| folder.path().join(name);
        fs::write(outside.path().join("secret"), "").unwrap();
        fs::write(path("a"), "").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), path("out")).unwrap();
        std::os::unix::fs::symlink(outside.path(), path("all")).unwrap();
        std::os::unix::fs::symlink(path("a"), path("in")).unwrap();
        std::os::unix::fs::symlink(path("none"), path("broken")).unwrap();
        let tree = Tree::new(folder.path().to_owned(), WatchOptions::default());
        let mut keys = Vec::new();
        let scanned: io::Result<()> = tree.scan(&mut |key, _| {
            keys.push(String::from_utf8(key.to_vec()).unwrap());
            Ok(())
        });
        scanned.unwrap();
        keys.sort();
        assert_eq!(keys, ["a", "in"]);
    }

    #[test]
    fn young_files_are_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let options = WatchOptions {
            min_age: Duration::from_millis(200),
            key: KeyForm::Basename,
            ..WatchOptions::default()
        };
        fs::create_dir(folder.path().join("x")).unwrap();
        let mut follower = follow(folder.path(), options);
        fs::write(folder.path().join("x/a"), "").unwrap();
        let start = Instant::now();
        let mut added = follower.changes().unwrap().added;
        while added.is_empty() {
            assert!(start.elapsed() < Duration::from_secs(20), "it never counts");
            std::thread::sleep(Duration::from_millis(20));
            added = follower.changes().unwrap().added;
        }
        assert_eq!(text(&added), ["a"]);
    }

    #[test]
    fn what_is_no_directory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for name in ["none", "file"] {
            let tree = Tree::new(folder.path().join(name), WatchOptions::default());
            assert!(tree.is_empty());
            assert!(Follower::new(tree).is_err(), "{name}");
        }
    }
}
