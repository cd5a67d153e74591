//! `umbel lab`: reproducible experiments from a seed. One subcommand per file.

mod chain;
mod faults;
mod list;
mod overlay;
mod policies;
mod report;
mod run;
mod scale;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Reproduce the papers' tables and figures; simulate policies and faults
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel lab list
  umbel lab run zhu-table-2
  umbel lab report --out site --quick
  umbel lab faults --seeds 1000")]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

/// What can be done in the lab.
#[derive(Subcommand)]
enum Command {
    List(list::List),
    Run(run::Run),
    Report(report::Report),
    Faults(faults::Faults),
    Policies(policies::Policies),
    Overlay(overlay::Overlay),
    Chain(chain::Chain),
    Scale(scale::Scale),
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List(list) => list.run(),
            Command::Run(run) => run.run(),
            Command::Report(report) => report.run(),
            Command::Faults(faults) => faults.run(),
            Command::Policies(policies) => policies.run(),
            Command::Overlay(overlay) => overlay.run(),
            Command::Chain(chain) => chain.run(),
            Command::Scale(scale) => scale.run(),
        }
    }
}
