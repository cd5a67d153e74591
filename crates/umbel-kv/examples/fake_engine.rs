//! A stand-in for an inference engine: a prefix cache of blocks, and its events over ZeroMQ as vLLM
//! publishes them. It generates nothing: it says how much of a request was cached.
//!
//! ```console
//! $ cargo run --release -p umbel-kv --example fake_engine -- \
//!       --http 127.0.0.1:9001 --events 127.0.0.1:5557 --replay 127.0.0.1:5558 --blocks 20000
//! $ curl -d '11 27 4001 9' 127.0.0.1:9001/generate
//! {"blocks":0,"cached":0}
//! ```

#[allow(dead_code, reason = "other examples use the rest")]
mod shared;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shared::{option, serve, tokens};
use umbel_kv::stand_in::{Form, PublishedEvent, Publisher, encode};

/// Tokens of a block.
const BLOCK: usize = 16;

/// The blocks of an engine, the least recently used ones of which make room for others.
struct Cache {
    max_blocks: usize,
    /// When each block was used last.
    blocks: HashMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    publisher: Publisher,
}

impl Cache {
    /// How many leading blocks of a request are cached; all of them are afterwards.
    fn request(&mut self, tokens: &[u32]) -> (usize, usize) {
        let names = names(tokens);
        let cached = names.iter().take_while(|name| self.blocks.contains_key(name)).count();
        // The end of a text is used first, so that it is evicted first.
        names.iter().rev().for_each(|name| self.touch(*name));
        let mut events = Vec::new();
        if cached < names.len() {
            events.push(PublishedEvent::Stored {
                hashes: names[cached..].to_vec(),
                parent: cached.checked_sub(1).map(|before| names[before]),
                tokens: tokens[cached * BLOCK..names.len() * BLOCK].to_vec(),
                block_size: BLOCK as u32,
            });
        }
        let removed = self.evict();
        if !removed.is_empty() {
            events.push(PublishedEvent::Removed(removed));
        }
        if !events.is_empty() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.publisher.publish(encode(Form::Maps, now.as_secs_f64(), &events));
        }
        (names.len(), cached)
    }

    fn touch(&mut self, name: u64) {
        self.clock += 1;
        if let Some(before) = self.blocks.insert(name, self.clock) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.clock, name);
    }

    fn evict(&mut self) -> Vec<u64> {
        let mut removed = Vec::new();
        while self.blocks.len() > self.max_blocks
            && let Some((_, name)) = self.by_use.pop_first()
        {
            self.blocks.remove(&name);
            removed.push(name);
        }
        removed
    }
}

/// What this engine calls the blocks of a text: hashes of its own, which no other engine shares.
fn names(tokens: &[u32]) -> Vec<u64> {
    let seed = u64::from(std::process::id());
    let mut parent = seed;
    let name = |block: &[u32]| {
        for token in block {
            parent = (parent ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
        parent
    };
    tokens.chunks_exact(BLOCK).map(name).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (events, replay) =
        (option("--events", "127.0.0.1:5557"), option("--replay", "127.0.0.1:5558"));
    let publisher = Publisher::bind(events.parse()?, replay.parse()?, "kv-events", 10_000)?;
    let cache = Mutex::new(Cache {
        max_blocks: option("--blocks", "20000").parse()?,
        blocks: HashMap::new(),
        by_use: BTreeMap::new(),
        clock: 0,
        publisher,
    });
    // What computing the key-value cache of a block takes, in microseconds.
    let per_block: u64 = option("--microseconds-per-block", "0").parse()?;
    serve(&option("--http", "127.0.0.1:9001"), |_, body| {
        let Some(tokens) = tokens(body) else {
            return (400, r#"{"error":"tokens are numbers, separated by spaces"}"#.to_owned());
        };
        let (blocks, cached) =
            cache.lock().unwrap_or_else(PoisonError::into_inner).request(&tokens);
        std::thread::sleep(Duration::from_micros((blocks - cached) as u64 * per_block));
        (200, format!(r#"{{"blocks":{blocks},"cached":{cached}}}"#))
    })?;
    Ok(())
}
