//! The command line `umbel`. Every subcommand is a file in `cmd/` that only calls the libraries.
//!
//! Printed text may come from outside. So everything is printed through `output` and `complain`,
//! which escape it.

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
/// Commands that answer a question exit like grep: 0 for yes, 1 for no, 2 for errors.
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

/// Prints an error. A configuration may have several mistakes, reported one per line; any other
/// error is one line.
fn refuse_all(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<umbel_node::SettingsError>() {
        Some(wrong) => wrong.mistakes().for_each(|mistake| complain(&mistake.to_string())),
        None => complain(&with_causes(error)),
    }
    ExitCode::from(2)
}

/// The error and its causes. A cause that the error's own message already names is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        match text.is_empty() {
            true => cause,
            false if text.ends_with(&cause) => text,
            false => format!("{text}: {cause}"),
        }
    })
}

/// Makes the allocator return large blocks of memory to the system as soon as they are freed. By
/// default it would start to keep such blocks after the first one is freed: after loading 10
/// million keys, a host held twice the memory it needed.
fn give_large_memory_back() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "the allocator takes its settings through C")]
    // SAFETY: `mallopt` takes two numbers, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Prints what clap reports. Help and version go to standard output. A command without arguments
/// gets the full help; every other mistake in the arguments is one line.
fn explain(usage: &clap::Error) -> ExitCode {
    match usage.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Ignore a pipe that its reader closed, such as `head`.
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
    let is_message = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines =
        message.lines().map(str::trim).take_while(is_message).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").replace(" tip: ", "; ")
}

fn refuse(message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(2)
}

/// Prints an error on standard error, in one line.
fn complain(message: &str) {
    print_to_stderr("umbel", message);
}

/// Prints a note on standard error, in one line.
fn note(message: &str) {
    print_to_stderr("note", message);
}

fn print_to_stderr(head: &str, message: &str) {
    let line = message.replace(['\n', '\r'], " ");
    // If standard error is closed, there is nobody to report to.
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
