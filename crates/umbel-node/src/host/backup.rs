//! Backups of this host, taken while it runs.

use super::{Host, wall_clock_ms};
use crate::backup::{self, Backup, Request};
use crate::error::HostError;
use crate::settings::Storage;

impl Host {
    /// Writes a backup of the catalogue into the directory that the setting `backups` names, and
    /// verifies it. Everything acknowledged before the call is in it. Changes and questions go on
    /// meanwhile. Without a name the backup gets the host's name and the time. [`crate::restore`]
    /// creates a data directory from it.
    ///
    /// The backup is finished even if the caller no longer waits for it.
    ///
    /// # Errors
    /// If the host keeps its keys in memory or has no directory for backups, the name is taken or
    /// invalid, another backup is being written, or the system refuses; then no backup was added.
    pub async fn backup(&self, name: Option<&str>) -> Result<Backup, HostError> {
        let refuse = |why: &str| HostError::Backup(why.to_owned());
        let settings = self.inner.live.current();
        let Storage::Folder(data) = &settings.storage else {
            return Err(refuse("this host keeps its keys in memory"));
        };
        let Some(journal) = self.inner.sets.journal() else {
            return Err(refuse("this host keeps its keys in memory"));
        };
        if name.is_some_and(|name| !backup::is_name(name)) {
            return Err(refuse(BAD_NAME));
        }
        let Some(backups) = settings.backups.clone() else {
            return Err(refuse(NO_DIRECTORY));
        };
        let request = Request {
            data: data.clone(),
            backups,
            name: name.map(str::to_owned),
            host: settings.name.to_string(),
            cluster: settings.cluster.to_string(),
            now_ms: wall_clock_ms(),
        };
        let written = tokio::task::spawn_blocking(move || {
            let written = backup::write(&journal, &request);
            match &written {
                Ok(Backup { path, bytes, label, .. }) => {
                    let (path, records) = (path.display(), label.records);
                    tracing::info!(%path, records, bytes, "backup written");
                }
                Err(error) => tracing::warn!(%error, "no backup was written"),
            }
            written
        });
        let written = written.await.map_err(|_| HostError::Stopping)?;
        written.map_err(|error| HostError::Backup(error.to_string()))
    }
}

const BAD_NAME: &str = "a backup's name has 1 to 128 letters, digits, '.', '_' and '-', and does \
                        not begin with '.'";
const NO_DIRECTORY: &str =
    "this host has no directory for backups: give one in its setting 'backups'";
