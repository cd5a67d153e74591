//! `umbel filter info`: all that a filter file tells without its keys.

use std::path::PathBuf;

use clap::Args;
use umbel::codec::{AnyFilter, Decoder};

use super::file::{decode, name, read_bytes};
use super::report::Info;
use super::{Options, print};
use crate::output::{self, bytes, count, percent};

/// Show what a filter file holds
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
  umbel filter info seen.umbel --json | jq .false_positive")]
pub(super) struct InfoCommand {
    /// Filter to look at
    file: PathBuf,
}

impl InfoCommand {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let bytes = read_bytes(&self.file, limit)?;
        let filter = decode(&bytes, &self.file, Decoder::new().accept_locked(), limit)?;
        let info = Info::of(&filter, bytes.len());
        if options.json {
            return print::json(&info);
        }
        let rows = rows(&filter, &info);
        let lines = rows.iter().map(|(label, value)| format!("\n  {label:<16}{value}"));
        output::print(&format!("{}{}\n", name(&self.file), lines.collect::<String>()))
    }
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
    rows.push(("in memory", bytes(info.bytes_in_memory as f64)));
    rows.push(("on disk", bytes(info.bytes_on_disk as f64)));
    if matches!(filter, AnyFilter::Counting(_) | AnyFilter::Dynamic(_)) {
        rows.push(("stuck counters", count(info.stuck_counters)));
    }
    rows
}

/// What only dynamic filters have.
fn component_rows(filter: &AnyFilter) -> Vec<(&'static str, String)> {
    let (capacity, planned, made_of) = match filter {
        AnyFilter::Dynamic(filter) => (filter.capacity(), filter.max_components(), "counting"),
        AnyFilter::PlainDynamic(filter) => (filter.capacity(), filter.max_components(), "plain"),
        _ => return Vec::new(),
    };
    let (have, each) = (filter.components(), count(capacity));
    vec![("components", format!("{have} {made_of}, of {each} items each, planned for {planned}"))]
}
