//! Bulk loads: many keys as the lines of a body of any length. They are executed in batches as they
//! arrive, and answered once all of them are durable. A JSON array is read completely and then
//! executed in the same way.
//!
//! A line that is not a key is refused and reported by its number; the others continue. Batches
//! follow each other without waiting for the disk, up to a bound: beyond it the batch before the
//! last must be durable, so that the backlog of writes stays small.
//!
//! The runtime's workers only receive the body; keys are changed on other threads. Linux decides by
//! the processor time that a thread has used whether it may run as soon as it wakes: a worker that
//! changed a million keys waits up to 4 ms before it answers a query, one that did not runs at
//! once.

use std::borrow::Cow;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Query, Request, State};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use serde::Serialize;
use utoipa::ToSchema;

use super::key_list::{KeyArray, KeyText, is_json, read_array};
use super::key_text::{Encoding, EncodingQuery, SetPath};
use super::keys::AddQuery;
use super::lines::{Line, Lines};
use super::problem::{Problem, Problems};
use crate::priority;
use crate::{Host, HostError, Lifetime, Ticket};

/// Keys that are changed per turn: about a hundred microseconds.
const BATCH: usize = 64;
/// Bytes of the body for which a lane is held: about a millisecond.
const PIECE: usize = 32 << 10;
/// Keys that are changed before earlier ones must be durable.
const AHEAD: u64 = 128 * 1024;
/// Maximum number of refused lines that are reported one by one.
const MAX_ERRORS: usize = 1000;

/// The result of a bulk load.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Loaded {
    /// Keys in the body: lines that are neither empty nor refused.
    keys: u64,
    /// Keys that were new or, for a removal, held.
    changed: u64,
    /// Lines that are not keys.
    refused: u64,
    /// The numbers of these lines, and the reasons: the first thousand.
    errors: Vec<LineError>,
}

/// A line that is not a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LineError {
    /// Counted from 1, including empty lines; in an array, the position of the key.
    line: u64,
    /// What is wrong with it.
    error: String,
}

/// Adds many keys (lines or a JSON array) to this host's set, which is created if missing.
///
/// There may be any number of lines, which are executed as they arrive; an array is read completely
/// first. Lines that are not keys are refused and reported by their number; the others are added.
/// The response is sent when all are durable.
#[utoipa::path(
    post, path = "/v1/sets/{set}/keys", operation_id = "add_keys", tag = "keys",
    params(SetPath, AddQuery),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Keys: one a line, or a JSON array"),
    responses((status = 200, description = "What became of the lines", body = Loaded), Problems)
)]
pub(super) async fn add(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<AddQuery>,
    request: Request,
) -> Result<Json<Loaded>, Response> {
    let change = Change::Add(query.lifetime().map_err(Problem::into_response)?);
    Load::new(host, set, change, query.encoding).request(request).await
}

/// Removes many keys, one per line or as a JSON array, from this host's set.
///
/// Works like the route that adds them.
#[utoipa::path(
    post, path = "/v1/sets/{set}/keys:remove", operation_id = "remove_keys", tag = "keys",
    params(SetPath, EncodingQuery),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Keys: one a line, or a JSON array"),
    responses((status = 200, description = "What became of the lines", body = Loaded), Problems)
)]
pub(super) async fn remove(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<EncodingQuery>,
    request: Request,
) -> Result<Json<Loaded>, Response> {
    // Check the set before the body is read.
    let known = host.has(&set, &[], &mut Vec::new());
    known.map_err(|error| Problem::from(error).into_response())?;
    Load::new(host, set, Change::Remove, query.encoding).request(request).await
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Add(Lifetime),
    Remove,
}

/// A running bulk load.
#[derive(Debug)]
struct Load {
    host: Host,
    set: String,
    change: Change,
    encoding: Encoding,
    lines: Lines,
    loaded: Loaded,
    answers: Vec<bool>,
    /// The last change, the change that is waited for next, and the number of keys since then.
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

    /// Changes the keys of a request: a JSON array, which is read completely, or lines.
    async fn request(self, request: Request) -> Result<Json<Loaded>, Response> {
        if !is_json(request.headers()) {
            return self.run(request.into_body()).await.map_err(Problem::into_response);
        }
        let body = Bytes::from_request(request, &()).await;
        let body = body.map_err(IntoResponse::into_response)?;
        self.run_array(body).await.map_err(Problem::into_response)
    }

    /// Changes the keys of an array; they are numbered like lines.
    async fn run_array(mut self, body: Bytes) -> Result<Json<Loaded>, Problem> {
        let lane = self.host.lane().await;
        let work = move || {
            priority::work_long();
            let outcome = read_array(&body).and_then(|keys| self.array(keys));
            drop(lane);
            (self, outcome)
        };
        let (done, outcome) = match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => return Err(HostError::Stopping.into()),
        };
        done.settle(outcome).await
    }

    fn array(&mut self, keys: Vec<KeyText>) -> Result<(), Problem> {
        let (longest, encoding) = (self.encoding.longest_line(), self.encoding);
        let keys = keys.into_iter().map(|key| key.written(encoding));
        let keys = keys.collect::<Result<Vec<String>, Problem>>()?;
        let numbered: Vec<Line<'_>> = (1..)
            .zip(&keys)
            .map(|(number, key)| match key.len() {
                length if length > longest => (number, Err(length)),
                _ => (number, Ok(key.as_bytes())),
            })
            .collect();
        self.batches(&numbered)
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
        self.settle(outcome).await
    }

    /// Waits until everything that was changed is durable. Changes before an error stay.
    async fn settle(self, outcome: Result<(), Problem>) -> Result<Json<Loaded>, Problem> {
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

    /// Changes the keys of a frame of the body, piece by piece, and returns the result. The outer
    /// error occurs only if the runtime stops.
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

    /// Changes the keys whose lines end in a piece of the body. Blocks while others have their
    /// turns.
    fn piece(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        let mut cut = Vec::with_capacity(piece.len() / 16);
        lines.split(piece, &mut cut);
        let outcome = self.batches(&cut);
        self.lines = lines;
        outcome
    }

    /// Changes the keys of many lines, batch by batch.
    fn batches(&mut self, lines: &[Line<'_>]) -> Result<(), Problem> {
        lines.chunks(BATCH).try_for_each(|batch| {
            let turn = self.host.blocking_turn(&self.set);
            let outcome = self.batch(batch);
            drop(turn);
            priority::let_others_run();
            outcome
        })
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
                (Ok(line), Encoding::Text) if !line.is_empty() => keys.push(line),
                (Ok(line), encoding) => match encoding.decode(line) {
                    Ok(key) => decoded.push(key),
                    Err(problem) => self.refuse(*number, problem.into_detail()),
                },
                (Err(given), _) => {
                    let max = self.encoding.longest_line();
                    self.refuse(*number, format!("a line has at most {max} bytes, not {given}"));
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

    /// Waits for the disk if it is too far behind.
    async fn wait(&mut self) -> Result<(), Problem> {
        if self.ahead >= AHEAD {
            self.host.settled(self.next).await?;
            (self.next, self.ahead) = (self.last, 0);
        }
        Ok(())
    }

    fn refuse(&mut self, line: u64, error: String) {
        self.loaded.refused += 1;
        if self.loaded.errors.len() < MAX_ERRORS {
            self.loaded.errors.push(LineError { line, error });
        }
    }
}
