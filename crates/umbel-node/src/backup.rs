//! Backups of a host's catalogue, taken while the host runs, and restoring them.
//!
//! ```text
//! BACKUPS/NAME/backup.json    the label: whose backup it is, and when it was taken
//! BACKUPS/NAME/catalogue/     a store, as in the host's data directory
//! ```
//!
//! Always true: a directory of that name is a complete backup whose every page was verified. It is
//! written under another name and renamed at the end. A restored catalogue appears in one step, too.
//! A backup that was cut short by whoever copied it is refused: a store alone would take the end of
//! a shortened log for the place where writing stopped.
//!
//! The store is locked only while its files get a second name (hard links) and the recent changes
//! are copied. The bytes are copied and verified afterwards, while the host goes on writing.
//!
//! Not here: who may request a backup (`resp`), and incarnations. A restored host starts as any
//! host does: with an incarnation above all that it stored and that other hosts have heard of.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Fields;
use crate::catalogue::{Journal, LAYOUT};

/// The label of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackupLabel {
    /// Version of the form of backups.
    pub format: u32,
    /// Layout of the catalogue.
    pub layout: u32,
    /// Name of the host.
    pub host: String,
    /// Name of its cluster.
    pub cluster: String,
    /// When it was taken, such as `2026-11-18T12:37:46Z`.
    pub taken: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// Records in the catalogue: keys, sets, and what is stored about them.
    pub records: u64,
    /// The files of the catalogue, and the bytes of each. Backups of the first version have none.
    #[serde(default)]
    pub files: BTreeMap<String, u64>,
}

/// A backup that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its name in the directory of backups.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its label.
    pub label: BackupLabel,
    /// Bytes of its catalogue.
    pub bytes: u64,
}

impl Backup {
    /// All of it, as ports and commands show it.
    #[must_use]
    pub fn fields(&self) -> Fields {
        vec![
            ("name", self.name.as_str().into()),
            ("path", self.path.display().to_string().into()),
            ("host", self.label.host.as_str().into()),
            ("taken", self.label.taken.as_str().into()),
            ("records", self.label.records.into()),
            ("bytes", self.bytes.into()),
        ]
    }
}

/// Why a backup could not be written. There is none of that name that was not there before.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("a backup of this host is being written: wait until it is done")]
    Busy,
    #[error("there is a backup of this name already: {}", .0.display())]
    Exists(PathBuf),
    #[error("the directory of backups cannot be used: {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("the catalogue cannot be copied: {0}")]
    Store(#[from] umbel_store::Error),
    #[error("the catalogue cannot be written now: {0}")]
    Failed(String),
}

/// Why a backup could not be restored. The data directory has no catalogue that was not there before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The directory has no label.
    #[error(
        "{} is no backup of a host: it has no {LABEL} (an interrupted backup has none)", .0.display()
    )]
    NoBackup(PathBuf),
    /// The label cannot be parsed.
    #[error("{}: {reason}", path.display())]
    Label {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer version has written it.
    #[error("umbel {0} has written this backup, in a form that this version does not know")]
    Newer(String),
    /// The length of a file of the backup differs from the label.
    #[error(
        "the backup is damaged: {} has {found} bytes instead of {expected} (copy it again)",
        path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        found: u64,
        /// Its bytes according to the label.
        expected: u64,
    },
    /// The number of records in the catalogue differs from the label.
    #[error("the backup is damaged: it has {found} records instead of {expected}")]
    Records {
        /// Its records.
        found: u64,
        /// Its records according to the label.
        expected: u64,
    },
    /// The data directory has a catalogue.
    #[error("{} exists: restore into another directory, or move it away first", .0.display())]
    Occupied(PathBuf),
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The backup is damaged, or could not be copied.
    #[error(transparent)]
    Store(#[from] umbel_store::Error),
}

/// Where a catalogue is, in a data directory and in a backup.
pub(crate) const CATALOGUE: &str = "catalogue";
const LABEL: &str = "backup.json";
const FORMAT: u32 = 1;
/// The store's files while a backup is written, in the data directory.
const STAGED: &str = "backup.partial";
/// A catalogue that is being restored, in the data directory.
const UNFINISHED: &str = "catalogue.partial";

/// Whether this can be the name of a backup: it becomes a directory's name, and must stay within
/// the directory of backups.
pub(crate) fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    (1..=128).contains(&text.len()) && !text.starts_with('.') && text.chars().all(is_allowed)
}

/// What is to be backed up, and where.
#[derive(Debug)]
pub(crate) struct Request {
    /// The host's data directory.
    pub(crate) data: PathBuf,
    /// The directory of backups, which must exist.
    pub(crate) backups: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) host: String,
    pub(crate) cluster: String,
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
}

/// Writes a backup. Takes as long as copying the catalogue.
pub(crate) fn write(journal: &Journal, request: &Request) -> Result<Backup, BackupError> {
    let Request { data, backups, host, now_ms, .. } = request;
    let _alone = journal.lock_backups().ok_or(BackupError::Busy)?;
    fs::read_dir(backups)
        .map_err(|source| BackupError::Directory { path: backups.clone(), source })?;
    let name = request.name.clone().unwrap_or_else(|| default_name(host, *now_ms));
    // Absolute: the client that receives this path may run in another directory.
    let path = std::path::absolute(backups.join(&name)).map_err(failed("find", backups))?;
    if fs::symlink_metadata(&path).is_ok() {
        return Err(BackupError::Exists(path));
    }
    // One name a host: what an interrupted backup left is replaced by the next one. Names of
    // backups do not begin with a dot.
    let (staged, partial) = (data.join(STAGED), backups.join(format!(".{host}.partial")));
    let written = stage(journal, &staged)
        .and_then(|()| copy(&staged, &partial, request))
        .and_then(|done| put_in_place(&partial, &path).map(|()| done));
    // The reason of a failure matters more than what could not be removed.
    let _ = fs::remove_dir_all(&staged);
    if written.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    let (label, bytes) = written?;
    Ok(Backup { name, path, label, bytes })
}

/// Removes what a backup that was interrupted left in the data directory: it keeps files from being
/// freed.
pub(crate) fn clean(data: &Path) {
    let _ = fs::remove_dir_all(data.join(STAGED));
}

/// Fixes the state that is backed up: everything acknowledged so far.
fn stage(journal: &Journal, staged: &Path) -> Result<(), BackupError> {
    remove(staged)?;
    journal.flush();
    journal.check().map_err(|error| BackupError::Failed(error.to_string()))?;
    journal.link_store(staged)?;
    Ok(())
}

/// Copies and verifies the staged files.
fn copy(
    staged: &Path,
    partial: &Path,
    request: &Request,
) -> Result<(BackupLabel, u64), BackupError> {
    remove(partial)?;
    make_private(partial).map_err(failed("make", partial))?;
    let catalogue = partial.join(CATALOGUE);
    let records = umbel_store::restore(staged, &catalogue, |_| ())?;
    let files = lengths(&catalogue).map_err(failed("read", &catalogue))?;
    let bytes = files.values().sum();
    let label = BackupLabel {
        format: FORMAT,
        layout: LAYOUT,
        host: request.host.clone(),
        cluster: request.cluster.clone(),
        taken: iso(request.now_ms),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        records,
        files,
    };
    let file = partial.join(LABEL);
    let json = serde_json::to_string_pretty(&label).expect("a label of numbers and text");
    write_durably(&file, json.as_bytes()).map_err(failed("write", &file))?;
    sync(partial).map_err(failed("sync", partial))?;
    Ok((label, bytes))
}

fn put_in_place(partial: &Path, path: &Path) -> Result<(), BackupError> {
    fs::rename(partial, path).map_err(failed("rename", partial))?;
    let backups = path.parent().unwrap_or(path);
    sync(backups).map_err(failed("sync", backups))
}

/// Creates the catalogue of a data directory from a backup, and verifies all of it.
///
/// ```
/// # fn main() -> Result<(), umbel_node::RestoreError> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
/// # std::fs::create_dir(&backup).unwrap();
/// match umbel_node::restore(&backup, &data, |_| ()) {
///     Err(umbel_node::RestoreError::NoBackup(path)) => assert_eq!(path, backup),
///     other => panic!("an empty directory is no backup: {other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If there is no complete backup, the directory has a catalogue, the backup is damaged, or the
/// system refuses; then nothing has changed.
pub fn restore(
    backup: &Path,
    data: &Path,
    progress: impl FnMut(umbel_store::Progress),
) -> Result<BackupLabel, RestoreError> {
    let label = read_label(backup)?;
    let catalogue = data.join(CATALOGUE);
    if fs::read_dir(&catalogue).is_ok_and(|mut files| files.next().is_some()) {
        return Err(RestoreError::Occupied(catalogue));
    }
    check_lengths(&backup.join(CATALOGUE), &label)?;
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::Io { action, path, source }
    };
    make_private(data).map_err(io("make", data))?;
    let unfinished = data.join(UNFINISHED);
    remove_if_there(&unfinished).map_err(io("remove", &unfinished))?;
    let restored = umbel_store::restore(backup.join(CATALOGUE), &unfinished, progress)
        .map_err(RestoreError::from)
        .and_then(|records| check_records(records, &label))
        .and_then(|()| fs::rename(&unfinished, &catalogue).map_err(io("rename", &unfinished)));
    if let Err(error) = restored {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    sync(data).map_err(io("sync", data))?;
    Ok(label)
}

/// Compares the files of a backup with its label.
fn check_lengths(catalogue: &Path, label: &BackupLabel) -> Result<(), RestoreError> {
    for (name, expected) in &label.files {
        let path = catalogue.join(name);
        let found = fs::metadata(&path).map_err(|source| {
            let path = path.clone();
            RestoreError::Io { action: "read", path, source }
        })?;
        let (found, expected) = (found.len(), *expected);
        if found != expected {
            return Err(RestoreError::Length { path, found, expected });
        }
    }
    Ok(())
}

const fn check_records(found: u64, label: &BackupLabel) -> Result<(), RestoreError> {
    match found == label.records {
        true => Ok(()),
        false => Err(RestoreError::Records { found, expected: label.records }),
    }
}

fn read_label(backup: &Path) -> Result<BackupLabel, RestoreError> {
    let path = backup.join(LABEL);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RestoreError::NoBackup(backup.to_owned()));
        }
        text => {
            text.map_err(|source| RestoreError::Io { action: "read", path: path.clone(), source })?
        }
    };
    let label: BackupLabel = serde_json::from_slice(&text)
        .map_err(|error| RestoreError::Label { path, reason: error.to_string() })?;
    if label.format > FORMAT || label.layout > LAYOUT {
        return Err(RestoreError::Newer(label.version));
    }
    Ok(label)
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { action, path, source }
}

fn remove(path: &Path) -> Result<(), BackupError> {
    remove_if_there(path).map_err(failed("remove", path))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a directory that only its owner can read, if there is none.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// Makes the names in a directory durable.
fn sync(directory: &Path) -> io::Result<()> {
    // Other systems have no way to sync a directory, and do not need one.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// The files of a directory that are not empty, and the bytes of each.
fn lengths(directory: &Path) -> io::Result<BTreeMap<String, u64>> {
    let length = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()))
    };
    let all: io::Result<BTreeMap<String, u64>> = fs::read_dir(directory)?.map(length).collect();
    Ok(all?.into_iter().filter(|(_, bytes)| *bytes > 0).collect())
}

fn default_name(host: &str, now_ms: u64) -> String {
    let stamp: String = iso(now_ms).chars().filter(|c| !"-:".contains(*c)).collect();
    format!("{}-{stamp}", host.trim_start_matches('.'))
}

/// A time as `2026-11-18T12:37:46Z`.
fn iso(since_1970_ms: u64) -> String {
    let seconds = since_1970_ms / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days of eras of 400 years, each beginning on 1 March: leap days come last in their year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_the_calendar_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59Z"),
            (1_735_689_600_000, "2025-01-01T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso(ms), text);
        }
        assert_eq!(default_name("cache-1", 0), "cache-1-19700101T000000Z");
    }

    #[test]
    fn names_stay_in_the_directory_of_backups() {
        for name in ["a", "cache-1-19700101T000000Z", "x.y_z", &"x".repeat(128)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".hidden", "a/b", "/etc", "a\0b", "ü", "a b", &"x".repeat(129)]
        {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name(&default_name("..", 0)));
    }
}
