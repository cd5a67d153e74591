//! Files that are there whole or not at all.
//!
//! Always true: a file is replaced by renaming a complete one over it, so that a reader, a
//! full disk or a crash sees the old file or the new one.

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes a file beside its place and moves it there, with the permissions and owner of
/// the one that it replaces, if these are given.
pub(crate) fn write(path: &Path, bytes: &[u8], replaced: Option<&Metadata>) -> std::io::Result<()> {
    let parent = parent(path);
    let mut file = temporary_in(parent)?;
    file.write_all(bytes)?;
    if let Some(replaced) = replaced {
        like(&file, replaced)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The file is whole and in place; a rename that a power cut undoes leaves the old one.
    let _ = File::open(parent).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Writes a file that nobody but its owner may read; one that it replaces keeps its
/// permissions and owner.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let replaced = std::fs::metadata(path).ok();
    // Temporary files are their owner's alone, and moved with that.
    let mut file =
        tempfile::Builder::new().prefix(".umbel-").suffix(".tmp").tempfile_in(parent(path))?;
    file.write_all(bytes)?;
    if let Some(replaced) = &replaced {
        like(&file, replaced)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    let _ = File::open(parent(path)).and_then(|directory| directory.sync_all());
    Ok(())
}

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
