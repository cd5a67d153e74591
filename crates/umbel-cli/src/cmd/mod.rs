//! Subcommands, one file each.

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {}
    }
}
