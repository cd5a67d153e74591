//! `umbel lab chain`: routes requests to the worker that holds the longest prefix.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use umbel::Rate;
use umbel::design::chain::ChainPromise;
use umbel::replica::Policy;
use umbel_lab::chain::{self, Outcome, Setting, Trace};

use crate::output::{Report, bytes, count, number, percent};
use crate::values;

/// Route requests to the worker that holds the longest beginning of their text
///
/// Workers cache the texts that they have computed, in parts of several blocks, and publish the
/// keys of the blocks. A router asks its replicas how many leading blocks of a request each worker
/// holds, and sends it to the one that would be done first. The same requests are also routed with
/// exact and fresh knowledge, and with none. Without --trace the requests are conversations with
/// the statistics of a public trace.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab chain\n  umbel lab chain --workers 64 --trace conversation_trace.jsonl --copies 4 --cache-parts 4882\n  umbel lab chain --loss 0.01 --restarts --json"
)]
pub(super) struct Chain {
    /// Workers
    #[arg(long, value_name = "G", value_parser = values::some, allow_hyphen_values = true, default_value = "16")]
    workers: u64,
    /// Parts of texts that each worker's cache holds; at least as many as the longest text has
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true, default_value = "1000")]
    cache_parts: u64,
    /// Blocks of a part: 32 if a part has 512 tokens and a block 16
    #[arg(long, value_name = "B", value_parser = values::length, allow_hyphen_values = true, default_value = "32")]
    blocks_per_part: u32,
    /// Lines such as `{"timestamp": 27482, "hash_ids": [0, 46, 47]}`: milliseconds, and parts
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Requests of the synthetic trace
    #[arg(long, value_name = "R", value_parser = values::some, allow_hyphen_values = true, default_value = "4000", conflicts_with = "trace")]
    requests: u64,
    /// Services with these requests, at different times, that share the workers
    #[arg(long, value_name = "C", value_parser = values::copies, allow_hyphen_values = true, default_value = "1")]
    copies: u32,
    /// Depths are rounded down to a multiple of this many blocks
    #[arg(long, value_name = "S", value_parser = values::length, allow_hyphen_values = true, default_value = "8")]
    step: u32,
    /// Chance, per worker and chain, that a depth is too large by more than the step
    #[arg(long, value_name = "X", value_parser = values::rate, allow_hyphen_values = true, default_value = "1e-8")]
    over_estimate: Rate,
    /// When replicas are too stale
    #[arg(long, value_name = "P", default_value = "interval:1s")]
    policy: Policy,
    /// Share of messages that are lost
    #[arg(long, value_name = "Q", value_parser = values::share, allow_hyphen_values = true, default_value = "0")]
    loss: f64,
    /// Restart the router after half of the time, and a worker after three quarters
    #[arg(long)]
    restarts: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Chain {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let trace = self.read()?;
        let trace = if self.copies > 1 { trace.times(self.copies) } else { trace };
        let longest = trace.requests().iter().map(|request| request.parts.len()).max();
        let longest = longest.unwrap_or(0) as u64 * u64::from(self.blocks_per_part);
        let setting = Setting {
            workers: self.workers as usize,
            cache_parts: self.cache_parts as usize,
            blocks_per_part: self.blocks_per_part as usize,
            promise: ChainPromise {
                step: self.step,
                over_estimate: self.over_estimate.get(),
                max_length: u32::try_from(longest).context("--blocks-per-part: too many")?,
            },
            policy: self.policy,
            loss: self.loss,
            restarts: self.restarts,
            seed: self.seed,
        };
        let bar = ProgressBar::new(3 * trace.requests().len() as u64);
        let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} requests, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let outcome = chain::run(&trace, &setting, || bar.inc(1));
        bar.finish_and_clear();
        self.report(&trace, &outcome.map_err(|error| anyhow!("--step, --over-estimate: {error}"))?)
    }

    fn read(&self) -> anyhow::Result<Trace> {
        let Some(path) = &self.trace else {
            return Ok(Trace::synthetic(self.requests as usize, self.seed));
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read trace {}", path.display()))?;
        Trace::parse(&text).with_context(|| format!("trace {}", path.display()))
    }

    fn report(&self, trace: &Trace, outcome: &Outcome) -> anyhow::Result<ExitCode> {
        let title = format!(
            "{} requests in {} s, {} workers",
            count(trace.requests().len() as u64),
            number(trace.milliseconds() / 1000.0),
            count(self.workers)
        );
        let change = format!(
            "to the router, {} for each block that came or went",
            bytes(outcome.bytes_per_change)
        );
        let held = format!("bits of the router for each of {} blocks", count(outcome.blocks));
        let asked = format!("of {} depths, by more than the step", count(outcome.depths));
        let mut report = Report::new(title, outcome)?
            .row("hit rate", percent(outcome.hit_rate), "of parts, with umbel's replicas")
            .row("exact", percent(outcome.exact_hit_rate), "with exact and fresh knowledge")
            .row("blind", percent(outcome.blind_hit_rate), "without knowledge")
            .row("delay", format!("{} ms", number(outcome.delay_ms)), "of a request, on average")
            .row("exact delay", format!("{} ms", number(outcome.exact_delay_ms)), "")
            .row("sent", format!("{}/s", bytes(outcome.bytes_per_second)), &change)
            .row("memory", number(outcome.bits_per_block), &held)
            .row("too large", percent(outcome.too_large), &asked)
            .row("too small", percent(outcome.too_small), "not published yet");
        for restart in &outcome.restarts {
            let note = format!(
                "hit rate from the fifth second on, exact {}; current after {} s and {}",
                percent(restart.exact_hit_rate),
                number(restart.seconds_until_current),
                bytes(restart.bytes_until_current as f64)
            );
            report =
                report.row(&format!("{} restart", restart.host), percent(restart.hit_rate), &note);
        }
        report.print(self.json)
    }
}
