//! `umbel plan routing`: filters designed for the routing entry in which they are combined.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel::design::{PaperDesign, routing};
use umbel::model::routing::wire_bits;
use umbel::{Rate, Shape};

use crate::output::{Report, count, percent};
use crate::values;

/// Filters for routing entries: the papers' designs, and the smallest that keep the bound
#[derive(Args)]
#[command(
    after_help = "Example: umbel plan routing --items 30 --filters 100 --false-positive 0.001"
)]
pub(super) struct Routing {
    /// Keys in each filter (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Filters in an entry (s)
    #[arg(long, value_name = "S", value_parser = values::some, allow_hyphen_values = true)]
    filters: u64,
    /// Share of absent keys that an entry may claim, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
}

#[derive(Serialize)]
struct Answer {
    traditional: Plain,
    cubf: Plain,
    abf: Sparse,
    exact: Exact,
}

#[derive(Serialize)]
struct Exact {
    cubf: Plain,
    abf: Sparse,
}

#[derive(Serialize)]
struct Plain {
    bits: u64,
    hashes: u32,
}

/// A filter that is sent compressed.
#[derive(Serialize)]
struct Sparse {
    bits: u64,
    hashes: u32,
    wire_bits: u64,
}

impl Plain {
    fn of(design: PaperDesign) -> Self {
        Self { bits: design.bits, hashes: design.hashes }
    }

    fn text(&self) -> String {
        format!("{} bits, {} hashes", count(self.bits), self.hashes)
    }
}

impl Sparse {
    fn of(shape: Shape, items: u64) -> Self {
        let wire_bits = wire_bits(shape, items).ceil() as u64;
        Self { bits: shape.bits(), hashes: shape.hashes(), wire_bits }
    }

    fn text(&self) -> String {
        format!("{} bits, {} hashes", count(self.bits), self.hashes)
    }

    fn note(&self, start: &str) -> String {
        format!("{start}; {} bits on the wire", count(self.wire_bits))
    }
}

impl Routing {
    fn answer(&self) -> anyhow::Result<Answer> {
        let (n, s, rate) = (self.items, self.filters, self.false_positive);
        let at_fault = "--items times --filters with --false-positive";
        let papers = routing::papers(n, s, rate).context(at_fault)?;
        let exact = routing::exact(n, s, rate).context(at_fault)?;
        let abf = Shape::new(papers.abf.bits, papers.abf.hashes)?;
        Ok(Answer {
            traditional: Plain::of(papers.traditional),
            cubf: Plain::of(papers.cubf),
            abf: Sparse::of(abf, n),
            exact: Exact {
                cubf: Plain { bits: exact.cubf.bits(), hashes: exact.cubf.hashes() },
                abf: Sparse::of(exact.abf, n),
            },
        })
    }

    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let answer = self.answer()?;
        let title = format!(
            "Filters of {} keys for entries of {} filters at {}",
            count(self.items),
            count(self.filters),
            percent(self.false_positive.get())
        );
        Ok(Report::new(title, &answer)?
            .row("traditional", answer.traditional.text(), "for one filter alone")
            .row("CUBF, papers", answer.cubf.text(), "filters kept apart")
            .row("CUBF, exact", answer.exact.cubf.text(), "the smallest that keeps the bound")
            .row("ABF, papers", answer.abf.text(), &answer.abf.note("OR of the filters"))
            .row("ABF, exact", answer.exact.abf.text(), &answer.exact.abf.note("the smallest")))
    }
}
