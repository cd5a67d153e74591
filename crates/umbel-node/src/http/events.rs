//! Live events of the host: server-sent events.
//!
//! A reader that falls behind by more than [`crate::HostEvent::KEPT`] events is told how many it
//! missed and continues with the oldest that is buffered; nothing is stored per reader.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt as _, future};
use tokio::sync::{broadcast, watch};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError::Lagged;

use crate::{Host, HostEvent};

/// Interval of keep-alives on a stream without events.
const STILL_HERE: Duration = Duration::from_secs(15);

/// Live events of this host: server-sent events.
///
/// Each has a name (`host_up`, `host_suspected`, `host_down`, `update_sent`, `update_received`,
/// `target_broken`, `rebuilt`, `name_taken`) and its data as JSON. A reader that is too slow gets
/// `skipped` with the number of events that it missed.
#[utoipa::path(
    get, path = "/v1/events", tag = "hosts",
    responses((status = 200, description = "Events, without an end", body = String, content_type = "text/event-stream"))
)]
pub(super) async fn events(
    State(host): State<Host>,
    Extension(stopped): Extension<watch::Receiver<bool>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = event_stream(host.events());
    let stop = async move {
        let mut stopped = stopped;
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let events = events.map(Ok).take_until(Box::pin(stop));
    Sse::new(events).keep_alive(KeepAlive::new().interval(STILL_HERE))
}

/// The events of a receiver, encoded for sending.
fn event_stream(events: broadcast::Receiver<HostEvent>) -> impl Stream<Item = Event> {
    BroadcastStream::new(events).filter_map(|event| {
        future::ready(match event {
            Ok(event) => Event::default().event(event.name()).json_data(&event).ok(),
            Err(Lagged(missed)) => {
                let missed = serde_json::json!({ "events": missed });
                Event::default().event("skipped").json_data(missed).ok()
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_reader_is_told_how_many_events_it_missed() {
        let (sender, events) = broadcast::channel(HostEvent::KEPT);
        for _ in 0..HostEvent::KEPT + 7 {
            sender.send(HostEvent::HostUp { host: "lily".into() }).unwrap();
        }
        drop(sender);
        let events: Vec<String> =
            event_stream(events).map(|event| format!("{event:?}")).collect().await;
        assert_eq!(events.len(), 1 + HostEvent::KEPT);
        assert!(events[0].contains("skipped"), "{}", events[0]);
        assert!(events[0].contains("{\\\"events\\\":7}"), "{}", events[0]);
        assert!(events[1].contains("host_up"), "{}", events[1]);
    }
}
