//! Clients that talk: each conversation sends all of its tokens again with every turn, after a
//! beginning that all conversations of an application share. Prints requests per second, how long they
//! took, and how many of their blocks were cached.
//!
//! ```console
//! $ cargo run --release -p umbel-kv --example conversations -- --router 127.0.0.1:8000
//! ```

#[allow(dead_code, reason = "other examples use the rest")]
mod shared;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use shared::{option, post};

/// Tokens of a beginning that conversations share, and of a turn.
const SHARED: u32 = 2048;
const TURN: u32 = 160;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = option("--router", "127.0.0.1:8000");
    let conversations: u32 = option("--conversations", "200").parse()?;
    let turns: u32 = option("--turns", "10").parse()?;
    let clients: u32 = option("--clients", "4").parse()?;
    // After a turn an engine's events take up to a second to the router.
    let pause: u64 = option("--pause-ms", "0").parse()?;
    let (blocks, cached) = (AtomicU64::new(0), AtomicU64::new(0));
    let times = Mutex::new(Vec::new());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (router, blocks, cached, times) = (&router, &blocks, &cached, &times);
            scope.spawn(move || {
                // One turn of each conversation after the other: a turn comes long after the one before.
                for turn in 1..=turns {
                    for conversation in (client..conversations).step_by(clients as usize) {
                        let start = Instant::now();
                        let body = text(conversation, turn);
                        let Ok(answer) = post(router, "/generate", &body) else { continue };
                        let took = start.elapsed();
                        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
                        let count = |name: &str| answer["reply"][name].as_u64().unwrap_or(0);
                        blocks.fetch_add(count("blocks"), Ordering::Relaxed);
                        cached.fetch_add(count("cached"), Ordering::Relaxed);
                        times.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                        std::thread::sleep(Duration::from_millis(pause));
                    }
                }
            });
        }
    });
    let mut times = times.into_inner()?;
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len().saturating_sub(1) as f64 * share) as usize;
        times.get(place).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    let share =
        cached.load(Ordering::Relaxed) as f64 / blocks.load(Ordering::Relaxed).max(1) as f64;
    println!(
        "{} requests, {:.0} per second, ms: median {:.2}, p99 {:.2}; {:.1} % of blocks cached",
        times.len(),
        times.len() as f64 / begin.elapsed().as_secs_f64(),
        at(0.5),
        at(0.99),
        share * 100.0
    );
    Ok(())
}

/// Everything that was said in a conversation up to a turn.
fn text(conversation: u32, turn: u32) -> String {
    let application = conversation % 8;
    let begin = (0..SHARED).map(|token| application * 1_000_000 + token);
    let said = (0..turn * TURN).map(|token| 100_000_000 + conversation * 10_000 + token);
    let words: Vec<String> = begin.chain(said).map(|token| token.to_string()).collect();
    words.join(" ")
}
