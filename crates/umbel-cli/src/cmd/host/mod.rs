//! Commands that query or change a running host, over its RESP port.

/// The usage of a command that takes a set and keys or names: clap would show the set last.
macro_rules! usage {
    ($command:literal, $what:literal) => {
        concat!(
            "umbel ",
            $command,
            " [OPTIONS] <SET> <",
            $what,
            ">...\n       ",
            "umbel ",
            $command,
            " [OPTIONS] <SET> --file <FILE>"
        )
    };
}

mod ask;
mod backup;
mod chain;
mod change;
mod commands;
mod everyone;
mod files;
mod keys;
mod list;
mod locate;
mod names;
mod show;
mod sync;
mod watch;

use clap::Args;

pub(crate) use ask::{Has, Missing, Who};
pub(crate) use backup::Backup;
pub(crate) use chain::Chain;
pub(crate) use change::{Add, Remove};
pub(crate) use commands::{Leave, PolicyCommand, Publish, Reserve};
pub(crate) use list::{Delete, KeysCommand};
pub(crate) use locate::Locate;
pub(crate) use names::{Announce, Match, Withdraw};
pub(crate) use show::{Hosts, Info, Sets};
pub(crate) use sync::Sync;
pub(crate) use watch::Watch;

use crate::client::At;
use crate::values;

/// What every command of this kind understands.
#[derive(Args)]
struct Options {
    #[command(flatten)]
    at: At,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A set's name on the command line: printable, without spaces, at most 255 bytes.
fn set_name(text: &str) -> Result<String, String> {
    let range = "a set's name has 1 to 255 bytes, none of them a space or control character";
    umbel::replica::Name::new(text).map(|name| name.to_string()).ok_or_else(|| range.to_owned())
}

/// A lifetime as hosts accept it: seconds, or `none`.
fn lifetime(text: &str) -> Result<String, String> {
    match text {
        "none" => Ok(text.to_owned()),
        _ => values::seconds(text)
            .map(|seconds| seconds.to_string())
            .map_err(|range| format!("{range}, or 'none'")),
    }
}
