//! `umbel plan standard`: one filter for a target.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel::{Rate, design, model};

use crate::output::{Report, bits, count, number, percent};
use crate::values;

/// One filter: the shortest that keeps the false positive rate
#[derive(Args)]
#[command(
    visible_alias = "static",
    after_help = "Example: umbel plan standard --items 1000000 --false-positive 0.001"
)]
pub(super) struct Standard {
    /// Keys that the filter will hold
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Share of absent keys that may be claimed, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
}

#[derive(Serialize)]
struct Answer {
    bits: u64,
    hashes: u32,
    bits_per_item: f64,
    false_positive: f64,
    papers_bits: u64,
    papers_hashes: u32,
}

impl Standard {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let (n, rate) = (self.items, self.false_positive);
        let shape = design::standard(n, rate).context("--items with --false-positive")?;
        let papers = design::papers_standard(n, rate).context("--items with --false-positive")?;
        let answer = Answer {
            bits: shape.bits(),
            hashes: shape.hashes(),
            bits_per_item: shape.bits() as f64 / n as f64,
            false_positive: model::standard::false_positive(shape, n),
            papers_bits: papers.bits,
            papers_hashes: papers.hashes,
        };
        let title = format!("Filter for {} keys at {}", count(n), percent(rate.get()));
        Ok(Report::new(title, &answer)?
            .row("bits", bits(answer.bits), "")
            .row("hashes", answer.hashes.to_string(), "positions per key")
            .row("bits per item", number(answer.bits_per_item), "")
            .row("false positive", percent(answer.false_positive), "when it holds all keys")
            .row("papers' bits", count(answer.papers_bits), "which may overshoot the rate")
            .row("papers' hashes", answer.papers_hashes.to_string(), ""))
    }
}
