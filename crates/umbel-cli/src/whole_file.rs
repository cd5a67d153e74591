//! Writes files atomically: a file is complete or not there at all.
//!
//! Always true: a file is replaced by renaming a complete one over it, so that a reader sees the
//! old file or the new one, also after a crash or on a full disk. Unless the process is killed with
//! SIGKILL, no partial file is left.

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use tempfile::NamedTempFile;

/// Writes a temporary file in the same directory and renames it, with the permissions and owner of
/// the file that it replaces, if these are given.
pub(crate) fn write(path: &Path, bytes: &[u8], replaced: Option<&Metadata>) -> std::io::Result<()> {
    fill_and_move(temporary_in(parent(path))?, path, bytes, replaced)
}

/// Writes a file that only its owner may read. If it replaces a file, permissions and owner of that
/// file are kept.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Temporary files are created with mode 0600, and keep it when renamed.
    let file =
        tempfile::Builder::new().prefix(".umbel-").suffix(".tmp").tempfile_in(parent(path))?;
    fill_and_move(file, path, bytes, std::fs::metadata(path).ok().as_ref())
}

fn fill_and_move(
    mut file: NamedTempFile,
    path: &Path,
    bytes: &[u8],
    replaced: Option<&Metadata>,
) -> std::io::Result<()> {
    let _unfinished = Unfinished::new(&file);
    file.write_all(bytes)?;
    if let Some(replaced) = replaced {
        like(&file, replaced)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    // Best effort: the file is complete and in place. If a power loss undoes the rename, the old
    // file is there.
    let _ = File::open(parent(path)).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Temporary files that are being written.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Guard of a temporary file: while it exists, the file is removed on Ctrl-C and SIGTERM, which
/// would otherwise end the process without cleaning up.
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(file: &NamedTempFile) -> Self {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(watch_signals);
        let path = file.path().to_owned();
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Self(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        unfinished.retain(|path| *path != self.0);
    }
}

/// Removes unfinished files when a signal asks the process to end, and ends it. If signals cannot
/// be caught, such files may be left behind; that is no reason not to write.
#[cfg(unix)]
fn watch_signals() {
    use tokio::signal::unix::SignalKind;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let _ = crate::signals::on_first(kinds, |kind| {
        let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        unfinished.iter().for_each(|path| drop(std::fs::remove_file(path)));
        std::process::exit(128 + kind.as_raw_value());
    });
}

#[cfg(not(unix))]
fn watch_signals() {}

/// The directory that a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A temporary file with the permissions of any other new file, as set by the umask.
#[cfg(unix)]
fn temporary_in(directory: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder
        .prefix(".umbel-")
        .suffix(".tmp")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(directory)
}

#[cfg(not(unix))]
fn temporary_in(directory: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".umbel-").suffix(".tmp").tempfile_in(directory)
}

/// Gives a file the permissions, and if allowed the owner, of the one that it replaces.
fn like(file: &NamedTempFile, replaced: &Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Only root may change the owner; otherwise the new file belongs to the current user.
        let _ = fchown(file.as_file(), Some(replaced.uid()), Some(replaced.gid()));
    }
    file.as_file().set_permissions(replaced.permissions())
}
