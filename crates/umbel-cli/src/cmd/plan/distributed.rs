//! `umbel plan distributed`: one shape for the sets of many hosts.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;
use umbel::Rate;
use umbel::design::{PlanError, dynamic};

use super::dynamic::Components;
use super::sizes::{DISTRIBUTIONS, Sizes};
use crate::output::{Report, count, number};
use crate::values;

/// Sets of many hosts that must share one shape: the number of components that takes the
/// fewest bits in all (paper 4, section 4.4)
#[derive(Args)]
#[command(after_help = format!(
    "{DISTRIBUTIONS}\n\nExample: umbel plan distributed --hosts 200 --max-items 1330 --false-positive 0.0098 --distribution zipf-min:0.4"
))]
pub(super) struct Distributed {
    /// How many hosts there are (1 to 10^6)
    #[arg(long, value_name = "G", value_parser = values::some, allow_hyphen_values = true)]
    hosts: u64,
    /// Maximum number of keys of any host
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    max_items: u64,
    /// Share of absent keys that a host's filter may claim, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
    /// How many keys the hosts have
    #[arg(long, value_name = "D", value_parser = Sizes::parse, allow_hyphen_values = true)]
    distribution: Sizes,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    components: Components,
    total_bits: f64,
    standard_total_bits: f64,
    ratio: f64,
}

impl Distributed {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let distribution = self.distribution.over(self.max_items).context("--distribution")?;
        let plan =
            dynamic::distributed(self.false_positive, &distribution, self.hosts).map_err(named)?;
        let answer = Answer {
            components: Components::of(&plan.each, self.false_positive, &distribution)?,
            total_bits: plan.total_bits(),
            standard_total_bits: plan.standard_total_bits(),
            ratio: plan.each.ratio(),
        };
        let title =
            format!("{} hosts with up to {} keys", count(self.hosts), count(self.max_items));
        let saved = format!(
            "of standard filters, so {} % are saved",
            number(100.0 * (1.0 - answer.ratio).max(0.0))
        );
        let report = Report::new(title, &answer)?;
        let report = answer.components.rows(report, "of the largest host");
        let report = report
            .row("total bits", number(answer.total_bits), "of all hosts together")
            .row(
                "standard bits",
                number(answer.standard_total_bits),
                "if all were as long as the largest needs",
            )
            .row("ratio", number(answer.ratio), &saved);
        Ok(answer.components.papers_rows(report))
    }
}

fn named(error: PlanError) -> anyhow::Error {
    match error {
        PlanError::Hosts(_) => anyhow!("--hosts: {error}"),
        other => anyhow!("--max-items with --false-positive: {other}"),
    }
}
