//! `umbel prefix build`: builds a table from lines.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;
use umbel::prefix::{AnyTable, Ipv4Prefix, Ipv6Prefix, Labelled, Name, Prefix};

use super::{Options, kind_of, lines};
use crate::cmd::filter::file::{Content, Target};
use crate::cmd::filter::print;
use crate::lines::name;
use crate::output::{self, bytes, count};
use crate::progress::Progress;

/// Build a table of prefixes from lines `prefix value`
///
/// The value is the rest of the line. All prefixes are of one kind: IPv4, IPv6 or names. A
/// malformed prefix, bits set beyond its length, a prefix that comes twice or one of another kind
/// is an error, and nothing is written.
#[derive(Args)]
#[command(after_help = "\
Example:
  printf '10.0.0.0/8 lab\\n10.1.0.0/16 office\\n' | umbel prefix build -o routes.umbel
  umbel prefix build -o names.umbel names.txt     # lines such as: /video/2024 host-7")]
pub(super) struct Build {
    /// File to write; an existing umbel file is replaced, any other file is not
    #[arg(short, long, value_name = "TABLE")]
    output: PathBuf,
    /// File of lines; standard input if none is named, or for '-'
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer {
    kind: &'static str,
    prefixes: usize,
    bytes_on_disk: usize,
}

impl Build {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<ExitCode> {
        let target = Target::new(&self.output, Content::Table)?;
        let mut rows = Rows::Empty;
        lines::each(self.file.as_deref(), &Progress::new("reading"), |number, line| {
            let (prefix, value) = line
                .split_once(char::is_whitespace)
                .with_context(|| format!("'{}' has no value behind it", shown(line)))?;
            rows.add(number, prefix, value.trim_start())
        })?;
        let source = lines::source_name(self.file.as_deref());
        let (table, prefixes) = rows.build().with_context(|| source.clone())?;
        ensure!(prefixes > 0, "{source}: there are no prefixes in it");
        let encoded = table.encode();
        options.memory_limit().check(encoded.len() as u64)?;
        target.write(&encoded)?;
        let answer = Answer { kind: kind_of(&table), prefixes, bytes_on_disk: encoded.len() };
        self.print_result(&answer, &target, options)
    }

    fn print_result(
        &self,
        answer: &Answer,
        target: &Target,
        options: &Options,
    ) -> anyhow::Result<ExitCode> {
        // If the table itself is written to standard output, print nothing else there.
        if target.is_file() {
            if options.json {
                print::json(answer)?;
            } else {
                output::print(&format!(
                    "{}: {} prefixes, {} on disk\n",
                    name(&self.output),
                    count(answer.prefixes as u64),
                    bytes(answer.bytes_on_disk as f64)
                ))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Lines of one kind, with their numbers.
type Lines<P> = Vec<(P, Box<str>, u64)>;

/// The lines so far; the first line determines the kind.
enum Rows {
    Empty,
    Ipv4(Lines<Ipv4Prefix>),
    Ipv6(Lines<Ipv6Prefix>),
    Names(Lines<Name>),
}

impl Rows {
    fn add(&mut self, number: u64, prefix: &str, value: &str) -> anyhow::Result<()> {
        if matches!(self, Self::Empty) {
            *self = match kind(prefix) {
                "IPv4" => Self::Ipv4(Vec::new()),
                "IPv6" => Self::Ipv6(Vec::new()),
                _ => Self::Names(Vec::new()),
            };
        }
        match self {
            Self::Ipv4(lines) => push(lines, number, prefix, value),
            Self::Ipv6(lines) => push(lines, number, prefix, value),
            Self::Names(lines) => push(lines, number, prefix, value),
            Self::Empty => unreachable!("the first line has decided"),
        }
    }

    fn build(self) -> anyhow::Result<(AnyTable, usize)> {
        Ok(match self {
            Self::Empty => (AnyTable::Ipv4(Labelled::with_room(&[])), 0),
            Self::Ipv4(lines) => (AnyTable::Ipv4(labelled(&lines)?), lines.len()),
            Self::Ipv6(lines) => (AnyTable::Ipv6(labelled(&lines)?), lines.len()),
            Self::Names(lines) => (AnyTable::Names(labelled(&lines)?), lines.len()),
        })
    }
}

/// The kind of prefix that a text looks like.
fn kind(prefix: &str) -> &'static str {
    match prefix {
        name if name.starts_with('/') => Name::NAME,
        address if address.contains(':') => Ipv6Prefix::NAME,
        _ => Ipv4Prefix::NAME,
    }
}

fn push<P: Prefix>(
    lines: &mut Lines<P>,
    number: u64,
    prefix: &str,
    value: &str,
) -> anyhow::Result<()> {
    let found = kind(prefix);
    if found != P::NAME && !lines.is_empty() {
        bail!("'{}' is of kind {found}, and the lines before are {}", shown(prefix), P::NAME);
    }
    let parsed: P = prefix.parse().with_context(|| format!("'{}'", shown(prefix)))?;
    lines.push((parsed, value.into(), number));
    Ok(())
}

/// The table of the lines, each prefix once.
fn labelled<P: Prefix>(lines: &Lines<P>) -> anyhow::Result<Labelled<P>> {
    let mut room = vec![0; usize::from(P::LONGEST) + 1];
    lines.iter().for_each(|(prefix, ..)| room[usize::from(prefix.length())] += 1);
    let mut table = Labelled::with_room(&room);
    let progress = Progress::new("building");
    progress.expect_bytes(Some(lines.len() as u64));
    for (prefix, value, number) in lines {
        if !table.insert_new(prefix.clone(), value) {
            let first = lines.iter().find(|(other, ..)| other == prefix);
            let first = first.map_or(0, |(.., first)| *first);
            bail!("line {number}: {prefix} is there already, in line {first}");
        }
        progress.advance(1);
    }
    progress.finish();
    Ok(table)
}

/// A text as errors show it: short, and on one line.
pub(super) fn shown(text: &str) -> String {
    umbel::text::for_terminal(&text.chars().take(80).collect::<String>()).into_owned()
}
