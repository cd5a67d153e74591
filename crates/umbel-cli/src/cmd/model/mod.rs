//! `umbel model`: the closed forms of `umbel::model`, one subcommand each.

mod chain;
mod differential;
mod dynamic;
mod intersection;
mod replica;
mod routing;
mod standard;

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(after_help = "\
Example:
  umbel model standard --bits 9593 --hashes 7 --items 1000")]
pub(crate) struct Model {
    #[command(subcommand)]
    form: Form,
    /// Print JSON, with numbers in full
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Form {
    Standard(standard::Standard),
    Replica(replica::Replica),
    Dynamic(dynamic::Dynamic),
    Routing(routing::Routing),
    Differential(differential::Differential),
    Intersection(intersection::Intersection),
    Chain(chain::Chain),
}

impl Model {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let report = match self.form {
            Form::Standard(form) => form.report(),
            Form::Replica(form) => form.report(),
            Form::Dynamic(form) => form.report(),
            Form::Routing(form) => form.report(),
            Form::Differential(form) => form.report(),
            Form::Intersection(form) => form.report(),
            Form::Chain(form) => form.report(),
        };
        report?.print(self.json)
    }
}

/// The shape of a filter, as every form takes it.
#[derive(Args)]
struct ShapeArgs {
    /// Length of the filter in bits (m)
    #[arg(long, value_name = "M", value_parser = crate::values::bits, allow_hyphen_values = true)]
    bits: u64,
    /// Positions per key (k)
    #[arg(long, value_name = "K", value_parser = crate::values::hashes, allow_hyphen_values = true)]
    hashes: u32,
}

impl ShapeArgs {
    fn shape(&self) -> anyhow::Result<umbel::Shape> {
        Ok(umbel::Shape::new(self.bits, self.hashes)?)
    }
}
