//! `umbel model intersection`: when the AND of two filters is exact.

use clap::Args;
use serde::Serialize;
use umbel::model::standard::{Apart, intersection_exact};

use super::ShapeArgs;
use crate::output::{Report, count, percent};
use crate::values;

/// The AND of two filters: the chance that it is exactly the filter of the common keys
#[derive(Args)]
#[command(
    after_help = "Example: umbel model intersection --bits 100000 --hashes 7 --only-a 20 --only-b 30"
)]
pub(super) struct Intersection {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Keys that only the first set holds
    #[arg(long, value_name = "A", value_parser = values::items_or_none, allow_hyphen_values = true)]
    only_a: u64,
    /// Keys that only the second set holds
    #[arg(long, value_name = "B", value_parser = values::items_or_none, allow_hyphen_values = true)]
    only_b: u64,
}

#[derive(Serialize)]
struct Answer {
    probability_exact: f64,
}

impl Intersection {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let apart = Apart { only_a: self.only_a, only_b: self.only_b };
        let answer = Answer { probability_exact: intersection_exact(self.shape.shape()?, apart) };
        let title = format!(
            "Sets with {} and {} keys of their own, {} bits and {} hashes",
            count(self.only_a),
            count(self.only_b),
            count(self.shape.bits),
            self.shape.hashes
        );
        let exact = percent(answer.probability_exact);
        Ok(Report::new(title, &answer)?.row(
            "exact",
            exact,
            "chance that no bit is set by strangers",
        ))
    }
}
