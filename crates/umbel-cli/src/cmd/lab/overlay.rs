//! `umbel lab overlay`: simulates a large overlay, its filters and its queries, from a seed.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use indicatif::{ProgressBar, ProgressStyle};
use umbel::Rate;
use umbel::route::EntryKind;
use umbel_lab::overlay::{self, Design, Outcome, Setting, Stock, Topology};

use crate::output::{Report, bits, bytes, count, number, percent};
use crate::values;

/// Route queries through a simulated overlay: filters travel some hops, queries follow them
///
/// Every node holds --items keys and knows its links only. Its filter travels --depth hops; a link
/// keeps what came over it as one entry, planned so that it claims a stranger with at most
/// --false-positive. Each query is asked at a random node for a key of a random other node: it
/// follows the links that claim the key, and walks at random where none does.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab overlay --topology random-regular --nodes 1e5 --depth 3 --entry cubf --items 30 --queries 1000\n  umbel lab overlay --topology scale-free --nodes 1e4 --depth 2 --entry abf --items 30 --queries 1000 --json\n  umbel lab overlay --topology grid --nodes 900 --depth 8 --entry attenuated --items 100 --queries 500 --traditional"
)]
pub(super) struct Overlay {
    /// Who is linked with whom: line, grid, random-regular, scale-free or small-world
    #[arg(long, value_parser = topologies())]
    topology: Topology,
    /// Nodes (2 to 1000000)
    #[arg(long, value_name = "N", value_parser = values::nodes, allow_hyphen_values = true)]
    nodes: u64,
    /// Hops that filters travel (1 to 255)
    #[arg(long, value_name = "D", value_parser = values::hops, allow_hyphen_values = true)]
    depth: u8,
    /// How a link keeps filters: cubf (apart), abf (as their OR) or attenuated (an OR a distance)
    #[arg(long, value_parser = entries())]
    entry: EntryKind,
    /// Keys of each node
    #[arg(long, value_name = "N", value_parser = values::some, allow_hyphen_values = true)]
    items: u64,
    /// Queries
    #[arg(long, value_name = "Q", value_parser = values::items, allow_hyphen_values = true)]
    queries: u64,
    /// Average number of links per node; a line and a grid ignore it
    #[arg(long, value_name = "L", value_parser = values::some, allow_hyphen_values = true, default_value = "4")]
    degree: u64,
    /// Share of absent keys that an entry may claim, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true, default_value = "0.001")]
    false_positive: Rate,
    /// Steps of the random walk outside every range (0 to 1000000)
    #[arg(long, value_name = "W", value_parser = values::some_or_none, allow_hyphen_values = true, default_value = "128")]
    walk: u64,
    /// Filters that an entry is planned for [default: as many as come over a link on average]
    #[arg(long, value_name = "S", value_parser = values::some, allow_hyphen_values = true)]
    filters: Option<u64>,
    /// Design each filter for itself alone, and let entries take everything
    #[arg(long)]
    traditional: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Overlay {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let setting = Setting {
            topology: self.topology,
            nodes: self.nodes as usize,
            degree: self.degree as usize,
            depth: self.depth,
            entry: self.entry,
            design: if self.traditional { Design::Traditional } else { Design::ReceiverOriented },
            stock: Stock::equal(self.items),
            false_positive: self.false_positive.get(),
            filters: self.filters,
            queries: self.queries,
            walk: self.walk as u32,
            seed: self.seed,
        };
        let bar = ProgressBar::new(self.queries);
        let style =
            ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len} queries, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message("filters travel, then");
        bar.enable_steady_tick(std::time::Duration::from_millis(500));
        let outcome = overlay::run(&setting, || bar.inc(1));
        bar.finish_and_clear();
        self.print(&outcome.map_err(|error| anyhow!(error))?)
    }

    fn print(&self, outcome: &Outcome) -> anyhow::Result<ExitCode> {
        let details = &outcome.details;
        let title = format!(
            "{} nodes, {}, filters travel {} hops, {} entries",
            count(self.nodes),
            self.topology,
            self.depth,
            self.entry
        );
        let planned = format!("on average, {} planned for", count(details.planned_filters));
        let filter = format!("a filter, {} hashes", details.hashes);
        let wrong = format!(
            "of {} links asked for what they do not lead to",
            count(details.strange_decisions)
        );
        Report::new(title, outcome)?
            .row("success", percent(outcome.success), "of queries reached a holder")
            .row("hops", number(outcome.hops_mean), "to it, on average")
            .row("messages", number(outcome.messages_per_query), "a query, answers included")
            .row("flooding", number(outcome.flood_messages_per_query), "messages, to everybody")
            .row("wrong forwards", count(outcome.wrong_forwards), "of all queries together")
            .row("wrong decisions", percent(details.wrong_decisions), &wrong)
            .row("filters a link", number(details.filters_per_link), &planned)
            .row("refused", percent(details.refused), "of them, for want of room")
            .row("bits", bits(details.bits), &filter)
            .row(
                "advertisements",
                bytes(outcome.advertisement_bytes as f64),
                "every filter once to all in range",
            )
            .row("memory", bytes(outcome.memory_bytes_per_node), "a node")
            .print(self.json)
    }
}

fn topologies() -> impl clap::builder::TypedValueParser<Value = Topology> {
    PossibleValuesParser::new(Topology::ALL.map(Topology::name))
        .try_map(|name| name.parse::<Topology>())
}

fn entries() -> impl clap::builder::TypedValueParser<Value = EntryKind> {
    PossibleValuesParser::new(["cubf", "abf", "attenuated"])
        .try_map(|name| name.parse::<EntryKind>())
}
