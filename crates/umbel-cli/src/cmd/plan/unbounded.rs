//! `umbel plan unbounded`: up to which size a filter can represent a set of unknown size.

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use umbel::Rate;
use umbel::design::{PlanError, dynamic};

use crate::output::{Report, bits, count, number, percent, whole};
use crate::values;

/// A set of unknown size: at how many keys a standard and a dynamic filter must be rebuilt
/// (paper 4, section 4.3)
#[derive(Args)]
#[command(after_help = "Example: umbel plan unbounded --items 1000 --left 0.01 --right 0.1")]
pub(super) struct Unbounded {
    /// First guess of the number of keys (n0)
    #[arg(long, value_name = "N0", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Rate to start with, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    left: Rate,
    /// Rate that must not be passed, above --left and below 1
    #[arg(long, value_name = "G", value_parser = values::rate, allow_hyphen_values = true)]
    right: Rate,
}

#[derive(Serialize)]
struct Answer {
    bits: u64,
    hashes: u32,
    standard_rebuild_at: Value,
    dynamic_rebuild_at: Value,
    papers_standard_rebuild_at: Value,
    papers_dynamic_rebuild_at: Value,
    better: &'static str,
}

impl Unbounded {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let plan = dynamic::unbounded(self.items, self.left, self.right).map_err(named)?;
        let answer = Answer {
            bits: plan.shape.bits(),
            hashes: plan.shape.hashes(),
            standard_rebuild_at: whole(plan.standard_rebuild_at),
            dynamic_rebuild_at: whole(plan.dynamic_rebuild_at),
            papers_standard_rebuild_at: whole(plan.papers_standard_rebuild_at),
            papers_dynamic_rebuild_at: whole(plan.papers_dynamic_rebuild_at),
            better: if plan.is_dynamic_better() { "dynamic" } else { "standard" },
        };
        let title = format!(
            "Filter for {} keys at {}, to be rebuilt before it passes {}",
            count(self.items),
            percent(self.left.get()),
            percent(self.right.get())
        );
        let rate = |of: &str, rate: f64| {
            let passed =
                if rate > self.right.get() { "past the limit" } else { "within the limit" };
            format!("keys{of}: {} there, {passed}", percent(rate))
        };
        let standard = rate("", plan.papers_standard_rate());
        let dynamic = rate(", rounded up", plan.papers_dynamic_rate(self.left));
        let report = Report::new(title, &answer)?
            .row("bits", bits(answer.bits), "of the filter, or of each component")
            .row("hashes", answer.hashes.to_string(), "positions per key")
            .row("standard", number(plan.standard_rebuild_at), "keys, then rebuild")
            .row("dynamic", number(plan.dynamic_rebuild_at), "keys, then rebuild")
            .row("papers' standard", number(plan.papers_standard_rebuild_at), &standard)
            .row("papers' dynamic", number(plan.papers_dynamic_rebuild_at), &dynamic);
        Ok(if plan.is_dynamic_better() {
            report.row("better", "dynamic", "carries more keys before it is rebuilt")
        } else {
            let advice = format!(
                "the limits are so close that a dynamic filter carries no more keys; if the sizes are \
                 known: umbel plan dynamic --max-items {} --false-positive {} --distribution D",
                self.items, self.right
            );
            report.row("better", "standard", &advice)
        })
    }
}

fn named(error: PlanError) -> anyhow::Error {
    match error {
        PlanError::Limits { .. } => anyhow!("--right: {error}, and below 1"),
        other => anyhow!("--items with --left: {other}"),
    }
}
