//! `umbel prefix`: tables of prefixes as files, for longest-prefix matching.
//!
//! Always true: a command that fails has changed no file.

mod build;
mod lines;
mod lookup;
mod stat;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use umbel::prefix::AnyTable;

use super::filter::file::{Content, explain, read_bytes};
use super::filter::memory::MemoryLimit;
use super::filter::print;
use crate::lines::name;

/// Build tables of prefixes and find the longest match of addresses and names
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PrefixCommand {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: Options,
}

const EXAMPLES: &str = "\
A table holds IPv4 prefixes (10.0.0.0/8), IPv6 prefixes (2001:db8::/32) or names (/video/2024),
each with a value, which is any text.

Examples:
  printf '10.0.0.0/8 lab\\n10.1.0.0/16 office\\n' | umbel prefix build -o routes.umbel
  umbel prefix lookup routes.umbel 10.1.2.3 192.0.2.1
  umbel prefix lookup routes.umbel < addresses.txt
  umbel prefix stat routes.umbel --json

Exit status: 0 done, 2 an error, which is printed in one line and has changed nothing.";

/// What every subcommand understands.
#[derive(Args)]
struct Options {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Largest table to hold in memory, such as 512M or 8G [default: the available memory; for a
    /// table that is read, at most 256 MiB or 16 times the size of its file]
    #[arg(long, global = true, value_name = "SIZE", value_parser = crate::values::size)]
    max_memory: Option<u64>,
}

impl Options {
    fn memory_limit(&self) -> MemoryLimit {
        self.max_memory.map_or_else(MemoryLimit::of_system, MemoryLimit::new)
    }
}

#[derive(Subcommand)]
enum Command {
    Build(build::Build),
    Lookup(lookup::Lookup),
    Stat(stat::Stat),
}

impl PrefixCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let options = &self.options;
        print::ended_by_reader(match self.command {
            Command::Build(command) => command.run(options),
            Command::Lookup(command) => command.run(options),
            Command::Stat(command) => command.run(options),
        })
    }
}

/// Reads a table.
fn read(path: &Path, options: &Options) -> anyhow::Result<AnyTable> {
    let limit = options.memory_limit();
    let bytes = read_bytes(path, limit)?;
    if let Some(other @ (Content::Filter | Content::Delta)) = Content::of(&bytes) {
        bail!("{}: this is {other}, not a table: umbel filter reads it", name(path));
    }
    AnyTable::decode(&bytes, limit.of_file(bytes.len())).map_err(|error| explain(error, path))
}

/// The name of a table's kind.
const fn kind_of(table: &AnyTable) -> &'static str {
    match table {
        AnyTable::Ipv4(_) => "ipv4",
        AnyTable::Ipv6(_) => "ipv6",
        AnyTable::Names(_) => "names",
    }
}
