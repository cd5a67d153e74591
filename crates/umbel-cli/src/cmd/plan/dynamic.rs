//! `umbel plan dynamic`: components for sets whose distribution of sizes is known.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel::design::{Distribution, dynamic};
use umbel::model::dynamic::Component;
use umbel::{Rate, model};

use super::sizes::{DISTRIBUTIONS, Sizes};
use crate::output::{Report, bits, count, number, percent};
use crate::values;

/// A dynamic filter for a set of known largest size: the number of components that takes the
/// fewest bits on average (paper 4, section 4.2)
#[derive(Args)]
#[command(visible_alias = "bounded", after_help = format!(
    "{DISTRIBUTIONS}\n\nExample: umbel plan dynamic --max-items 1330 --false-positive 0.0098 --distribution zipf-min:0.4"
))]
pub(super) struct Dynamic {
    /// Maximum number of keys of the set
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    max_items: u64,
    /// Share of absent keys that may be claimed, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
    /// How likely each size is
    #[arg(long, value_name = "D", value_parser = Sizes::parse, allow_hyphen_values = true)]
    distribution: Sizes,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    components: Components,
    expected_bits: f64,
    standard_bits: u64,
    ratio: f64,
}

impl Dynamic {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let distribution = self.distribution.over(self.max_items).context("--distribution")?;
        let plan = dynamic::bounded(self.false_positive, &distribution)
            .context("--max-items with --false-positive")?;
        let answer = Answer {
            components: Components::of(&plan, self.false_positive, &distribution)?,
            expected_bits: plan.expected_bits,
            standard_bits: plan.standard_bits,
            ratio: plan.ratio(),
        };
        let title = format!("Dynamic filter for up to {} keys", count(self.max_items));
        let saved = format!(
            "of one filter, so {} % are saved",
            number(100.0 * (1.0 - answer.ratio).max(0.0))
        );
        let report = Report::new(title, &answer)?;
        let report = answer.components.rows(report, "when the set is as large as it gets");
        let report = report
            .row("expected bits", number(answer.expected_bits), "on average over all sizes")
            .row("standard bits", count(answer.standard_bits), "of one filter for the largest size")
            .row("ratio", number(answer.ratio), &saved);
        Ok(answer.components.papers_rows(report))
    }
}

/// The components of the filters, and those that the papers would choose.
#[derive(Serialize)]
pub(super) struct Components {
    components: u64,
    bits: u64,
    hashes: u32,
    capacity: u64,
    false_positive: f64,
    papers_components: u64,
    papers_bits: u64,
    papers_hashes: u32,
}

impl Components {
    pub(super) fn of(
        plan: &dynamic::Bounded,
        rate: Rate,
        distribution: &Distribution,
    ) -> anyhow::Result<Self> {
        let papers = dynamic::papers_bounded(rate, distribution)
            .context("--max-items with --false-positive")?;
        let full = Component::new(plan.component, plan.capacity);
        Ok(Self {
            components: plan.components,
            bits: plan.component.bits(),
            hashes: plan.component.hashes(),
            capacity: plan.capacity,
            false_positive: model::dynamic::false_positive(full, distribution.max_items()),
            papers_components: papers.components,
            papers_bits: papers.component.bits,
            papers_hashes: papers.component.hashes,
        })
    }

    pub(super) fn rows(&self, report: Report, when: &str) -> Report {
        report
            .row("components", count(self.components), when)
            .row("bits", bits(self.bits), "of each component")
            .row("hashes", self.hashes.to_string(), "positions per key")
            .row("capacity", count(self.capacity), "keys of each component")
            .row("false positive", percent(self.false_positive), "when it holds all keys")
    }

    pub(super) fn papers_rows(&self, report: Report) -> Report {
        report
            .row("papers' components", count(self.papers_components), "")
            .row("papers' bits", count(self.papers_bits), "which may overshoot the rate")
            .row("papers' hashes", self.papers_hashes.to_string(), "")
    }
}
