//! `umbel model replica`: a replica that went stale.

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use umbel::model::ModelError;
use umbel::model::stale::{self, Dirty, Weights};

use super::ShapeArgs;
use crate::output::{Report, count, number, percent};
use crate::values;

/// A replica that went stale: what it wrongly claims, and how often it disagrees with its home
///
/// False negative is the papers' term for disagreement: a random key that the home filter
/// claims and the replica denies. It does not say how many members are missed.
#[derive(Args)]
#[command(after_help = "Example, the first row of table 2 of papers 1 and 3:\n  \
    umbel model replica --bits 1200 --hashes 6 --items 240 --dirty-ones 0.1705 --dirty-zeros 0.01 --hosts 5")]
pub(super) struct Replica {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Keys at home now (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Share of all bits that are one at home and zero in the replica, 0 to 1
    #[arg(long, value_name = "D1", value_parser = values::share, allow_hyphen_values = true)]
    dirty_ones: f64,
    /// Share of all bits that are zero at home and one in the replica, 0 to 1
    #[arg(long, value_name = "D0", value_parser = values::share, allow_hyphen_values = true)]
    dirty_zeros: f64,
    /// Hosts, each with replicas of all others as stale as this one
    #[arg(long, value_name = "G", default_value = "2", value_parser = values::some, allow_hyphen_values = true)]
    hosts: u64,
    /// What a wrong yes costs, in the overall rate
    #[arg(long, value_name = "W", default_value = "1", value_parser = values::weight, allow_hyphen_values = true)]
    weight_false_positive: f64,
    /// What a disagreement costs, in the overall rate
    #[arg(long, value_name = "W", default_value = "1", value_parser = values::weight, allow_hyphen_values = true)]
    weight_false_negative: f64,
}

#[derive(Serialize)]
struct Answer {
    replica_items: f64,
    false_positive: f64,
    false_negative: f64,
    overall: f64,
    host: Host,
}

#[derive(Serialize)]
struct Host {
    false_positive: f64,
    false_negative: f64,
    overall: f64,
}

impl Replica {
    fn answer(&self) -> anyhow::Result<Answer> {
        let dirty = Dirty { ones: self.dirty_ones, zeros: self.dirty_zeros };
        let replica = stale::Replica::new(self.shape.shape()?, self.items, dirty).map_err(named)?;
        let weights = Weights {
            false_positive: self.weight_false_positive,
            disagreement: self.weight_false_negative,
        };
        let host = replica.host(self.hosts);
        Ok(Answer {
            replica_items: replica.items().map_err(|error| self.full(error))?,
            false_positive: replica.false_positive(),
            false_negative: replica.disagreement(),
            overall: replica.overall(weights),
            host: Host {
                false_positive: host.false_positive,
                false_negative: host.disagreement,
                overall: host.overall,
            },
        })
    }

    /// The error for a replica that is all ones: because its home is, or because of its dirty
    /// zeros.
    fn full(&self, error: ModelError) -> anyhow::Error {
        if self.dirty_zeros > 0.0 {
            return anyhow!("--dirty-zeros: {error}; less than {} is needed", self.dirty_zeros);
        }
        // Beyond 700 hits per bit, the share of zeros is too small for an `f64`.
        let max = 700 * self.shape.bits / u64::from(self.shape.hashes);
        anyhow!("--items: {error}; 1 to {max} is needed at these --bits and --hashes")
    }

    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let answer = self.answer()?;
        let title = format!("Replica of a home with {} keys", count(self.items));
        let hosts = format!("over {} hosts", count(self.hosts));
        Ok(Report::new(title, &answer)?
            .row("replica items", number(answer.replica_items), "keys that the replica stands for")
            .row("false positive", percent(answer.false_positive), "of random keys are claimed")
            .row(
                "disagreement",
                percent(answer.false_negative),
                "of random keys: home yes, replica no",
            )
            .row("overall", percent(answer.overall), "the two, weighted")
            .row("host false positive", percent(answer.host.false_positive), &hosts)
            .row("host disagreement", percent(answer.host.false_negative), &hosts)
            .row("host overall", percent(answer.host.overall), &hosts))
    }
}

/// The error, with the name of the option that causes it.
fn named(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::DirtyOnes { .. } => anyhow!("--dirty-ones: {error}"),
        ModelError::DirtyZeros { .. } => anyhow!("--dirty-zeros: {error}"),
        other => other.into(),
    }
}
