//! `umbel plan prefix`: one filter per prefix length.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use umbel::{Rate, design};

use crate::output::{Report, bits, bytes, count, number, percent};
use crate::values;

/// Longest-prefix match: one filter per length, and how many tables a lookup reads
///
/// Either all lengths have as many prefixes (--lengths with --items), or --counts says how many
/// each has, as `umbel prefix stat` prints them. Lookups are then taken to match as many prefixes
/// of each length as there are.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel plan prefix --lengths 32 --items 30000 --false-positive 0.001\n  umbel plan prefix --counts 16:13490,22:108623,24:537698 --false-positive 0.001"
)]
pub(super) struct Prefix {
    /// Prefix lengths, each with a filter and a table of its own (W)
    #[arg(long, value_name = "W", value_parser = values::some, allow_hyphen_values = true, requires = "items", required_unless_present = "counts")]
    lengths: Option<u64>,
    /// Prefixes of each length
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true, requires = "lengths")]
    items: Option<u64>,
    /// Prefixes by length, such as 16:13490,24:537698
    #[arg(long, value_name = "L:N,...", value_parser = length_and_count, value_delimiter = ',', conflicts_with_all = ["lengths", "items"])]
    counts: Vec<(u8, u64)>,
    /// Share of absent prefixes that each filter may claim, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
}

#[derive(Serialize)]
struct Answer {
    bits: u64,
    hashes: u32,
    expected_probes: f64,
}

#[derive(Serialize)]
struct Counted {
    lengths: usize,
    items: u64,
    bits: u64,
    expected_probes: f64,
    expected_probes_at_worst: f64,
    probes_without_filters: f64,
}

impl Prefix {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        match (self.lengths, self.items) {
            (Some(lengths), Some(items)) => self.alike(lengths, items),
            _ => self.counted(),
        }
    }

    fn alike(&self, lengths: u64, items: u64) -> anyhow::Result<Report> {
        let plan = design::prefix::prefix(lengths, items, self.false_positive)
            .context("--items with --false-positive")?;
        let answer = Answer {
            bits: plan.shape.bits(),
            hashes: plan.shape.hashes(),
            expected_probes: plan.expected_probes,
        };
        let title = format!(
            "{} prefix lengths of {} prefixes each, filters at {}",
            count(lengths),
            count(items),
            percent(self.false_positive.get())
        );
        let all = bytes(lengths as f64 * answer.bits.div_ceil(8) as f64);
        Ok(Report::new(title, &answer)?
            .row("bits", bits(answer.bits), &format!("of each filter, {all} in all"))
            .row("hashes", answer.hashes.to_string(), "positions per prefix")
            .row(
                "expected probes",
                number(answer.expected_probes),
                "tables read by a lookup, at most",
            ))
    }

    fn counted(&self) -> anyhow::Result<Report> {
        let plan = design::prefix::counted(&self.counts, self.false_positive)
            .context("--counts with --false-positive")?;
        let items = self.counts.iter().map(|(_, items)| items).sum();
        let answer = Counted {
            lengths: self.counts.len(),
            items,
            bits: plan.bits,
            expected_probes: plan.expected_probes,
            expected_probes_at_worst: plan.expected_probes_at_worst,
            probes_without_filters: plan.probes_without_filters,
        };
        let title = format!(
            "{} prefixes of {} lengths, filters at {}",
            count(items),
            self.counts.len(),
            percent(self.false_positive.get())
        );
        let each = format!("of all filters, {} a prefix", number(plan.bits as f64 / items as f64));
        Ok(Report::new(title, &answer)?
            .row("bits", bits(answer.bits), &each)
            .row("hashes", plan.hashes.to_string(), "positions per prefix")
            .row("expected probes", number(answer.expected_probes), "tables read by a lookup")
            .row("  at worst", number(answer.expected_probes_at_worst), "if the shortest matches")
            .row(
                "  without filters",
                number(answer.probes_without_filters),
                "from the longest length down",
            ))
    }
}

/// `24:537698`.
fn length_and_count(text: &str) -> Result<(u8, u64), String> {
    let range = "a length from 0 to 128 and a number of prefixes are needed, such as 24:537698";
    let (length, items) = text.split_once(':').ok_or(range)?;
    let length = length.trim().parse().ok().filter(|length| *length <= 128).ok_or(range)?;
    Ok((length, values::items(items.trim()).map_err(|_| range)?))
}
