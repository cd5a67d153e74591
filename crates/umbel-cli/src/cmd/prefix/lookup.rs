//! `umbel prefix lookup`: finds the longest matching prefix of each address.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use clap::Args;
use serde::Serialize;
use umbel::prefix::{AnyTable, Labelled, Prefix};

use super::build::shown;
use super::{Options, lines, read};
use crate::cmd::filter::print;
use crate::output::{json_line, part};
use crate::progress::Progress;

/// Print the longest prefix of each address, and its value
///
/// Prints one line per address, in order: `address<TAB>prefix<TAB>value`, or `address<TAB>-` where
/// no prefix matches. Addresses are read from standard input, one per line, if none is given.
#[derive(Args)]
#[command(after_help = "\
With --json: one object a line, {\"address\": \"10.1.2.3\", \"prefix\": \"10.0.0.0/8\", \"value\": \"lab\"},
with null for prefix and value where no prefix matches.

Examples:
  umbel prefix lookup routes.umbel 10.1.2.3 192.0.2.1
  umbel prefix lookup names.umbel /video/2024/intro
  cut -f1 access.tsv | umbel prefix lookup routes.umbel > matches.tsv")]
pub(super) struct Lookup {
    /// Table to query
    table: PathBuf,
    /// Addresses or names; read from standard input if there are none
    #[arg(value_name = "ADDR")]
    addresses: Vec<String>,
}

/// Addresses that are looked up together.
const BATCH: usize = 4096;

impl Lookup {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<ExitCode> {
        match read(&self.table, options)? {
            AnyTable::Ipv4(table) => self.ask(&table, options, "an IPv4 address"),
            AnyTable::Ipv6(table) => self.ask(&table, options, "an IPv6 address"),
            AnyTable::Names(table) => self.ask(&table, options, "a name such as /a/b"),
        }
    }

    fn ask<P: Prefix>(
        &self,
        table: &Labelled<P>,
        options: &Options,
        wanted: &str,
    ) -> anyhow::Result<ExitCode>
    where
        P::Address: FromStr + Display,
    {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let mut asker = Asker { table, out, json: options.json, waiting: Vec::new() };
        let parse = |text: &str| -> anyhow::Result<P::Address> {
            text.parse().map_err(|_| anyhow!("'{}' is not {wanted}", shown(text)))
        };
        if self.addresses.is_empty() {
            let progress = self.progress();
            let read = lines::each(None, &progress, |_, line| asker.add(parse(line)?));
            // Print the answers for the lines before an invalid one.
            asker.finish()?;
            read?;
        } else {
            let all: Result<Vec<_>, _> = self.addresses.iter().map(|text| parse(text)).collect();
            all?.into_iter().try_for_each(|address| asker.add(address))?;
            asker.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// No bar if answers are printed to the same terminal: they would overwrite each other.
    fn progress(&self) -> Progress {
        if io::stdout().is_terminal() { Progress::none() } else { Progress::new("asking") }
    }
}

struct Asker<'t, P: Prefix> {
    table: &'t Labelled<P>,
    out: BufWriter<StdoutLock<'static>>,
    json: bool,
    waiting: Vec<P::Address>,
}

#[derive(Serialize)]
struct Answer<'a> {
    address: String,
    prefix: Option<String>,
    value: Option<&'a str>,
}

impl<P: Prefix> Asker<'_, P>
where
    P::Address: Display,
{
    fn add(&mut self, address: P::Address) -> anyhow::Result<()> {
        self.waiting.push(address);
        if self.waiting.len() < BATCH { Ok(()) } else { self.finish() }
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        let mut found = Vec::new();
        self.table.table().lookup_batch(&self.waiting, &mut found);
        for (address, found) in self.waiting.iter().zip(found) {
            let prefix = found.map(|found| P::of(address, found.length));
            let value = found.map(|found| self.table.value(*found.value));
            let written = if self.json {
                let prefix = prefix.map(|prefix| prefix.to_string());
                let answer = Answer { address: address.to_string(), prefix, value };
                let line = json_line(&answer).context("an answer as JSON")?;
                writeln!(self.out, "{line}")
            } else {
                match prefix.zip(value) {
                    Some((prefix, value)) => {
                        let value = String::from_utf8_lossy(&part(value.as_bytes())).into_owned();
                        writeln!(self.out, "{address}\t{prefix}\t{value}")
                    }
                    None => writeln!(self.out, "{address}\t-"),
                }
            };
            print::checked(written)?;
        }
        self.waiting.clear();
        print::checked(self.out.flush())
    }
}
