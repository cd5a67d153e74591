//! Decides which spans are exported, and passes them on when they close.

use std::sync::Arc;

use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::TARGET;
use super::export::Queue;
use super::parent::Parent;
use super::span::{Fields, Span, random, random_trace};

/// A layer of `tracing` that exports spans. Use it with [`TraceLayer::wants`] as its filter.
#[derive(Debug)]
pub struct TraceLayer {
    queue: Arc<Queue>,
    /// Share of requests without a parent that are traced.
    share: f64,
}

impl TraceLayer {
    pub(super) const fn new(queue: Arc<Queue>, share: f64) -> Self {
        Self { queue, share }
    }

    /// Whether a span or event is one of those that are exported.
    #[must_use]
    pub fn wants(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == TARGET
    }

    /// The trace of a request that is not part of another one's work, and its parent.
    fn root(&self, fields: &Fields) -> Option<(u128, Option<u64>)> {
        match fields.traceparent.as_deref().and_then(Parent::parse) {
            Some(parent) => parent.is_sampled.then_some((parent.trace, Some(parent.span))),
            None => is_taken(self.share, random()).then(|| (random_trace(), None)),
        }
    }
}

/// Whether a request is among this share, given a random number.
fn is_taken(share: f64, random: u64) -> bool {
    // 53 bits are exact in an `f64`, so that a share of 1 takes every request and 0 none.
    ((random >> 11) as f64) < share * (1u64 << 53) as f64
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let place = match span.parent() {
            // If the parent was not taken, its parts are not either.
            Some(parent) => {
                parent.extensions().get::<Span>().map(|parent| (parent.trace, Some(parent.id)))
            }
            None => self.root(&fields),
        };
        if let Some((trace, parent)) = place {
            span.extensions_mut().insert(Span::begin(trace, parent, span.name(), fields));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(span) = span.extensions_mut().get_mut::<Span>() {
            let mut fields = Fields::default();
            values.record(&mut fields);
            span.attributes.append(&mut fields.attributes);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        if let Some(mut span) = span.extensions_mut().remove::<Span>() {
            span.end();
            self.queue.push(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::traces::span::{Kind, Value};

    /// The spans that are queued while `work` runs.
    fn spans(share: f64, work: impl FnOnce()) -> Vec<Span> {
        let (queue, receiver) = Queue::new(8);
        let layer = TraceLayer::new(queue, share).with_filter(filter_fn(TraceLayer::wants));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        receiver.try_iter().collect()
    }

    fn request(traceparent: &str) {
        let mut headers = axum::http::HeaderMap::new();
        headers.insert("traceparent", traceparent.parse().unwrap());
        let span = crate::traces::http_request("GET", "/v1/hosts", &headers);
        span.in_scope(|| {
            // Spans and events of others are neither exported nor in the way.
            let _other = tracing::error_span!("other").entered();
            tracing::error!("not exported");
            let _asked = crate::traces::cache_request().entered();
        });
        span.record("http.response.status_code", 200);
    }

    #[test]
    fn a_request_continues_the_trace_of_its_caller() {
        let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let [asked, http] = spans(0.0, || request(caller)).try_into().unwrap();
        assert_eq!(http.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(http.parent, Some(0xb7ad_6b71_6920_3331));
        assert_eq!((http.name.as_str(), http.kind), ("GET /v1/hosts", Kind::Server));
        assert!(http.attributes.contains(&("http.route", Value::Text("/v1/hosts".to_owned()))));
        assert!(http.attributes.contains(&("http.response.status_code", Value::Whole(200))));
        assert_eq!((asked.trace, asked.parent), (http.trace, Some(http.id)));
        assert_eq!((asked.name.as_str(), asked.kind), ("ask cache", Kind::Client));
        assert!(http.took >= asked.took);
    }

    #[test]
    fn a_request_that_its_caller_does_not_record_is_not_exported() {
        let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        assert!(spans(1.0, || request(caller)).is_empty());
    }

    #[test]
    fn of_other_requests_a_share_is_exported() {
        assert_eq!(spans(1.0, || request("nonsense")).len(), 2);
        assert!(spans(0.0, || request("nonsense")).is_empty());
        assert!(is_taken(1.0, u64::MAX) && !is_taken(0.0, 0));
        assert!(is_taken(0.5, (1 << 63) - 1) && !is_taken(0.5, 1 << 63));
    }
}
