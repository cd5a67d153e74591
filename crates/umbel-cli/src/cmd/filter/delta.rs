//! `umbel filter delta` and `apply`: write the difference of two filters to a small file, and apply
//! it.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use umbel::codec::{DecodeError, Decoder, Kind};

use super::file::{Content, Target, alike, decode, explain, name, read_any, read_bytes};
use super::report::{Nothing, write_filter};
use super::{Options, print};
use crate::output::{self, bytes, percent};

/// Write what turns one filter into another
///
/// Both must be of the same kind, shape (bits, hashes and digest bits), hash and seed. A delta fits
/// only the filter that it was made against; to apply it to another one is an error.
#[derive(Args)]
#[command(after_help = "\
Example:
  umbel filter delta monday.umbel tuesday.umbel -o change.umbel")]
pub(super) struct Delta {
    /// Filter to start from
    old: PathBuf,
    /// Filter that the delta produces
    new: PathBuf,
    /// File to write; an existing delta is replaced, any other file is not
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Delta {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let target = Target::new(&self.output, Content::Delta)?;
        let old = read_any(&self.old, limit)?;
        let whole = read_bytes(&self.new, limit)?;
        let new = decode(&whole, &self.new, Decoder::new().accept_locked(), limit)?;
        let both = format!("{} and {}", name(&self.old), name(&self.new));
        let delta = old.delta_to(&new, &[]).map_err(|error| alike(error.into()).context(both))?;
        target.write(&delta)?;
        if !target.is_file() {
            return Ok(());
        }
        self.print_result(delta.len(), whole.len(), options)
    }

    fn print_result(&self, delta: usize, whole: usize, options: &Options) -> anyhow::Result<()> {
        #[derive(Serialize)]
        struct Report {
            file: String,
            kind: &'static str,
            bytes_on_disk: usize,
            bytes_of_new: usize,
        }
        let file = name(&self.output);
        if options.json {
            let report = Report { file, kind: "delta", bytes_on_disk: delta, bytes_of_new: whole };
            return print::json(&report);
        }
        let share = percent(delta as f64 / whole as f64);
        let (delta, new) = (bytes(delta as f64), name(&self.new));
        output::print(&format!("{file}: delta of {delta}, {share} of {new}\n"))
    }
}

/// Apply a delta to the filter that it was made against
#[derive(Args)]
#[command(after_help = "\
Example:
  umbel filter apply monday.umbel change.umbel -o tuesday.umbel")]
pub(super) struct Apply {
    /// Filter that the delta was made against; it stays as it is
    old: PathBuf,
    /// The delta
    delta: PathBuf,
    /// File to write; an existing filter is replaced, any other file is not
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Apply {
    pub(super) fn run(&self, options: &Options) -> anyhow::Result<()> {
        let limit = options.memory_limit();
        let target = Target::new(&self.output, Content::Filter)?;
        let whole = read_bytes(&self.old, limit)?;
        let old = decode(&whole, &self.old, Decoder::new().accept_locked(), limit)?;
        let delta = read_bytes(&self.delta, limit)?;
        let limit = limit.of_file(whole.len() + delta.len());
        let new = Decoder::new().limit(limit).apply(&old, &delta);
        let new = new.map_err(|error| self.explain(error))?;
        write_filter(&target, &self.output, &new, &Nothing {}, options)
    }

    /// Names both files if either may be the cause.
    fn explain(&self, error: DecodeError) -> anyhow::Error {
        let (old, delta) = (name(&self.old), name(&self.delta));
        match error {
            DecodeError::Kind { expected: Kind::Delta, found } => {
                anyhow!("{delta}: this is {found}, not a delta")
            }
            DecodeError::Kind { expected, found } => {
                anyhow!("{delta}: this is a delta of {found}, and {old} is {expected}")
            }
            DecodeError::Mismatch(_) | DecodeError::WrongBase { .. } => {
                anyhow!(
                    "{delta} does not fit {old}: {error}: apply it to the filter it was made against"
                )
            }
            error => explain(error, &self.delta),
        }
    }
}
