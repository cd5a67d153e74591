//! `umbel lab run`: runs experiments and shows what they found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use umbel_lab::{EXPERIMENTS, Experiment, Plan, Progress, Report};

use crate::{output, whole_file};

/// Run experiments: the same seed gives the same digits, on any machine
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab run zhu-table-2\n  umbel lab run all --out results --seed 7"
)]
pub(crate) struct Run {
    /// Names as in `umbel lab list`, or `all`
    #[arg(required = true, value_name = "NAME", hide_possible_values = true, value_parser = known_names())]
    names: Vec<String>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write NAME.txt, NAME.json, NAME.csv and NAME.svg here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON: one object, or an array of them for several names
    #[arg(long)]
    json: bool,
}

impl Run {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(directory) = &self.out {
            fs::create_dir_all(directory).with_context(|| cannot_write(directory))?;
        }
        let plan = Plan::full(self.seed);
        let mut reports = Vec::new();
        for experiment in chosen(&self.names) {
            let bar = Bar::new();
            let report = experiment.run(&plan, &bar);
            bar.0.finish_and_clear();
            if let Some(directory) = &self.out {
                save(&report, directory)?;
            }
            if !self.json {
                output::print(&format!("{}\n", report.to_text()))?;
            }
            reports.push(report);
        }
        if self.json {
            let json = match &reports[..] {
                [report] => report.to_json(),
                reports => serde_json::to_string_pretty(reports)?,
            };
            output::print(&format!("{json}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn known_names() -> PossibleValuesParser {
    let names = EXPERIMENTS.iter().map(Experiment::name);
    PossibleValuesParser::new(names.chain([ALL]))
}

const ALL: &str = "all";

/// The experiments of these names, each once, in the order given.
fn chosen(names: &[String]) -> Vec<&'static Experiment> {
    let mut chosen: Vec<&'static Experiment> = Vec::new();
    for name in names {
        let named = |experiment: &&Experiment| name == ALL || name == experiment.name();
        for experiment in EXPERIMENTS.iter().filter(named) {
            if chosen.iter().all(|other| other.name() != experiment.name()) {
                chosen.push(experiment);
            }
        }
    }
    chosen
}

fn save(report: &Report, directory: &Path) -> anyhow::Result<()> {
    let forms = [
        ("txt", report.to_text()),
        ("json", report.to_json() + "\n"),
        ("csv", report.to_csv()),
        ("svg", report.to_svg()),
    ];
    for (ending, contents) in forms {
        let path = directory.join(format!("{}.{ending}", report.name()));
        whole_file::write(&path, contents.as_bytes(), None).with_context(|| cannot_write(&path))?;
    }
    Ok(())
}

pub(super) fn cannot_write(path: &Path) -> String {
    format!("{}: cannot be written", path.display())
}

/// A bar on standard error, if that is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{prefix:<12} {bar:40} {pos}/{len} trials {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }
}

impl Progress for Bar {
    fn begin(&self, name: &str, trials: u64) {
        self.0.set_prefix(name.to_owned());
        self.0.set_length(trials);
    }

    fn trial_done(&self) {
        self.0.inc(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_given_twice_runs_once() {
        let names = ["zhu-fig-6", "all", "zhu-fig-6"].map(str::to_owned);
        let chosen = chosen(&names);
        assert_eq!(chosen.len(), EXPERIMENTS.len());
        assert_eq!(chosen[0].name(), "zhu-fig-6");
    }
}
