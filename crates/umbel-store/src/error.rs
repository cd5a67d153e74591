//! Errors of the store.

use std::io;
use std::sync::Arc;

/// Why an operation of the store failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the operating system failed. Everything that was acknowledged before is safe.
    #[error("cannot {action} {file}: {reason}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// The system's error. It is part of the message and therefore not also the `source`:
        /// printing the chain of errors would show it twice.
        reason: Arc<io::Error>,
    },
    /// A file does not contain what was written to it. Nothing was changed.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Corrupt {
        /// Which file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The file was written by another release. Nothing was changed.
    #[error("{file} has format version {found}, this release knows version {known} only")]
    Version {
        /// Which file.
        file: String,
        /// The version in the file.
        found: u16,
        /// The version of this release.
        known: u16,
    },
    /// Another process, or another handle in this one, has the store open.
    #[error("the store is in use: another process has it open")]
    Locked,
    /// There is no store, and the options forbid creating one.
    #[error("there is no store here")]
    Missing,
    /// The folder in which a new store was to be created is not empty.
    #[error("there is already a store here, or something else: give an empty folder")]
    Occupied,
    /// A write failed, and it is unknown what is on disk. Reads continue; reopen the store to
    /// write.
    #[error("the store refuses writes since {0}; reads go on, reopen it to write")]
    Poisoned(Arc<str>),
    /// The folder contains another store, or an older state of this one. Nothing was changed.
    #[error("the folder holds another store now, or an older state of this one")]
    Replaced,
    /// Changes arrived faster than they could be sorted to disk, and sorting now fails.
    #[error("the store has no memory left for changes, because {0}")]
    Behind(Arc<str>),
    /// The key is longer than [`crate::MAX_KEY`]. Nothing was changed.
    #[error("a key has at most {max} bytes, not {len}", max = crate::MAX_KEY)]
    KeyTooLong {
        /// Bytes in the key.
        len: usize,
    },
    /// The value is longer than [`crate::MAX_VALUE`]. Nothing was changed.
    #[error("a value has at most {max} bytes, not {len}", max = crate::MAX_VALUE)]
    ValueTooLong {
        /// Bytes in the value.
        len: usize,
    },
    /// An option outside its range. Nothing was opened.
    #[error("{0}")]
    Options(&'static str),
    /// Integration was stopped on request; its work so far is kept.
    #[error("integrating was stopped; it can be taken up again")]
    Stopped,
    /// The folder contains no backup that this store could add to. Nothing was changed.
    #[error("no incremental backup is possible: {0}")]
    NotIncremental(&'static str),
}

impl Error {
    /// For `map_err`: which file, and what was tried with it.
    pub(crate) fn io(action: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Io { action, file: file.to_owned(), reason: Arc::new(reason) }
    }

    pub(crate) fn corrupt(file: &str, offset: usize, what: &'static str) -> Self {
        Self::Corrupt { file: file.to_owned(), offset: offset as u64, what }
    }
}

/// Result of most functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;
