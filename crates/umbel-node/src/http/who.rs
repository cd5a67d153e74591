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

use super::key_list::{KeyArray, KeyList};
use super::key_text::{Encoding, EncodingQuery, KeyPath, SetPath};
use super::problem::{Problem, Problems};
use crate::{Coverage, Host};

/// Keys that are looked up per part.
pub(super) const PART: usize = 512;

/// The hosts that may hold a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Candidates {
    /// Their names; the host that answers comes first.
    hosts: Vec<String>,
    #[serde(flatten)]
    about: About,
}

/// How complete and reliable an answer from memory is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct About {
    #[serde(flatten)]
    coverage: Coverage,
    /// Whether any host is known to have the set.
    set_known: bool,
    /// Present if it is a set of chains, whose filters name wrong hosts for single keys.
    #[serde(skip_serializing_if = "is_false")]
    loose: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl About {
    /// The same for an answer that was computed since `before`.
    pub(super) fn since(before: &Coverage, host: &Host, set: &str) -> Self {
        let coverage = host.coverage().and(before);
        Self { set_known: host.knows(set), coverage, loose: host.is_loose(set) }
    }
}

/// One key of many, and the hosts that may hold it.
#[derive(Debug, Serialize, ToSchema)]
struct KeyCandidates<'a> {
    /// The key, in the encoding of the request.
    key: &'a str,
    /// Names of the hosts that may hold it; the host that answers comes first.
    hosts: &'a [&'a str],
}

/// The hosts that may hold many keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ManyCandidates<'a> {
    /// One answer per key, in the order of the request.
    answers: Vec<KeyCandidates<'a>>,
    #[serde(flatten)]
    about: About,
}

/// The hosts that may hold a key, from memory.
///
/// A name may be wrong with the set's rate; a key that was added elsewhere a moment ago may not be
/// known here yet.
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

/// The hosts that may hold many keys, one per line or as a JSON array, from memory.
#[utoipa::path(
    post, path = "/v1/sets/{set}/who", operation_id = "who_many", tag = "questions", params(SetPath, EncodingQuery),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Keys: one a line, or a JSON array"),
    responses((status = 200, description = "Hosts that may hold them", body = ManyCandidates), Problems)
)]
pub(super) async fn many(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<EncodingQuery>,
    list: KeyList,
) -> Result<Response, Problem> {
    host.has(&set, &[], &mut Vec::new())?;
    let keys = list.keys(query.encoding)?;
    let before = host.coverage();
    let asking = Asking { host, set, keys, next: 0, encoding: query.encoding, before };
    // The answer is computed part by part as it is sent: it may be many times as long as the
    // request.
    let parts = stream::unfold(asking, |mut asking| async move {
        asking.part().map(|part| (Ok::<_, Infallible>(Bytes::from(part)), asking))
    });
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, Body::from_stream(parts)).into_response())
}

/// Keys that are looked up part by part.
#[derive(Debug)]
struct Asking {
    host: Host,
    set: String,
    keys: Vec<Vec<u8>>,
    next: usize,
    encoding: Encoding,
    /// The coverage when the first key was looked up.
    before: Coverage,
}

impl Asking {
    /// The next part of the answer; the last one also closes the JSON. `None` when it is complete.
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
        // The set was deleted in between: no host has its keys any more.
        if self.host.who(&self.set, &keys, &mut show).is_err() {
            keys.iter().for_each(|_| show(&[]));
        }
        self.next = from + part.len();
        if self.next == self.keys.len() {
            // Only now it is known whether the answers are complete.
            let about = About::since(&self.before, &self.host, &self.set);
            let about = serde_json::to_string(&about).expect("numbers and text");
            out.extend(about.replacen('{', "],", 1).into_bytes());
            self.next += 1;
        }
        Some(out)
    }
}
