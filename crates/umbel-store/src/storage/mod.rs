//! The few file operations that the store is built on, as a trait.
//!
//! Everything the store does to a disk goes through [`Storage`] (one folder) and
//! [`StorageFile`] (one file open for appending), so that a test can stand in for the
//! operating system: [`os::Folder`] is the real one, [`testing::TestDisk`] keeps a live
//! and a durable image and can crash, tear and reorder what was not synced.
//!
//! What the store relies on, and no more: after `sync` returns, the file's bytes and
//! length survive a crash; after `sync_dir` returns, so do names made, renamed and
//! removed before it; `rename` replaces its target in one step. Nothing else is promised
//! about the order in which unsynced changes reach the disk.

mod map;
pub mod os;
pub mod testing;

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// One folder in which a store lives.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Takes the folder for this process until the guard is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if somebody else holds it.
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>>;

    /// Keeps others from changing the folder until the guard is dropped; several may read at a
    /// time. `None` on write-protected media without a lock: nobody can change these.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if somebody else may be changing it.
    fn lock_to_read(&self) -> io::Result<Option<Box<dyn Send + Sync>>>;

    /// Names of all files in the folder; empty if there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes the folder if there is none.
    ///
    /// # Errors
    /// If it cannot be made.
    fn create_dir(&self) -> io::Result<()>;

    /// A copy of a file's bytes.
    ///
    /// # Errors
    /// If there is no such file or it cannot be read.
    fn read(&self, name: &str) -> io::Result<Contents>;

    /// The bytes of a file that does not change while they are held, without copying where
    /// possible.
    ///
    /// # Errors
    /// If there is no such file or it cannot be read.
    fn map(&self, name: &str) -> io::Result<Contents>;

    /// An empty file of this name; one that is there loses its contents.
    ///
    /// # Errors
    /// If it cannot be made.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// A file that is there, to append to.
    ///
    /// # Errors
    /// If there is no such file or it cannot be opened.
    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Gives a file another name, replacing what has it.
    ///
    /// # Errors
    /// If it cannot be renamed; nothing changed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the folder's names durable.
    ///
    /// # Errors
    /// If they may not be durable.
    fn sync_dir(&self) -> io::Result<()>;

    /// Gives a file a second name in another folder, without copying its bytes.
    /// `false` if that cannot be done here and the caller has to copy.
    ///
    /// # Errors
    /// If the other folder already has the name.
    fn hard_link(&self, name: &str, to: &dyn Storage) -> io::Result<bool>;

    /// Copies a file that does not change to a new file of another folder and makes it durable,
    /// without passing its bytes through this process. File systems that can share the blocks of
    /// two files until one of them is written to do so. `step` is told how many bytes were copied.
    /// `false` if that cannot be done here and the caller has to copy.
    ///
    /// # Errors
    /// If copying was begun and failed.
    fn copy_file(
        &self,
        _name: &str,
        _to: &dyn Storage,
        _new_name: &str,
        _step: &mut dyn FnMut(u64),
    ) -> io::Result<bool> {
        Ok(false)
    }

    /// Where the folder is, if it is on a real file system.
    fn path(&self) -> Option<&Path>;

    /// A number that nobody can guess: keys hashes and checksums of one store.
    fn salt(&self) -> u64;
}

/// One file open for writing.
pub trait StorageFile: Send + Sync + fmt::Debug {
    /// Writes at the end. After an error some of the bytes may be there.
    ///
    /// # Errors
    /// If not all bytes were taken.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes over what is there, and beyond it, from byte `at` on, which is at most the
    /// file's length. After an error some of the bytes may be there.
    ///
    /// # Errors
    /// If not all bytes were taken.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns once all bytes and the length are durable, in the file that has its name.
    ///
    /// # Errors
    /// If they may not be, or the file has lost its name; trying again proves nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to this length.
    ///
    /// # Errors
    /// If it could not be cut.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// The bytes of a file: mapped or copied.
#[derive(Clone)]
pub struct Contents(Source);

#[derive(Clone)]
enum Source {
    Heap(Arc<[u8]>),
    Map(Arc<map::Map>),
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Source::Heap(bytes.into()))
    }
}

impl Deref for Contents {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Source::Heap(bytes) => bytes,
            Source::Map(map) => map.bytes(),
        }
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contents({} bytes)", self.len())
    }
}
