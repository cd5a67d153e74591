//! Bodies of requests and responses that report when they are complete or dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::clients::Client;

/// A request that is being handled, until dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Client>);

impl Busy {
    pub(super) fn new(client: &Arc<Client>, body: &Incoming) -> Self {
        client.is_asked(!body.is_end_stream());
        Self(Arc::clone(client))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.has_answered();
    }
}

/// The body of a request, and the client that sends it.
#[derive(Debug)]
pub(super) struct Sent {
    body: Incoming,
    client: Arc<Client>,
}

impl Sent {
    pub(super) fn new(body: Incoming, client: &Arc<Client>) -> Self {
        Self { body, client: Arc::clone(client) }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // A body of a known length has ended before its end is polled.
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.client.has_sent();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.client.has_sent();
    }
}

/// The body of a response, and the request that it completes.
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
