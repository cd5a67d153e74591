//! `umbel plan chain`: filters, window and memory for sets of chains.

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use umbel::Rate;
use umbel::design::chain::{ChainError, ChainPromise};
use umbel::design::replica::row_width;
use umbel::model::chain;

use crate::output::{Report, bits, bytes, count, number, percent};
use crate::values;

/// Chains of keys: which host holds the longest beginning, how certain, how large, how fast
///
/// Each of the workers holds so many blocks, whose keys stand for all blocks of a text before them.
/// A router asks for the depth up to which each worker holds a chain. The plan keeps the chance that
/// a depth is too large by more than the step, per worker and chain.
#[derive(Args)]
#[command(
    after_help = "Example, 64 workers with ten million blocks together:\n  umbel plan chain --workers 64 --blocks 156250 --length 8192"
)]
pub(super) struct Chain {
    /// Workers, each of which has a filter
    #[arg(long, value_name = "G", value_parser = values::some, allow_hyphen_values = true)]
    workers: u64,
    /// Blocks that each worker holds
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    blocks: u64,
    /// Blocks of the longest chain
    #[arg(long, value_name = "L", value_parser = values::length, allow_hyphen_values = true, default_value = "16384")]
    length: u32,
    /// Depths are rounded down to a multiple of this many blocks
    #[arg(long, value_name = "S", value_parser = values::length, allow_hyphen_values = true, default_value = "8")]
    step: u32,
    /// Chance, per worker and chain, that a depth is too large by more than the step
    #[arg(long, value_name = "X", value_parser = values::rate, allow_hyphen_values = true, default_value = "1e-8")]
    over_estimate: Rate,
}

#[derive(Serialize)]
struct Answer {
    key_false_positive: f64,
    hashes: u32,
    window: u32,
    bits: u64,
    takes: u64,
    bits_per_block: f64,
    memory_bytes: u64,
    memory_bits_per_block: f64,
    over_estimate: f64,
    one_step_more: f64,
    keys_read: f64,
    rounds: f64,
    cache_lines_read: f64,
    lookup_ns: f64,
}

impl Chain {
    fn answer(&self) -> anyhow::Result<Answer> {
        let Self { length, step, .. } = *self;
        let promise =
            ChainPromise { step, over_estimate: self.over_estimate.get(), max_length: length };
        let design = promise.design().map_err(named)?;
        let (ladder, rate, window) = (design.ladder(), design.rate.get(), design.window);
        let workers = u32::try_from(self.workers).unwrap_or(u32::MAX);
        let rung = ladder.rung_for(self.blocks, workers);
        let rung = rung.ok_or_else(|| anyhow!("--blocks: no filter takes so many blocks"))?;
        let width = row_width(self.workers as usize) as u64;
        let memory = rung.bits() / 8 * (self.workers + width);
        let effort =
            chain::effort(rate, self.workers, ladder.hashes(), length.into(), (window, step));
        let lines = effort.keys * f64::from(ladder.hashes()) * width.div_ceil(512).max(1) as f64;
        let all = self.workers as f64 * self.blocks as f64;
        Ok(Answer {
            key_false_positive: rate,
            hashes: ladder.hashes(),
            window,
            bits: rung.bits(),
            takes: ladder.takes(rung, workers),
            bits_per_block: rung.bits() as f64 / self.blocks as f64,
            memory_bytes: memory,
            memory_bits_per_block: memory as f64 * 8.0 / all,
            over_estimate: chain::over_estimate(rate, length.into(), window, step),
            one_step_more: chain::one_step_more(rate, step),
            keys_read: effort.keys,
            rounds: effort.rounds,
            cache_lines_read: lines,
            lookup_ns: effort.rounds * chain::NS_PER_ROUND + lines * chain::NS_PER_LINE,
        })
    }

    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let answer = self.answer()?;
        let title = format!(
            "{} workers with {} blocks each, chains of up to {}",
            count(self.workers),
            count(self.blocks),
            count(self.length.into())
        );
        let per_block = number(answer.bits_per_block);
        let in_all = format!("of a router, {} bits a block", number(answer.memory_bits_per_block));
        let beyond = format!("by more than {} blocks, at most, per worker and chain", self.step);
        let (lines, rounds) = (number(answer.cache_lines_read), number(answer.rounds));
        Ok(Report::new(title, &answer)?
            .row("false positive", percent(answer.key_false_positive), "of a key at one worker")
            .row("hashes", answer.hashes.to_string(), "positions per key")
            .row("window", answer.window.to_string(), "keys tested before a depth is reported")
            .row("bits", bits(answer.bits), &format!("a filter, {per_block} a block"))
            .row("takes", count(answer.takes), "blocks, before the filter becomes longer")
            .row("memory", bytes(answer.memory_bytes as f64), &in_all)
            .row("too large", percent(answer.over_estimate), &beyond)
            .row("one step more", percent(answer.one_step_more), "than held, rounded down")
            .row(
                "keys read",
                number(answer.keys_read),
                &format!("by a lookup, {lines} cache lines in {rounds} rounds"),
            )
            .row(
                "lookup",
                format!("{} µs", number(answer.lookup_ns / 1000.0)),
                "estimated, not measured",
            ))
    }
}

fn named(error: ChainError) -> anyhow::Error {
    match error {
        ChainError::Step { .. } => anyhow!("--step: {error}"),
        other => anyhow!("--over-estimate: {other}"),
    }
}
