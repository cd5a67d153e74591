//! `umbel store stat`: statistics of a store, and its filter compared with the formula of paper 2.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel_store::{Options, Reader};

use super::tuning::Tuning;
use crate::output::Report;

#[derive(Args)]
pub(super) struct StatArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    tuning: Tuning,
    /// Do not use the filter: every lookup reads the index of changes
    #[arg(long)]
    no_filter: bool,
}

#[derive(Serialize)]
struct Shown {
    records: u64,
    master_bytes: u64,
    differential_records: u64,
    /// Distinct keys that were changed.
    differential_keys: u64,
    differential_bytes: u64,
    filter_bits: u64,
    /// Filter errors among the lookups made for this answer.
    filter_errors: u64,
    /// Filter errors that the formula predicts for the same lookups.
    filter_error_expected: f64,
    /// Pages of an index of changes on disk that these lookups read, and reads that the filter
    /// saved.
    index_reads: u64,
    spared_reads: u64,
    bytes_per_record: f64,
    generation: u64,
}

impl StatArgs {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let options = self.tuning.apply(Options::new()).filter(!self.no_filter);
        let store = Reader::open_with(&self.dir, &options)
            .with_context(|| format!("cannot open {}", self.dir.display()))?;
        let stat = store.stat();
        // The store was just opened, so its counters are empty: make some lookups.
        let (lookups, filter_errors) = store.sample_filter(SAMPLE)?;
        let after = store.stat();
        // Without a filter there are no filter errors.
        let expected = if self.no_filter { 0.0 } else { stat.filter_error_expected };
        let shown = Shown {
            records: stat.records,
            master_bytes: stat.master_bytes,
            differential_records: stat.differential_records,
            differential_keys: stat.differential_keys,
            differential_bytes: stat.differential_bytes,
            filter_bits: stat.filter_bits,
            filter_errors,
            filter_error_expected: expected * lookups as f64,
            index_reads: after.index_reads - stat.index_reads,
            spared_reads: after.spared_reads - stat.spared_reads,
            bytes_per_record: stat.bytes_per_record,
            generation: stat.generation,
        };
        let asked = format!("in {lookups} lookups of master records");
        let rate = format!("p(u) = {expected:.6} each");
        Report::new(format!("Store in {}", self.dir.display()), &shown)?
            .row("records", shown.records.to_string(), "keys that are there")
            .row("master bytes", shown.master_bytes.to_string(), "")
            .row("differential records", shown.differential_records.to_string(), "changes since")
            .row(
                "differential keys",
                shown.differential_keys.to_string(),
                "changed, some more than once",
            )
            .row("differential bytes", shown.differential_bytes.to_string(), "")
            .row("filter bits", shown.filter_bits.to_string(), "over the changes")
            .row("filter errors", shown.filter_errors.to_string(), &asked)
            .row("filter errors expected", format!("{:.2}", shown.filter_error_expected), &rate)
            .row("index reads", shown.index_reads.to_string(), "on disk, by these lookups")
            .row("spared reads", shown.spared_reads.to_string(), "by the filter")
            .row("bytes per record", format!("{:.2}", shown.bytes_per_record), "")
            .row("generation", shown.generation.to_string(), "changes of the set of files")
            .print(json)
    }
}

/// Number of lookups made to measure the filter.
const SAMPLE: u64 = 20_000;
