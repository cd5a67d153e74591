//! `umbel prefix stat`: contents and size of a table, and what a lookup reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use umbel::prefix::{AnyTable, Labelled, Prefix};

use super::{Options, kind_of, read};
use crate::lines::name;
use crate::output::{Report, bytes, count, number};

/// Show how many prefixes a table has of each length, its memory and its probes
///
/// Probes are prefixes read by a lookup: by the formula 1 + Σf over the lengths longer than
/// the match, and measured with one address within each prefix.
#[derive(Args)]
#[command(after_help = "Example: umbel prefix stat routes.umbel --json")]
pub(super) struct Stat {
    /// Table to look at
    table: PathBuf,
}

#[derive(Serialize)]
struct Answer {
    kind: &'static str,
    prefixes: usize,
    per_length: BTreeMap<u8, usize>,
    bytes: usize,
    bytes_per_prefix: f64,
    filter_bits: usize,
    expected_probes: f64,
    measured_probes: f64,
}

impl Answer {
    fn of<P: Prefix>(labelled: &Labelled<P>, kind: &'static str) -> Self {
        let table = labelled.table();
        let (prefixes, bytes, probes) =
            (table.len(), labelled.memory_bytes(), table.probes_within());
        let per_length = (0..).zip(table.per_length().iter().copied());
        Self {
            kind,
            prefixes,
            per_length: per_length.filter(|(_, count)| *count > 0).collect(),
            bytes,
            bytes_per_prefix: bytes as f64 / prefixes.max(1) as f64,
            filter_bits: table.filter_bits(),
            expected_probes: probes.expected,
            measured_probes: probes.measured,
        }
    }
}

impl Stat {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<ExitCode> {
        let any = read(&self.table, options)?;
        let kind = kind_of(&any);
        let answer = match &any {
            AnyTable::Ipv4(table) => Answer::of(table, kind),
            AnyTable::Ipv6(table) => Answer::of(table, kind),
            AnyTable::Names(table) => Answer::of(table, kind),
        };
        let title =
            format!("{}: {} prefixes, {kind}", name(&self.table), count(answer.prefixes as u64));
        let mut report = Report::new(title, &answer)?
            .row("memory", bytes(answer.bytes as f64), "filters, prefixes and values")
            .row("a prefix", bytes(answer.bytes_per_prefix), "")
            .row("filter bits", count(answer.filter_bits as u64), "of all lengths")
            .row("expected probes", number(answer.expected_probes), "prefixes read, by the formula")
            .row("measured probes", number(answer.measured_probes), "one address in each prefix");
        for (length, prefixes) in &answer.per_length {
            report = report.row(&format!("length {length}"), count(*prefixes as u64), "");
        }
        report.print(options.json)
    }
}
