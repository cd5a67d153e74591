//! The live data of the dashboard: server-sent events.
//!
//! The first event, `snapshot`, contains everything that the first view needs. Then `tick` comes
//! twice per second with one more point for every set that has a history, and with the rows that
//! changed. Events of hosts have the names of `/v1/events`. Updates are not sent, since there may
//! be thousands per second; ticks count them.
//!
//! Always true: rows are computed only while a dashboard is open, once for all readers; a reader
//! that falls behind gets a new snapshot.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt as _, future, stream};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, watch};
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::BroadcastStream;

use super::history::{COLUMNS, EVERY, History, Series};
use super::rows::{Rows, Sent};
use crate::http::App;
use crate::http::problem::Problem;
use crate::{Host, HostEvent};

/// Maximum number of readers.
const MAX_READERS: usize = 64;
/// Maximum number of ticks that a reader may be behind.
const KEPT: usize = 8;
/// Ticks between two surveys of all sets.
const SURVEY_EVERY: u64 = 2;

/// The history of some sets, and what is sent to readers.
#[derive(Debug)]
pub(in crate::http) struct Feed {
    host: Host,
    history: Mutex<History>,
    ticks: broadcast::Sender<Arc<Tick>>,
}

/// The data for all readers at one moment.
#[derive(Debug)]
struct Tick {
    t: f64,
    points: Value,
    rows: Option<Rows>,
}

impl Feed {
    pub(in crate::http) fn new(host: &Host) -> Arc<Self> {
        let ticks = broadcast::channel(KEPT).0;
        Arc::new(Self { host: host.clone(), history: Mutex::default(), ticks })
    }

    /// Takes samples, and sends them to readers, until the server stops.
    pub(in crate::http) async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for round in 0_u64.. {
            tokio::select! {
                _ = clock.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            let feed = Arc::clone(&self);
            // The locks of sets may be held while a filter is built.
            let taken = tokio::task::spawn_blocking(move || feed.take(round)).await;
            if let Ok(Some(tick)) = taken {
                let _ = self.ticks.send(Arc::new(tick));
            }
        }
    }

    /// Takes one more sample; returns the data for readers, if there are any.
    fn take(&self, round: u64) -> Option<Tick> {
        let points = self.history.lock().sample(&self.host);
        if self.ticks.receiver_count() == 0 {
            return None;
        }
        let t = self.host.inner.now().as_secs_f64();
        let points: Map<String, Value> =
            points.into_iter().map(|(set, point)| (set, json!(point))).collect();
        let rows = round.is_multiple_of(SURVEY_EVERY).then(|| Rows::of(&self.host));
        Some(Tick { t, points: points.into(), rows })
    }

    /// The last minutes of a set; its history is kept from now on.
    pub(super) fn series(&self, set: &str) -> Series {
        let mut history = self.history.lock();
        history.want(set);
        history.series(set)
    }

    /// The complete data, for a new reader.
    fn snapshot(&self, sent: &mut Sent) -> Event {
        let mut snapshot = Rows::of(&self.host).snapshot(sent);
        snapshot["t"] = json!(self.host.inner.now().as_secs_f64());
        snapshot["point_columns"] = json!(COLUMNS);
        snapshot["tracked"] = json!(self.history.lock().names());
        event("snapshot", &snapshot)
    }
}

/// The next item for a reader.
enum Item {
    Tick(Arc<Tick>),
    HostEvent(HostEvent),
    /// The reader was too slow.
    Behind,
}

/// The endless stream of the dashboard's live data.
pub(super) async fn feed(
    State(app): State<App>,
    Extension(stopped): Extension<watch::Receiver<bool>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let feed = app.feed;
    if feed.ticks.receiver_count() >= MAX_READERS {
        let detail = format!("{MAX_READERS} dashboards are open at this host: close one");
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Err(Problem::new(status, "too_many_dashboards", detail));
    }
    let items = items(&feed);
    let (feed_of_first, mut sent) = (Arc::clone(&feed), Sent::default());
    let first = tokio::task::spawn_blocking(move || {
        let first = feed_of_first.snapshot(&mut sent);
        (first, sent)
    });
    let Ok((first, mut sent)) = first.await else {
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "survey", "no survey"));
    };
    let later = items.map(move |item| match item {
        Item::Tick(tick) => tick_event(&tick, &mut sent),
        Item::HostEvent(event) => host_event(&feed.host, &event),
        Item::Behind => tokio::task::block_in_place(|| feed.snapshot(&mut sent)),
    });
    let mut stopped = stopped;
    let stop = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let events = stream::once(future::ready(first)).chain(later).map(Ok);
    let events = events.take_until(Box::pin(stop));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// Ticks, and events of hosts.
fn items(feed: &Feed) -> impl Stream<Item = Item> + use<> {
    let ticks = BroadcastStream::new(feed.ticks.subscribe())
        .map(|tick| tick.map_or(Item::Behind, Item::Tick));
    let events = BroadcastStream::new(feed.host.events()).filter_map(|event| {
        // Missed events need no repetition: the next rows show their effect.
        future::ready(event.ok().filter(is_shown).map(Item::HostEvent))
    });
    stream::select(ticks, events)
}

/// Whether an event is shown: those that may occur thousands of times per second are not.
const fn is_shown(event: &HostEvent) -> bool {
    !matches!(
        event,
        HostEvent::UpdateSent { .. }
            | HostEvent::UpdateReceived { .. }
            | HostEvent::TargetBroken { .. }
            | HostEvent::LateLookups { .. }
    )
}

fn tick_event(tick: &Tick, sent: &mut Sent) -> Event {
    let changes = tick.rows.as_ref().and_then(|rows| rows.changes(sent));
    event("tick", &json!({ "t": tick.t, "points": tick.points, "changes": changes }))
}

fn host_event(host: &Host, about: &HostEvent) -> Event {
    let t = host.inner.now().as_secs_f64();
    event("happened", &json!({ "t": t, "event": about.name(), "facts": about }))
}

fn event(name: &str, data: &Value) -> Event {
    // The JSON has one line.
    Event::default().event(name).data(data.to_string())
}
