//! A router for inference requests: each goes to the worker that holds most of its beginning, unless
//! that one is too busy. It asks a host of umbel over HTTP.
//!
//! ```console
//! $ cargo run --release -p umbel-kv --example router -- --listen 127.0.0.1:8000 \
//!       --umbel 127.0.0.1:7441 worker-1=127.0.0.1:9001 worker-2=127.0.0.1:9002
//! $ curl -d '11 27 4001 9' 127.0.0.1:8000/generate
//! {"worker":"worker-1","known":0,"reply":{"blocks":0,"cached":0}}
//! ```

#[allow(dead_code, reason = "other examples use the rest")]
mod shared;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::Value;
use shared::{option, post, serve, tokens};
use umbel_kv::canonical;

/// Tokens of a block: what the engines have.
const BLOCK: usize = 16;
/// Blocks that one request under way counts as.
const BUSY: f64 = 64.0;

/// A worker, by the name of its umbel host.
struct Worker {
    name: String,
    address: String,
    under_way: AtomicU64,
}

struct Router {
    umbel: String,
    set: String,
    workers: Vec<Worker>,
    /// Whose turn it is among equals.
    turn: AtomicUsize,
}

impl Router {
    fn route(&self, body: &str) -> Result<String, String> {
        let tokens = tokens(body).ok_or("tokens are numbers, separated by spaces")?;
        // A router goes on without depths if its host does not answer.
        let depths = self.depths(&tokens).unwrap_or_else(|error| {
            eprintln!("no depths: {error}");
            Value::Null
        });
        let depth_of = |worker: &Worker| {
            let hosts = depths["hosts"].as_array().into_iter().flatten();
            let mut found = hosts.filter(|host| host["host"] == worker.name.as_str());
            found.next().and_then(|host| host["depth"].as_f64()).unwrap_or(0.0)
        };
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.workers.len();
        let score = |number: &usize| {
            let worker = &self.workers[(first + number) % count];
            depth_of(worker) - BUSY * worker.under_way.load(Ordering::Relaxed) as f64
        };
        let best = (0..count).max_by(|a, b| score(a).total_cmp(&score(b)).then(b.cmp(a)));
        let worker = &self.workers[(first + best.unwrap_or(0)) % count];
        worker.under_way.fetch_add(1, Ordering::Relaxed);
        let reply = post(&worker.address, "/generate", body);
        worker.under_way.fetch_sub(1, Ordering::Relaxed);
        let reply = reply.map_err(|error| error.to_string())?;
        let (name, known) = (&worker.name, depth_of(worker));
        Ok(format!(r#"{{"worker":"{name}","known":{known},"reply":{reply}}}"#))
    }

    /// How many leading blocks each worker holds.
    fn depths(&self, tokens: &[u32]) -> Result<Value, String> {
        let chain = canonical::chain(tokens, BLOCK, &[]);
        let lines: String = chain.iter().map(|hash| format!("{hash}\n")).collect();
        let path = format!("/v1/sets/{}/chain?encoding=number", self.set);
        let answer = post(&self.umbel, &path, &lines).map_err(|error| error.to_string())?;
        serde_json::from_str(&answer).map_err(|error| error.to_string())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named = std::env::args().skip(1).filter_map(|word| {
        let (name, address) = word.split_once('=')?;
        let (name, address) = (name.to_owned(), address.to_owned());
        Some(Worker { name, address, under_way: AtomicU64::new(0) })
    });
    let (umbel, set) = (option("--umbel", "127.0.0.1:7441"), option("--set", "kv"));
    let router = Router { umbel, set, workers: named.collect(), turn: AtomicUsize::new(0) };
    if router.workers.is_empty() {
        return Err("name at least one worker, such as worker-1=127.0.0.1:9001".into());
    }
    serve(&option("--listen", "127.0.0.1:8000"), |_, body| match router.route(body) {
        Ok(json) => (200, json),
        Err(error) => (502, serde_json::json!({ "error": error }).to_string()),
    })?;
    Ok(())
}
