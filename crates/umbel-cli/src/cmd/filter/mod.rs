//! `umbel filter`: filters as files, built from keys and combined with each other.
//!
//! A subcommand reads its inputs (`file`, `keys`, `seed`), calls the library, writes the whole
//! result at the end (`file`), and reports what it did (`report`).
//!
//! Always true: a command that fails has changed no file.

mod algebra;
mod build;
mod change;
mod delta;
pub(super) mod file;
mod info;
mod keys;
pub(super) mod memory;
mod number;
pub(super) mod print;
mod query;
mod report;
mod seed;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use memory::MemoryLimit;

/// Build, change, query and combine filters in files
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Filter {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: Options,
}

const EXAMPLES: &str = "\
Keys are lines of key files, or of standard input when no file is named (or '-').
A line ends with \\n or \\r\\n; any other byte belongs to the key; empty lines are skipped.

Examples:
  umbel filter build --items 1000000 --false-positive 0.01 -o seen.umbel keys.txt
  umbel filter query seen.umbel candidates.txt            # the keys that may be in it
  umbel filter query seen.umbel candidates.txt --absent   # the keys that certainly are not
  umbel filter delta monday.umbel tuesday.umbel -o change.umbel
  umbel filter apply monday.umbel change.umbel -o tuesday.umbel

Exit status: 0 done, or some keys found; 1 no key found (query only); 2 an error, which
is printed in one line and has changed nothing.";

/// What every subcommand understands.
#[derive(Args)]
struct Options {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Largest filter to hold in memory, such as 512M or 8G [default: the available memory; for a
    /// filter that is read, at most 256 MiB or 16 times the size of its file]
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
    Add(change::Add),
    Remove(change::Remove),
    Query(query::Query),
    Union(algebra::Union),
    Intersect(algebra::Intersect),
    Delta(delta::Delta),
    Apply(delta::Apply),
    Info(info::InfoCommand),
}

impl Filter {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let options = &self.options;
        let done = |()| ExitCode::SUCCESS;
        print::ended_by_reader(match self.command {
            Command::Build(command) => command.run(options).map(done),
            Command::Add(command) => command.run(options).map(done),
            Command::Remove(command) => command.run(options).map(done),
            Command::Query(command) => command.run(options),
            Command::Union(command) => command.run(options).map(done),
            Command::Intersect(command) => command.run(options).map(done),
            Command::Delta(command) => command.run(options).map(done),
            Command::Apply(command) => command.run(options).map(done),
            Command::Info(command) => command.run(options).map(done),
        })
    }
}
