//! Follows an engine over the network and keeps its blocks in a sink.
//!
//! ```text
//! subscriber thread: connect, subscribe, read ─► bounded queue ─► this thread: follower ─► sink
//! ```
//!
//! When the queue is full, the subscriber stops reading, and the engine's socket drops messages for
//! it instead of waiting. Dropped messages are replayed later. So the engine is never slowed down,
//! and memory is bounded.
//!
//! A sink that fails is restarted after a pause, and then receives all blocks again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::blocks::{Blocks, Changes, Hashing};
use crate::follower::{Follower, NoReplay, Notice, Replay, ReplayError};
use crate::zmtp::{Connection, Endpoint, Message};
use crate::{blocks, follower};

/// Maximum number of messages that wait for the follower.
const QUEUE: usize = 4096;
/// At most about this many changes are collected before they are sent to the sink.
const GATHERED: usize = 8192;
/// How long this thread waits for a message before it does its other work.
const TICK: Duration = Duration::from_millis(50);
/// Pauses between attempts to connect: they double from the first to the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// Timeout for each message of a replay.
const REPLAY_PATIENCE: Duration = Duration::from_secs(5);

/// Where the blocks of a worker are kept, as sets.
pub trait Sink {
    /// Starts, or restarts after a failure: connects, and drops what an earlier run left.
    ///
    /// # Errors
    /// If it cannot.
    fn begin(&mut self) -> Result<(), SinkError>;

    /// Applies the changes of a tier.
    ///
    /// # Errors
    /// If it cannot. The sink is then restarted, and receives all blocks again.
    fn apply(&mut self, changes: &Changes) -> Result<(), SinkError>;
}

/// Why a sink failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// Which engine to follow, and how.
#[derive(Debug, Clone)]
pub struct SidecarConfig {
    /// Where the engine publishes.
    pub events: Endpoint,
    /// Where it replays.
    pub replay: Option<Endpoint>,
    /// The topic to subscribe to; empty means all topics.
    pub topic: Vec<u8>,
    /// Only messages of this data-parallel rank are applied; `None` means all ranks.
    pub rank: Option<u64>,
    /// Which hashes are used as keys.
    pub hashing: Hashing,
    /// Only blocks of this group of layers are kept.
    pub group: u64,
    /// All blocks are dropped when the engine has been disconnected for this long.
    pub forget: Duration,
}

/// Events that a sidecar reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// Connected to the engine.
    Connected,
    /// The connection is lost, or could not be made.
    Lost(String),
    /// A notice of the follower.
    Noticed(Notice),
    /// The engine has been disconnected for too long: all blocks were dropped.
    Forgotten,
    /// The sink failed.
    SinkFailed(SinkError),
    /// The sink was started, or restarted.
    SinkBegun,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connected => f.write_str("connected to the engine"),
            Self::Lost(why) => write!(f, "no connection to the engine: {why}"),
            Self::Noticed(Notice::Gap { missed, replayed }) => {
                write!(f, "{missed} messages were missing, {replayed} of them were replayed")
            }
            Self::Noticed(Notice::NewLife) => f.write_str(
                "the engine started anew, or cannot prove that it did not: all blocks dropped",
            ),
            Self::Noticed(Notice::Dropped) => {
                f.write_str("messages are missing for good: all blocks dropped")
            }
            Self::Noticed(Notice::Late { first }) => write!(
                f,
                "the engine's first {first} messages are gone: blocks stored by them are not known"
            ),
            Self::Noticed(Notice::Rejected(error)) => write!(f, "rejected a message: {error}"),
            Self::Noticed(Notice::OtherRank(rank)) => write!(f, "ignored a message of rank {rank}"),
            Self::Forgotten => {
                f.write_str("the engine has been away for too long: all blocks dropped")
            }
            Self::SinkFailed(error) => write!(f, "the host does not take blocks: {error}"),
            Self::SinkBegun => f.write_str("the host takes blocks"),
        }
    }
}

/// Counters at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Messages.
    pub messages: follower::Counts,
    /// Blocks.
    pub blocks: blocks::Counts,
    /// Blocks that were held at the end.
    pub held: u64,
}

/// What the subscriber thread passes on.
enum Arrived {
    Connected,
    Message { number: u64, payload: Vec<u8> },
    Lost(String),
}

/// Follows an engine until `stop` is set.
pub fn run(
    config: &SidecarConfig,
    sink: &mut dyn Sink,
    stop: &Arc<AtomicBool>,
    report: &mut dyn FnMut(&Report),
) -> Totals {
    let (sender, arrived) = sync_channel(QUEUE);
    std::thread::scope(|scope| {
        scope.spawn(|| subscribe(config, &sender, stop));
        let mut sidecar = Sidecar::new(config, sink, stop, report);
        while !stop.load(Ordering::Relaxed) {
            sidecar.step(&arrived);
        }
        // Disconnects the channel, so that a subscriber blocked on the full queue returns.
        drop(arrived);
        sidecar.totals()
    })
}

/// Reads messages, and reconnects whenever the connection is lost.
fn subscribe(config: &SidecarConfig, sender: &SyncSender<Arrived>, stop: &Arc<AtomicBool>) {
    let mut pause = PAUSES[0];
    while !stop.load(Ordering::Relaxed) {
        let mut connected = false;
        let ended = read_messages(config, sender, stop, &mut connected);
        let Err(why) = ended else { return };
        if stop.load(Ordering::Relaxed) || sender.send(Arrived::Lost(why.to_string())).is_err() {
            return;
        }
        pause = if connected { PAUSES[0] } else { (2 * pause).min(PAUSES[1]) };
        std::thread::sleep(pause);
    }
}

/// Reads the messages of one connection. Returns `Ok` when the receiver is gone.
fn read_messages(
    config: &SidecarConfig,
    sender: &SyncSender<Arrived>,
    stop: &Arc<AtomicBool>,
    connected: &mut bool,
) -> io::Result<()> {
    let mut connection = Connection::subscribe(&config.events, &config.topic, stop)?;
    *connected = true;
    let mut next = Arrived::Connected;
    let mut message = Message::new();
    while sender.send(next).is_ok() {
        connection.receive(&mut message)?;
        next = match numbered(&mut message) {
            Some((number, payload)) => Arrived::Message { number, payload },
            None => {
                return Err(io::Error::other("a message that is not topic, number and payload"));
            }
        };
    }
    Ok(())
}

/// The sequence number and the payload of a message: its last two frames.
fn numbered(message: &mut Message) -> Option<(u64, Vec<u8>)> {
    let payload = message.pop()?;
    let number = message.pop()?;
    Some((u64::from_be_bytes(number.try_into().ok()?), payload))
}

struct Sidecar<'a> {
    config: &'a SidecarConfig,
    sink: &'a mut dyn Sink,
    report: &'a mut dyn FnMut(&Report),
    follower: Follower,
    replay: Box<dyn Replay>,
    /// `None` while the sink works; otherwise when to restart it.
    sink_at: Option<Instant>,
    /// When the connection to the engine was lost.
    lost_at: Option<Instant>,
}

impl<'a> Sidecar<'a> {
    fn new(
        config: &'a SidecarConfig,
        sink: &'a mut dyn Sink,
        stop: &Arc<AtomicBool>,
        report: &'a mut dyn FnMut(&Report),
    ) -> Self {
        let follower = Follower::new(Blocks::new(config.hashing, config.group), config.rank);
        let replay: Box<dyn Replay> = match &config.replay {
            Some(endpoint) => {
                Box::new(Replayer { endpoint: endpoint.clone(), stop: Arc::clone(stop) })
            }
            None => Box::new(NoReplay),
        };
        let sink_at = Some(Instant::now());
        Self { config, sink, report, follower, replay, sink_at, lost_at: None }
    }

    /// Processes what has arrived, waiting up to [`TICK`] for it; then updates the sink.
    fn step(&mut self, arrived: &Receiver<Arrived>) {
        match arrived.recv_timeout(TICK) {
            Ok(first) => self.take(first),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        while self.follower.blocks().pending() < GATHERED
            && let Ok(next) = arrived.try_recv()
        {
            self.take(next);
        }
        if self.lost_at.is_some_and(|since| since.elapsed() >= self.config.forget) {
            self.lost_at = None;
            self.follower.gone();
            self.follower.take_notices();
            (self.report)(&Report::Forgotten);
        }
        self.show_changes();
    }

    fn take(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Connected => {
                self.lost_at = None;
                (self.report)(&Report::Connected);
                self.follower.connected(&mut *self.replay);
            }
            Arrived::Message { number, payload } => {
                self.follower.handle_message(number, &payload, &mut *self.replay);
            }
            Arrived::Lost(why) => {
                self.lost_at.get_or_insert_with(Instant::now);
                (self.report)(&Report::Lost(why));
            }
        }
        for notice in self.follower.take_notices() {
            (self.report)(&Report::Noticed(notice));
        }
    }

    fn show_changes(&mut self) {
        if let Some(at) = self.sink_at {
            if Instant::now() < at {
                return;
            }
            if let Err(error) = self.sink.begin() {
                return self.sink_failed(error);
            }
            self.sink_at = None;
            self.follower.blocks().show_all();
            (self.report)(&Report::SinkBegun);
        }
        for changes in self.follower.blocks().take_changes() {
            if let Err(error) = self.sink.apply(&changes) {
                return self.sink_failed(error);
            }
        }
    }

    fn sink_failed(&mut self, error: SinkError) {
        self.sink_at = Some(Instant::now() + PAUSES[1]);
        (self.report)(&Report::SinkFailed(error));
    }

    fn totals(&mut self) -> Totals {
        let messages = self.follower.counts();
        let blocks = self.follower.blocks();
        Totals { messages, blocks: blocks.counts(), held: blocks.len() as u64 }
    }
}

/// Requests replays from an engine's ROUTER socket, with one connection per request.
#[derive(Debug)]
struct Replayer {
    endpoint: Endpoint,
    stop: Arc<AtomicBool>,
}

/// The number of the message that ends a replay.
const END: u64 = u64::MAX;

impl Replay for Replayer {
    fn replay(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), ReplayError> {
        let failed = |error: io::Error| ReplayError(format!("{}: {error}", self.endpoint));
        let mut connection = Connection::deal(&self.endpoint, &self.stop).map_err(failed)?;
        connection.send(&[b"", &from.to_be_bytes()]).map_err(failed)?;
        let mut message = Message::new();
        loop {
            connection.limit(Some(REPLAY_PATIENCE));
            connection.receive(&mut message).map_err(failed)?;
            let Some((number, payload)) = numbered(&mut message) else {
                return Err(failed(io::Error::other("a reply that is not number and payload")));
            };
            if number == END || payload.is_empty() || !each(number, &payload) {
                return Ok(());
            }
        }
    }
}
