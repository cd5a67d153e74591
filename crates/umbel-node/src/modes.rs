//! Checks files and folders of a host that other users of the machine should not be able to read.
//!
//! A host creates its own files that way. Those that were created by hand, or by an earlier
//! version, are checked when a host starts and by `umbel doctor`. Nothing is changed, since a wider
//! mode may be intended.

use std::path::{Path, PathBuf};

use crate::settings::{Settings, Storage};

/// A file or folder that other users can read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooWide {
    /// What it is, such as `users`.
    pub what: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// The mode that it should have.
    pub mode: u32,
}

impl std::fmt::Display for TooWide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "others can read it: chmod {:o} {}", self.mode, self.path.display())
    }
}

/// Every file and folder in the settings that only its owner should access: what it is, its path,
/// and its mode.
#[must_use]
pub fn private_paths(settings: &Settings) -> Vec<(&'static str, &Path, u32)> {
    let mut paths = Vec::new();
    if let Storage::Folder(folder) = &settings.storage {
        paths.push(("data", folder.as_path(), 0o700));
    }
    let files = [
        ("hash key", settings.hash_key_file.as_ref()),
        ("users", settings.users.as_ref()),
        ("certificate key", settings.tls.as_ref().map(|files| &files.key)),
        ("host certificate key", settings.peer_tls.as_ref().map(|files| &files.own.key)),
    ];
    paths.extend(files.into_iter().filter_map(|(what, path)| Some((what, &**path?, 0o600))));
    paths
}

/// Checks whether other users can read or write the file at `path`. A missing file is fine.
#[must_use]
pub fn too_wide(what: &'static str, path: &Path, mode: u32) -> Option<TooWide> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let found = std::fs::metadata(path).ok()?.permissions().mode();
        (found & 0o077 != 0).then(|| TooWide { what, path: path.to_owned(), mode })
    }
    #[cfg(not(unix))]
    {
        let _ = (what, path, mode);
        None
    }
}

/// Logs a warning for each that other users can read.
pub(crate) fn warn(settings: &Settings) {
    for (what, path, mode) in private_paths(settings) {
        if let Some(found) = too_wide(what, path, mode) {
            tracing::warn!("{what}: {found}");
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_others_can_read_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hash-key");
        std::fs::write(&file, "0123456789abcdef").unwrap();
        for (mode, is_wide) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(too_wide("hash key", &file, 0o600).is_some(), is_wide, "{mode:o}");
        }
        assert_eq!(too_wide("hash key", &folder.path().join("none"), 0o600), None);
    }
}
