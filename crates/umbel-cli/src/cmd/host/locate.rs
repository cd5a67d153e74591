//! `umbel locate`: finds hosts that confirm that they hold a key.

use std::process::ExitCode;

use clap::Args;
use redis::Value;

use super::ask::{Printer, found};
use super::keys::Keys;
use super::{Options, set_name};
use crate::client::{texts, wrong_answer};
use crate::output::{checked, ended_by_reader};
use crate::progress::Progress;

/// Print which hosts hold each key, after asking those hosts
#[derive(Args)]
#[command(
    override_usage = usage!("locate", "KEY"),
    after_help = "\
Prints each key, a tab and the names of the hosts that confirmed it. Every confirmation
and every denial goes into the false positive rate that umbel info shows as measured.
In an overlay a query is routed from host to host: at most --hops far along the filters
that claim the key. With --path each holder is printed with the hosts on the way to it.
With --json: {\"keys\": [{\"key\": \"a\", \"hosts\": [\"cache-1\"]}], \"asked\": 1, \"count\": 1};
with --path every key has \"paths\" too, a list of names for each host.
Exit status as grep's: 0 if some key was located, 1 if none, 2 for errors.

Examples:
  umbel locate images layer/4f53
  umbel locate images layer/4f53 --timeout 50 --json
  umbel locate images layer/4f53 --hops 3 --path"
)]
pub(crate) struct Locate {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    keys: Keys,
    /// How long to wait for the hosts: milliseconds, or a duration such as 2s [default: the asked host's own]
    #[arg(long, value_name = "MS", value_parser = |text: &str| crate::values::milliseconds(text, 60_000))]
    timeout: Option<u64>,
    /// Hops that the query follows filters, in an overlay [default: as far as filters travel]
    #[arg(long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    hops: Option<u8>,
    /// Print the hosts on the way to each holder
    #[arg(long)]
    path: bool,
    #[command(flatten)]
    options: Options,
}

impl Locate {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.keys.listed().check()?;
        let mut printer = Printer::new(self.options.json, "keys");
        let outcome = self.locate(&mut printer).and_then(|()| checked(printer.finish()));
        ended_by_reader(outcome.map(|()| ExitCode::SUCCESS))?;
        Ok(found(printer.found))
    }

    /// Locates key by key: each query waits for other hosts, and a reader should not wait for all.
    fn locate(&self, printer: &mut Printer) -> anyhow::Result<()> {
        let mut client = self.options.at.connect()?;
        let limits = [
            ("TIMEOUT", self.timeout.map(|timeout| timeout.to_string())),
            ("HOPS", self.hops.map(|hops| hops.to_string())),
        ];
        self.keys.listed().read(&Progress::none(), &mut |key| {
            let mut words: Vec<&[u8]> = vec![b"UMBEL.LOCATE", self.set.as_bytes(), key];
            for (word, value) in &limits {
                if let Some(value) = value {
                    words.extend([word.as_bytes(), value.as_bytes()]);
                }
            }
            if self.path {
                words.push(b"WITHPATH");
            }
            let answer = client.ask(&words)?;
            let printed = if self.path {
                paths(&answer).map(|paths| printer.paths(key, &paths))
            } else {
                texts(&answer).map(|hosts| printer.hosts(key, &hosts))
            };
            let printed = printed.ok_or_else(|| wrong_answer(client.address(), &answer))?;
            printer.asked += 1;
            checked(printed.and_then(|()| printer.flush()))
        })
    }
}

/// Decodes lists of names, none of them empty.
fn paths(answer: &Value) -> Option<Vec<Vec<&[u8]>>> {
    let Value::Array(paths) = answer else { return None };
    paths.iter().map(|path| texts(path).filter(|path| !path.is_empty())).collect()
}
