//! `umbel lab report`: writes the results of every experiment to one page.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use umbel_lab::page::{Counts, Tally, page};
use umbel_lab::{EXPERIMENTS, Plan, Progress};

use super::run::cannot_write;
use crate::{output, whole_file};

/// Run every experiment and write one HTML page: papers, formulas, simulations, verdicts
///
/// The page is self-contained: it needs no network and no scripts, can be printed, and follows the
/// light or dark theme. The same seed gives the same bytes.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab report --out site\n  umbel lab report --out site --quick --seed 7"
)]
pub(super) struct Report {
    /// Directory for report.html; created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Three trials of few keys instead of twenty: shows the page in seconds, but verdicts on
    /// small differences are left to chance
    #[arg(long)]
    quick: bool,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    file: String,
    experiments: usize,
    papers: Verdicts,
    ours: Verdicts,
}

/// Number of claims per verdict; claims that together show one finding count once.
#[derive(Serialize)]
struct Verdicts {
    claims: usize,
    hold: usize,
    fail: usize,
    too_rare: usize,
    unverifiable: usize,
}

impl From<Counts> for Verdicts {
    fn from(counts: Counts) -> Self {
        Self {
            claims: counts.total(),
            hold: counts.hold,
            fail: counts.fail,
            too_rare: counts.too_rare,
            unverifiable: counts.unverifiable,
        }
    }
}

impl Report {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        fs::create_dir_all(&self.out).with_context(|| cannot_write(&self.out))?;
        let plan = if self.quick { Plan::reduced(self.seed) } else { Plan::full(self.seed) };
        let bar = Bar::new(&plan);
        let mut reports = Vec::new();
        for (done, experiment) in EXPERIMENTS.iter().enumerate() {
            bar.0.set_position(done as u64 * plan.trials());
            reports.push(experiment.run(&plan, &bar));
        }
        bar.0.finish_and_clear();
        let path = self.out.join("report.html");
        let html = page(&reports, &self.how(&plan));
        whole_file::write(&path, html.as_bytes(), None).with_context(|| cannot_write(&path))?;
        let (tally, file) = (Tally::of(&reports), path.display().to_string());
        let answer = Answer {
            experiments: reports.len(),
            papers: tally.papers.into(),
            ours: tally.ours.into(),
            file,
        };
        output::print(&if self.json {
            format!("{}\n", serde_json::to_string_pretty(&answer)?)
        } else {
            let Answer { file, experiments, .. } = &answer;
            let Tally { papers, ours } = tally;
            format!(
                "{file}: {experiments} experiments; claims of the papers: {papers}; ours: {ours}\n"
            )
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn how(&self, plan: &Plan) -> String {
        format!(
            "Seed {}, {} trials of {} random keys each{}.",
            self.seed,
            plan.trials(),
            output::count(plan.asked() as u64),
            if self.quick {
                " (a quick run: verdicts on small differences are left to chance)"
            } else {
                ""
            }
        )
    }
}

/// One bar for all experiments, on standard error, if that is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new(plan: &Plan) -> Self {
        let bar = ProgressBar::new(EXPERIMENTS.len() as u64 * plan.trials());
        let style = ProgressStyle::with_template("{msg:<16} {wide_bar} {percent} %, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }
}

impl Progress for Bar {
    fn begin(&self, name: &str, _trials: u64) {
        self.0.set_message(name.to_owned());
    }

    fn trial_done(&self) {
        self.0.inc(1);
    }
}
