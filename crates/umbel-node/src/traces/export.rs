//! Sends spans to a collector, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::otlp;
use super::span::Span;

/// Spans that may wait to be sent; more are dropped.
const WAITING: usize = 4096;
/// Spans of one request.
const BATCH: usize = 512;
/// How long the first span of a request waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How often the queue is looked at for the end of the program.
const LOOK: Duration = Duration::from_millis(50);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of the program waits for the last spans.
const LAST: Duration = Duration::from_secs(2);
/// Failures are logged at most this often.
const QUIET: Duration = Duration::from_secs(60);

/// Where closed spans wait.
#[derive(Debug)]
pub(super) struct Queue {
    sender: SyncSender<Span>,
    dropped: AtomicU64,
    is_closed: AtomicBool,
}

impl Queue {
    pub(super) fn new(length: usize) -> (Arc<Self>, Receiver<Span>) {
        let (sender, receiver) = mpsc::sync_channel(length);
        let (dropped, is_closed) = (AtomicU64::new(0), AtomicBool::new(false));
        (Arc::new(Self { sender, dropped, is_closed }), receiver)
    }

    /// Queues a span, or drops it if there is no room.
    pub(super) fn push(&self, span: Span) {
        if self.sender.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends spans in the background. When it is dropped, it sends what is left, and waits for that at
/// most for two seconds.
#[derive(Debug)]
pub struct Exporter {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    pub(super) fn start(endpoint: &str, resource: Json) -> (Self, Arc<Queue>) {
        let (queue, spans) = Queue::new(WAITING);
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let sender = Sender { url, resource, queue: Arc::clone(&queue), logged: None };
        let thread = std::thread::Builder::new().name("traces".to_owned());
        let thread = thread.spawn(move || sender.run(&spans));
        let thread =
            thread.inspect_err(|error| tracing::error!(%error, "no thread for traces")).ok();
        (Self { queue: Arc::clone(&queue), thread }, queue)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.queue.is_closed.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + LAST;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(LOOK / 5);
        }
    }
}

/// The thread that sends.
struct Sender {
    url: String,
    resource: Json,
    queue: Arc<Queue>,
    /// When a failure was logged last.
    logged: Option<Instant>,
}

impl Sender {
    fn run(mut self, spans: &Receiver<Span>) {
        // Fails if another provider is installed already; that one serves as well.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (Ok(client), Ok(runtime)) = (client, runtime) else {
            return tracing::error!("traces cannot be exported: no client for HTTP");
        };
        while let Some(batch) = self.next_batch(spans) {
            if let Err(error) = runtime.block_on(self.send(&client, &batch)) {
                self.queue.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                self.log(&error);
            }
        }
    }

    /// Waits for spans; `None` at the end of the program, when all are sent.
    fn next_batch(&self, spans: &Receiver<Span>) -> Option<Vec<Span>> {
        let mut batch: Vec<Span> = Vec::new();
        let mut deadline = None;
        loop {
            match spans.recv_timeout(LOOK) {
                Ok(span) => {
                    deadline.get_or_insert_with(|| Instant::now() + GATHER);
                    batch.push(span);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if self.queue.is_closed.load(Ordering::Acquire) => {
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if batch.len() >= BATCH || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                break;
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    async fn send(&self, client: &reqwest::Client, batch: &[Span]) -> Result<(), String> {
        let body = otlp::body(&self.resource, batch).to_string();
        let request = client.post(&self.url).header("content-type", "application/json").body(body);
        let response = request.send().await.map_err(|error| error.to_string())?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector replied {status}")),
        }
    }

    fn log(&mut self, error: &str) {
        if self.logged.is_none_or(|logged| logged.elapsed() >= QUIET) {
            self.logged = Some(Instant::now());
            let dropped = self.queue.dropped.load(Ordering::Relaxed);
            tracing::warn!(error, dropped, "traces cannot be exported to {}", self.url);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::span::Fields;

    #[test]
    fn spans_without_room_are_dropped_and_counted() {
        let (queue, spans) = Queue::new(2);
        for number in 0..5 {
            queue.push(Span::begin(1, None, &number.to_string(), Fields::default()));
        }
        assert_eq!(spans.try_iter().map(|span| span.name).collect::<Vec<_>>(), ["0", "1"]);
        assert_eq!(queue.dropped.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_collector_that_is_away_delays_no_end() {
        // Nobody listens at a port that was just closed.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (exporter, queue) =
            Exporter::start(&format!("http://{port}/"), otlp::resource("a", "local"));
        queue.push(Span::begin(1, None, "lost", Fields::default()));
        drop(exporter);
        assert_eq!(queue.dropped.load(Ordering::Relaxed), 1);
    }
}
