//! Objects that this host reads from its own cache: for other hosts, piece by piece, and for its
//! own clients.
//!
//! A transfer belongs to the host that began it, which also chose its number. Its last piece is
//! kept until the next one is requested, so that a lost reply can be repeated.
//!
//! Always true: only the cache that the configuration permits is read, and only for keys in the
//! catalogue. At most `limits.proxies` transfers are open, at most half of them for one host. Each
//! ends after `timing.proxy`, and transfers at most `limits.proxy_bytes`.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use umbel::replica::Name;

use super::{ABSENT, HELD, Host};
use crate::confirm::{Confirm, object_address};
use crate::object::{PIECE_BYTES, Piece, PieceReply, chosen};
use crate::settings::Settings;

/// The transfers of a host.
#[derive(Debug)]
pub(crate) struct Objects {
    open: Mutex<HashMap<TransferId, Transfer>>,
    max_open: usize,
    /// One permit per object that is being sent to a client of this host.
    pub(super) turns: Arc<Semaphore>,
    /// The number of the next transfer from another host.
    next_number: AtomicU64,
}

/// The host that began a transfer, and the number that it chose.
type TransferId = (Name, u64);
/// Locked while a piece is read: a repeated request waits for it.
type Transfer = Arc<tokio::sync::Mutex<Option<Reading>>>;

impl Objects {
    pub(crate) fn new(settings: &Settings) -> Self {
        let max_open = settings.limits.proxies;
        // Starts at a random number, so that a restarted host does not continue a transfer of its
        // previous life.
        let next_number = AtomicU64::new(RandomState::new().hash_one(max_open));
        let turns = Arc::new(Semaphore::new(max_open));
        Self { open: Mutex::default(), max_open, turns, next_number }
    }

    /// A number for a transfer from another host.
    pub(super) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// The entry of a transfer, and whether it is new; `None` if too many are open.
    fn begin(&self, id: &TransferId) -> Option<(Transfer, bool)> {
        let mut open = self.open.lock();
        if let Some(transfer) = open.get(id) {
            return Some((Arc::clone(transfer), false));
        }
        let of_host = open.keys().filter(|(host, _)| *host == id.0).count();
        if open.len() >= self.max_open || of_host >= self.max_open.div_ceil(2) {
            return None;
        }
        let transfer = Transfer::default();
        open.insert(id.clone(), Arc::clone(&transfer));
        Some((transfer, true))
    }

    fn get(&self, id: &TransferId) -> Option<Transfer> {
        self.open.lock().get(id).cloned()
    }

    fn end(&self, id: &TransferId) {
        self.open.lock().remove(id);
    }
}

/// An object that is being read from the cache.
#[derive(Debug)]
pub(super) struct Reading {
    response: reqwest::Response,
    headers: HeaderMap,
    /// Bytes that arrived and are in no piece yet.
    rest: Bytes,
    /// The last piece that was read, and where it begins.
    piece: Bytes,
    offset: u64,
    is_last: bool,
    max_bytes: u64,
    until: Instant,
}

impl Reading {
    fn new(response: reqwest::Response, max_bytes: u64, until: Instant) -> Self {
        let headers = chosen(response.headers());
        let (rest, piece) = (Bytes::new(), Bytes::new());
        Self { response, headers, rest, piece, offset: 0, is_last: false, max_bytes, until }
    }

    /// The piece that begins at this offset: the next one, or the last one again.
    pub(super) async fn piece_at(&mut self, offset: u64) -> PieceReply {
        let next = self.offset + self.piece.len() as u64;
        // Only the last piece, and the initial one before any was read, are empty.
        if offset == next && !self.is_last {
            self.offset = next;
            match timeout_at(self.until, self.read()).await {
                Ok(Ok(piece)) => self.piece = piece,
                Ok(Err(reply)) => return reply,
                Err(_) => return PieceReply::Unknown,
            }
        } else if offset != self.offset {
            return PieceReply::Unknown;
        }
        let (headers, bytes) = (self.headers.clone(), self.piece.clone());
        PieceReply::Piece(Piece { headers, bytes, is_last: self.is_last })
    }

    async fn read(&mut self) -> Result<Bytes, PieceReply> {
        let mut piece = Vec::new();
        while piece.len() < PIECE_BYTES {
            if self.rest.is_empty() {
                match self.response.chunk().await {
                    Ok(Some(chunk)) => self.rest = chunk,
                    Ok(None) => {
                        self.is_last = true;
                        break;
                    }
                    Err(_) => return Err(PieceReply::Unknown),
                }
            }
            let fits = self.rest.len().min(PIECE_BYTES - piece.len());
            piece.extend_from_slice(&self.rest.split_to(fits));
        }
        if self.offset + piece.len() as u64 > self.max_bytes {
            return Err(PieceReply::TooLarge { limit: self.max_bytes });
        }
        Ok(piece.into())
    }
}

impl Host {
    /// A piece of an object, for another host; a request without an offset ends the transfer.
    pub(crate) async fn object_piece(
        &self,
        id: TransferId,
        set: &str,
        key: &[u8],
        offset: Option<u64>,
    ) -> PieceReply {
        let objects = &self.inner.objects;
        let Some(offset) = offset else {
            objects.end(&id);
            return PieceReply::Absent;
        };
        let begun = if offset == 0 {
            objects.begin(&id)
        } else {
            objects.get(&id).map(|transfer| (transfer, false))
        };
        let Some((transfer, is_new)) = begun else {
            return if offset == 0 { PieceReply::Busy } else { PieceReply::Unknown };
        };
        if is_new {
            self.end_in_time(id.clone());
        }
        let mut transfer = transfer.lock().await;
        let reply = match &mut *transfer {
            Some(reading) => reading.piece_at(offset).await,
            None if offset > 0 => PieceReply::Unknown,
            none => match self.open_object(set, key).await {
                Ok(reading) => none.insert(reading).piece_at(0).await,
                Err(reply) => reply,
            },
        };
        if !matches!(reply, PieceReply::Piece(_)) {
            objects.end(&id);
        }
        reply
    }

    /// Ends a transfer after its time limit, in case its receiver has disappeared.
    fn end_in_time(&self, id: TransferId) {
        let host = self.clone();
        self.inner.lifecycle.runtime.spawn(async move {
            tokio::time::sleep(host.inner.settings.timing.proxy).await;
            host.inner.objects.end(&id);
        });
    }

    /// Begins to read an object from this host's own cache, if the catalogue has its key.
    pub(super) async fn open_object(&self, set: &str, key: &[u8]) -> Result<Reading, PieceReply> {
        let known = self.inner.sets.known(set).ok_or(PieceReply::Absent)?;
        if self.inner.sets.holds(set, &[key]) != [HELD] {
            return Err(PieceReply::Absent);
        }
        let settings = &self.inner.settings;
        let url = match &known.confirm {
            Confirm::Cache(template) => self.cache_url(template, set, key),
            Confirm::Catalogue => settings
                .advertise
                .as_deref()
                .and_then(|at| object_address(&known.confirm, at, set, key)),
        };
        let until = Instant::now() + settings.timing.proxy;
        let response = self.inner.cache.open(url, until).await;
        let answer = *response.as_ref().map_or_else(|answer| answer, |_| &HELD);
        if let Confirm::Cache(template) = &known.confirm {
            known.confirmed.count_cache(answer);
            if answer == ABSENT {
                self.spawn_repair(set, template, vec![key.to_vec()]);
            }
        }
        let response = response.map_err(|answer| match answer {
            ABSENT => PieceReply::Absent,
            _ => PieceReply::Unknown,
        })?;
        let limit = settings.limits.proxy_bytes;
        match response.content_length() {
            Some(length) if length > limit => Err(PieceReply::TooLarge { limit }),
            _ => Ok(Reading::new(response, limit, until)),
        }
    }
}

/// How long an object is, if its headers say so.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
