//! `umbel watch`: keeps a set of a host equal to a directory, as files come and go. A host does the
//! same for the directories of its own configuration.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use umbel_node::watch::{self, PAUSE, Synced, Tree, Watcher};

use super::files::FileArgs;
use super::sync::{Listing, Target};
use super::{Options, set_name};

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// Keep a set equal to the files of a directory, as they come and go
#[derive(Args)]
#[command(
    override_usage = "umbel watch [OPTIONS] <SET> --dir <DIR>",
    after_help = "\
Files that are added, moved or removed reach the host within a fraction of a second. The whole
directory is scanned at the start, when the system reports that events were lost, and at the
interval of --every. A directory that disappears or has no files left changes nothing, unless
--allow-empty is given: it is reported on standard error, and the next scan tries again.
Temporary files and symbolic links out of the directory are ignored.

Examples:
  umbel watch images --dir /var/cache/images
  umbel watch pages --dir /var/cache/nginx --key basename
  umbel watch blobs --dir /var/lib/registry --include 'blobs/*' --min-age 5s"
)]
pub(crate) struct Watch {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    /// Directory whose files are the keys
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    files: FileArgs,
    /// Interval between scans of the whole directory, such as 60 or 5m
    #[arg(long, value_name = "DURATION", value_parser = crate::values::seconds, default_value = "600")]
    every: f64,
    /// Let an empty directory empty the set
    #[arg(long)]
    allow_empty: bool,
    #[command(flatten)]
    options: Options,
}

impl Watch {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let Self { set, options, allow_empty, .. } = self;
        let mut target = Target { set, options, allow_empty: *allow_empty };
        let every = Duration::from_secs_f64(self.every);
        let mut watcher = Watcher::new(self.files.tree(&self.dir), every, *allow_empty);
        // What is wrong at the start ends the command.
        let mut outcome = Ok(watcher.step(&mut target)?);
        loop {
            match outcome {
                Ok(None) => {}
                Ok(Some(synced)) => target.report(synced)?,
                Err(error) => {
                    crate::complain(&format!("{error:#}"));
                    std::thread::sleep(RETRY);
                }
            }
            std::thread::sleep(PAUSE);
            outcome = watcher.step(&mut target);
        }
    }
}

impl watch::Target for Target<'_> {
    type Error = anyhow::Error;

    fn scan(&mut self, tree: &Tree) -> anyhow::Result<Synced> {
        self.pass(&Listing::Dir(tree.clone()))
    }

    fn add(&mut self, keys: &[Vec<u8>]) -> anyhow::Result<u64> {
        self.change("UMBEL.ADD", |each| keys.iter().try_for_each(|key| each(key)))
    }

    fn remove(&mut self, keys: &[Vec<u8>]) -> anyhow::Result<u64> {
        self.change("UMBEL.REM", |each| keys.iter().try_for_each(|key| each(key)))
    }
}
