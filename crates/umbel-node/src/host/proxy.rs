//! Objects that this host passes on to its clients from the host that holds them.
//!
//! The holding host reads its own cache. So no host opens an address that another host made up, and
//! caches need not reach each other.
//!
//! Always true: an object that is not passed on completely ends with an error, never with an early
//! end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use umbel::replica::Name;

use super::objects::{Reading, length};
use super::{Fetch, Host};
use crate::error::HostError;
use crate::object::{Piece, PieceReply};
use crate::peer_request::PeerRequest;

/// How long to wait for a piece before it is requested again, and the maximum number of requests.
const PIECE_TIME: Duration = Duration::from_secs(5);
const PIECE_TRIES: usize = 3;

/// An object whose first piece has arrived.
#[derive(Debug)]
pub(crate) struct Object {
    /// The host that holds it.
    pub(crate) holder: Name,
    pub(crate) headers: HeaderMap,
    first: Option<Piece>,
    source: Source,
    passed: u64,
    /// The length in its headers.
    length: Option<u64>,
    until: Instant,
    max_bytes: u64,
    _turn: OwnedSemaphorePermit,
}

/// Why an object is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotPassedOn {
    /// No host holds it.
    NoHolder,
    /// Hosts hold it, but none could pass it on.
    Unreadable,
    /// It is longer than the limit of a host.
    TooLarge { limit: u64 },
    /// This host, or the holder, passes on the maximum number of objects already.
    Busy,
}

/// Where pieces come from.
#[derive(Debug)]
enum Source {
    Own(Box<Reading>),
    Other(Transfer),
}

/// A transfer from another host, ended when dropped.
#[derive(Debug)]
struct Transfer {
    host: Host,
    from: Name,
    set: String,
    key: Vec<u8>,
    number: u64,
}

impl Host {
    /// The object of a key, from the first host that confirms that it holds it and passes it on.
    ///
    /// # Errors
    /// If the set's name is invalid.
    pub(crate) async fn pass_on(
        &self,
        set: &str,
        key: &[u8],
        how: &Fetch,
    ) -> Result<Result<Object, NotPassedOn>, HostError> {
        let Some(known) = self.inner.sets.look_up(set)? else {
            return Ok(Err(NotPassedOn::NoHolder));
        };
        let Ok(turn) = Arc::clone(&self.inner.objects.turns).try_acquire_owned() else {
            return Ok(Err(NotPassedOn::Busy));
        };
        let mut reason = NotPassedOn::NoHolder;
        if self.may_fetch_from_self(how) {
            match self.own_object(set, key).await {
                Ok((source, piece)) => return Ok(Ok(self.object(source, piece, turn))),
                Err(reply) => reason = reason.or(&reply),
            }
        }
        let mut holders = self.holders(&known, key, how, |_| true);
        while let Some(holder) = holders.next().await {
            let transfer = Transfer::new(self, holder, set, key);
            match transfer.piece(0, self.proxy_deadline()).await {
                PieceReply::Piece(piece) => {
                    return Ok(Ok(self.object(Source::Other(transfer), piece, turn)));
                }
                reply => reason = reason.or(&reply),
            }
        }
        Ok(Err(reason))
    }

    async fn own_object(&self, set: &str, key: &[u8]) -> Result<(Source, Piece), PieceReply> {
        let mut reading = self.open_object(set, key).await?;
        match reading.piece_at(0).await {
            PieceReply::Piece(piece) => Ok((Source::Own(Box::new(reading)), piece)),
            reply => Err(reply),
        }
    }

    fn object(&self, source: Source, mut piece: Piece, turn: OwnedSemaphorePermit) -> Object {
        let holder = match &source {
            Source::Own(_) => self.name().clone(),
            Source::Other(transfer) => transfer.from.clone(),
        };
        let headers = std::mem::take(&mut piece.headers);
        Object {
            holder,
            length: length(&headers),
            headers,
            first: Some(piece),
            source,
            passed: 0,
            until: self.proxy_deadline(),
            max_bytes: self.inner.settings.limits.proxy_bytes,
            _turn: turn,
        }
    }

    fn proxy_deadline(&self) -> Instant {
        Instant::now() + self.inner.settings.timing.proxy
    }
}

impl NotPassedOn {
    /// The more specific reason, after one more host was tried.
    fn or(self, reply: &PieceReply) -> Self {
        match (self, reply) {
            (Self::TooLarge { limit }, _) => Self::TooLarge { limit },
            (_, PieceReply::TooLarge { limit }) => Self::TooLarge { limit: *limit },
            (_, PieceReply::Busy) => Self::Busy,
            (Self::NoHolder, PieceReply::Unknown) => Self::Unreadable,
            (reason, _) => reason,
        }
    }
}

impl Object {
    /// The bytes of the next piece; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        let piece = match self.first.take() {
            Some(piece) => piece,
            None if self.length == Some(self.passed) => return None,
            None => match self.piece().await {
                PieceReply::Piece(piece) => piece,
                _ => return Some(Err(BrokenOff)),
            },
        };
        self.passed += piece.bytes.len() as u64;
        let is_too_long = self.passed > self.length.unwrap_or(self.max_bytes).min(self.max_bytes);
        let is_short = piece.is_last && self.length.is_some_and(|length| self.passed < length);
        // An empty piece that is not the last one would be requested again for ever.
        let is_empty = piece.bytes.is_empty() && !piece.is_last;
        if is_too_long || is_short || is_empty {
            return Some(Err(BrokenOff));
        }
        if piece.is_last {
            self.length = Some(self.passed);
        }
        Some(Ok(piece.bytes))
    }

    async fn piece(&mut self) -> PieceReply {
        match &mut self.source {
            Source::Own(reading) => reading.piece_at(self.passed).await,
            Source::Other(transfer) => transfer.piece(self.passed, self.until).await,
        }
    }
}

/// An object did not arrive completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the object did not arrive whole from the host that holds it")]
pub(crate) struct BrokenOff;

impl Transfer {
    fn new(host: &Host, from: Name, set: &str, key: &[u8]) -> Self {
        let number = host.inner.objects.number();
        Self { host: host.clone(), from, set: set.to_owned(), key: key.to_vec(), number }
    }

    fn request(&self, offset: Option<u64>) -> Vec<u8> {
        let Self { set, key, number, .. } = self;
        PeerRequest::Object { set, key, transfer: *number, offset }.encode()
    }

    async fn piece(&self, offset: u64, until: Instant) -> PieceReply {
        let network = &self.host.inner.cluster.network;
        for _ in 0..PIECE_TRIES {
            let left = until.saturating_duration_since(Instant::now()).min(PIECE_TIME);
            if left.is_zero() {
                break;
            }
            let reply = network.ask(&self.from, self.request(Some(offset)), left).await;
            if let Some(reply) = reply {
                return PieceReply::decode(reply).unwrap_or(PieceReply::Unknown);
            }
        }
        PieceReply::Unknown
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let (network, from) = (Arc::clone(&self.host.inner.cluster.network), self.from.clone());
        let end = self.request(None);
        self.host.inner.lifecycle.runtime.spawn(async move {
            network.ask(&from, end, PIECE_TIME).await;
        });
    }
}
