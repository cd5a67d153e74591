//! `umbel restore`: creates a host's data directory from a backup.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use umbel::text::for_terminal;

use super::store::{bytes_bar, follow};
use crate::output::print;

/// Create the data directory of a host from a backup
#[derive(Args)]
#[command(after_help = "\
Everything is verified on the way. The directory must not have a catalogue yet. Run it as the user
that the host runs as, who then owns the files.

The restored host keeps its name: start it with the configuration of the host that was backed up, on
the same machine or another. If the old host still runs, the restored one is refused. Changes made
after the backup are missing: umbel sync or umbel watch repairs that from the cache's directory.

Examples:
  umbel restore /var/backups/umbel/cache-1-20261118T123746Z /var/lib/umbel
  sudo -u umbel umbel restore /mnt/backups/before-upgrade /var/lib/umbel --json")]
pub(crate) struct Restore {
    /// Directory of the backup
    backup: PathBuf,
    /// Data directory of the host: its setting 'data'
    data: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let bar = bytes_bar("restoring", 1);
        let label = umbel_node::restore(&self.backup, &self.data, follow(&bar));
        bar.finish_and_clear();
        let label = label?;
        let (host, taken, records) = (&label.host, &label.taken, label.records);
        print(&match self.json {
            true => format!("{}\n", json!({ "host": host, "taken": taken, "records": records })),
            false => {
                let (host, taken) = (for_terminal(host), for_terminal(taken));
                format!("{records} records of host {host} as of {taken}\n")
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
