//! `umbel filter add` and `remove`: change a filter in place.

use std::fmt;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use umbel::codec::{AnyFilter, Kind};
use umbel::filter::Removal;

use super::build::{Added, add_batch};
use super::file::{Content, Target, name, read_filter};
use super::keys::{KeyArgs, Tally};
use super::report::write_filter;
use super::seed::SecretArgs;
use super::{Options, print};
use crate::output::{count, counted};
use crate::progress::Progress;

/// Add keys to a filter, in place
///
/// The file is replaced at the end, in one step: an error or an interruption leaves it as it
/// was. Two commands at once on one file lose the changes of one of them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel filter add seen.umbel new-keys.txt
  echo one more | umbel filter add seen.umbel")]
pub(super) struct Add {
    /// Filter to add to
    file: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

impl Add {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let mut filter = read_filter(&self.file, self.secret.decoder()?, limit)?;
        let target = Target::new(&self.file, Content::Filter)?;
        let progress = Progress::new("adding");
        let tally = self.keys.read(&progress, |keys| add_batch(&mut filter, keys, limit))?;
        write_filter(&target, &self.file, &filter, &Added::of(tally), options)
    }
}

/// Remove keys from a counting or dynamic filter, in place
///
/// Only remove keys that were added: a filter cannot tell a key that was never added but is claimed
/// from one that was, and removing it takes bits away from others. Each line undoes one addition of
/// its key.
///
/// Reports how many keys were removed, how many were absent, and how many were kept: a dynamic
/// filter keeps a key that several of its components claim, since only one of them holds it.
/// Components of a dynamic filter whose keys now fit into one are merged.
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel filter remove cache.umbel evicted.txt
  umbel filter remove cache.umbel evicted.txt --json")]
pub(super) struct Remove {
    /// Filter to remove from
    file: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

impl Remove {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let mut filter = read_filter(&self.file, self.secret.decoder()?, limit)?;
        if matches!(filter.kind(), Kind::Standard | Kind::PlainDynamic | Kind::Blocked) {
            let (file, kind) = (name(&self.file), filter.kind());
            bail!(
                "{file}: this is {kind}, which cannot remove keys: build it with --kind counting"
            );
        }
        let target = Target::new(&self.file, Content::Filter)?;
        let mut removed = Removed::default();
        removed.tally = self.keys.read(&Progress::new("removing"), |keys| {
            keys.iter().for_each(|key| removed.count(remove(&mut filter, key)));
            Ok(())
        })?;
        if let AnyFilter::Dynamic(filter) = &mut filter {
            filter.shrink();
        }
        write_filter(&target, &self.file, &filter, &removed, options)?;
        self.warn_of_stuck(filter.stuck_counters());
        Ok(())
    }
}

impl Remove {
    /// Warns of saturated counters: a counter at its maximum is never decremented again.
    fn warn_of_stuck(&self, counters: u64) {
        if counters > 0 {
            let (file, counters) = (name(&self.file), counted(counters, "counter"));
            print::warn(format_args!(
                "{file}: {counters} stuck at 15: a removed key may still be claimed"
            ));
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Removed,
    Absent,
    Kept,
}

fn remove(filter: &mut AnyFilter, key: &[u8]) -> Outcome {
    let one_claims = match filter {
        AnyFilter::Counting(filter) => filter.remove(key),
        AnyFilter::Dynamic(filter) => match filter.remove(key) {
            Removal::Removed(_) => true,
            Removal::Absent => false,
            Removal::Kept => return Outcome::Kept,
        },
        AnyFilter::Standard(_) | AnyFilter::PlainDynamic(_) | AnyFilter::Blocked(_) => {
            unreachable!("plain filters are refused before any key is read")
        }
    };
    if one_claims { Outcome::Removed } else { Outcome::Absent }
}

/// Result of removing keys.
#[derive(Debug, Default, Serialize)]
struct Removed {
    removed: u64,
    absent: u64,
    kept: u64,
    #[serde(flatten)]
    tally: Tally,
}

impl Removed {
    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Removed => &mut self.removed,
            Outcome::Absent => &mut self.absent,
            Outcome::Kept => &mut self.kept,
        } += 1;
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (removed, [absent, kept]) =
            (counted(self.removed, "key"), [self.absent, self.kept].map(count));
        write!(f, "{removed} removed, {absent} absent, {kept} kept; ")
    }
}
