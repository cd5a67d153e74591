//! The files of a directory as they are now.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{KeyForm, WatchOptions};

/// A directory whose files are keys.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
    options: WatchOptions,
}

/// What a file is at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It is there.
    Present(Vec<u8>),
    /// It is there, but is to be looked at again after this time.
    Young(Duration),
    /// It is not there.
    Absent(Vec<u8>),
    /// It does not count.
    Ignored,
}

/// What is done with each key and the file that it stands for.
type Each<'a, E> = dyn FnMut(&[u8], &Path) -> Result<(), E> + 'a;

impl Tree {
    /// A directory, which need not be there yet.
    #[must_use]
    pub const fn new(root: PathBuf, options: WatchOptions) -> Self {
        Self { root, options }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the directory is there and is one.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> io::Result<()> {
        match std::fs::metadata(&self.root)?.is_dir() {
            true => Ok(()),
            false => Err(io::Error::new(ErrorKind::NotADirectory, "not a directory")),
        }
    }

    /// Every key, as `each` takes them. Files that come or go meanwhile may be left out.
    ///
    /// # Errors
    /// If the directory, or one below it, cannot be read, or as `each`.
    pub fn scan<E: From<io::Error>>(&self, each: &mut Each<'_, E>) -> Result<(), E> {
        self.check()?;
        self.walk(Path::new(""), &mut |path, kind| match kind.is_dir() {
            true => Ok(()),
            false => match self.look(path) {
                State::Present(key) => each(&key, path),
                _ => Ok(()),
            },
        })
    }

    /// Whether the file of a key is there; unknown, and so false, unless keys are paths.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(key));
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        let is_path = self.options.key == KeyForm::Path && is_below;
        is_path && matches!(self.look(path), State::Present(_))
    }

    /// The file of a key, with all symbolic links resolved; `None` if it is not there or leads out
    /// of the directory, and unless keys are paths.
    #[must_use]
    pub fn file(&self, key: &[u8]) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt as _;
        if !self.has(key) {
            return None;
        }
        let file = self.root.join(std::ffi::OsStr::from_bytes(key)).canonicalize().ok()?;
        file.starts_with(self.root.canonicalize().ok()?).then_some(file)
    }

    /// Whether there is no file that counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let found = self.scan(&mut |_, _| Err(io::Error::from(ErrorKind::AlreadyExists)));
        !found.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    }

    /// Everything below a directory of the tree, directories before what is in them.
    pub(super) fn walk<E: From<io::Error>>(
        &self,
        below: &Path,
        each: &mut dyn FnMut(&Path, std::fs::FileType) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open = vec![below.to_owned()];
        while let Some(directory) = open.pop() {
            let entries = match std::fs::read_dir(self.root.join(&directory)) {
                // It has been removed since it was seen.
                Err(error) if error.kind() == ErrorKind::NotFound && directory != below => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let (path, kind) = (directory.join(entry.file_name()), entry.file_type()?);
                each(&path, kind)?;
                if kind.is_dir() {
                    open.push(path);
                }
            }
        }
        Ok(())
    }

    /// What a file is now, from its path below the directory.
    pub(super) fn look(&self, path: &Path) -> State {
        let Some(key) = self.options.key_of(path) else { return State::Ignored };
        let whole = self.root.join(path);
        let Ok(own) = std::fs::symlink_metadata(&whole) else { return State::Absent(key) };
        if own.is_dir() || (own.is_symlink() && !self.leads_inside(&whole)) {
            return State::Ignored;
        }
        let Ok(metadata) = std::fs::metadata(&whole) else { return State::Absent(key) };
        if !metadata.is_file() {
            return State::Ignored;
        }
        // A time in the future counts as old: clocks differ.
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let age = SystemTime::now().duration_since(modified).unwrap_or(Duration::MAX);
        match self.options.min_age.checked_sub(age) {
            Some(left) if !left.is_zero() => State::Young(left),
            _ => State::Present(key),
        }
    }

    /// Whether a symbolic link leads to something inside of the directory.
    fn leads_inside(&self, link: &Path) -> bool {
        match (link.canonicalize(), self.root.canonicalize()) {
            (Ok(target), Ok(root)) => target.starts_with(root),
            _ => false,
        }
    }
}
