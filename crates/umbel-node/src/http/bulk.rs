//! Many keys as the lines of a body of any length: executed as they arrive, in batches, and
//! answered once all of them have settled.
//!
//! A line that is no key is refused and told by its number; the others go on. Batches follow
//! each other without waiting for the disk, up to a bound: beyond it the batch before the last
//! must have settled, so that what waits to be written stays small.
//!
//! The runtime's workers only receive the body; keys are changed on other threads. Linux decides by
//! the processor time that a thread has used whether it may run as soon as it wakes: a worker that
//! changed a million keys waits up to 4 ms before it answers a question, one that did not runs at once.

use std::borrow::Cow;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use http_body_util::BodyExt as _;
use serde::Serialize;
use utoipa::ToSchema;

use super::key_text::{Encoding, EncodingQuery, SetPath};
use super::keys::AddQuery;
use super::lines::{Line, Lines};
use super::problem::{Problem, Problems};
use crate::priority;
use crate::{Host, HostError, Lifetime, Ticket};

/// Keys that are changed in one turn: about a hundred microseconds.
const BATCH: usize = 64;
/// Bytes of the body for which a lane is kept: about a millisecond.
const PIECE: usize = 32 << 10;
/// Keys that are changed before earlier ones must have settled.
const AHEAD: u64 = 128 * 1024;
/// Refused lines that are told one by one.
const TOLD: usize = 1000;

/// What became of the lines.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Loaded {
    /// Keys that were given: lines that are neither empty nor refused.
    keys: u64,
    /// Keys that were new or, for a removal, held.
    changed: u64,
    /// Lines that are no keys.
    refused: u64,
    /// Which lines these are, and why: the first thousand of them.
    errors: Vec<LineError>,
}

/// A line that is no key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LineError {
    /// Counted from 1, empty lines too.
    line: u64,
    /// What is wrong with it.
    error: String,
}

/// Adds many keys, a line each, to this host's set, which is made if it is not there.
///
/// The body may be of any length and is executed as it arrives. Lines that are no keys are
/// refused and told by their number; the others are added. Answered when all are durable.
#[utoipa::path(
    post, path = "/v1/sets/{set}/keys", operation_id = "add_keys", tag = "keys",
    params(SetPath, AddQuery),
    request_body(content = Option<String>, content_type = "text/plain", description = "A key a line"),
    responses((status = 200, description = "What became of the lines", body = Loaded), Problems)
)]
pub(super) async fn add(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<AddQuery>,
    body: Body,
) -> Result<Json<Loaded>, Problem> {
    let change = Change::Add(query.lifetime()?);
    Load::new(host, set, change, query.encoding).run(body).await
}

/// Removes many keys, a line each, from this host's set.
///
/// As the route that adds them.
#[utoipa::path(
    post, path = "/v1/sets/{set}/keys:remove", operation_id = "remove_keys", tag = "keys",
    params(SetPath, EncodingQuery),
    request_body(content = Option<String>, content_type = "text/plain", description = "A key a line"),
    responses((status = 200, description = "What became of the lines", body = Loaded), Problems)
)]
pub(super) async fn remove(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<EncodingQuery>,
    body: Body,
) -> Result<Json<Loaded>, Problem> {
    // Said before a byte is read.
    host.has(&set, &[], &mut Vec::new())?;
    Load::new(host, set, Change::Remove, query.encoding).run(body).await
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Add(Lifetime),
    Remove,
}

/// A bulk load under way.
#[derive(Debug)]
struct Load {
    host: Host,
    set: String,
    change: Change,
    encoding: Encoding,
    lines: Lines,
    loaded: Loaded,
    answers: Vec<bool>,
    /// The last change, the one that is waited for next, and keys since that.
    last: Ticket,
    next: Ticket,
    ahead: u64,
}

impl Load {
    fn new(host: Host, set: String, change: Change, encoding: Encoding) -> Self {
        Self {
            host,
            set,
            change,
            encoding,
            lines: Lines::new(encoding.longest_line()),
            loaded: Loaded::default(),
            answers: Vec::with_capacity(BATCH),
            last: Ticket::NONE,
            next: Ticket::NONE,
            ahead: 0,
        }
    }

    async fn run(mut self, mut body: Body) -> Result<Json<Loaded>, Problem> {
        let outcome = loop {
            match body.frame().await {
                None => break self.finish(),
                Some(Ok(frame)) => {
                    let Ok(frame) = frame.into_data() else { continue };
                    let outcome;
                    (self, outcome) = self.frame(frame).await?;
                    if let Err(problem) = outcome {
                        break Err(problem);
                    }
                }
                Some(Err(error)) => {
                    let detail = format!("the body broke off: {error}");
                    break Err(Problem::bad("body", detail));
                }
            }
        };
        // What was taken in before it broke off stays, and is waited for.
        let settled = self.host.settled(self.last).await.map_err(Problem::from);
        match outcome.and(settled) {
            Ok(()) => Ok(Json(self.loaded)),
            Err(problem) => {
                let Loaded { keys, changed, .. } = self.loaded;
                Err(problem
                    .after(&format!("{keys} keys before that were taken, {changed} changed")))
            }
        }
    }

    /// Changes the keys of a frame of the body, piece by piece; what became of it. Fails as a whole
    /// only if the runtime stops.
    async fn frame(mut self, mut frame: Bytes) -> Result<(Self, Result<(), Problem>), Problem> {
        let mut outcome = Ok(());
        while !frame.is_empty() && outcome.is_ok() {
            let piece = frame.split_to(PIECE.min(frame.len()));
            let lane = self.host.lane().await;
            let work = move || {
                priority::work_long();
                let outcome = self.piece(&piece);
                drop(lane);
                (self, outcome)
            };
            (self, outcome) = match tokio::task::spawn_blocking(work).await {
                Ok(done) => done,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => return Err(HostError::Stopping.into()),
            };
            if outcome.is_ok() {
                outcome = self.wait().await;
            }
        }
        Ok((self, outcome))
    }

    /// Changes the keys whose lines end in a piece of the body. Blocks while others have their turn.
    fn piece(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        let mut cut = Vec::with_capacity(piece.len() / 16);
        lines.cut(piece, &mut cut);
        let outcome = cut.chunks(BATCH).try_for_each(|batch| {
            let turn = self.host.blocking_turn(&self.set);
            let outcome = self.batch(batch);
            drop(turn);
            priority::let_others_run();
            outcome
        });
        self.lines = lines;
        outcome
    }

    fn finish(&mut self) -> Result<(), Problem> {
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        let mut last = Vec::new();
        lines.finish(&mut last);
        if last.is_empty() { Ok(()) } else { self.batch(&last) }
    }

    /// Changes the keys of some lines.
    fn batch(&mut self, lines: &[Line<'_>]) -> Result<(), Problem> {
        let mut decoded: Vec<Cow<'_, [u8]>> = Vec::new();
        let mut keys: Vec<&[u8]> = Vec::with_capacity(lines.len());
        for (number, line) in lines {
            match (line, self.encoding) {
                (Ok(line), Encoding::Text) => keys.push(line),
                (Ok(line), encoding) => match encoding.decode(line) {
                    Ok(key) => decoded.push(key),
                    Err(problem) => self.refuse(*number, problem.into_detail()),
                },
                (Err(given), _) => {
                    let most = self.encoding.longest_line();
                    self.refuse(*number, format!("a line has at most {most} bytes, not {given}"));
                }
            }
        }
        keys.extend(decoded.iter().map(AsRef::as_ref));
        if keys.is_empty() {
            return Ok(());
        }
        self.answers.clear();
        let ticket = self.change(&keys)?;
        self.last = self.last.max(ticket);
        self.ahead += keys.len() as u64;
        self.loaded.keys += keys.len() as u64;
        self.loaded.changed += self.answers.iter().filter(|changed| **changed).count() as u64;
        Ok(())
    }

    fn change(&mut self, keys: &[&[u8]]) -> Result<Ticket, HostError> {
        match self.change {
            Change::Add(lifetime) => self.host.add(&self.set, keys, lifetime, &mut self.answers),
            Change::Remove => self.host.remove(&self.set, keys, &mut self.answers),
        }
    }

    /// Waits for the disk if it is far behind.
    async fn wait(&mut self) -> Result<(), Problem> {
        if self.ahead >= AHEAD {
            self.host.settled(self.next).await?;
            (self.next, self.ahead) = (self.last, 0);
        }
        Ok(())
    }

    fn refuse(&mut self, line: u64, error: String) {
        self.loaded.refused += 1;
        if self.loaded.errors.len() < TOLD {
            self.loaded.errors.push(LineError { line, error });
        }
    }
}
