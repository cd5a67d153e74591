//! `umbel chain`: how many leading keys of a chain each host holds.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;
use redis::Value;
use serde::{Serialize, Serializer};
use umbel::text::bytes_for_terminal;
use umbel_node::ChainQuery;

use super::ask::found;
use super::keys::Keys;
use super::{Options, set_name};
use crate::client::{Fields, text, wrong_answer};
use crate::output::{JsonKey, print};
use crate::progress::Progress;

/// Print how many leading keys of a chain each host holds, from the memory of the host that is asked
#[derive(Args)]
#[command(
    override_usage = usage!("chain", "KEY"),
    after_help = "\
Prints the name of each host, a tab and the number of leading keys that it holds, the deepest
host first. Depths are multiples of the step; hosts that hold less than one step are not printed.
umbel reserve --chains makes a set for chains. Exit status as grep's: 0 if some host holds a
step, 1 if none, 2 for errors.
With --json: {\"hosts\": [{\"host\": \"worker-1\", \"depth\": 416}], \"keys\": 420,
\"complete\": true, \"missing_hosts\": []}.

Examples:
  umbel chain kv --file blocks.txt --numbers
  umbel chain kv 8c1f 77aa 03be --step 1 --limit 3 --json"
)]
pub(crate) struct Chain {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    keys: Keys,
    /// Keys are whole numbers, such as hashes of blocks: each is a key of 8 bytes, little-endian
    #[arg(long)]
    numbers: bool,
    /// Round depths down to a multiple of this many keys
    #[arg(long, value_name = "KEYS", default_value_t = ChainQuery::DEFAULT_STEP,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(ChainQuery::MAX_STEP)))]
    step: u32,
    /// Print at most this many hosts [default: all]
    #[arg(long, value_name = "HOSTS", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    options: Options,
}

/// A host's reply about a chain.
#[derive(Serialize)]
struct Answer<'a> {
    hosts: Vec<HostDepth<'a>>,
    keys: usize,
    complete: bool,
    missing_hosts: Vec<String>,
}

#[derive(Serialize)]
struct HostDepth<'a> {
    #[serde(serialize_with = "as_key")]
    host: &'a [u8],
    depth: i64,
}

fn as_key<S: Serializer>(name: &[u8], to: S) -> Result<S::Ok, S::Error> {
    JsonKey::of(name).serialize(to)
}

impl Chain {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let keys = self.keys()?;
        let (step, limit) = (self.step.to_string(), self.limit.map(|limit| limit.to_string()));
        let mut words: Vec<&[u8]> =
            vec![b"UMBEL.CHAIN", self.set.as_bytes(), b"STEP", step.as_bytes()];
        // Always sent: then everything after both options is a key, whatever it looks like.
        let all = u32::MAX.to_string();
        words.extend([b"LIMIT", limit.as_ref().unwrap_or(&all).as_bytes()]);
        words.extend(keys.iter().map(Vec::as_slice));
        let mut client = self.options.at.connect()?;
        let reply = client.ask(&words)?;
        let mut answer = read(&reply).ok_or_else(|| wrong_answer(client.address(), &reply))?;
        answer.keys = keys.len();
        self.print(&answer)?;
        Ok(found(answer.hosts.len() as u64))
    }

    /// The keys, as they are sent.
    fn keys(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        self.keys.listed().read(&Progress::none(), &mut |key| {
            let (given, max) = (keys.len() + 1, ChainQuery::MAX_KEYS);
            ensure!(given <= max, "a chain has at most {max} keys");
            keys.push(match self.numbers {
                true => number(key)?.to_le_bytes().to_vec(),
                false => {
                    crate::client::check_key(key)?;
                    key.to_vec()
                }
            });
            Ok(())
        })?;
        ensure!(!keys.is_empty(), "a chain has at least one key");
        Ok(keys)
    }

    fn print(&self, answer: &Answer<'_>) -> anyhow::Result<()> {
        if self.options.json {
            return print(&format!("{}\n", serde_json::to_string(answer)?));
        }
        let line = |found: &HostDepth<'_>| {
            let name = bytes_for_terminal(found.host);
            format!("{name}\t{}\n", found.depth)
        };
        print(&answer.hosts.iter().map(line).collect::<String>())?;
        for missing in &answer.missing_hosts {
            crate::note(&format!("not complete: {}", umbel::text::for_terminal(missing)));
        }
        Ok(())
    }
}

/// An unsigned number, or a signed one in two's complement.
fn number(key: &[u8]) -> anyhow::Result<u64> {
    let text = str::from_utf8(key).ok();
    let unsigned = text.and_then(|text| text.parse().ok());
    let signed = || text.and_then(|text| text.parse::<i64>().ok()).map(|number| number as u64);
    let shown = || format!("'{}'", bytes_for_terminal(&key[..key.len().min(80)]));
    unsigned
        .or_else(signed)
        .context("a number must be whole, from -2^63 to 2^64 - 1")
        .with_context(shown)
}

fn host_depth(value: &Value) -> Option<HostDepth<'_>> {
    let Value::Array(pair) = value else { return None };
    let [name, Value::Int(depth)] = pair.as_slice() else { return None };
    Some(HostDepth { host: text(name)?, depth: *depth })
}

/// Decodes a reply; `None` if it has an unexpected type.
fn read(reply: &Value) -> Option<Answer<'_>> {
    let fields = Fields::of(reply)?;
    let Value::Array(hosts) = fields.get("hosts")? else { return None };
    let complete = match fields.get("complete")? {
        Value::Boolean(flag) => *flag,
        Value::Int(flag) => *flag == 1,
        _ => return None,
    };
    let hosts = hosts.iter().map(host_depth).collect::<Option<_>>()?;
    Some(Answer { hosts, keys: 0, complete, missing_hosts: fields.texts("missing_hosts") })
}
