//! `umbel model standard`: one filter.

use clap::Args;
use serde::Serialize;
use umbel::model::standard::{best_false_positive, best_hashes, false_positive, fill};

use super::ShapeArgs;
use crate::output::{Report, count, number, percent};
use crate::values;

/// One filter: its fill, its false positive rate, and what the best number of hashes would give
#[derive(Args)]
#[command(after_help = "Example: umbel model standard --bits 9593 --hashes 7 --items 1000")]
pub(super) struct Standard {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Keys in the filter (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
}

#[derive(Serialize)]
struct Answer {
    fill: f64,
    false_positive: f64,
    best_hashes: f64,
    best_false_positive: f64,
}

impl Standard {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let (shape, bits, n) = (self.shape.shape()?, self.shape.bits, self.items);
        let answer = Answer {
            fill: fill(shape, n),
            false_positive: false_positive(shape, n),
            best_hashes: best_hashes(bits, n),
            best_false_positive: best_false_positive(bits, n),
        };
        let title = format!(
            "Filter of {} bits and {} hashes with {} keys",
            count(bits),
            shape.hashes(),
            count(n)
        );
        Ok(Report::new(title, &answer)?
            .row("fill", percent(answer.fill), "of the bits are one")
            .row("false positive", percent(answer.false_positive), "of absent keys are claimed")
            .row("best hashes", number(answer.best_hashes), "for this length, before rounding")
            .row("best false positive", percent(answer.best_false_positive), "with those"))
    }
}
