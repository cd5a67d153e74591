//! Measures how many blocks per second a follower takes in: an engine that publishes as fast as it
//! can.
//!
//! ```console
//! $ umbel serve --memory --name worker-1 --log-level warn &
//! $ cargo run --release -p umbel-kv --example flood -- --messages 20000 &
//! $ umbel kv follow kv --events tcp://127.0.0.1:5557 --replay tcp://127.0.0.1:5558 --capacity 2000000
//! ```
//!
//! The follower is done when `umbel info kv` shows all blocks: 100 per message.

#[allow(dead_code, reason = "other examples use the rest")]
mod shared;

use std::time::{Duration, Instant};

use shared::option;
use umbel_kv::canonical;
use umbel_kv::stand_in::{Form, PublishedEvent, Publisher, encode};

/// Blocks per message: a prompt of 1600 tokens.
const BLOCKS: usize = 100;
/// Tokens per block.
const BLOCK: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (events, replay) =
        (option("--events", "127.0.0.1:5557"), option("--replay", "127.0.0.1:5558"));
    let messages: u32 = option("--messages", "20000").parse()?;
    let publisher =
        Publisher::bind(events.parse()?, replay.parse()?, "kv-events", messages as usize)?;
    // Encoded beforehand: only the follower is measured.
    let payloads: Vec<Vec<u8>> = (0..messages).map(message).collect();
    while publisher.subscribers() == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let begin = Instant::now();
    payloads.into_iter().for_each(|payload| publisher.publish(payload));
    let blocks = f64::from(messages) * BLOCKS as f64;
    println!("published {blocks} blocks in {:.3} s", begin.elapsed().as_secs_f64());
    // The follower finds out what is missing by the next message.
    loop {
        std::thread::sleep(Duration::from_secs(1));
        publisher.publish(encode(Form::Maps, 0.0, &[]));
    }
}

/// A message that stores the blocks of a text that no other message has.
fn message(number: u32) -> Vec<u8> {
    let tokens: Vec<u32> = (0..BLOCKS * BLOCK).map(|at| (at as u32) ^ (number << 11)).collect();
    let hashes = canonical::chain(&tokens, BLOCK, &[]);
    let hashes = hashes.iter().map(|hash| hash ^ 0x5555).collect();
    let block_size = BLOCK as u32;
    let event = PublishedEvent::Stored { hashes, parent: None, tokens, block_size };
    encode(Form::Maps, f64::from(number), &[event])
}
