//! The command line `umbel`: every subcommand is a file in `cmd/`, with no logic of its own.
//!
//! Text may come from outside, so nothing is printed but by `output` and [`complain`], which make it safe.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod client;
mod cmd;
mod help;
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
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

#[derive(Parser)]
#[command(name = "umbel", version, about, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

const EXAMPLES: &str = "\
Examples:
  umbel demo                                     # real hosts on this machine
  umbel serve --name cache-1 --data umbel-data   # run a host
  umbel add images layer/4f53                    # add a key to a set of that host
  umbel who images layer/4f53                    # which hosts hold it
  umbel plan replica --help                      # size a set: memory, traffic, error rates
  umbel filter build --items 1M --false-positive 1% -o seen.umbel keys.txt";

/// The whole command line, for parsing, completions and the manual.
fn command() -> clap::Command {
    help::with_groups(Cli::command())
}

/// Runs the command that the arguments of this process name.
///
/// What a command that answers a question returns: as grep, 0 for yes, 1 for no; errors are 2.
#[must_use]
pub fn run() -> ExitCode {
    give_large_memory_back();
    let parsed = command().try_get_matches();
    let outcome = match parsed.and_then(|mut given| Cli::from_arg_matches_mut(&mut given)) {
        Ok(cli) => cli.command.run(),
        Err(usage) => return explain(&usage),
    };
    outcome.unwrap_or_else(|error| refuse_all(&error))
}

/// A configuration may have several mistakes, reported one per line. Everything else is one line.
fn refuse_all(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<umbel_node::SettingsError>() {
        Some(wrong) => wrong.mistakes().for_each(|mistake| complain(&mistake.to_string())),
        None => complain(&with_causes(error)),
    }
    ExitCode::from(2)
}

/// The error and what caused it. Many errors name their cause themselves: it is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        match text.is_empty() {
            true => cause,
            false if text.ends_with(&cause) => text,
            false => format!("{text}: {cause}"),
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let taken = || std::io::Error::from(std::io::ErrorKind::AddrInUse);
        let address = ([127, 0, 0, 1], 7440).into();
        let names_its_cause = umbel_node::StartError::Listen { address, source: taken() };
        let text = with_causes(&anyhow::Error::new(names_its_cause));
        assert_eq!(text, format!("cannot listen on 127.0.0.1:7440: {}", taken()));
        let text = with_causes(&anyhow::Error::new(taken()).context("ports"));
        assert_eq!(text, format!("ports: {}", taken()));
    }
}
