//! `umbel filter union` and `intersect`: combine several filters of the same shape and seed.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::Args;
use serde::Serialize;
use umbel::codec::AnyFilter;
use umbel::filter::estimate_items;
use umbel::{Mismatch, StandardFilter};

use super::Options;
use super::file::{Content, Target, alike, name, read_any};
use super::report::{Nothing, write_filter};
use crate::output::counted;

/// Join filters: the result claims every key of each
///
/// All must be of the same kind, shape (bits, hashes and digest bits), hash and seed. Counters are added; a dynamic filter
/// gets the components of all, and those whose keys fit into one are merged. The number of items is the
/// sum; of standard and counting filters, how many of them are distinct is estimated from the bits.
#[derive(Args)]
#[command(after_help = "\
Example:
  umbel filter union monday.umbel tuesday.umbel -o both.umbel")]
pub(super) struct Union {
    #[command(flatten)]
    sides: Sides,
}

impl Union {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        self.sides.fold(options, Ok, union, Estimated::of)
    }
}

/// Keep what filters have in common: the result claims every key that is in all of them
///
/// Takes standard and counting filters of the same shape, hash and seed, and makes a standard
/// one. It claims a few keys more than a filter built from the common keys would, and its
/// number of items is an estimate.
#[derive(Args)]
#[command(after_help = "\
Example:
  umbel filter intersect here.umbel there.umbel -o common.umbel")]
pub(super) struct Intersect {
    #[command(flatten)]
    sides: Sides,
}

impl Intersect {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        self.sides.fold(
            options,
            |first| Ok(plain_bits(&first)?.into()),
            |a, b| {
                let mut common = plain_bits(a)?;
                common.intersect_with(&plain_bits(b)?)?;
                *a = common.into();
                Ok(())
            },
            |_| Nothing {},
        )
    }
}

/// The filters to join, and where to write the result.
#[derive(Args)]
struct Sides {
    /// Filters to join, two or more
    #[arg(value_name = "FILE", num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    /// File to write; an existing filter is replaced, any other file is not
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Sides {
    fn fold<D: Serialize + fmt::Display>(
        &self,
        options: &Options,
        start: impl Fn(AnyFilter) -> anyhow::Result<AnyFilter>,
        join: impl Fn(&mut AnyFilter, &AnyFilter) -> anyhow::Result<()>,
        did: impl Fn(&AnyFilter) -> D,
    ) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let target = Target::new(&self.output, Content::Filter)?;
        let (first, others) = self.files.split_first().expect("clap asks for two");
        let between = |a: &Path, b: &Path| format!("{} and {}", name(a), name(b));
        let read = read_any(first, limit)?;
        let mut result = start(read).map_err(|error| error.context(name(first)))?;
        for path in others {
            let other = read_any(path, limit)?;
            join(&mut result, &other)
                .map_err(|error| alike(error).context(between(first, path)))?;
        }
        write_filter(&target, &self.output, &result, &did(&result), options)
    }
}

/// Number of distinct keys in a union, estimated from its bits.
#[derive(Serialize)]
struct Estimated {
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_items: Option<u64>,
}

impl Estimated {
    fn of(filter: &AnyFilter) -> Self {
        let (shape, bits) = match filter {
            AnyFilter::Standard(filter) => (filter.scheme().shape(), filter.bits()),
            AnyFilter::Counting(filter) => (filter.scheme().shape(), filter.bits()),
            // Components are separate: a key in two of them looks like two keys.
            _ => return Self { estimated_items: None },
        };
        let distinct = estimate_items(shape, bits.ones());
        Self { estimated_items: distinct.is_finite().then_some(distinct.round() as u64) }
    }
}

impl fmt::Display for Estimated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.estimated_items {
            Some(items) => {
                write!(f, "about {} distinct, estimated from the bits; ", counted(items, "key"))
            }
            None => Ok(()),
        }
    }
}

fn union(a: &mut AnyFilter, b: &AnyFilter) -> anyhow::Result<()> {
    use AnyFilter::{Blocked, Counting, Dynamic, PlainDynamic, Standard};
    let joined: Result<(), Mismatch> = match (a, b) {
        (Standard(a), Standard(b)) => a.union_with(b),
        (Counting(a), Counting(b)) => a.union_with(b),
        (Blocked(a), Blocked(b)) => a.union_with(b),
        (Dynamic(a), Dynamic(b)) => a.union_with(b).map(|_| drop(a.shrink())),
        (PlainDynamic(a), PlainDynamic(b)) => a.union_with(b).map(|_| drop(a.shrink())),
        (a, b) => bail!("one is {}, the other is {}", a.kind(), b.kind()),
    };
    Ok(joined?)
}

fn plain_bits(filter: &AnyFilter) -> anyhow::Result<StandardFilter> {
    match filter {
        AnyFilter::Standard(filter) => Ok(filter.clone()),
        AnyFilter::Counting(filter) => Ok(filter.to_standard()),
        AnyFilter::Blocked(_) => {
            Err(anyhow!("{} cannot be intersected: build it with --kind standard", filter.kind()))
        }
        _ => Err(anyhow!("{} cannot be intersected: its keys lie in any component", filter.kind())),
    }
}
