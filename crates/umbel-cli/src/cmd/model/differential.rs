//! `umbel model differential`: the filter in front of a differential file.

use clap::Args;
use serde::Serialize;
use umbel::model::differential::{self, Files};

use super::ShapeArgs;
use crate::output::{Report, count, number, percent};
use crate::values;

/// The filter before a differential file: how often its index is read in vain
#[derive(Args)]
#[command(after_help = "Example, with the sizes of paper 2:\n  \
    umbel model differential --bits 2000000 --hashes 3 --records 10000000 --updates 500000")]
pub(super) struct Differential {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Records of the master file (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    records: u64,
    /// Updates in the differential file (u)
    #[arg(long, value_name = "U", value_parser = values::items, allow_hyphen_values = true)]
    updates: u64,
}

#[derive(Serialize)]
struct Answer {
    filter_error: f64,
    filter_error_exact: f64,
    best_hashes: u64,
}

impl Differential {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let (shape, bits) = (self.shape.shape()?, self.shape.bits);
        let files = Files { records: self.records, updates: self.updates };
        let answer = Answer {
            filter_error: differential::filter_error(shape, files),
            filter_error_exact: differential::filter_error_exact(shape, files),
            best_hashes: differential::best_whole_hashes(bits, self.updates),
        };
        let title = format!(
            "{} updates of {} records, a filter of {} bits and {} hashes",
            count(self.updates),
            count(self.records),
            count(bits),
            shape.hashes()
        );
        let real = format!(
            "the better neighbour of {}",
            number(differential::best_hashes(bits, self.updates))
        );
        Ok(Report::new(title, &answer)?
            .row("filter error", percent(answer.filter_error), "of requests read the index in vain")
            .row("exactly", percent(answer.filter_error_exact), "without e as approximation")
            .row("best hashes", count(answer.best_hashes), &real))
    }
}
