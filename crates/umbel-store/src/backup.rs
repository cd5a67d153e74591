//! Backups of a store: full and incremental ones, taken while the store is open, and restoring.
//!
//! A backup is itself the folder of a store. Its manifest is written last: a folder without one is
//! an incomplete backup, and the next backup replaces it. A differential file is copied up to its
//! last synced byte. The master and sorted files never change; file systems that can share blocks
//! between files do so when they are copied, and each file stays independent.
//!
//! Always true: a backup shares no file with its store, unless hard links were requested
//! ([`Store::backup_linked`]). Writing to a hard-linked file changes store and backup.
//!
//! An incremental backup copies the differential files only, which is the use that paper 2 proposes
//! for them. It requires that the backup has the store's current master.

use std::path::Path;

use crate::error::{Error, Result};
use crate::file_set::FileSet;
use crate::format::manifest::{self, Form, Manifest, NAME};
use crate::options::Options;
use crate::reader::{lock_to_read, read_snapshot};
use crate::recover::{read_manifest, write_manifest};
use crate::storage::os::Folder;
use crate::storage::{Contents, Storage};
use crate::store::{Progress, Store};
use crate::verify;

/// Size of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Backup {
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes in hard-linked files: they take no further space, and are shared with the store.
    pub linked_bytes: u64,
    /// Records in the backup.
    pub records: u64,
}

impl Store {
    /// Copies the store as it is now into an empty folder, while it is used.
    ///
    /// # Errors
    /// [`Error::Occupied`] if the folder is not empty; otherwise if copying failed.
    pub fn backup(&self, to: impl AsRef<Path>, progress: impl FnMut(Progress)) -> Result<Backup> {
        self.backup_on(&Folder::new(to.as_ref()), progress)
    }

    /// As [`Store::backup`], with hard links to the master and to sorted files where the file
    /// system supports them. It is quick and takes no space, but does not protect against damage: a
    /// byte that is damaged in such a file is damaged in both store and backup.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_linked(
        &self,
        to: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<Backup> {
        self.full_backup(&Folder::new(to.as_ref()), true, progress)
    }

    /// As [`Store::backup`], to any storage.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_on(&self, to: &dyn Storage, progress: impl FnMut(Progress)) -> Result<Backup> {
        self.full_backup(to, false, progress)
    }

    fn full_backup(
        &self,
        to: &dyn Storage,
        link: bool,
        progress: impl FnMut(Progress),
    ) -> Result<Backup> {
        refuse_unless_empty(to)?;
        to.create_dir().map_err(Error::io("make", "the backup's folder"))?;
        let upkeep = self.shared().lock_upkeep();
        self.copy_to(&upkeep, to, link, |_| true, progress)
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
        // While this lock is held no file is removed and none is created.
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
        // Keep files that never change and are in the backup already.
        let sorted = before.parts.iter().filter(|part| part.form == Form::Sorted);
        let mut kept: Vec<String> = sorted.map(|part| part.name()).collect();
        kept.extend(before.master.map(manifest::master_name));
        kept.retain(|name| names.contains(name));
        let backup = self.copy_to(&upkeep, to, false, |name| !kept.contains(name), progress)?;
        for part in before.parts.iter().filter(|part| !upkeep.manifest.parts.contains(part)) {
            let _ = to.remove(&part.name());
        }
        Ok(backup)
    }

    fn copy_to(
        &self,
        upkeep: &FileSet,
        to: &dyn Storage,
        link: bool,
        is_wanted: impl Fn(&String) -> bool,
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
        let mut files = files_of(&upkeep.manifest, log_bytes);
        files.retain(|file| is_wanted(&file.name));
        let mut copy = Copy::new(&*shared.storage, to, link);
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

/// Creates a store in an empty folder from a backup, and verifies the backup while doing so. The
/// backup may be on write-protected media: at most a lock file is created there.
///
/// # Errors
/// [`Error::Missing`] if there is no backup, [`Error::Occupied`] if the folder is not empty, or an
/// error that names the damage. After an error the folder has no store.
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
    let _lock = lock_to_read(from)?;
    let manifest = read_manifest(from)?;
    let backup = read_snapshot(from, &manifest, &Options::new())?;
    let to_check: u64 = backup.view.sorted_files().map(|sorted| sorted.len_bytes()).sum();
    let files = files_of(&manifest, u64::MAX);
    let mut copy = Copy::new(from, to, false);
    copy.total = to_check;
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
        copy.file(file, &mut progress)?;
    }
    to.sync_dir().map_err(Error::io("sync", "the folder"))?;
    write_manifest(to, &manifest)?;
    Ok(records)
}

fn refuse_unless_empty(to: &dyn Storage) -> Result<()> {
    let names = to.list().map_err(Error::io("list", "the folder"))?;
    // An interrupted copy has no manifest. Its other files may be replaced.
    let ours = |name: &String| {
        matches!(name.rsplit_once('.'), Some((_, "master" | "sorted" | "differential" | "new")))
    };
    if names.iter().all(ours) { Ok(()) } else { Err(Error::Occupied) }
}

/// A file to be copied.
struct File {
    name: String,
    /// Copy at most this many bytes of it.
    limit: u64,
    /// Whether it never changes.
    is_final: bool,
}

fn files_of(manifest: &Manifest, log_bytes: u64) -> Vec<File> {
    let mut files = Vec::new();
    if let Some(number) = manifest.master {
        files.push(File { name: manifest::master_name(number), limit: u64::MAX, is_final: true });
    }
    for (i, part) in manifest.parts.iter().enumerate() {
        let newest = i + 1 == manifest.parts.len();
        let limit = if newest { log_bytes } else { u64::MAX };
        files.push(File { name: part.name(), limit, is_final: part.form == Form::Sorted });
    }
    files
}

struct Copy<'a> {
    from: &'a dyn Storage,
    to: &'a dyn Storage,
    /// Whether to hard-link files that never change, where possible.
    link: bool,
    total: u64,
    done: u64,
    backup: Backup,
}

impl<'a> Copy<'a> {
    fn new(from: &'a dyn Storage, to: &'a dyn Storage, link: bool) -> Self {
        Self { from, to, link, total: 0, done: 0, backup: Backup::default() }
    }

    fn len(&self, file: &File) -> Result<u64> {
        Ok((self.read(file)?.len() as u64).min(file.limit))
    }

    /// Maps files that never change; reads the others, because they must not be mapped.
    fn read(&self, file: &File) -> Result<Contents> {
        let bytes = match file.is_final {
            true => self.from.map(&file.name),
            false => self.from.read(&file.name),
        };
        bytes.map_err(Error::io("read", &file.name))
    }

    fn file(&mut self, file: &File, progress: &mut impl FnMut(Progress)) -> Result<()> {
        if self.link && file.is_final && self.linked(file, progress)? {
            return Ok(());
        }
        // Write under another name, then rename, so that an existing file is replaced in one step.
        let new_name = format!("{}.new", file.name);
        if !(file.is_final && self.by_the_system(file, &new_name, progress)?) {
            self.bytes(file, &new_name, progress)?;
        }
        self.to.rename(&new_name, &file.name).map_err(Error::io("rename", &new_name))
    }

    fn linked(&mut self, file: &File, progress: &mut impl FnMut(Progress)) -> Result<bool> {
        let len = self.len(file)?;
        // Remove what an interrupted copy left.
        let _ = self.to.remove(&file.name);
        if !self.from.hard_link(&file.name, self.to).map_err(Error::io("link", &file.name))? {
            return Ok(false);
        }
        self.backup.linked_bytes += len;
        self.step(len, progress);
        Ok(true)
    }

    fn by_the_system(
        &mut self,
        file: &File,
        new_name: &str,
        progress: &mut impl FnMut(Progress),
    ) -> Result<bool> {
        let (from, to) = (self.from, self.to);
        from.copy_file(&file.name, to, new_name, &mut |bytes| self.copied(bytes, progress))
            .map_err(Error::io("copy", &file.name))
    }

    fn bytes(
        &mut self,
        file: &File,
        new_name: &str,
        progress: &mut impl FnMut(Progress),
    ) -> Result<()> {
        let bytes = self.read(file)?;
        let bytes = &bytes[..bytes.len().min(usize::try_from(file.limit).unwrap_or(usize::MAX))];
        let mut out = self.to.create(new_name).map_err(Error::io("create", new_name))?;
        for chunk in bytes.chunks(1 << 20) {
            out.append(chunk).map_err(Error::io("write", new_name))?;
            self.copied(chunk.len() as u64, progress);
        }
        out.sync().map_err(Error::io("sync", new_name))
    }

    fn copied(&mut self, bytes: u64, progress: &mut impl FnMut(Progress)) {
        self.backup.copied_bytes += bytes;
        self.step(bytes, progress);
    }

    fn step(&mut self, bytes: u64, progress: &mut impl FnMut(Progress)) {
        self.done += bytes;
        progress(Progress { done: self.done, total: self.total });
    }
}
