//! `umbel watch`: keeps a set equal to a directory, as files come and go.
//!
//! The directory is followed before it is scanned, so that nothing is missed in between. Keys are
//! removed only while the directory has files, unless an empty one was permitted.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use umbel_node::watch::{Changes, Follower, Tree};

use super::files::FileArgs;
use super::sync::{Listing, Synced, Target};
use super::{Options, set_name};
use crate::lines;

/// How often it is looked whether something changed, and how long after a failure it is tried again.
const PAUSE: Duration = Duration::from_millis(100);
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
        let tree = self.files.tree(&self.dir);
        let Self { set, options, allow_empty, .. } = self;
        let target = Target { set, options, allow_empty: *allow_empty };
        let (mut follower, mut next_scan) = self.begin(&tree, &target)?;
        loop {
            std::thread::sleep(PAUSE);
            let outcome = self.step(&mut follower, &tree, &target, next_scan);
            match outcome {
                Ok(true) => next_scan = self.next_scan(),
                Ok(false) => {}
                Err(error) => {
                    crate::complain(&format!("{error:#}"));
                    std::thread::sleep(RETRY);
                    // What was reported and not passed on is found by a scan.
                    (follower, next_scan) = (None, Instant::now());
                }
            }
        }
    }

    /// Follows and scans; what is wrong at the start ends the command.
    fn begin(
        &self,
        tree: &Tree,
        target: &Target<'_>,
    ) -> anyhow::Result<(Option<Follower>, Instant)> {
        let follower = follow(tree)?;
        target.report(&target.pass(&Listing::Dir(tree.clone()))?)?;
        Ok((Some(follower), self.next_scan()))
    }

    fn next_scan(&self) -> Instant {
        Instant::now() + Duration::from_secs_f64(self.every)
    }

    /// Passes on what has changed; whether the tree was scanned.
    fn step(
        &self,
        follower: &mut Option<Follower>,
        tree: &Tree,
        target: &Target<'_>,
        next_scan: Instant,
    ) -> anyhow::Result<bool> {
        let follower = match follower {
            Some(follower) => follower,
            none => none.insert(follow(tree)?),
        };
        let changes = follower.changes().with_context(|| lines::name(tree.root()))?;
        if changes.is_scan_due || Instant::now() >= next_scan {
            target.report(&target.pass(&Listing::Dir(tree.clone()))?)?;
            return Ok(true);
        }
        self.pass_on(&changes, tree, target).map(|()| false)
    }

    fn pass_on(&self, changes: &Changes, tree: &Tree, target: &Target<'_>) -> anyhow::Result<()> {
        let send = |command, keys: &[Vec<u8>]| match keys {
            [] => Ok(0),
            keys => target.change(command, |each| keys.iter().try_for_each(|key| each(key))),
        };
        let added = send("UMBEL.ADD", &changes.added)?;
        if !changes.removed.is_empty() && !self.allow_empty {
            let why =
                "the directory has no files left: nothing is removed (--allow-empty permits it)";
            ensure!(!tree.is_empty(), "{}: {why}", lines::name(tree.root()));
        }
        let removed = send("UMBEL.REM", &changes.removed)?;
        if added + removed == 0 {
            return Ok(());
        }
        let listed = changes.added.len() as u64;
        target.report(&Synced { set: &self.set, listed, added, removed })
    }
}

fn follow(tree: &Tree) -> anyhow::Result<Follower> {
    Follower::new(tree.clone()).with_context(|| lines::name(tree.root()))
}
