//! Copies of a store: made while it is open, added to, and brought back.
//!
//! A backup is itself a store's folder, with the manifest written last: without one it is
//! no backup, and whoever finds it so starts anew. The master and sorted files never change,
//! so a hard link is enough where the file system has them; a differential file is copied
//! as far as it is durable.
//!
//! An incremental backup copies the differential files only, which is what paper 2 wants
//! them for. It needs the backup to have the store's present master.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::file_set::FileSet;
use crate::format::manifest::{self, Form, Manifest, NAME};
use crate::guard::hasher_of;
use crate::options::Options;
use crate::recover::{read_manifest, read_parts, write_manifest};
use crate::snapshot::Snapshot;
use crate::storage::os::Folder;
use crate::storage::{Contents, Storage};
use crate::store::{Progress, Store};
use crate::verify;

/// What a backup took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Backup {
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes that were linked: they take no further space.
    pub linked_bytes: u64,
    /// Records in the backup.
    pub records: u64,
}

impl Store {
    /// Copies the store as it is now into an empty folder, while it is used.
    ///
    /// # Errors
    /// [`Error::Occupied`] if the folder has anything in it; otherwise if copying failed.
    pub fn backup(&self, to: impl AsRef<Path>, progress: impl FnMut(Progress)) -> Result<Backup> {
        self.backup_on(&Folder::new(to.as_ref()), progress)
    }

    /// As [`Store::backup`], to any storage.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_on(&self, to: &dyn Storage, progress: impl FnMut(Progress)) -> Result<Backup> {
        refuse_unless_empty(to)?;
        to.create_dir().map_err(Error::io("make", "the backup's folder"))?;
        self.copy_to(&self.shared().lock_upkeep(), to, true, progress)
    }

    /// Brings a backup of this store up to date by copying its differential files only.
    ///
    /// # Errors
    /// [`Error::NotIncremental`] if the folder has no backup of this store, or one from
    /// before the last integrate; otherwise if copying failed, with the backup as it was.
    pub fn backup_incremental(
        &self,
        to: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<Backup> {
        self.backup_incremental_on(&Folder::new(to.as_ref()), progress)
    }

    /// As [`Store::backup_incremental`], to any storage.
    ///
    /// # Errors
    /// As [`Store::backup_incremental`].
    pub fn backup_incremental_on(
        &self,
        to: &dyn Storage,
        progress: impl FnMut(Progress),
    ) -> Result<Backup> {
        let names = to.list().map_err(Error::io("list", "the backup's folder"))?;
        if !names.iter().any(|name| name == NAME) {
            return Err(Error::NotIncremental("there is no backup to add to"));
        }
        let _lock = to.lock().map_err(|_| Error::Locked)?;
        let before = read_manifest(to)?;
        // While this is held no file goes away and none is begun.
        let upkeep = self.shared().lock_upkeep();
        if before.store != upkeep.manifest.store {
            return Err(Error::NotIncremental("the backup is of another store"));
        }
        if before.generation > upkeep.manifest.generation {
            return Err(Error::NotIncremental("the backup is newer than the store"));
        }
        if before.master != upkeep.manifest.master {
            return Err(Error::NotIncremental(
                "the store was integrated since; make a full backup",
            ));
        }
        let backup = self.copy_to(&upkeep, to, false, progress)?;
        for part in before.parts.iter().filter(|part| !upkeep.manifest.parts.contains(part)) {
            let _ = to.remove(&part.name());
        }
        Ok(backup)
    }

    fn copy_to(
        &self,
        upkeep: &FileSet,
        to: &dyn Storage,
        with_master: bool,
        mut progress: impl FnMut(Progress),
    ) -> Result<Backup> {
        let shared = self.shared();
        let (log_bytes, records) = {
            let mut log = shared.lock_log();
            if shared.poisoned.get().is_none() && !log.is_synced() {
                log.sync().inspect_err(|error| shared.poison(error))?;
            }
            (log.len(), self.len())
        };
        let files = files_of(&upkeep.manifest, with_master, log_bytes);
        let mut copy =
            Copy { from: &*shared.storage, to, total: 0, done: 0, backup: Backup::default() };
        for file in &files {
            copy.total += copy.len(file)?;
        }
        for file in &files {
            copy.file(file, &mut progress)?;
        }
        to.sync_dir().map_err(Error::io("sync", "the backup's folder"))?;
        write_manifest(to, &upkeep.manifest)?;
        Ok(Backup { records, ..copy.backup })
    }
}

/// Makes a store in an empty folder from a backup, checking everything on the way. The
/// backup may be on write-protected media: nothing but its lock is ever written there.
///
/// # Errors
/// [`Error::Missing`] if there is no backup, [`Error::Occupied`] if the folder has anything
/// in it, or what is damaged; the folder then has no store.
pub fn restore(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: impl FnMut(Progress),
) -> Result<u64> {
    restore_on(&Folder::new(from.as_ref()), &Folder::new(to.as_ref()), progress)
}

/// As [`restore`], on any storage. Returns the number of records.
///
/// # Errors
/// As [`restore`].
pub fn restore_on(
    from: &dyn Storage,
    to: &dyn Storage,
    mut progress: impl FnMut(Progress),
) -> Result<u64> {
    refuse_unless_empty(to)?;
    let names = from.list().map_err(Error::io("list", "the backup's folder"))?;
    if !names.iter().any(|name| name == NAME) {
        return Err(Error::Missing);
    }
    // Where no lock can be made, on write-protected media, nobody changes anything either.
    let _lock = match from.lock() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Error::Locked),
        lock => lock.ok(),
    };
    let manifest = read_manifest(from)?;
    let backup = read_backup(from, &manifest)?;
    let to_check: u64 = backup.view.sorted_files().map(|sorted| sorted.len_bytes()).sum();
    let files = files_of(&manifest, true, u64::MAX);
    let mut copy = Copy { from, to, total: to_check, done: 0, backup: Backup::default() };
    for file in &files {
        copy.total += copy.len(file)?;
    }
    for sorted in backup.view.sorted_files() {
        sorted.verify(&backup.hasher, |bytes| copy.step(bytes, &mut progress))?;
    }
    let records = verify::count(&backup)?;
    copy.done = to_check;
    to.create_dir().map_err(Error::io("make", "the folder"))?;
    for file in &files {
        // A restored store must not share its bytes with the backup: damage to one would
        // be damage to the other.
        copy.bytes(file, &mut progress)?;
    }
    to.sync_dir().map_err(Error::io("sync", "the folder"))?;
    write_manifest(to, &manifest)?;
    Ok(records)
}

/// A backup as a store that can only be read.
fn read_backup(from: &dyn Storage, manifest: &Manifest) -> Result<Snapshot> {
    let (view, _) = read_parts(from, manifest, &Options::new())?;
    let state = view.active.published();
    Ok(Snapshot { view: Arc::new(view), state, hasher: hasher_of(manifest.store) })
}

fn refuse_unless_empty(to: &dyn Storage) -> Result<()> {
    let names = to.list().map_err(Error::io("list", "the folder"))?;
    // A copy that was broken off has no manifest: whatever else is there is ours to replace.
    let ours = |name: &String| {
        matches!(name.rsplit_once('.'), Some((_, "master" | "sorted" | "differential" | "new")))
    };
    if names.iter().all(ours) { Ok(()) } else { Err(Error::Occupied) }
}

/// A file to be copied.
struct File {
    name: String,
    /// No more of it than this.
    limit: u64,
    /// Whether it never changes, so that a link will do.
    linkable: bool,
}

fn files_of(manifest: &Manifest, with_master: bool, log_bytes: u64) -> Vec<File> {
    let mut files = Vec::new();
    if let (true, Some(number)) = (with_master, manifest.master) {
        files.push(File { name: manifest::master_name(number), limit: u64::MAX, linkable: true });
    }
    for (i, part) in manifest.parts.iter().enumerate() {
        let newest = i + 1 == manifest.parts.len();
        let limit = if newest { log_bytes } else { u64::MAX };
        files.push(File { name: part.name(), limit, linkable: part.form == Form::Sorted });
    }
    files
}

struct Copy<'a> {
    from: &'a dyn Storage,
    to: &'a dyn Storage,
    total: u64,
    done: u64,
    backup: Backup,
}

impl Copy<'_> {
    fn len(&self, file: &File) -> Result<u64> {
        Ok((self.read(file)?.len() as u64).min(file.limit))
    }

    /// Only what never changes may be mapped.
    fn read(&self, file: &File) -> Result<Contents> {
        let bytes = match file.linkable {
            true => self.from.map(&file.name),
            false => self.from.read(&file.name),
        };
        bytes.map_err(Error::io("read", &file.name))
    }

    fn file(&mut self, file: &File, progress: &mut impl FnMut(Progress)) -> Result<()> {
        let len = self.len(file)?;
        if file.linkable {
            // Left over from a copy that was broken off, or there from the last time.
            let _ = self.to.remove(&file.name);
            if self.from.hard_link(&file.name, self.to).map_err(Error::io("link", &file.name))? {
                self.backup.linked_bytes += len;
                self.step(len, progress);
                return Ok(());
            }
        }
        self.bytes(file, progress)
    }

    /// Copies under another name and renames, so that a file that was there stays whole.
    fn bytes(&mut self, file: &File, progress: &mut impl FnMut(Progress)) -> Result<()> {
        let name = &file.name;
        let bytes = self.read(file)?;
        let bytes = &bytes[..bytes.len().min(usize::try_from(file.limit).unwrap_or(usize::MAX))];
        let new_name = format!("{name}.new");
        let mut out = self.to.create(&new_name).map_err(Error::io("create", &new_name))?;
        for chunk in bytes.chunks(1 << 20) {
            out.append(chunk).map_err(Error::io("write", &new_name))?;
            self.backup.copied_bytes += chunk.len() as u64;
            self.step(chunk.len() as u64, progress);
        }
        out.sync().map_err(Error::io("sync", &new_name))?;
        self.to.rename(&new_name, name).map_err(Error::io("rename", &new_name))
    }

    fn step(&mut self, bytes: u64, progress: &mut impl FnMut(Progress)) {
        self.done += bytes;
        progress(Progress { done: self.done, total: self.total });
    }
}
