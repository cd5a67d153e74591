//! Detects missing messages of an engine, and whether the engine has restarted (a new *life*).
//!
//! Engines number their messages from 0 on, and keep the latest ones for replay. A missing message
//! may have removed blocks: until it is replayed, the known blocks cannot be trusted.
//!
//! * Messages are missing: they are replayed. If that fails, all blocks are dropped.
//! * The connection was lost and is back: the follower requests its last message again. If the
//!   engine still has exactly that message, it is the same life, and the missed messages are
//!   applied. Otherwise it is a new life, and all blocks are dropped.
//! * Message numbers start again on the same connection (behind a forwarder): also a new life.
//!
//! Always true: the blocks result from the messages of one life, without a gap since all blocks
//! were last dropped.
//!
//! Not here: sockets ([`crate::sidecar`]), blocks ([`crate::blocks`]).

use xxhash_rust::xxh3::xxh3_64;

use crate::blocks::Blocks;
use crate::event::{Batch, EventError};

/// Requests earlier messages from an engine again.
pub trait Replay {
    /// Calls `each` with the messages from a number on, in order, as far as the engine still has
    /// them; stops when `each` returns false.
    ///
    /// # Errors
    /// If the request cannot be sent, or there is no reply.
    fn replay(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), ReplayError>;
}

/// Why messages cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplayError(pub String);

/// An engine that replays nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReplay;

impl Replay for NoReplay {
    fn replay(&mut self, _: u64, _: &mut dyn FnMut(u64, &[u8]) -> bool) -> Result<(), ReplayError> {
        Err(ReplayError("no replay endpoint is given".to_owned()))
    }
}

/// Something that users should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Messages were missing.
    Gap {
        /// Missing messages.
        missed: u64,
        /// How many of them were replayed.
        replayed: u64,
    },
    /// The engine has restarted, or may have restarted: all blocks were dropped.
    NewLife,
    /// All blocks were dropped, because messages are missing and cannot be replayed.
    Dropped,
    /// The engine no longer has its first messages: blocks that they stored are not known.
    Late {
        /// The first message that is known.
        first: u64,
    },
    /// A message was rejected.
    Rejected(EventError),
    /// A message of another rank was ignored.
    OtherRank(u64),
}

/// Counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages that were applied.
    pub messages: u64,
    /// Messages that were missing.
    pub missed: u64,
    /// Messages that were replayed.
    pub replayed: u64,
    /// Messages that were rejected.
    pub rejected: u64,
    /// Messages of other ranks.
    pub other_ranks: u64,
    /// How often all blocks were dropped.
    pub dropped: u64,
}

/// Maximum number of replays per gap. Several may be needed, because an engine drops messages that
/// are not read in time.
const MAX_REPLAYS: u32 = 16;

/// Follows the messages of one engine.
#[derive(Debug)]
pub struct Follower {
    blocks: Blocks,
    /// Only messages of this rank are applied; `None` means all ranks.
    rank: Option<u64>,
    /// The number of the next expected message, and the fingerprint of the last one.
    position: Option<Position>,
    /// Number of the latest message on the current connection.
    latest: Option<u64>,
    counts: Counts,
    notices: Vec<Notice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    next: u64,
    fingerprint: u64,
}

impl Follower {
    /// Follows an engine from its first message on, or from the oldest that it still has.
    #[must_use]
    pub fn new(blocks: Blocks, rank: Option<u64>) -> Self {
        let (counts, notices) = (Counts::default(), Vec::new());
        Self { blocks, rank, position: None, latest: None, counts, notices }
    }

    /// The blocks, to send their changes to a sink.
    pub const fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Must be called when a connection to the engine is open, for the first time or again: after
    /// the subscription is sent, and before the first message is passed to
    /// [`Self::handle_message`].
    pub fn connected(&mut self, replay: &mut dyn Replay) {
        self.latest = None;
        if let Some(position) = self.position {
            if self.resume(position, replay) {
                return;
            }
            self.begin_life();
        }
        self.join(u64::MAX, replay);
    }

    /// Must be called when the engine has been disconnected for too long: drops all blocks.
    pub fn gone(&mut self) {
        if self.position.is_some() {
            self.begin_life();
        }
    }

    /// Handles a message from the current connection.
    pub fn handle_message(&mut self, number: u64, payload: &[u8], replay: &mut dyn Replay) {
        let is_restart = self.latest.is_some_and(|latest| number <= latest);
        self.latest = Some(number);
        if is_restart {
            self.begin_life();
        }
        match self.position {
            // It was already replayed when the connection was opened.
            Some(position) if number < position.next => return,
            Some(position) if number > position.next => {
                let missed = number - position.next;
                let replayed = self.catch_up(number, replay);
                self.counts.missed += missed;
                self.notices.push(Notice::Gap { missed, replayed });
                if replayed < missed {
                    self.blocks.clear();
                    self.counts.dropped += 1;
                    self.notices.push(Notice::Dropped);
                }
            }
            Some(_) => {}
            None if number > 0 => self.join(number, replay),
            None => {}
        }
        self.apply(number, payload);
    }

    /// Starts a new life: drops all blocks. The next message is then the first known one.
    fn begin_life(&mut self) {
        self.blocks.clear();
        self.position = None;
        self.counts.dropped += 1;
        self.notices.push(Notice::NewLife);
    }

    /// Returns whether the engine still has our last message unchanged. If so, applies all later
    /// ones.
    fn resume(&mut self, position: Position, replay: &mut dyn Replay) -> bool {
        let last = position.next - 1;
        let mut is_same = false;
        let asked = replay.replay(last, &mut |number, payload| {
            if !is_same {
                is_same = number == last && xxh3_64(payload) == position.fingerprint;
                return is_same;
            }
            self.apply_next(number, payload)
        });
        let is_same = asked.is_ok() && is_same;
        if is_same {
            self.catch_up(u64::MAX, replay);
        }
        is_same
    }

    /// Applies all messages before a number that the engine still has, starting with the oldest.
    fn join(&mut self, before: u64, replay: &mut dyn Replay) {
        let mut first = None;
        // Treat a failed replay like one without messages.
        _ = replay.replay(0, &mut |number, payload| {
            if number >= before {
                return false;
            }
            if first.is_none() {
                first = Some(number);
                self.counts.replayed += 1;
                self.apply(number, payload);
                return true;
            }
            self.apply_next(number, payload)
        });
        let Some(first) = first else {
            if before < u64::MAX {
                self.notices.push(Notice::Late { first: before });
            }
            return;
        };
        self.catch_up(before, replay);
        if before < u64::MAX && self.position.is_none_or(|position| position.next != before) {
            // Messages in between are lost: the known blocks would be incomplete.
            self.blocks.clear();
            self.counts.dropped += 1;
            self.notices.push(Notice::Dropped);
        } else if first > 0 {
            self.notices.push(Notice::Late { first });
        }
    }

    /// Replays and applies the missing messages before a number, and returns how many.
    fn catch_up(&mut self, before: u64, replay: &mut dyn Replay) -> u64 {
        let Some(begin) = self.position else { return 0 };
        for _ in 0..MAX_REPLAYS {
            let Some(now) = self.position.filter(|position| position.next < before) else { break };
            let asked = replay.replay(now.next, &mut |number, payload| {
                number < before && self.apply_next(number, payload)
            });
            if asked.is_err() || self.position == Some(now) {
                break;
            }
        }
        self.position.map_or(0, |position| position.next - begin.next)
    }

    /// Applies a replayed message if it is the next one; returns whether to continue.
    fn apply_next(&mut self, number: u64, payload: &[u8]) -> bool {
        let is_next = self.position.is_some_and(|position| position.next == number);
        if is_next {
            self.counts.replayed += 1;
            self.apply(number, payload);
        }
        is_next
    }

    fn apply(&mut self, number: u64, payload: &[u8]) {
        self.position =
            Some(Position { next: number.saturating_add(1), fingerprint: xxh3_64(payload) });
        match Batch::decode(payload) {
            Ok(batch) => match (self.rank, batch.rank) {
                (Some(mine), Some(other)) if mine != other => {
                    self.counts.other_ranks += 1;
                    self.notices.push(Notice::OtherRank(other));
                }
                _ => {
                    self.counts.messages += 1;
                    self.blocks.apply(&batch);
                }
            },
            Err(error) => {
                self.counts.rejected += 1;
                self.notices.push(Notice::Rejected(error));
            }
        }
    }
}
