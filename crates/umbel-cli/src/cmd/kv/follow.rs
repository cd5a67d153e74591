//! `umbel kv follow`: follows an engine's events until it is stopped.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::signal::unix::SignalKind;
use umbel_kv::blocks::Hashing;
use umbel_kv::follower::Notice;
use umbel_kv::sidecar::Totals;
use umbel_kv::zmtp::Endpoint;
use umbel_kv::{Report, SidecarConfig};
use umbel_node::ChainQuery;

use super::host_sink::{HostSink, Shape};
use crate::client::At;
use crate::output::{count, print};
use crate::values;

/// Follow the KV cache events of an engine and keep its blocks as a set of a host
#[derive(Args)]
#[command(after_help = "\
Runs until it is stopped (Ctrl-C, SIGTERM) and deletes its sets then. The host should be the
worker's own, with the name by which a router knows the worker; one host and one follower per
data-parallel rank. Blocks in the engine's own memory are in SET, those of a slower tier in
SET.cpu or the like. Needs the permissions admin, write and read where the host has users.

Missed messages are replayed if --replay is given. Where that fails, and when the engine starts
anew, all blocks are dropped, so that no block is claimed that may be gone.

Examples:
  umbel kv follow kv --events tcp://127.0.0.1:5557 --replay tcp://127.0.0.1:5558
  umbel kv follow kv --events tcp://127.0.0.1:5557 --rank 1 --at 127.0.0.1:7450")]
pub(crate) struct Follow {
    /// Set of the engine's blocks
    #[arg(value_parser = set_name)]
    set: String,
    /// Where the engine publishes events: the endpoint of --kv-events-config
    #[arg(long, value_name = "ENDPOINT")]
    events: Endpoint,
    /// Where the engine replays events: the replay endpoint of --kv-events-config
    #[arg(long, value_name = "ENDPOINT")]
    replay: Option<Endpoint>,
    /// Topic of the events [default: all]
    #[arg(long, default_value = "", hide_default_value = true)]
    topic: String,
    /// Data-parallel rank: added to both ports as engines do; events of other ranks are ignored
    #[arg(long)]
    rank: Option<u16>,
    /// How blocks are identified
    #[arg(long, value_enum, default_value_t = Names::Canonical)]
    hash: Names,
    /// Group of layers whose blocks count, in engines that have several
    #[arg(long, default_value_t = 0)]
    group: u64,
    /// Blocks that the engine holds when its memory is full
    #[arg(long, value_name = "BLOCKS", value_parser = values::items, default_value = "100000")]
    capacity: u64,
    /// Step of the set: depths are multiples of this many blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = ChainQuery::DEFAULT_STEP,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(ChainQuery::MAX_STEP)))]
    step: u32,
    /// Drop all blocks when the engine has been unreachable for this long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    forget: Duration,
    #[command(flatten)]
    at: At,
    /// Print the counts at the end as JSON
    #[arg(long)]
    json: bool,
}

/// How blocks are identified.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Names {
    /// A hash of its tokens and those before them, the same for every engine: see umbel kv hash
    Canonical,
    /// The engine's own hash
    Engine,
}

/// The name of a set, short enough that the names of tiers can be appended.
fn set_name(text: &str) -> Result<String, String> {
    let range = "a set's name has 1 to 200 bytes here, none of them a space or control character";
    let name = umbel::replica::Name::new(text).filter(|name| name.as_str().len() <= 200);
    name.map(|name| name.to_string()).ok_or_else(|| range.to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let range = "a duration such as 30s or 2m is needed";
    umbel::duration::parse_duration(text).ok_or_else(|| range.to_owned())
}

impl Follow {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let config = self.config()?;
        let shape = Shape { capacity: self.capacity, step: self.step };
        let mut sink = HostSink::new(self.at.clone(), self.set.clone(), shape);
        // If the host refuses now, fail at once; if it disappears later, wait for it.
        sink.connect()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        crate::signals::on_first([SignalKind::terminate(), SignalKind::interrupt()], move |_| {
            stopped.store(true, Ordering::Relaxed);
        })
        .context("cannot wait for signals")?;
        let mut reports = Reports::default();
        let totals = umbel_kv::run(&config, &mut sink, &stop, &mut |report| reports.show(report));
        sink.end();
        self.print(&totals)?;
        Ok(ExitCode::SUCCESS)
    }

    fn config(&self) -> anyhow::Result<SidecarConfig> {
        let rank = self.rank.unwrap_or(0);
        let of_rank = |endpoint: &Endpoint| {
            endpoint
                .of_rank(rank)
                .with_context(|| format!("{endpoint} has no port for rank {rank}"))
        };
        Ok(SidecarConfig {
            events: of_rank(&self.events)?,
            replay: self.replay.as_ref().map(of_rank).transpose()?,
            topic: self.topic.clone().into_bytes(),
            rank: self.rank.map(u64::from),
            hashing: match self.hash {
                Names::Canonical => Hashing::Canonical,
                Names::Engine => Hashing::Engine,
            },
            group: self.group,
            forget: self.forget,
        })
    }

    fn print(&self, totals: &Totals) -> anyhow::Result<()> {
        let Totals { messages, blocks, held } = totals;
        if self.json {
            let message = json!({
                "messages": messages.messages, "missed": messages.missed,
                "replayed": messages.replayed, "rejected": messages.rejected,
                "other_ranks": messages.other_ranks, "dropped": messages.dropped,
                "blocks": blocks.blocks, "orphans": blocks.orphans, "ignored": blocks.ignored,
                "unknown": blocks.unknown, "held": held,
            });
            return print(&format!("{message}\n"));
        }
        print(&format!(
            "{} messages, {} missed, {} replayed, {} rejected; {} blocks changed, {} held at the end\n",
            count(messages.messages),
            count(messages.missed),
            count(messages.replayed),
            count(messages.rejected),
            count(blocks.blocks),
            count(*held)
        ))
    }
}

/// Prints reports on standard error; at most one per second of those that every message may cause.
#[derive(Default)]
struct Reports {
    last: Option<Instant>,
    hidden: u64,
}

impl Reports {
    fn show(&mut self, report: &Report) {
        let is_frequent = matches!(
            report,
            Report::Lost(_) | Report::Noticed(Notice::Rejected(_) | Notice::OtherRank(_))
        );
        if is_frequent && self.last.is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            self.hidden += 1;
            return;
        }
        if is_frequent {
            self.last = Some(Instant::now());
        }
        let more = match std::mem::take(&mut self.hidden) {
            0 => String::new(),
            hidden => format!(" ({hidden} like it were not shown)"),
        };
        crate::note(&format!("{report}{more}"));
    }
}
