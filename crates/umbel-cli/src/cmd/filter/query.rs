//! `umbel filter query`: which of these keys may be in the filter?

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::file::read_filter;
use super::keys::KeyArgs;
use super::seed::SecretArgs;
use super::{Options, print};
use crate::output::{JsonKey, json_line, part};
use crate::progress::Progress;

/// Print the keys that a filter claims
///
/// A key that is not printed is certainly not in the filter; a key that is printed is in it, or is
/// one of the few that the filter claims wrongly (`info` shows how many). Exit status as grep's: 0
/// if some key was printed, 1 if none, 2 for errors.
#[derive(Args)]
#[command(after_help = "\
With --json: {\"keys\": [...], \"asked\": 3, \"count\": 1}, without the keys if --count is given;
a key that is not UTF-8 is an object {\"hex\": \"ff00\"}. After an error in the middle of the keys the
object is ended, with what was asked before it, and the exit status is 2.

Examples:
  umbel filter query seen.umbel candidates.txt
  umbel filter query seen.umbel candidates.txt --absent > certainly-new.txt
  echo apple | umbel filter query seen.umbel --count")]
pub(super) struct Query {
    /// Filter to query
    file: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print the keys that are certainly not in the filter instead
    #[arg(long)]
    absent: bool,
    /// Print only how many keys there are
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    secret: SecretArgs,
}

impl Query {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<ExitCode> {
        let limit = options.memory_limit();
        let filter = read_filter(&self.file, self.secret.decoder()?, limit)?;
        let mut printer = Printer::new(options.json, self.count);
        let mut answers = Vec::new();
        let mut asked = 0;
        let outcome = self.keys.read(&self.progress(), |keys| {
            filter.contains_batch(keys, &mut answers);
            let wanted = keys.iter().zip(&answers).filter(|(_, claimed)| **claimed != self.absent);
            asked += keys.len() as u64;
            print::checked(printer.print(wanted.map(|(key, _)| *key)))
        });
        if outcome.is_ok() || printer.has_begun() {
            // Complete JSON output that was started, also after an error.
            print::checked(printer.finish(asked))?;
        }
        outcome?;
        Ok(if printer.count > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    /// No bar if keys are printed to the same terminal: they would overwrite each other.
    fn progress(&self) -> Progress {
        if io::stdout().is_terminal() && !self.count {
            Progress::none()
        } else {
            Progress::new("asking")
        }
    }
}

/// Prints keys as they arrive, without buffering all of them: the list may exceed memory.
struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    form: Form,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines,
    Count,
    Json,
    JsonCount,
}

impl Printer {
    fn new(json: bool, count: bool) -> Self {
        let form = match (json, count) {
            (false, false) => Form::Lines,
            (false, true) => Form::Count,
            (true, false) => Form::Json,
            (true, true) => Form::JsonCount,
        };
        Self { out: BufWriter::with_capacity(1 << 16, io::stdout().lock()), form, count: 0 }
    }

    /// Prints a batch, and flushes it.
    fn print<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        for key in keys {
            match self.form {
                Form::Lines => {
                    self.out.write_all(&part(key))?;
                    self.out.write_all(b"\n")?;
                }
                Form::Json => self.print_json(key)?,
                Form::Count | Form::JsonCount => {}
            }
            self.count += 1;
        }
        self.out.flush()
    }

    fn print_json(&mut self, key: &[u8]) -> io::Result<()> {
        self.out.write_all(if self.count == 0 { b"{\"keys\":[" } else { b"," })?;
        self.out.write_all(json_line(&JsonKey::of(key))?.as_bytes())
    }

    /// Whether JSON output was started and must be completed.
    fn has_begun(&self) -> bool {
        self.form == Form::Json && self.count > 0
    }

    fn finish(&mut self, asked: u64) -> io::Result<()> {
        let count = self.count;
        match self.form {
            Form::Lines => {}
            Form::Count => writeln!(self.out, "{count}")?,
            Form::JsonCount => writeln!(self.out, "{{\"asked\":{asked},\"count\":{count}}}")?,
            Form::Json => {
                let start = if count == 0 { "{\"keys\":[" } else { "" };
                writeln!(self.out, "{start}],\"asked\":{asked},\"count\":{count}}}")?;
            }
        }
        self.out.flush()
    }
}
