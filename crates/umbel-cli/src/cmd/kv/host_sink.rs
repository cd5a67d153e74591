//! A host that keeps the blocks of a worker as sets of chains, over its RESP port.

use redis::Value;
use umbel_kv::{BlockKey, Changes, Sink, SinkError};

use crate::client::{At, Client, texts, wrong_answer};

/// Keys per command.
const KEYS: usize = 1000;
/// Commands sent before their replies are read; the replies fit into the socket's buffer.
const PIPELINE: usize = 8;

/// Parameters with which sets are reserved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) capacity: u64,
    pub(super) step: u32,
}

/// Sets of a host, one per tier.
pub(super) struct HostSink {
    at: At,
    set: String,
    shape: Shape,
    client: Option<Client>,
}

impl HostSink {
    pub(super) const fn new(at: At, set: String, shape: Shape) -> Self {
        Self { at, set, shape, client: None }
    }

    /// Connects, and checks that the host accepts such a set.
    pub(super) fn connect(&mut self) -> anyhow::Result<()> {
        let mut client = self.at.connect()?;
        self.delete_all(&mut client)?;
        self.reserve(&mut client, &self.set)?;
        self.client = Some(client);
        Ok(())
    }

    /// Deletes all sets, because the engine is no longer followed.
    pub(super) fn end(&mut self) {
        if let Some(mut client) = self.client.take() {
            // Ignore errors: a host that is gone has no sets.
            _ = self.delete_all(&mut client);
        }
    }

    fn set_of(&self, tier: &str) -> String {
        match tier {
            "" => self.set.clone(),
            tier => format!("{}.{tier}", self.set),
        }
    }

    /// Deletes the sets that an earlier run left, of all tiers.
    fn delete_all(&self, client: &mut Client) -> anyhow::Result<()> {
        let answer = client.ask(&[b"UMBEL.SETS"])?;
        let sets = texts(&answer).ok_or_else(|| wrong_answer(client.address(), &answer))?;
        let tiers = format!("{}.", self.set);
        let is_mine =
            |set: &&[u8]| *set == self.set.as_bytes() || set.starts_with(tiers.as_bytes());
        let mine: Vec<&[u8]> = sets.into_iter().filter(is_mine).collect();
        if !mine.is_empty() {
            client.ask(&[&[&b"DEL"[..]], &mine[..]].concat())?;
        }
        Ok(())
    }

    fn reserve(&self, client: &mut Client, set: &str) -> anyhow::Result<()> {
        let Shape { capacity, step } = self.shape;
        let (capacity, step) = (capacity.to_string(), step.to_string());
        let words = ["UMBEL.RESERVE", set, "1e-8", &capacity, "CHAINS", &step];
        client.execute(&words.map(str::as_bytes))
    }

    fn change(&self, client: &mut Client, changes: &Changes) -> anyhow::Result<()> {
        let set = self.set_of(&changes.tier);
        if changes.is_cleared {
            client.ask(&[b"DEL", set.as_bytes()])?;
            self.reserve(client, &set)?;
        }
        let (mut packed, mut waiting) = (Vec::new(), 0);
        for (command, keys) in [("UMBEL.REM", &changes.removed), ("UMBEL.ADD", &changes.added)] {
            for keys in keys.chunks(KEYS) {
                pack(command, &set, keys, &mut packed);
                waiting += 1;
                if waiting == PIPELINE {
                    send(client, &mut packed, &mut waiting)?;
                }
            }
        }
        send(client, &mut packed, &mut waiting)
    }
}

fn pack(command: &str, set: &str, keys: &[BlockKey], packed: &mut Vec<u8>) {
    let mut command = redis::cmd(command);
    command.arg(set);
    for key in keys {
        key.with_bytes(|bytes| _ = command.arg(bytes));
    }
    command.write_packed_command(packed);
}

fn send(client: &mut Client, packed: &mut Vec<u8>, waiting: &mut usize) -> anyhow::Result<()> {
    if *waiting > 0 {
        let answer = client.ask_pipeline(packed, *waiting)?;
        let Value::Array(_) = answer else { return Err(wrong_answer(client.address(), &answer)) };
    }
    packed.clear();
    *waiting = 0;
    Ok(())
}

impl Sink for HostSink {
    fn begin(&mut self) -> Result<(), SinkError> {
        if self.client.is_some() {
            return Ok(());
        }
        self.connect().map_err(|error| SinkError(error.to_string()))
    }

    fn apply(&mut self, changes: &Changes) -> Result<(), SinkError> {
        let Some(mut client) = self.client.take() else {
            return Err(SinkError("there is no connection".to_owned()));
        };
        self.change(&mut client, changes).map_err(|error| SinkError(error.to_string()))?;
        self.client = Some(client);
        Ok(())
    }
}
