//! `umbel model dynamic`: components that fill one after the other.

use clap::Args;
use serde::Serialize;
use umbel::model::dynamic::{self, Component};
use umbel::model::standard;

use super::ShapeArgs;
use crate::output::{Report, count, percent};
use crate::values;

/// A dynamic filter: components that fill one after the other, against one filter
#[derive(Args)]
#[command(after_help = "Example, the filter of paper 4 at ten times its capacity:\n  \
    umbel model dynamic --bits 1280 --hashes 7 --capacity 133 --items 1330")]
pub(super) struct Dynamic {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Keys that one component may hold (c)
    #[arg(long, value_name = "C", value_parser = values::items, allow_hyphen_values = true)]
    capacity: u64,
    /// Keys in all components (n)
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
}

#[derive(Serialize)]
struct Answer {
    components: u64,
    false_positive: f64,
    standard_false_positive: f64,
    rebuilt_false_positive: f64,
    several_components_bound: f64,
}

impl Dynamic {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let (shape, n) = (self.shape.shape()?, self.items);
        let component = Component::new(shape, self.capacity);
        let answer = Answer {
            components: component.needed_for(n),
            false_positive: dynamic::false_positive(component, n),
            standard_false_positive: standard::false_positive(shape, n),
            rebuilt_false_positive: dynamic::rebuilt_false_positive(component, n),
            several_components_bound: dynamic::claimed_twice(component, n).last,
        };
        let title = format!(
            "{} keys in components of {} bits and {} hashes for {} keys each",
            count(n),
            count(shape.bits()),
            shape.hashes(),
            count(self.capacity)
        );
        Ok(Report::new(title, &answer)?
            .row("components", count(answer.components), "")
            .row("false positive", percent(answer.false_positive), "of all components together")
            .row(
                "one filter",
                percent(answer.standard_false_positive),
                "if all keys went into one component",
            )
            .row(
                "rebuilt filter",
                percent(answer.rebuilt_false_positive),
                "one filter as long as all components",
            )
            .row(
                "claimed by several",
                percent(answer.several_components_bound),
                "of the keys, at most",
            ))
    }
}
