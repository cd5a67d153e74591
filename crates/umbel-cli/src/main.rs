//! The one binary `umbel`: every subcommand is a file in `cmd/`, with no logic of its own.

mod cmd;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "umbel", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

/// What a command that answers a question returns: as grep, 0 for yes, 1 for no; errors are 2.
fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("umbel: {error:#}");
            ExitCode::from(2)
        }
    }
}
