//! `umbel backup`: backs up a host while it runs.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::Options;
use super::show::{map, print_json, shown};
use crate::client::{Fields, wrong_answer};
use crate::output::print;

/// Back up a running host into its directory of backups
#[derive(Args)]
#[command(after_help = "\
The host writes and verifies the backup on its own machine, in the directory that its setting
'backups' names. It goes on answering and accepting changes meanwhile. The backup holds the keys of
the host's own sets, not its configuration, certificates and users: keep those elsewhere. With users
it needs the permission 'admin'. umbel restore creates a data directory from it.

Examples:
  umbel backup
  umbel backup before-upgrade --at cache-2:7440 --json")]
pub(crate) struct Backup {
    /// Name of the backup [default: the host's name and the time]
    name: Option<String>,
    #[command(flatten)]
    options: Options,
}

/// A catalogue of any size is copied in this time. If it is over, the host goes on by itself.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

impl Backup {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut client = self.options.at.connect()?;
        let mut words: Vec<&[u8]> = vec![b"UMBEL.BACKUP"];
        words.extend(self.name.as_ref().map(String::as_bytes));
        let answer = client.ask_patiently(&words, PATIENCE)?;
        let fields = Fields::of(&answer).ok_or_else(|| wrong_answer(client.address(), &answer))?;
        if self.options.json {
            return print_json(&map(&fields));
        }
        let field = |name: &str| fields.get(name).map_or_else(|| "-".to_owned(), shown);
        let (path, records, bytes) = (field("path"), field("records"), field("bytes"));
        print(&format!("{path}: {records} records, {bytes} bytes\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
