//! `umbel locate`: which hosts say themselves that they hold a key.

use std::process::ExitCode;

use clap::Args;

use super::ask::{Printer, found};
use super::keys::Keys;
use super::{Options, set_name};
use crate::client::{texts, wrong_answer};
use crate::output::{checked, ended_by_reader};
use crate::progress::Progress;

/// Print which hosts hold each key, after asking those hosts themselves
#[derive(Args)]
#[command(after_help = "\
Prints each key, a tab and the names of the hosts that confirmed it. Every confirmation
and every denial goes into the false positive rate that umbel info shows as measured.
Exit status as grep's: 0 if some key was located, 1 if none, 2 for errors.

Examples:
  umbel locate images layer/4f53
  umbel locate images layer/4f53 --timeout 50 --json")]
pub(crate) struct Locate {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    keys: Keys,
    /// Milliseconds to wait for the hosts [default: the asked host's own]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout: Option<u64>,
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

    /// Key by key: each waits for other hosts, and a reader should not wait for all.
    fn locate(&self, printer: &mut Printer) -> anyhow::Result<()> {
        let mut client = self.options.at.connect()?;
        let timeout = self.timeout.map(|timeout| timeout.to_string());
        self.keys.listed().read(&Progress::none(), &mut |key| {
            let mut words: Vec<&[u8]> = vec![b"UMBEL.LOCATE", self.set.as_bytes(), key];
            if let Some(timeout) = &timeout {
                words.extend([&b"TIMEOUT"[..], timeout.as_bytes()]);
            }
            let answer = client.ask(&words)?;
            let hosts = texts(&answer).ok_or_else(|| wrong_answer(client.address(), &answer))?;
            printer.asked += 1;
            checked(printer.hosts(key, &hosts).and_then(|()| printer.flush()))
        })
    }
}
