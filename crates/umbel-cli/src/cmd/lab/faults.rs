//! `umbel lab faults`: seeded simulations with all kinds of faults.

use std::process::ExitCode;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use umbel_lab::faults::{self, Failure, WorldKind, WorldPlan};

use crate::output::{Report, count};

/// Run the protocols between hosts in seeded worlds of faults, and count broken promises
///
/// Messages are lost, repeated, delayed, reordered, corrupted; networks are cut, hosts crash
/// and come back with their disk, an old backup of it, or nothing. No host may ever hold bits
/// that a home did not publish, and all must agree once the faults stop. With --overlay queries
/// must end in time, and find what is within range once the faults stop. One world in 64 is one of
/// loads: a home takes in many keys, and badly connected hosts must follow soon, at the cost of few
/// images. --loads runs these alone, --plain none of them. Exit 1 if any promise was broken.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab faults --seeds 1000\n  umbel lab faults --seeds 1 --seed 4711 --json\n  umbel lab faults --overlay --hosts 8\n  umbel lab faults --loads --seeds 100"
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
    #[arg(long, group = "kind")]
    overlay: bool,
    /// Run worlds of loads alone; --hosts and --steps do not apply to them
    #[arg(long, group = "kind", conflicts_with_all = ["hosts", "steps"])]
    loads: bool,
    /// Run no worlds of loads
    #[arg(long, group = "kind")]
    plain: bool,
    /// Seed of the first world; the others follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Faults {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let Self { seeds: worlds, steps, seed, .. } = *self;
        let (kind, _) = self.kind();
        let plan = WorldPlan { seed, worlds, hosts: self.hosts as usize, steps, kind };
        let bar = ProgressBar::new(worlds);
        bar.set_style(ProgressStyle::with_template("{bar:40} {pos} of {len} worlds, {eta} left")?);
        let (tally, failures) = faults::run(&plan, || bar.inc(1));
        bar.finish_and_clear();
        let title = match kind {
            WorldKind::Loads => format!("{} worlds of loads", count(worlds)),
            _ => format!("{} worlds of {} hosts", count(worlds), self.hosts),
        };
        Report::new(title, &tally)?
            .row("steps", count(tally.steps), "of faults")
            .row("messages", count(tally.messages), "sent")
            .row("dropped", count(tally.dropped), "by weather or a cut")
            .row("duplicated", count(tally.duplicated), "arrived twice")
            .row("reordered", count(tally.reordered), "were overtaken")
            .row("corrupted", count(tally.corrupted), "had a bit flipped")
            .row("crashes", count(tally.crashes), "of hosts")
            .row("partitions", count(tally.partitions), "of the network")
            .row("queries", count(tally.queries), "ended, in overlays")
            .row("parts", count(tally.parts), "of missed updates were fetched, under loads")
            .row("violations", count(tally.violations), "of what is promised")
            .print(self.json)?;
        failures.iter().for_each(|failure| self.print_result(failure));
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The kind of worlds, and the option that chooses it.
    fn kind(&self) -> (WorldKind, &'static str) {
        match self {
            Self { overlay: true, .. } => (WorldKind::Overlay, " --overlay"),
            Self { loads: true, .. } => (WorldKind::Loads, " --loads"),
            Self { plain: true, .. } => (WorldKind::Plain, " --plain"),
            _ => (WorldKind::Mesh, ""),
        }
    }

    /// Prints the violated promises, and the command that reproduces them.
    fn print_result(&self, Failure { seed, violations }: &Failure) {
        violations.iter().for_each(|violation| crate::complain(violation));
        let size = match self.loads {
            true => String::new(),
            false => format!(" --hosts {} --steps {}", self.hosts, self.steps),
        };
        let (_, option) = self.kind();
        crate::complain(&format!(
            "replay with: umbel lab faults --seeds 1 --seed {seed}{size}{option}"
        ));
    }
}
