//! `umbel filter build`: a new filter from keys.

use std::fmt;
use std::path::PathBuf;

use anyhow::ensure;
use clap::{ArgGroup, Args, ValueEnum};
use serde::Serialize;
use umbel::codec::AnyFilter;
use umbel::filter::estimate_items;
use umbel::params::ParamError;
use umbel::{
    BlockedFilter, CountingFilter, DynamicFilter, Rate, Scheme, Shape, StandardFilter, design,
};

use super::file::{Content, Target, name};
use super::keys::{KeyArgs, Tally};
use super::memory::MemoryLimit;
use super::report::write_filter;
use super::seed::HasherArgs;
use super::{Options, print};
use crate::output::{counted, percent};
use crate::progress::Progress;
use crate::values;

/// Build a filter from keys
///
/// The size follows from a target (--items and --false-positive: the smallest filter that
/// keeps the rate while it holds that many keys) or is given (--bits and --hashes).
///
/// Without keys the filter is empty.
///
/// A dynamic filter starts as one filter for --items keys, a component, and gets another one
/// whenever all are full.
#[derive(Args)]
#[command(
    group(ArgGroup::new("size").required(true).args(["items", "bits"])),
    after_help = EXAMPLES,
)]
pub(super) struct Build {
    /// What the filter can do
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    kind: KindArg,
    /// Keys to plan for; dynamic: keys per component, or in all if --capacity is given
    #[arg(long, value_name = "N", value_parser = values::items, requires = "false_positive", allow_negative_numbers = true)]
    items: Option<u64>,
    /// Share of absent keys that may be claimed, such as 0.01 or 1%
    #[arg(long, value_name = "E", value_parser = values::rate, requires = "items", allow_negative_numbers = true, conflicts_with_all = ["bits", "hashes"])]
    false_positive: Option<Rate>,
    /// Length of the filter; dynamic: of a component
    #[arg(long, value_name = "M", value_parser = values::bits, requires = "hashes", allow_negative_numbers = true)]
    bits: Option<u64>,
    /// Positions per key: how many bits of the filter stand for it
    #[arg(long, value_name = "K", value_parser = values::hashes, requires = "bits", allow_negative_numbers = true, conflicts_with = "items")]
    hashes: Option<u32>,
    /// Keys per component of a dynamic filter. With --items N the rate holds for N keys, in
    /// N/C components; without, for 8 components. [default with --bits: the keys that fill
    /// half of the bits]
    #[arg(long, value_name = "C", value_parser = values::items, allow_negative_numbers = true)]
    capacity: Option<u64>,
    #[command(flatten)]
    hasher: HasherArgs,
    /// File to write; an existing filter is replaced, any other file is not
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
}

const EXAMPLES: &str = "\
Examples:
  umbel filter build --items 1e6 --false-positive 1% -o seen.umbel keys.txt more-keys.txt
  find /srv -type f | umbel filter build --items 50000 --false-positive 0.001 -o files.umbel
  umbel filter build --kind blocked --items 1e6 --false-positive 1% -o fast.umbel keys.txt
  umbel filter build --kind counting --bits 9593 --hashes 7 --seed 42 -o c.umbel keys.txt
  umbel filter build --kind dynamic --items 10000 --false-positive 1% -o grows.umbel keys.txt
  umbel filter build --items 1e6 --false-positive 1% --seed-file secret -o s.umbel keys.txt";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum KindArg {
    /// Adds keys: the smallest
    #[default]
    Standard,
    /// Adds keys and answers faster, one cache line per key: a tenth more memory at 1 %
    Blocked,
    /// Adds and removes keys: five times the memory
    Counting,
    /// Adds, removes, and grows by components with its keys
    Dynamic,
}

/// Parameters of a filter to be built.
struct Plan {
    shape: Shape,
    /// Keys per component.
    capacity: u64,
    /// Number of components up to which the rate is kept.
    components: u32,
}

impl Build {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let target = Target::new(&self.output, Content::Filter)?;
        self.keys.check_apart_from(&target)?;
        let mut filter = self.empty_filter(limit)?;
        let progress = Progress::new("building");
        let tally =
            self.keys.read_or_none(&progress, |keys| add_batch(&mut filter, keys, limit))?;
        write_filter(&target, &self.output, &filter, &Added::of(tally), options)?;
        if tally.keys == 0 {
            let file = name(&self.output);
            print::warn(format_args!("{file}: there were no keys: the filter is empty"));
        }
        self.warn_past_target(&filter);
        Ok(())
    }

    fn empty_filter(&self, limit: MemoryLimit) -> anyhow::Result<AnyFilter> {
        ensure!(
            self.capacity.is_none() || self.kind == KindArg::Dynamic,
            "--capacity is for dynamic filters: add --kind dynamic"
        );
        let Plan { shape, capacity, components } = self.plan()?;
        let scheme = Scheme::new(shape, self.hasher.hasher()?);
        let plain = shape.bits() / 8;
        limit.check(match self.kind {
            KindArg::Standard => plain,
            KindArg::Blocked => plain * 3,
            KindArg::Counting | KindArg::Dynamic => plain * 7,
        })?;
        Ok(match self.kind {
            KindArg::Standard => StandardFilter::new(scheme)?.into(),
            KindArg::Blocked => BlockedFilter::new(scheme)?.into(),
            KindArg::Counting => CountingFilter::new(scheme)?.into(),
            KindArg::Dynamic => {
                DynamicFilter::<CountingFilter>::new(scheme, capacity, components)?.into()
            }
        })
    }

    fn plan(&self) -> Result<Plan, ParamError> {
        let unplanned = DynamicFilter::MAX_COMPONENTS;
        if let (Some(bits), Some(hashes)) = (self.bits, self.hashes) {
            let shape = Shape::new(bits, hashes)?;
            let half_full = estimate_items(&shape, bits / 2).floor().max(1.0) as u64;
            let capacity = self.capacity.unwrap_or(half_full);
            return Ok(Plan { shape, capacity, components: unplanned });
        }
        let (items, rate) = self.goal().expect("clap requires one of both pairs");
        let plain = |shape| Ok(Plan { shape, capacity: 0, components: 0 });
        match self.kind {
            KindArg::Standard | KindArg::Counting => return plain(design::standard(items, rate)?),
            KindArg::Blocked => return plain(design::blocked(items, rate)?),
            KindArg::Dynamic => {}
        }
        let (capacity, components) = match self.capacity {
            Some(capacity) => (capacity, items.div_ceil(capacity).max(1)),
            None => (items, unplanned.into()),
        };
        let too_many = ParamError::Components(components);
        let components = u32::try_from(components).map_err(|_| too_many)?;
        let shape = design::dynamic_component(capacity, rate, components)?;
        Ok(Plan { shape, capacity, components })
    }

    fn goal(&self) -> Option<(u64, Rate)> {
        self.items.zip(self.false_positive)
    }

    /// Warns if the filter got more keys than planned: it still works, but not at the promised
    /// rate.
    fn warn_past_target(&self, filter: &AnyFilter) {
        let Some((planned, target)) = self.goal() else { return };
        let (items, rate) = (filter.items(), filter.false_positive());
        if self.kind != KindArg::Dynamic && items > planned && rate > target.get() {
            let (file, rate) = (name(&self.output), percent(rate));
            print::warn(format_args!(
                "{file}: {items} keys, planned for {planned}: its false positive rate is {rate}"
            ));
        }
    }
}

/// Adds a batch, unless the filter would exceed the memory limit.
pub(super) fn add_batch(
    filter: &mut AnyFilter,
    keys: &[&[u8]],
    limit: MemoryLimit,
) -> anyhow::Result<()> {
    limit.check(filter.memory_bytes_with(keys.len() as u64).saturating_add(to_read(filter)))?;
    filter.insert_batch(keys);
    Ok(())
}

/// Additional memory needed to read the filter back, so that every file written can be read.
fn to_read(filter: &AnyFilter) -> u64 {
    match filter {
        AnyFilter::Standard(_) | AnyFilter::PlainDynamic(_) => 0,
        // Its bits in file order, and those of a base.
        AnyFilter::Blocked(_) => filter.scheme().shape().bits() / 4,
        // One level of the counters, and the level before it.
        AnyFilter::Counting(_) | AnyFilter::Dynamic(_) => filter.scheme().shape().bits() / 4,
    }
}

/// Result of adding keys.
#[derive(Debug, Serialize)]
pub(super) struct Added {
    added: u64,
    #[serde(flatten)]
    tally: Tally,
}

impl Added {
    pub(super) const fn of(tally: Tally) -> Self {
        Self { added: tally.keys, tally }
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} added; ", counted(self.added, "key"))
    }
}
