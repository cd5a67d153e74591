//! `umbel plan differential`: the filter in front of a differential file.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel::design::differential as design;
use umbel::model::differential::{self, Files};
use umbel::{Rate, Shape};

use crate::output::{Report, bits, bytes, count, number, percent};
use crate::values;

/// The filter before a differential file: bits, hashes, and what a lookup reads (paper 2)
///
/// A lookup that knows where a record is reads an index and the record. A differential index that
/// does not fit into memory is one read more for each unchanged record, unless a filter in memory
/// says that it need not be read.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel plan differential --records 10M --updates 500000 --bits 2M\n  umbel plan differential --records 10M --updates 500000 --filter-error 1%"
)]
pub(super) struct Differential {
    /// Records of the master file (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    records: u64,
    /// Updates before the differential file is integrated (u)
    #[arg(long, value_name = "U", value_parser = values::items, allow_hyphen_values = true)]
    updates: u64,
    #[command(flatten)]
    size: Size,
}

/// What the filter is made from.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Size {
    /// Bits of the filter (m)
    #[arg(long, value_name = "M", value_parser = values::bits, allow_hyphen_values = true)]
    bits: Option<u64>,
    /// Chance that a request reads the differential index in vain after all updates
    #[arg(long, value_name = "P", value_parser = values::rate, allow_hyphen_values = true)]
    filter_error: Option<Rate>,
}

#[derive(Serialize)]
struct Answer {
    bits: u64,
    hashes: u32,
    filter_error: f64,
    filter_error_of_changed: f64,
    changed_records: f64,
    reads_without_differential_index: f64,
    reads_without_filter: f64,
    reads_with_filter: f64,
}

impl Differential {
    fn shape(&self, files: Files) -> anyhow::Result<Shape> {
        match (self.size.bits, self.size.filter_error) {
            (Some(bits), _) => design::of_bits(bits, files.updates).context("--bits"),
            (None, Some(error)) => {
                design::for_error(files, error).context("--updates with --filter-error")
            }
            (None, None) => unreachable!("one of the two is required"),
        }
    }

    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let files = Files { records: self.records, updates: self.updates };
        let shape = self.shape(files)?;
        let errors = differential::filter_error_of_changed(shape, files);
        let answer = Answer {
            bits: shape.bits(),
            hashes: shape.hashes(),
            filter_error: differential::filter_error_exact(shape, files),
            filter_error_of_changed: errors,
            changed_records: differential::changed_records(files),
            reads_without_differential_index: 2.0,
            reads_without_filter: 2.0 + differential::unchanged(files),
            reads_with_filter: 2.0 + errors,
        };
        let title = format!(
            "{} updates of {} records before the files are integrated",
            count(self.updates),
            count(self.records)
        );
        let real = format!(
            "the better neighbour of ln 2 · m/u = {}",
            number(differential::best_hashes(answer.bits, self.updates))
        );
        let size = bytes(answer.bits.div_ceil(8) as f64);
        let changed = format!(
            "with the {} records that are changed, some more than once",
            count(answer.changed_records.round() as u64)
        );
        Ok(Report::new(title, &answer)?
            .row("bits", bits(answer.bits), &format!("of the filter, {size}"))
            .row("hashes", answer.hashes.to_string(), &real)
            .row("filter error", percent(answer.filter_error), "p(u), as in paper 2: n ≫ u")
            .row("  of changed", percent(answer.filter_error_of_changed), &changed)
            .row("reads, one index", "2", "by a lookup: index and record")
            .row(
                "  two indexes",
                number(answer.reads_without_filter),
                "differential index, and for unchanged records the master's too",
            )
            .row("  with filter", number(answer.reads_with_filter), "after all updates"))
    }
}
