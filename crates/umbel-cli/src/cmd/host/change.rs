//! `umbel add` and `umbel remove`: change the host's own set.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::keys::{Keys, Listed};
use super::{Options, lifetime, set_name};
use crate::client::{Asked, flags, stream, wrong_answer};
use crate::output::{count, print};
use crate::progress::Progress;

/// Add keys to a set of the host; the set is created if it does not exist
#[derive(Args)]
#[command(
    override_usage = usage!("add", "KEY"),
    after_help = "\
The keys of a file are validated before the first is sent. An error says how many keys were added.

Examples:
  umbel add images layer/4f53 layer/77aa
  umbel add images --file keys.txt --at cache-2:7440
  find . -type f | umbel add files -
  umbel add sessions --lifetime 1h token-17"
)]
pub(crate) struct Add {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    keys: Keys,
    /// Time after which the keys expire, such as 3600 or 1h; 'none': never [default: the set's own]
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    lifetime: Option<String>,
    #[command(flatten)]
    options: Options,
}

impl Add {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let asked = match &self.lifetime {
            None => Asked::new(&["UMBEL.ADD", &self.set]),
            Some(lifetime) => Asked::new(&["UMBEL.ADDEX", &self.set, lifetime]),
        };
        let Changed { keys, changed } =
            change(self.keys.listed(), &self.options, &asked, "adding")?;
        let set = &self.set;
        if self.options.json {
            let done = Added { set, keys, added: changed };
            print(&format!("{}\n", serde_json::to_string(&done)?))?;
        } else {
            print(&format!("added {} of {} keys to {set}\n", count(changed), count(keys)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Serialize)]
struct Added<'a> {
    set: &'a str,
    keys: u64,
    added: u64,
}

/// Remove keys from a set of the host; keys that are not in the set are ignored
#[derive(Args)]
#[command(
    override_usage = usage!("remove", "KEY"),
    after_help = "\
Examples:
  umbel remove images layer/4f53
  umbel remove images --file gone.txt --json"
)]
pub(crate) struct Remove {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    options: Options,
}

impl Remove {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let asked = Asked::new(&["UMBEL.REM", &self.set]);
        let Changed { keys, changed } =
            change(self.keys.listed(), &self.options, &asked, "removing")?;
        let set = &self.set;
        if self.options.json {
            let done = Removed { set, keys, removed: changed };
            print(&format!("{}\n", serde_json::to_string(&done)?))?;
        } else {
            print(&format!("removed {} of {} keys from {set}\n", count(changed), count(keys)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Serialize)]
struct Removed<'a> {
    set: &'a str,
    keys: u64,
    removed: u64,
}

/// Number of keys sent, and how many of them changed the set.
pub(super) struct Changed {
    pub(super) keys: u64,
    pub(super) changed: u64,
}

pub(super) fn change(
    keys: Listed<'_>,
    options: &Options,
    asked: &Asked,
    what: &'static str,
) -> anyhow::Result<Changed> {
    keys.check()?;
    let at = &options.at;
    let mut done = Changed { keys: 0, changed: 0 };
    stream(
        at,
        asked,
        |each| keys.read(&Progress::new(what), each),
        |batch, answer| {
            let flags =
                flags(answer, batch.len()).ok_or_else(|| wrong_answer(at.address(), answer))?;
            done.keys += batch.len() as u64;
            done.changed += flags.filter(|flag| *flag).count() as u64;
            Ok(())
        },
    )?;
    Ok(done)
}
