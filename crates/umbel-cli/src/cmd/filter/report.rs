//! Reports about a filter: the fields of `info`, and one line about what a command did.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use umbel::codec::{AnyFilter, Kind};

use super::file::{Target, name};
use super::{Options, print};
use crate::output::{self, bytes, counted, percent};

/// Everything that a file contains about its filter. `bits` are those of one component, `ones` and
/// `items` those of all; `fill` is the share of ones over all components.
#[derive(Debug, Serialize)]
pub(super) struct Info {
    pub(super) kind: &'static str,
    pub(super) bits: u64,
    pub(super) hashes: u32,
    pub(super) digest_bits: u32,
    pub(super) hash: String,
    pub(super) seed_fingerprint: String,
    pub(super) items: u64,
    pub(super) ones: u64,
    pub(super) fill: f64,
    pub(super) false_positive: f64,
    pub(super) components: usize,
    pub(super) bytes_in_memory: usize,
    pub(super) bytes_on_disk: usize,
    pub(super) stuck_counters: u64,
}

impl Info {
    pub(super) fn of(filter: &AnyFilter, bytes_on_disk: usize) -> Self {
        let (shape, hasher) = (filter.scheme().shape(), filter.scheme().hasher());
        let all_bits = shape.bits() as f64 * filter.components() as f64;
        Self {
            kind: kind_name(filter.kind()),
            bits: shape.bits(),
            hashes: shape.hashes(),
            digest_bits: shape.digest_bits().get(),
            hash: hasher.id().to_string(),
            seed_fingerprint: hasher.fingerprint().to_string(),
            items: filter.items(),
            ones: filter.ones(),
            fill: filter.ones() as f64 / all_bits,
            false_positive: filter.false_positive(),
            components: filter.components(),
            bytes_in_memory: filter.memory_bytes(),
            bytes_on_disk,
            stuck_counters: filter.stuck_counters(),
        }
    }
}

pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Standard => "standard",
        Kind::Counting => "counting",
        Kind::Blocked => "blocked",
        _ => "dynamic",
    }
}

/// Writes a filter, and reports the result: `did` is the command's own part of the report, as
/// fields for JSON and as text for people.
pub(super) fn write_filter(
    target: &Target,
    path: &Path,
    filter: &AnyFilter,
    did: &(impl Serialize + fmt::Display),
    options: &Options,
) -> anyhow::Result<()> {
    let encoded = filter.encode();
    target.write(&encoded)?;
    warn_past_plan(filter, path);
    // The target may be standard output itself: then nothing else may be printed there.
    if target.is_file() {
        print_result(path, &Info::of(filter, encoded.len()), did, options)
    } else {
        Ok(())
    }
}

/// Reports the result of a command.
pub(super) fn print_result(
    path: &Path,
    info: &Info,
    did: &(impl Serialize + fmt::Display),
    options: &Options,
) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Report<'a, D> {
        file: String,
        #[serde(flatten)]
        did: &'a D,
        #[serde(flatten)]
        info: &'a Info,
    }
    let file = name(path);
    if options.json {
        return print::json(&Report { file, did, info });
    }
    let (kind, items) = (info.kind, counted(info.items, "item"));
    let (size, rate) = (bytes(info.bytes_on_disk as f64), percent(info.false_positive));
    output::print(&format!(
        "{file}: {did}{kind} filter of {items}, {size}, false positive {rate}\n"
    ))
}

fn warn_past_plan(filter: &AnyFilter, path: &Path) {
    let (past, planned) = match filter {
        AnyFilter::Dynamic(filter) => (filter.is_past_plan(), filter.max_components()),
        AnyFilter::PlainDynamic(filter) => (filter.is_past_plan(), filter.max_components()),
        _ => return,
    };
    if past {
        let (file, components) = (name(path), filter.components());
        print::warn(format_args!(
            "{file}: {components} components, planned for {planned}: the false positive rate it \
             was built for no longer holds"
        ));
    }
}

/// For commands that report only the filter itself.
#[derive(Debug, Serialize)]
pub(super) struct Nothing {}

impl fmt::Display for Nothing {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
