//! Files that are there whole or not at all.
//!
//! Always true: a file is replaced by renaming a complete one over it, so that a reader, a
//! full disk or a crash sees the old file or the new one; and unless the process is killed
//! outright, no half of one stays behind.

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use tempfile::NamedTempFile;

/// Writes a file beside its place and moves it there, with the permissions and owner of
/// the one that it replaces, if these are given.
pub(crate) fn write(path: &Path, bytes: &[u8], replaced: Option<&Metadata>) -> std::io::Result<()> {
    fill_and_move(temporary_in(parent(path))?, path, bytes, replaced)
}

/// Writes a file that nobody but its owner may read; one that it replaces keeps its
/// permissions and owner.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Temporary files are their owner's alone, and moved with that.
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
    // The file is whole and in place; a rename that a power cut undoes leaves the old one.
    let _ = File::open(parent(path)).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Temporary files that are being written.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary file that Ctrl-C and SIGTERM take away while this is there: they end a process
/// without more ado.
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

/// Takes unfinished files away when the process is asked to end, and ends it. Where signals
/// cannot be waited for, files may stay behind: that is no reason not to write one.
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

/// A temporary file with the permissions of any other new file: the umask decides.
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
        // Only root may give files away; for everybody else the new file is simply theirs.
        let _ = fchown(file.as_file(), Some(replaced.uid()), Some(replaced.gid()));
    }
    file.as_file().set_permissions(replaced.permissions())
}
