//! `umbel model routing`: the filters of a link, kept separately or combined with OR.

use clap::Args;
use serde::Serialize;
use umbel::model::{routing, standard};

use super::ShapeArgs;
use crate::output::{Report, count, percent};
use crate::values;

/// A routing entry: the filters that came over one link, kept apart (CUBF) or as their OR (ABF)
#[derive(Args)]
#[command(after_help = "Example, figures 2 and 3 of paper 5:\n  \
    umbel model routing --bits 33 --hashes 3 --items 3 --filters 7")]
pub(super) struct Routing {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Keys in each filter (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Filters in the entry (s)
    #[arg(long, value_name = "S", value_parser = values::some, allow_hyphen_values = true)]
    filters: u64,
}

#[derive(Serialize)]
struct Answer {
    single: f64,
    cubf: f64,
    abf: f64,
}

impl Routing {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let shape = self.shape.shape()?;
        let answer = Answer {
            single: standard::false_positive(shape, self.items),
            cubf: routing::cubf(shape, self.items, self.filters),
            abf: routing::abf(shape, self.items, self.filters),
        };
        let title = format!(
            "Entry of {} filters with {} keys each, {} bits and {} hashes",
            count(self.filters),
            count(self.items),
            count(shape.bits()),
            shape.hashes()
        );
        Ok(Report::new(title, &answer)?
            .row("one filter", percent(answer.single), "of absent keys are claimed")
            .row("CUBF", percent(answer.cubf), "by any of the filters, kept apart")
            .row("ABF", percent(answer.abf), "by the OR of the filters"))
    }
}
