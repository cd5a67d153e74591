//! `umbel lab`: experiments from a seed, one subcommand a file.

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

/// What can be done in the lab; simulations of policies and faults go here as well.
#[derive(Subcommand)]
enum Command {
    List(list::List),
    Run(run::Run),
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List(list) => list.run(),
            Command::Run(run) => run.run(),
        }
    }
}
