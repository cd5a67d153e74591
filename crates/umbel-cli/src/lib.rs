//! The command line `umbel`: every subcommand is a file in `cmd/`, with no logic of its own.
//!
//! Text may come from outside, so nothing is printed but by `output` and [`complain`], which make it safe.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod client;
mod cmd;
mod lines;
mod output;
mod progress;
#[cfg(unix)]
mod signals;
mod values;
mod whole_file;

use std::io::Write as _;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};

#[derive(Parser)]
#[command(name = "umbel", version, about, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

const EXAMPLES: &str = "\
Examples:
  umbel demo                                  # real hosts on this machine, and their promises
  umbel serve --name cache-1 --data umbel-data   # a host
  umbel add images layer/4f53                 # a key into a set of the host that runs here
  umbel who images layer/4f53                 # which hosts hold it
  umbel plan replica --help                   # how large, how often, how many bytes
  umbel filter build --items 1e6 --false-positive 1% -o seen.umbel keys.txt";

/// The whole command line, for completions and manual.
fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the arguments of this process name.
///
/// What a command that answers a question returns: as grep, 0 for yes, 1 for no; errors are 2.
#[must_use]
pub fn run() -> ExitCode {
    give_large_memory_back();
    let outcome = match Cli::try_parse() {
        Ok(cli) => cli.command.run(),
        Err(usage) => return explain(&usage),
    };
    outcome.unwrap_or_else(|error| refuse(&format!("{error:#}")))
}

/// Has every large piece of memory go back to the system when it is no longer used. The
/// allocator would learn to keep such pieces as soon as a first one is freed: after a load of
/// 10 million keys a host held twice what it needed.
fn give_large_memory_back() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "the allocator takes its settings through C")]
    // SAFETY: it takes two numbers, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Help and version are answers. A bare command is told what it could do, in full; every
/// other mistake in the arguments is one line.
fn explain(usage: &clap::Error) -> ExitCode {
    match usage.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that has seen enough, such as `head`, is no reason to complain.
            _ = usage.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            _ = usage.print();
            ExitCode::from(2)
        }
        _ => refuse(&what_is_wrong(&usage.to_string())),
    }
}

/// Clap's message without its usage lines, which `--help` shows as well.
fn what_is_wrong(message: &str) -> String {
    let told = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines = message.lines().map(str::trim).take_while(told).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").replace(" tip: ", "; ")
}

fn refuse(message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(2)
}

/// Says on standard error what is wrong, in one line.
fn complain(message: &str) {
    print_to_stderr("umbel", message);
}

/// Says on standard error what may surprise, in one line.
fn note(message: &str) {
    print_to_stderr("note", message);
}

fn print_to_stderr(head: &str, message: &str) {
    let line = message.replace(['\n', '\r'], " ");
    // Nobody is left to be told if standard error is closed.
    _ = writeln!(std::io::stderr(), "{head}: {}", umbel::text::for_terminal(&line));
}
