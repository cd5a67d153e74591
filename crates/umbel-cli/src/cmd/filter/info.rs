//! `umbel filter info`: shows everything that can be known about a filter file without its keys.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use umbel::codec::{AnyFilter, Decoder, DeltaHeader};

use super::file::{Content, decode, explain, name, read_bytes};
use super::report::{Info, kind_name};
use super::{Options, print};
use crate::output::{self, bytes, count, percent};

/// Show what a filter file holds, or which filters a delta connects
///
/// A secret seed is not needed. The false positive rate follows from the fill as it is now.
/// Of a dynamic filter, bits are those of one component; ones, items and fill are those of
/// all components together.
///
/// Digest bits are what is kept of a key's hash; fill is the share of ones. A stuck counter has
/// reached 15 and is never counted down again: keys removed from it may still be claimed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel filter info seen.umbel
  umbel filter info seen.umbel --json | jq .false_positive
  umbel filter info change.umbel    # a delta: checksums of its base and of its result")]
pub(super) struct InfoCommand {
    /// Filter or delta to look at
    file: PathBuf,
}

impl InfoCommand {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let bytes = read_bytes(&self.file, limit)?;
        if Content::of(&bytes) == Some(Content::Delta) {
            return self.delta(&bytes, options);
        }
        let filter = decode(&bytes, &self.file, Decoder::new().accept_locked(), limit)?;
        let info = Info::of(&filter, bytes.len());
        if options.json {
            return print::json(&info);
        }
        self.print(&rows(&filter, &info))
    }

    fn delta(&self, encoded: &[u8], options: &Options) -> anyhow::Result<()> {
        let header = DeltaHeader::read(encoded).map_err(|error| explain(error, &self.file))?;
        let info = DeltaInfo::of(&header, encoded.len());
        if options.json {
            return print::json(&info);
        }
        self.print(&[
            ("kind", format!("delta of {} filters", info.of)),
            ("bits", count(info.bits)),
            ("hashes", info.hashes.to_string()),
            ("digest bits", info.digest_bits.to_string()),
            ("hash", info.hash),
            ("seed", format!("fingerprint {}", info.seed_fingerprint)),
            ("base", info.base),
            ("result", info.result),
            ("on disk", bytes(info.bytes_on_disk as f64)),
        ])
    }

    fn print(&self, rows: &[(&'static str, String)]) -> anyhow::Result<()> {
        let lines = rows.iter().map(|(label, value)| format!("\n  {label:<16}{value}"));
        output::print(&format!("{}{}\n", name(&self.file), lines.collect::<String>()))
    }
}

/// Everything that can be known about a delta without its base.
#[derive(Debug, Serialize)]
struct DeltaInfo {
    kind: &'static str,
    of: &'static str,
    bits: u64,
    hashes: u32,
    digest_bits: u32,
    hash: String,
    seed_fingerprint: String,
    base: String,
    result: String,
    bytes_on_disk: usize,
}

impl DeltaInfo {
    fn of(header: &DeltaHeader, bytes_on_disk: usize) -> Self {
        let (shape, hasher) = (header.scheme.shape(), header.scheme.hasher());
        Self {
            kind: "delta",
            of: kind_name(header.kind),
            bits: shape.bits(),
            hashes: shape.hashes(),
            digest_bits: shape.digest_bits().get(),
            hash: hasher.id().to_string(),
            seed_fingerprint: hasher.fingerprint().to_string(),
            base: checksum(header.base),
            result: checksum(header.result),
            bytes_on_disk,
        }
    }
}

/// A checksum, formatted as in errors.
fn checksum(checksum: u64) -> String {
    format!("{checksum:016x}")
}

fn rows(filter: &AnyFilter, info: &Info) -> Vec<(&'static str, String)> {
    let hasher = filter.scheme().hasher();
    let secret = if hasher.is_locked() { "secret" } else { "stored" };
    let mut rows = vec![
        ("kind", info.kind.to_owned()),
        ("bits", count(info.bits)),
        ("hashes", info.hashes.to_string()),
        ("digest bits", info.digest_bits.to_string()),
        ("hash", info.hash.clone()),
        ("seed", format!("{}, fingerprint {}", secret, info.seed_fingerprint)),
        ("items", count(info.items)),
        ("ones", count(info.ones)),
        ("fill", percent(info.fill)),
        ("false positive", percent(info.false_positive)),
    ];
    rows.extend(component_rows(filter));
    rows.push(("checksum", checksum(filter.checksum())));
    rows.push(("in memory", bytes(info.bytes_in_memory as f64)));
    rows.push(("on disk", bytes(info.bytes_on_disk as f64)));
    if matches!(filter, AnyFilter::Counting(_) | AnyFilter::Dynamic(_)) {
        rows.push(("stuck counters", count(info.stuck_counters)));
    }
    rows
}

/// Rows that only dynamic filters have.
fn component_rows(filter: &AnyFilter) -> Vec<(&'static str, String)> {
    let (capacity, planned, made_of) = match filter {
        AnyFilter::Dynamic(filter) => (filter.capacity(), filter.max_components(), "counting"),
        AnyFilter::PlainDynamic(filter) => (filter.capacity(), filter.max_components(), "plain"),
        _ => return Vec::new(),
    };
    let (have, each) = (filter.components(), count(capacity));
    vec![("components", format!("{have} {made_of}, of {each} items each, planned for {planned}"))]
}
