//! `umbel announce`, `umbel withdraw` and `umbel match`: prefixes of names, and longest-prefix
//! match.

use std::process::ExitCode;

use clap::Args;
use redis::Value;
use serde::Serialize;

use super::ask::{Found, Printer, found, progress};
use super::change::{Changed, change};
use super::keys::Names;
use super::{Options, set_name};
use crate::client::{Asked, stream, text, texts, wrong_answer};
use crate::output::{checked, count, ended_by_reader, print};

/// Announce prefixes of names, so that names below them match this host
#[derive(Args)]
#[command(
    override_usage = usage!("announce", "NAME"),
    after_help = "\
A name is /a/b/c: components match as a whole, a trailing slash is ignored, / alone is the prefix
of every name. The set is created if it does not exist. The names of a file are validated before
the first is sent.

Examples:
  umbel announce content /video/2024 /audio
  umbel announce content --file prefixes.txt --at cache-2:7440 --json"
)]
pub(crate) struct Announce {
    #[command(flatten)]
    prefixes: Prefixes,
}

/// Withdraw announced prefixes; prefixes that are not announced are ignored
#[derive(Args)]
#[command(
    override_usage = usage!("withdraw", "NAME"),
    after_help = "\
Examples:
  umbel withdraw content /video/2024
  umbel withdraw content --file gone.txt --json"
)]
pub(crate) struct Withdraw {
    #[command(flatten)]
    prefixes: Prefixes,
}

#[derive(Args)]
struct Prefixes {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    options: Options,
}

#[derive(Serialize)]
struct Announced<'a> {
    set: &'a str,
    prefixes: u64,
    announced: u64,
}

#[derive(Serialize)]
struct Withdrawn<'a> {
    set: &'a str,
    prefixes: u64,
    withdrawn: u64,
}

impl Announce {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let Prefixes { set, names, options } = &self.prefixes;
        let asked = Asked::new(&["UMBEL.ANNOUNCE", set]);
        let done = change(names.listed(), options, &asked, "announcing")?;
        let Changed { keys: prefixes, changed: announced } = done;
        let line = format!("announced {} of {} prefixes in", count(announced), count(prefixes));
        self.prefixes.print_result(&line, &Announced { set, prefixes, announced })
    }
}

impl Withdraw {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let Prefixes { set, names, options } = &self.prefixes;
        let asked = Asked::new(&["UMBEL.WITHDRAW", set]);
        let done = change(names.listed(), options, &asked, "withdrawing")?;
        let Changed { keys: prefixes, changed: withdrawn } = done;
        let line = format!("withdrew {} of {} prefixes from", count(withdrawn), count(prefixes));
        self.prefixes.print_result(&line, &Withdrawn { set, prefixes, withdrawn })
    }
}

impl Prefixes {
    fn print_result(&self, line: &str, done: &impl Serialize) -> anyhow::Result<ExitCode> {
        print(&match self.options.json {
            true => format!("{}\n", serde_json::to_string(done)?),
            false => format!("{line} {}\n", self.set),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Print the longest announced prefix of each name and the hosts that announce it
#[derive(Args)]
#[command(
    override_usage = usage!("match", "NAME"),
    after_help = "\
Prints each name, a tab, the prefix, a tab and the hosts; a dash where nothing is announced.
Answers come from the memory of the host that is asked: a name of n components is answered
wrongly at most n + 1 times as often as the set's false positive rate says. --confirm asks
the hosts themselves, from the longest prefix down, and is never wrong.
Exit status as grep's: 0 if some name has a prefix, 1 if none, 2 for errors.
With --json: {\"names\": [{\"name\": \"/a/b\", \"prefix\": \"/a\", \"hosts\": [\"cache-1\"]}],
\"asked\": 1, \"count\": 1}; prefix is null where nothing is announced.

Examples:
  umbel match content /video/2024/intro
  umbel match content --file wanted.txt --confirm=500 --json"
)]
pub(crate) struct Match {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    names: Names,
    /// Ask the hosts and wait at most this many milliseconds, or a duration such as 2s [default:
    /// 2000]
    #[arg(long, value_name = "MS", num_args = 0..=1, require_equals = true,
          default_missing_value = "2000", value_parser = |text: &str| crate::values::milliseconds(text, 50_000))]
    confirm: Option<u64>,
    #[command(flatten)]
    options: Options,
}

impl Match {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let names = self.names.listed();
        names.check()?;
        let at = &self.options.at;
        let confirm = self.confirm.map(|milliseconds| milliseconds.to_string());
        let behind: Vec<&str> = confirm.iter().flat_map(|time| ["CONFIRM", time]).collect();
        let asked = Asked::one_by_one(&["UMBEL.MATCH", &self.set], &behind);
        let mut printer = Printer::new(self.options.json, "names");
        let outcome = stream(
            at,
            &asked,
            |each| names.read(&progress(), each),
            |batch, answer| {
                let Value::Array(answers) = answer else {
                    return Err(wrong_answer(at.address(), answer));
                };
                for (name, answer) in batch.keys().zip(answers) {
                    printer.asked += 1;
                    let found =
                        matched(answer).ok_or_else(|| wrong_answer(at.address(), answer))?;
                    checked(printer.matched(name, found))?;
                }
                checked(printer.flush())
            },
        );
        let outcome = outcome.and_then(|()| checked(printer.finish()));
        ended_by_reader(outcome.map(|()| ExitCode::SUCCESS))?;
        Ok(found(printer.found))
    }
}

/// Decodes a prefix and its hosts, or nothing; `None` for a reply of an unexpected type.
fn matched(answer: &Value) -> Option<Option<Found<'_>>> {
    match answer {
        Value::Nil => Some(None),
        Value::Array(pair) => {
            let [prefix, hosts] = &pair[..] else { return None };
            Some(Some((text(prefix)?, texts(hosts)?)))
        }
        _ => None,
    }
}
