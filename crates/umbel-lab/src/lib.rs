//! Experiments: reproduces the papers' tables and figures with real filters.
//!
//! An [`Experiment`] is one table or figure. It runs according to a [`Plan`] (seed, trials, keys
//! asked) and gives a [`Report`]: rows that show the paper's numbers, the closed form and the
//! simulation side by side, and a verdict on every claim of the text. A claim that does not hold is
//! reported as such: nothing here is tuned.
//!
//! Always true: the same plan gives the same report to the last digit, on any number of
//! threads. All randomness comes from the plan's seed; there is no clock.
//!
//! There are also simulations that the papers do not have: update policies compared on one history
//! ([`policies`]), networks with faults ([`faults`]), large overlays ([`overlay`]), requests routed
//! to the worker that holds the longest prefix ([`chain`]), and the cost of a mesh for its hosts
//! ([`scale`]).
//!
//! Not here: files and terminals (`umbel-cli` prints and saves reports).
//!
//! ```
//! use umbel_lab::{Plan, Silent, find};
//!
//! let experiment = find("zhu-fig-7").expect("a figure of paper 1");
//! let report = experiment.run(&Plan::reduced(1), &Silent);
//! assert!(report.to_text().contains("theorem 4"));
//! ```

#![forbid(unsafe_code)]

pub mod chain;
pub mod faults;
mod home;
mod hosts;
mod names;
pub mod overlay;
pub mod page;
mod plan;
mod plot;
pub mod policies;
mod random;
pub mod report;
pub mod scale;
mod spread;
mod tables;

pub use plan::{Plan, Progress, Silent};
pub use report::{Author, Claim, Report, Verdict};

use plan::Bench;
use report::Findings;

/// One table or figure of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    name: &'static str,
    source: &'static str,
    title: &'static str,
    find: fn(&Bench<'_>) -> Findings,
}

impl Experiment {
    /// Its name on the command line, such as `zhu-table-2`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its place in the papers.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// What it shows.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// Runs all trials of the plan.
    #[must_use]
    pub fn run(&self, plan: &Plan, progress: &dyn Progress) -> Report {
        let findings = (self.find)(&Bench::new(self.name, plan, progress));
        Report::new(self, findings)
    }
}

/// Every experiment, in the order of the papers.
pub const EXPERIMENTS: &[Experiment] = &[
    tables::zhu_fig_2::EXPERIMENT,
    tables::zhu_fig_6::EXPERIMENT,
    tables::zhu_fig_7::EXPERIMENT,
    tables::zhu_fig_8::EXPERIMENT,
    tables::zhu_table_1::EXPERIMENT,
    tables::zhu_fig_9::EXPERIMENT,
    tables::zhu_table_2::EXPERIMENT,
    tables::zhu_fig_10::EXPERIMENT,
    tables::zhu_thresholds::EXPERIMENT,
    tables::zhu_rates::EXPERIMENT,
    tables::zhu_triggers::EXPERIMENT,
    tables::zhu_assumptions::EXPERIMENT,
    tables::sahni::files::EXPERIMENT,
    tables::sahni::filter_error::EXPERIMENT,
    tables::sahni::prefix::EXPERIMENT,
    tables::dbf::fig_1::EXPERIMENT,
    tables::dbf::fig_2::EXPERIMENT,
    tables::dbf::fig_3::EXPERIMENT,
    tables::dbf::fig_4::EXPERIMENT,
    tables::dbf::table_1::EXPERIMENT,
    tables::dbf::fig_5::EXPERIMENT,
    tables::dbf::fig_6::EXPERIMENT,
    tables::dbf::fig_7::EXPERIMENT,
    tables::dbf::fig_8::EXPERIMENT,
    tables::dbf::fig_9::EXPERIMENT,
    tables::dbf::fig_10::EXPERIMENT,
    tables::dbf::fig_11::EXPERIMENT,
    tables::dbf::fig_12::EXPERIMENT,
    tables::dbf::fig_13::EXPERIMENT,
    tables::dbf::fig_14::EXPERIMENT,
    tables::dbf::fig_15::EXPERIMENT,
    tables::dbf::fig_16::EXPERIMENT,
    tables::dbf::theorems::EXPERIMENT,
    tables::dbf::operations::EXPERIMENT,
    tables::dbf::hashing::EXPERIMENT,
    tables::dbf::capacity::EXPERIMENT,
    tables::dbf::unbounded::EXPERIMENT,
    tables::dbf::distributed::EXPERIMENT,
    tables::dbf::updates::EXPERIMENT,
    tables::dbf::sliced::EXPERIMENT,
    tables::dbf::compressed::EXPERIMENT,
    tables::dbf::scalable::EXPERIMENT,
    tables::dbf::attributes::EXPERIMENT,
    tables::ro::example::EXPERIMENT,
    tables::ro::hashes::CUBF,
    tables::ro::hashes::ABF,
    tables::ro::received::FIG_7,
    tables::ro::received::FIG_8,
    tables::ro::sizes::FIG_9,
    tables::ro::sizes::FIG_10,
    tables::ro::sizes::FIG_11,
    tables::ro::received::FIG_12,
    tables::ro::received::FIG_13,
    tables::ro::received::FIG_14,
    tables::ro::received::FIG_15,
    tables::ro::delay::EXPERIMENT,
    tables::ro::overlay::EXPERIMENT,
    tables::ro::shortest::EXPERIMENT,
    tables::ro::conditions::TOPOLOGY,
    tables::ro::conditions::POPULARITY,
    tables::ro::conditions::STALENESS,
    tables::ro::mismatch::EXPERIMENT,
    tables::ro::decay::EXPERIMENT,
];

/// The experiment of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}
