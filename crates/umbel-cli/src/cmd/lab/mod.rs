//! `umbel lab`: experiments from a seed, one subcommand a file.

mod policies;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Remake the papers' tables and figures, and try policies and faults in simulation
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

/// What can be done in the lab.
#[derive(Subcommand)]
enum Command {
    Policies(policies::Policies),
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Policies(policies) => policies.run(),
        }
    }
}
