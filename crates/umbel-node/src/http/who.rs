//! Which hosts may hold a key: answered from memory, for one key or for many.

use std::convert::Infallible;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use utoipa::ToSchema;

use super::key_text::{Encoding, EncodingQuery, KeyPath, SetPath};
use super::lines::Lines;
use super::problem::{Problem, Problems};
use crate::{Coverage, Host};

/// Keys that are answered at a time.
const PART: usize = 512;

/// The hosts that may hold a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Candidates {
    /// Their names, the host that was asked first.
    hosts: Vec<String>,
    #[serde(flatten)]
    about: About,
}

/// What an answer from memory rests on.
#[derive(Debug, Serialize, ToSchema)]
struct About {
    #[serde(flatten)]
    coverage: Coverage,
    /// Whether anybody is known to have the set.
    set_known: bool,
}

impl About {
    /// What an answer rests on that was found since `before`.
    fn since(before: &Coverage, host: &Host, set: &str) -> Self {
        Self { set_known: host.knows(set), coverage: host.coverage().and(before) }
    }
}

/// One key of many, and the hosts that may hold it.
#[derive(Debug, Serialize, ToSchema)]
struct KeyCandidates<'a> {
    /// The key, as it was written.
    key: &'a str,
    /// Names of the hosts that may hold it, the host that was asked first.
    hosts: &'a [&'a str],
}

/// The hosts that may hold many keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ManyCandidates<'a> {
    /// An answer a key, in the order of the lines.
    answers: Vec<KeyCandidates<'a>>,
    #[serde(flatten)]
    about: About,
}

/// The hosts that may hold a key, from memory.
///
/// A name may be wrong with the set's rate; a key that was added elsewhere a moment ago may be
/// unknown here still.
#[utoipa::path(
    get, path = "/v1/sets/{set}/who/{*key}", operation_id = "who", tag = "questions", params(KeyPath, EncodingQuery),
    responses((status = 200, description = "Hosts that may hold it", body = Candidates), Problems)
)]
pub(super) async fn one(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<EncodingQuery>,
) -> Result<Json<Candidates>, Problem> {
    let key = query.encoding.decode(&path.written)?;
    let before = host.coverage();
    let hosts = host.who_has(&path.set, &key)?;
    let about = About::since(&before, &host, &path.set);
    Ok(Json(Candidates { hosts, about }))
}

/// The hosts that may hold many keys, a line each, from memory.
#[utoipa::path(
    post, path = "/v1/sets/{set}/who", operation_id = "who_many", tag = "questions", params(SetPath, EncodingQuery),
    request_body(content = Option<String>, content_type = "text/plain", description = "A key a line"),
    responses((status = 200, description = "Hosts that may hold them", body = ManyCandidates), Problems)
)]
pub(super) async fn many(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<EncodingQuery>,
    body: Bytes,
) -> Result<Response, Problem> {
    host.has(&set, &[], &mut Vec::new())?;
    let keys = read(&body, query.encoding)?;
    let before = host.coverage();
    let asking = Asking { host, set, keys, next: 0, encoding: query.encoding, before };
    // The answer is made part by part as it is sent: it may be many times as long as the body.
    let parts = stream::unfold(asking, |mut asking| async move {
        asking.part().map(|part| (Ok::<_, Infallible>(Bytes::from(part)), asking))
    });
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, Body::from_stream(parts)).into_response())
}

/// The keys of a body that is here as a whole. A line that is no key, or cannot be named in
/// the answer, is a problem.
pub(super) fn read(body: &[u8], encoding: Encoding) -> Result<Vec<Vec<u8>>, Problem> {
    let (mut lines, mut cut, mut last) =
        (Lines::new(encoding.longest_line()), Vec::new(), Vec::new());
    lines.cut(body, &mut cut);
    let mut keys = Vec::with_capacity(cut.len() + 1);
    let mut key = |number: u64, line: Result<&[u8], usize>| {
        let most = encoding.longest_line();
        let too_long = |given| {
            Problem::bad("key_length", format!("a line has at most {most} bytes, not {given}"))
        };
        let key = line.map_err(too_long).and_then(|line| encoding.decode(line)).and_then(|key| {
            encoding.encode(&key)?;
            Ok(key.into_owned())
        });
        keys.push(key.map_err(|problem| problem.after(&format!("line {number}")))?);
        Ok::<_, Problem>(())
    };
    cut.drain(..).try_for_each(|(number, line)| key(number, line))?;
    lines.finish(&mut last);
    last.into_iter().try_for_each(|(number, line)| key(number, line))?;
    Ok(keys)
}

/// Keys that are answered part by part.
#[derive(Debug)]
struct Asking {
    host: Host,
    set: String,
    keys: Vec<Vec<u8>>,
    next: usize,
    encoding: Encoding,
    /// What was covered when the first key was asked.
    before: Coverage,
}

impl Asking {
    /// The next part of the answer, the last with what closes it; `None` when it is complete.
    fn part(&mut self) -> Option<Vec<u8>> {
        let from = self.next;
        if from > self.keys.len() {
            return None;
        }
        let part = &self.keys[from..self.keys.len().min(from + PART)];
        let keys: Vec<&[u8]> = part.iter().map(Vec::as_slice).collect();
        let begin: &[u8] = if from == 0 { b"{\"answers\":[" } else { b"" };
        let (mut out, mut place) = (begin.to_vec(), 0);
        let encoding = self.encoding;
        let mut show = |hosts: &[&str]| {
            if from + place > 0 {
                out.push(b',');
            }
            let key = encoding.encode(keys[place]).unwrap_or_default();
            let answer = KeyCandidates { key: &key, hosts };
            out.extend(serde_json::to_vec(&answer).expect("text"));
            place += 1;
        };
        // A set that went away in between: nobody has its keys any more.
        if self.host.who(&self.set, &keys, &mut show).is_err() {
            keys.iter().for_each(|_| show(&[]));
        }
        self.next = from + part.len();
        if self.next == self.keys.len() {
            // Only now is it known whether the answers are complete.
            let about = About::since(&self.before, &self.host, &self.set);
            let about = serde_json::to_string(&about).expect("numbers and text");
            out.extend(about.replacen('{', "],", 1).into_bytes());
            self.next += 1;
        }
        Some(out)
    }
}
