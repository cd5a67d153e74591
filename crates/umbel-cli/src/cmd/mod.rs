//! Subcommands, one file each.

mod demo;
mod filter;
mod lab;
mod model;
mod plan;
mod prefix;
mod store;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    /// What a filter, a replica or a routing entry will do, by formula
    Model(model::Model),
    /// Parameters for a target: how large, how often, how many bytes, how wrong
    Plan(plan::Plan),
    Filter(filter::Filter),
    Lab(lab::Lab),
    Prefix(prefix::PrefixCommand),
    Store(store::StoreCommand),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(demo) => demo.run(),
            Self::Model(command) => command.run(),
            Self::Plan(command) => command.run(),
            Self::Filter(filter) => filter.run(),
            Self::Lab(lab) => lab.run(),
            Self::Prefix(command) => command.run(),
            Self::Store(command) => command.run(),
        }
    }
}
