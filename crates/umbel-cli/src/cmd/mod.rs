//! Subcommands, one file each.

mod demo;
mod model;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Model(model::Model),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(demo) => demo.run(),
            Self::Model(model) => model.run(),
        }
    }
}
