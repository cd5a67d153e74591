//! `umbel store stat`: what a store holds, and its filter against the formula of paper 2.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::output::Report;

#[derive(Args)]
pub(super) struct StatArgs {
    /// Folder of the store
    dir: PathBuf,
}

#[derive(Serialize)]
struct Shown {
    records: u64,
    master_bytes: u64,
    differential_records: u64,
    differential_bytes: u64,
    filter_bits: u64,
    /// Of the lookups made for this answer.
    filter_errors: u64,
    /// As many as the formula expects of the same lookups.
    filter_error_expected: f64,
    bytes_per_record: f64,
    generation: u64,
}

impl StatArgs {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let store = super::read(&self.dir)?;
        let stat = store.stat();
        // A process that has just opened the store has asked its filter nothing yet.
        let (lookups, filter_errors) = store.sample_filter(SAMPLE)?;
        let shown = Shown {
            records: stat.records,
            master_bytes: stat.master_bytes,
            differential_records: stat.differential_records,
            differential_bytes: stat.differential_bytes,
            filter_bits: stat.filter_bits,
            filter_errors,
            filter_error_expected: stat.filter_error_expected * lookups as f64,
            bytes_per_record: stat.bytes_per_record,
            generation: stat.generation,
        };
        let asked = format!("in {lookups} lookups of master records");
        let rate = format!("p(u) = {:.6} each", stat.filter_error_expected);
        Report::new(format!("Store in {}", self.dir.display()), &shown)?
            .row("records", shown.records.to_string(), "keys that are there")
            .row("master bytes", shown.master_bytes.to_string(), "")
            .row("differential records", shown.differential_records.to_string(), "changes since")
            .row("differential bytes", shown.differential_bytes.to_string(), "")
            .row("filter bits", shown.filter_bits.to_string(), "over the changes")
            .row("filter errors", shown.filter_errors.to_string(), &asked)
            .row("filter errors expected", format!("{:.2}", shown.filter_error_expected), &rate)
            .row("bytes per record", format!("{:.2}", shown.bytes_per_record), "")
            .row("generation", shown.generation.to_string(), "changes of the set of files")
            .print(json)
    }
}

/// Lookups made to see the filter at work.
const SAMPLE: u64 = 20_000;
