//! A folder of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Contents, Source, Storage, StorageFile, map::Map};

/// A folder of the operating system. Nothing is accessed until it is used. Folders and files are
/// created with permissions for their owner only.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, whether it exists or not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Options to open a file for writing; a new file is accessible to its owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl Storage for Folder {
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        let file = private().create(true).truncate(false).open(self.at(LOCK))?;
        file.try_lock().map_err(refused)?;
        Ok(Box::new(file))
    }

    fn lock_to_read(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        // Any writer would have created the lock file.
        let there = match File::open(self.at(LOCK)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private().create(true).truncate(false).open(self.at(LOCK))
            }
            there => return shared(there?),
        };
        match there {
            Err(error) if is_protected(&error) => Ok(None),
            made => shared(made?),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // Skip names that are not UTF-8: the store never creates such files.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create_dir(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.path)
    }

    fn read(&self, name: &str) -> io::Result<Contents> {
        fs::read(self.at(name)).map(Contents::from)
    }

    fn map(&self, name: &str) -> io::Result<Contents> {
        let file = File::open(self.at(name))?;
        if file.metadata()?.len() == 0 {
            return Ok(Contents::from(Vec::new()));
        }
        Ok(Contents(Source::Map(Arc::new(Map::new(&file)?))))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let path = self.at(name);
        let file = private().create(true).truncate(true).open(&path)?;
        Ok(Box::new(OpenFile { file, path, end: 0 }))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let path = self.at(name);
        let file = OpenOptions::new().write(true).open(&path)?;
        let end = file.metadata()?.len();
        Ok(Box::new(OpenFile { file, path, end }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        // Other systems have no way to sync a folder, and do not need one.
        if cfg!(unix) { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    fn hard_link(&self, name: &str, to: &dyn Storage) -> io::Result<bool> {
        let Some(to) = to.path() else { return Ok(false) };
        match fs::hard_link(self.at(name), to.join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Another file system, or one without hard links.
            Err(_) => Ok(false),
        }
    }

    fn copy_file(
        &self,
        name: &str,
        to: &dyn Storage,
        new_name: &str,
        step: &mut dyn FnMut(u64),
    ) -> io::Result<bool> {
        let Some(to) = to.path() else { return Ok(false) };
        let mut from = File::open(self.at(name))?;
        let mut new = private().create(true).truncate(true).open(to.join(new_name))?;
        loop {
            // On Linux this is copy_file_range.
            match io::copy(&mut (&mut from).take(COPIED_AT_ONCE), &mut new)? {
                0 => break,
                bytes => step(bytes),
            }
        }
        new.sync_all()?;
        Ok(true)
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn salt(&self) -> u64 {
        // The standard library seeds this from the system's randomness.
        RandomState::new().hash_one(())
    }
}

fn shared(file: File) -> io::Result<Option<Box<dyn Send + Sync>>> {
    file.try_lock_shared().map_err(refused)?;
    Ok(Some(Box::new(file)))
}

fn refused(error: TryLockError) -> io::Error {
    match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    }
}

/// Whether the error means that this process cannot create files there.
fn is_protected(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The path under which it was opened.
    path: PathBuf,
    end: u64,
}

impl StorageFile for OpenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_at(self.end, bytes)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.end = self.end.max(at + bytes.len() as u64);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.check_place()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.end = len;
        Ok(())
    }

    #[cfg(unix)]
    fn check_place(&self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;

        let is_same = |there: &fs::Metadata, here: &fs::Metadata| {
            (there.dev(), there.ino()) == (here.dev(), here.ino())
        };
        match fs::metadata(&self.path) {
            Ok(there) if is_same(&there, &self.file.metadata()?) => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it is not in its folder any more, which was deleted, replaced or unmounted",
            )),
        }
    }

    /// On other systems an open file cannot be removed.
    #[cfg(not(unix))]
    fn check_place(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A multiple of the block size of any file system, so that blocks can be shared.
const COPIED_AT_ONCE: u64 = 64 << 20;

/// The file that is locked; it stays empty.
pub(crate) const LOCK: &str = "LOCK";
