//! `umbel model chain`: how often the estimated depths of a chain are too large.

use clap::Args;
use serde::Serialize;
use umbel::Rate;
use umbel::model::chain;

use crate::output::{Report, count, number, percent};
use crate::values;

/// Chains of keys: how often a depth is too large, and what a search reads
#[derive(Args)]
#[command(
    after_help = "Example: umbel model chain --false-positive 10% --hashes 3 --window 12 --step 8 --length 8192 --workers 64"
)]
pub(super) struct Chain {
    /// Share of absent keys that a worker's filter claims, 1e-15 to below 1, or as 10%
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
    /// Positions per key
    #[arg(long, value_name = "K", value_parser = values::hashes, allow_hyphen_values = true)]
    hashes: u32,
    /// Keys that are tested before a depth is reported
    #[arg(long, value_name = "W", value_parser = values::length, allow_hyphen_values = true)]
    window: u32,
    /// Depths are rounded down to a multiple of this many keys
    #[arg(long, value_name = "S", value_parser = values::length, allow_hyphen_values = true)]
    step: u32,
    /// Keys of a chain
    #[arg(long, value_name = "L", value_parser = values::length, allow_hyphen_values = true)]
    length: u32,
    /// Workers that are asked
    #[arg(long, value_name = "G", value_parser = values::some, allow_hyphen_values = true)]
    workers: u64,
}

#[derive(Serialize)]
struct Answer {
    over_estimate: f64,
    run: f64,
    one_step_more: f64,
    keys_read: f64,
    rounds: f64,
    keys_walked: f64,
}

impl Chain {
    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let Self { hashes, window, step, length, workers, .. } = *self;
        let rate = self.false_positive.get();
        let effort = chain::effort(rate, workers, hashes, length.into(), (window, step));
        let answer = Answer {
            over_estimate: chain::over_estimate(rate, length.into(), window, step),
            run: chain::run(rate, length.into(), window),
            one_step_more: chain::one_step_more(rate, step),
            keys_read: effort.keys,
            rounds: effort.rounds,
            // The holder's depth is anywhere; the others deny one of the first keys.
            keys_walked: f64::from(length) / 2.0,
        };
        let title = format!(
            "Chains of {} keys at {} workers, {} of absent keys claimed",
            count(length.into()),
            count(workers),
            percent(rate)
        );
        Ok(Report::new(title, &answer)?
            .row("too large", percent(answer.over_estimate), "by more than the step, at most")
            .row("run", percent(answer.run), "chance of a window of wrong claims, at most")
            .row("one step more", percent(answer.one_step_more), "than held, rounded down")
            .row(
                "keys read",
                number(answer.keys_read),
                "by a search, if one worker holds a part of the chain",
            )
            .row("rounds", number(answer.rounds), "of waiting for memory, by that search")
            .row("walked", number(answer.keys_walked), "keys, by a walk"))
    }
}
