//! The few file operations that the store is built on, as a trait.
//!
//! The store accesses the disk only through [`Storage`] (one folder) and [`StorageFile`] (one file
//! open for writing), so that tests can replace the operating system. [`os::Folder`] is the real
//! implementation; [`testing::TestDisk`] keeps a live and a durable image, and can crash, tear and
//! reorder what was not synced.
//!
//! The store relies only on this: after `sync` returns, the file's bytes and length survive a
//! crash; after `sync_dir` returns, so do names that were created, renamed and removed before it;
//! `rename` replaces its target in one step. Nothing is assumed about the order in which unsynced
//! changes reach the disk.

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
    /// Locks the folder for this process until the guard is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it is locked already.
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>>;

    /// Takes a shared lock, which keeps writers out until the guard is dropped; several readers may
    /// hold it. `None` on write-protected media without a lock file, because nobody can change
    /// these.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if a writer holds the lock.
    fn lock_to_read(&self) -> io::Result<Option<Box<dyn Send + Sync>>>;

    /// Names of all files in the folder; empty if there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// If it cannot be made.
    fn create_dir(&self) -> io::Result<()>;

    /// A copy of a file's bytes.
    ///
    /// # Errors
    /// If there is no such file or it cannot be read.
    fn read(&self, name: &str) -> io::Result<Contents>;

    /// The bytes of a file, not copied if possible. The file must not change while they are held.
    ///
    /// # Errors
    /// If there is no such file or it cannot be read.
    fn map(&self, name: &str) -> io::Result<Contents>;

    /// Creates an empty file; an existing one is truncated.
    ///
    /// # Errors
    /// If it cannot be made.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Opens an existing file for appending.
    ///
    /// # Errors
    /// If there is no such file or it cannot be opened.
    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Renames a file, replacing any file of that name.
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
    /// If the names may not be durable.
    fn sync_dir(&self) -> io::Result<()>;

    /// Gives a file a second name in another folder, without copying its bytes.
    /// `false` if this is not possible and the caller has to copy.
    ///
    /// # Errors
    /// If the other folder already has the name.
    fn hard_link(&self, name: &str, to: &dyn Storage) -> io::Result<bool>;

    /// Copies a file that does not change to a new file in another folder, and makes the copy
    /// durable, without passing its bytes through this process. File systems with copy-on-write
    /// share the blocks of the two files. Calls `step` with the number of bytes of each piece
    /// copied.
    /// `false` if this is not possible and the caller has to copy.
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

    /// An unpredictable number, used as the key of hashes and checksums of one store.
    fn salt(&self) -> u64;
}

/// One file open for writing.
pub trait StorageFile: Send + Sync + fmt::Debug {
    /// Writes at the end. After an error some of the bytes may be there.
    ///
    /// # Errors
    /// If not all bytes were taken.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes from byte `at` on, which is at most the file's length; overwrites, and extends the
    /// file if needed. After an error some of the bytes may be there.
    ///
    /// # Errors
    /// If not all bytes were taken.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns once all bytes and the length are durable, and the file is still under its name.
    ///
    /// # Errors
    /// If they may not be durable, or the file is no longer under its name. Do not retry: a later
    /// sync that succeeds proves nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to this length.
    ///
    /// # Errors
    /// If it could not be cut.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Checks that the file is still under its name. A sync checks it too; this is for writes that
    /// are acknowledged without one.
    ///
    /// # Errors
    /// If it is not: what is written to it is lost when the process ends.
    fn check_place(&self) -> io::Result<()>;
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
