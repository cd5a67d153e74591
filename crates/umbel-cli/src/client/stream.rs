//! Sends any number of keys to a host, several batches in flight at once.
//!
//! One thread reads and encodes the keys, a few connections each have one batch in flight, and the
//! calling thread takes the replies in the order of the keys. A connection never writes while it
//! has a reply to read, so client and host cannot deadlock, however long replies are.
//!
//! Always true: there are [`BATCHES`] batches, which are reused. So memory does not grow with the
//! input, even if one connection is slow.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use redis::Value;

use super::{At, Batch, Client};

/// Connections used at once, if there is more than one batch.
const CONNECTIONS: usize = 4;

/// Total number of batches: read ahead, in flight, or waiting for the reply to an earlier one.
const BATCHES: usize = 4 * CONNECTIONS;

/// The command to send for all keys, such as `UMBEL.ADD images`.
pub(crate) struct Asked {
    /// Command name and arguments before the keys.
    words: Vec<Vec<u8>>,
    /// Arguments appended after each key, if each key is sent as a command of its own.
    behind_each: Option<Vec<Vec<u8>>>,
}

impl Asked {
    /// One command for all keys of a batch.
    pub(crate) fn new(words: &[&str]) -> Self {
        Self { words: bytes(words), behind_each: None }
    }

    /// One command per key, in a pipeline: for commands that take only one key. The reply to a
    /// batch is the list of their replies.
    pub(crate) fn one_by_one(words: &[&str], behind: &[&str]) -> Self {
        Self { words: bytes(words), behind_each: Some(bytes(behind)) }
    }

    fn ask(&self, client: &mut Client, batch: &Batch, into: &mut Vec<u8>) -> anyhow::Result<Value> {
        match &self.behind_each {
            None => {
                batch.command(&self.words, into);
                client.ask_packed(into)
            }
            Some(behind) => {
                batch.commands(&self.words, behind, into);
                client.ask_pipeline(into, batch.len())
            }
        }
    }

    fn is_enough(&self, batch: &Batch) -> bool {
        if self.behind_each.is_some() { batch.is_full_pipeline() } else { batch.is_full() }
    }
}

fn bytes(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

type Answered = anyhow::Result<(Batch, Value)>;

/// Sends the keys that `read` supplies, and calls `take` with every batch and its reply, in order.
/// The first error in any thread ends everything; it says how many keys were processed before.
pub(crate) fn stream<R>(
    at: &At,
    asked: &Asked,
    read: R,
    mut take: impl FnMut(&Batch, &Value) -> anyhow::Result<()>,
) -> anyhow::Result<()>
where
    R: FnOnce(&mut dyn FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> + Send,
{
    let (work, waiting) = channel::<Batch>();
    let (back, free) = channel::<Batch>();
    let (answer, answers) = channel::<Answered>();
    for _ in 0..BATCHES {
        _ = back.send(Batch::default());
    }
    let waiting = &Mutex::new(waiting);
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let answer = answer.clone();
            scope.spawn(move || carry(at, asked, waiting, &answer));
        }
        scope.spawn(move || {
            if let Err(error) = pack(asked, read, &free, &work) {
                _ = answer.send(Err(error));
            }
        });
        // Dropped at the end of this block, which ends the threads in any case.
        let (back, answers) = (back, answers);
        in_order(&answers, |batch, value| {
            take(&batch, &value)?;
            let keys = batch.len() as u64;
            // Fails only if the reader has finished.
            _ = back.send(batch);
            Ok(keys)
        })
    })
}

/// Collects keys into batches, and queues them.
fn pack<R>(
    asked: &Asked,
    read: R,
    free: &Receiver<Batch>,
    work: &Sender<Batch>,
) -> anyhow::Result<()>
where
    R: FnOnce(&mut dyn FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()>,
{
    let mut number = 0;
    let mut batch: Option<Batch> = None;
    let outcome = read(&mut |key| {
        let filling = match &mut batch {
            Some(filling) => filling,
            None => {
                let mut fresh = free.recv().map_err(|_| Ended)?;
                fresh.clear(number);
                number += 1;
                batch.insert(fresh)
            }
        };
        filling.push(key);
        if asked.is_enough(filling) {
            batch.take().map_or(Ok(()), |full| work.send(full)).map_err(|_| Ended)?;
        }
        Ok(())
    });
    match outcome {
        // An error in another thread ended the stream, and that one is reported.
        Err(error) if error.is::<Ended>() => Ok(()),
        outcome => {
            // Send what was read before a bad line: the reported number of keys includes it.
            _ = batch.map(|last| work.send(last));
            outcome
        }
    }
}

/// The thread of one connection. It connects when it gets its first batch, so that few keys need
/// only one connection.
fn carry(at: &At, asked: &Asked, waiting: &Mutex<Receiver<Batch>>, answers: &Sender<Answered>) {
    let mut client = None;
    let mut command = Vec::new();
    let mut ask = |batch: &Batch| -> anyhow::Result<Value> {
        let client = match &mut client {
            Some(client) => client,
            None => client.insert(at.connect()?),
        };
        asked.ask(client, batch, &mut command)
    };
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = next else { return };
        let answered = ask(&batch).map(|answer| (batch, answer));
        let failed = answered.is_err();
        if answers.send(answered).is_err() || failed {
            return;
        }
    }
}

/// Calls `take` with the replies in the order of their batches; it returns the number of keys.
fn in_order(
    answers: &Receiver<Answered>,
    mut take: impl FnMut(Batch, Value) -> anyhow::Result<u64>,
) -> anyhow::Result<()> {
    let (mut next, mut keys) = (0, 0);
    let mut early = BTreeMap::new();
    let mut failed = None;
    for answered in answers {
        match answered {
            Ok((batch, value)) => _ = early.insert(batch.number, (batch, value)),
            // Answers that are under way still come, and count.
            Err(error) => _ = failed.get_or_insert(error),
        }
        while let Some((batch, value)) = early.remove(&next) {
            keys += take(batch, value)?;
            next += 1;
        }
        if failed.is_some() {
            break;
        }
    }
    match failed {
        Some(error) if keys > 0 => Err(error).with_context(|| format!("after {keys} keys")),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The other end of the stream is gone.
#[derive(Debug, thiserror::Error)]
#[error("the stream has ended")]
struct Ended;
