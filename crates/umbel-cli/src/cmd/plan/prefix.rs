//! `umbel plan prefix`: one filter per prefix length.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel::{Rate, design};

use crate::output::{Report, bits, bytes, count, number, percent};
use crate::values;

/// Longest-prefix match: one filter per length, and how many tables a lookup reads
#[derive(Args)]
#[command(
    after_help = "Example: umbel plan prefix --lengths 32 --items 30000 --false-positive 0.001"
)]
pub(super) struct Prefix {
    /// Prefix lengths, each with a filter and a table of its own (W)
    #[arg(long, value_name = "W", value_parser = values::some, allow_hyphen_values = true)]
    lengths: u64,
    /// Prefixes of each length
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Share of absent prefixes that each filter may claim, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
}

#[derive(Serialize)]
struct Answer {
    bits: u64,
    hashes: u32,
    expected_probes: f64,
}

impl Prefix {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let plan = design::prefix::prefix(self.lengths, self.items, self.false_positive)
            .context("--items with --false-positive")?;
        let answer = Answer {
            bits: plan.shape.bits(),
            hashes: plan.shape.hashes(),
            expected_probes: plan.expected_probes,
        };
        let title = format!(
            "{} prefix lengths of {} prefixes each, filters at {}",
            count(self.lengths),
            count(self.items),
            percent(self.false_positive.get())
        );
        let all = bytes(self.lengths as f64 * answer.bits.div_ceil(8) as f64);
        Ok(Report::new(title, &answer)?
            .row("bits", bits(answer.bits), &format!("of each filter, {all} in all"))
            .row("hashes", answer.hashes.to_string(), "positions per prefix")
            .row(
                "expected probes",
                number(answer.expected_probes),
                "tables read by a lookup, at most",
            ))
    }
}
