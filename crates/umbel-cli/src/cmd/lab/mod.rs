//! `umbel lab`: experiments from a seed, one subcommand a file.

mod faults;
mod list;
mod run;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Remake the papers' tables and figures: paper, formula and simulation side by side
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

/// What can be done in the lab.
#[derive(Subcommand)]
enum Command {
    List(list::List),
    Run(run::Run),
    Faults(faults::Faults),
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List(list) => list.run(),
            Command::Run(run) => run.run(),
            Command::Faults(faults) => faults.run(),
        }
    }
}
