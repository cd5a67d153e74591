//! `umbel lab faults`: seeded worlds in which everything goes wrong that can.

use std::process::ExitCode;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use umbel_lab::faults::{self, Failure, WorldPlan};

use crate::output::{Report, count};

/// Run the protocols between hosts in seeded worlds of faults, and count broken promises
///
/// Messages are lost, repeated, delayed, reordered, corrupted; networks are cut, hosts crash
/// and come back with their disk, an old backup of it, or nothing. No host may ever hold bits
/// that a home did not publish, and all must agree once the faults stop. With --overlay queries
/// must end in time, and find what is within range once the faults stop. Exit 1 if any promise
/// was broken.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab faults --seeds 1000\n  umbel lab faults --seeds 1 --seed 4711 --json\n  umbel lab faults --overlay --hosts 8"
)]
pub(crate) struct Faults {
    /// Number of worlds (1 to 10^9)
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: u64,
    /// Hosts in each world (2 to 100)
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=100))]
    hosts: u64,
    /// Steps of faults in each world, a fifth of a second long (1 to 10^6)
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: u64,
    /// Run overlays, in which hosts know their neighbours only, and send queries through them
    #[arg(long)]
    overlay: bool,
    /// Seed of the first world; the others follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Faults {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let Self { seeds: worlds, steps, seed, overlay, .. } = *self;
        let plan = WorldPlan { seed, worlds, hosts: self.hosts as usize, steps, overlay };
        let bar = ProgressBar::new(worlds);
        bar.set_style(ProgressStyle::with_template("{bar:40} {pos} of {len} worlds, {eta} left")?);
        let (tally, failures) = faults::run(&plan, || bar.inc(1));
        bar.finish_and_clear();
        Report::new(format!("{} worlds of {} hosts", count(worlds), self.hosts), &tally)?
            .row("steps", count(tally.steps), "of faults")
            .row("messages", count(tally.messages), "sent")
            .row("dropped", count(tally.dropped), "by weather or a cut")
            .row("duplicated", count(tally.duplicated), "arrived twice")
            .row("reordered", count(tally.reordered), "were overtaken")
            .row("corrupted", count(tally.corrupted), "had a bit flipped")
            .row("crashes", count(tally.crashes), "of hosts")
            .row("partitions", count(tally.partitions), "of the network")
            .row("queries", count(tally.queries), "ended, in overlays")
            .row("violations", count(tally.violations), "of what is promised")
            .print(self.json)?;
        failures.iter().for_each(|failure| self.tell(failure));
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// What was broken, and how to see it again.
    fn tell(&self, failure: &Failure) {
        let Self { hosts, steps, .. } = self;
        let overlay = if self.overlay { " --overlay" } else { "" };
        let seed = failure.seed;
        failure.violations.iter().for_each(|violation| eprintln!("umbel: {violation}"));
        eprintln!(
            "umbel: replay with: umbel lab faults --seeds 1 --seed {seed} --hosts {hosts} --steps {steps}{overlay}"
        );
    }
}
