//! An answer's body that tells when it is complete, or given up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::clients::Client;

/// A request that is worked on, until dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Client>);

impl Busy {
    pub(super) fn new(client: &Arc<Client>) -> Self {
        client.is_asked();
        Self(Arc::clone(client))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.has_answered();
    }
}

/// The body of an answer, and the request that it ends.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    _busy: Busy,
}

impl Answer {
    pub(super) const fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
