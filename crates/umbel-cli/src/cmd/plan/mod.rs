//! `umbel plan`: the designs of `umbel::design`, one subcommand each.
//!
//! The four scenarios of paper 4 are `static` (an alias of `standard`), `bounded` (an alias of
//! `dynamic`), `unbounded` and `distributed`.

mod chain;
mod differential;
mod distributed;
mod dynamic;
mod prefix;
mod replica;
mod routing;
mod sizes;
mod standard;
mod unbounded;

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel plan standard --items 1000000 --false-positive 0.01
  umbel plan replica --items 100000 --adds-per-second 10 --removes-per-second 10 --hosts 32 \
--miss 0.01 --false-positive 0.01")]
pub(crate) struct Plan {
    #[command(subcommand)]
    design: Design,
    /// Print JSON, with numbers in full
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Design {
    Standard(standard::Standard),
    Dynamic(dynamic::Dynamic),
    Unbounded(unbounded::Unbounded),
    Distributed(distributed::Distributed),
    Routing(routing::Routing),
    Replica(replica::Replica),
    Prefix(prefix::Prefix),
    Differential(differential::Differential),
    Chain(chain::Chain),
}

impl Plan {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let report = match self.design {
            Design::Standard(design) => design.report(),
            Design::Dynamic(design) => design.report(),
            Design::Unbounded(design) => design.report(),
            Design::Distributed(design) => design.report(),
            Design::Routing(design) => design.report(),
            Design::Replica(design) => design.report(),
            Design::Prefix(design) => design.report(),
            Design::Differential(design) => design.report(),
            Design::Chain(design) => design.report(),
        };
        report?.print(self.json)
    }
}
