//! A publisher of KV cache events that imitates an engine, for tests and examples: a PUB and a
//! ROUTER socket, and messages encoded as vLLM and SGLang encode them.
//!
//! Like the engines, it never waits for a subscriber: one that is too slow loses messages.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::zmtp::{Connection, Message};

/// Maximum number of queued messages per subscriber.
const QUEUE: usize = 100_000;

/// The form in which messages are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Arrays, whose first element is the name of the event: SGLang, and vLLM until 2026.
    Arrays,
    /// Maps, with the name under `type`: vLLM since then.
    Maps,
}

/// An event to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishedEvent {
    /// Blocks were stored.
    Stored {
        /// Their hashes.
        hashes: Vec<u64>,
        /// The block before the first one.
        parent: Option<u64>,
        /// The tokens of all blocks.
        tokens: Vec<u32>,
        /// Tokens per block.
        block_size: u32,
    },
    /// Blocks were removed.
    Removed(Vec<u64>),
    /// All blocks were removed.
    Cleared,
}

/// Encodes a message of some events.
#[must_use]
pub fn encode(form: Form, seconds: f64, events: &[PublishedEvent]) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.begin(form, None, 3);
    out.field(form, "ts");
    out.0.push(0xcb);
    out.0.extend(seconds.to_be_bytes());
    out.field(form, "events");
    out.array(events.len());
    events.iter().for_each(|event| out.event(form, event));
    out.field(form, "data_parallel_rank");
    out.number(0);
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    /// Starts a structure with this number of fields, and writes its name.
    fn begin(&mut self, form: Form, name: Option<&str>, fields: usize) {
        let all = fields + usize::from(name.is_some());
        let kind = if form == Form::Arrays { 0x90 } else { 0x80 };
        self.0.push(kind | all as u8);
        if let Some(name) = name {
            self.field(form, "type");
            self.text(name);
        }
    }

    fn field(&mut self, form: Form, name: &str) {
        if form == Form::Maps {
            self.text(name);
        }
    }

    fn event(&mut self, form: Form, event: &PublishedEvent) {
        match event {
            PublishedEvent::Stored { hashes, parent, tokens, block_size } => {
                self.begin(form, Some("BlockStored"), 6);
                self.field(form, "block_hashes");
                self.numbers(hashes.iter().copied());
                self.field(form, "parent_block_hash");
                self.optional(*parent);
                self.field(form, "token_ids");
                self.numbers(tokens.iter().copied().map(u64::from));
                self.field(form, "block_size");
                self.number(u64::from(*block_size));
                self.field(form, "lora_id");
                self.optional(None);
                self.field(form, "medium");
                self.text("GPU");
            }
            PublishedEvent::Removed(hashes) => {
                self.begin(form, Some("BlockRemoved"), 2);
                self.field(form, "block_hashes");
                self.numbers(hashes.iter().copied());
                self.field(form, "medium");
                self.text("GPU");
            }
            PublishedEvent::Cleared => self.begin(form, Some("AllBlocksCleared"), 0),
        }
    }

    fn text(&mut self, text: &str) {
        self.0.push(0xa0 | text.len() as u8);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn array(&mut self, length: usize) {
        self.0.push(0xdd);
        self.0.extend((length as u32).to_be_bytes());
    }

    fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        self.array(numbers.len());
        numbers.for_each(|number| self.number(number));
    }

    fn number(&mut self, number: u64) {
        match number {
            0..=0x7f => self.0.push(number as u8),
            0x80..=0xffff => {
                self.0.push(0xcd);
                self.0.extend((number as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.0.push(0xce);
                self.0.extend((number as u32).to_be_bytes());
            }
            _ => {
                self.0.push(0xcf);
                self.0.extend(number.to_be_bytes());
            }
        }
    }

    fn optional(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.number(number),
            None => self.0.push(0xc0),
        }
    }
}

/// A publisher with its sockets, closed when it is dropped.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    addresses: [SocketAddr; 2],
    /// The threads that accept connections.
    accepting: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    topic: Vec<u8>,
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// The latest messages, for replay.
    kept: VecDeque<(u64, Arc<[u8]>)>,
    max_kept: usize,
    subscribers: Vec<SyncSender<(u64, Arc<[u8]>)>>,
}

impl Publisher {
    /// Listens at two addresses; for port 0 the system chooses a port. Keeps the last `kept`
    /// messages for replay.
    ///
    /// # Errors
    /// If an address cannot be listened on.
    pub fn bind(
        events: SocketAddr,
        replay: SocketAddr,
        topic: &str,
        kept: usize,
    ) -> io::Result<Self> {
        let listeners = [TcpListener::bind(events)?, TcpListener::bind(replay)?];
        let addresses = [listeners[0].local_addr()?, listeners[1].local_addr()?];
        let state = Mutex::new(State { max_kept: kept, ..State::default() });
        let shared = Shared { topic: topic.into(), stop: Arc::default(), state };
        let shared = Arc::new(shared);
        let [events, replay] = listeners;
        let accepting =
            vec![accept(events, &shared, serve_subscriber), accept(replay, &shared, serve_replay)];
        Ok(Self { shared, addresses, accepting })
    }

    /// Address of the PUB socket.
    #[must_use]
    pub const fn events(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Address of the ROUTER socket for replays.
    #[must_use]
    pub const fn replay(&self) -> SocketAddr {
        self.addresses[1]
    }

    /// Current number of subscribers.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.shared.lock().subscribers.len()
    }

    /// Publishes a message.
    pub fn publish(&self, payload: Vec<u8>) {
        self.number(payload, true);
    }

    /// Numbers and keeps a message, but does not send it, as if it were lost. It can be replayed.
    pub fn lose(&self, payload: Vec<u8>) {
        self.number(payload, false);
    }

    fn number(&self, payload: Vec<u8>, is_sent: bool) {
        let mut state = self.shared.lock();
        let message = (state.next, Arc::<[u8]>::from(payload));
        state.next += 1;
        state.kept.push_back(message.clone());
        while state.kept.len() > state.max_kept {
            state.kept.pop_front();
        }
        if is_sent {
            // A subscriber whose queue is full loses the message.
            let gone = |end| matches!(end, Err(TrySendError::Disconnected(_)));
            state.subscribers.retain(|subscriber| !gone(subscriber.try_send(message.clone())));
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // This ends the subscribers' threads, and with them the connections.
        self.shared.lock().subscribers.clear();
        // Wake the accepting threads, so that they check the stop flag.
        self.addresses.iter().for_each(|address| _ = TcpStream::connect(address));
        // After this the ports are free.
        self.accepting.drain(..).for_each(|thread| _ = thread.join());
    }
}

fn accept(
    listener: TcpListener,
    shared: &Arc<Shared>,
    serve: fn(TcpStream, &Arc<Shared>) -> io::Result<()>,
) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if shared.stop.load(Ordering::SeqCst) {
                return;
            }
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || serve(stream, &shared));
        }
    })
}

fn serve_subscriber(stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let mut connection = Connection::greet(stream, "PUB", &["SUB", "XSUB"], &shared.stop)?;
    let mut message = Message::new();
    connection.receive(&mut message)?;
    let is_subscribed = message.first().is_some_and(|frame| {
        frame
            .split_first()
            .is_some_and(|(first, topic)| *first == 1 && shared.topic.starts_with(topic))
    });
    if !is_subscribed {
        return Err(io::Error::other("subscribed to something else"));
    }
    let (sender, messages) = sync_channel::<(u64, Arc<[u8]>)>(QUEUE);
    let mut state = shared.lock();
    if shared.stop.load(Ordering::SeqCst) {
        return Ok(());
    }
    state.subscribers.push(sender);
    drop(state);
    for (number, payload) in messages {
        connection.send(&[&shared.topic, &number.to_be_bytes(), &payload])?;
    }
    Ok(())
}

fn serve_replay(stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let mut connection = Connection::greet(stream, "ROUTER", &["REQ", "DEALER"], &shared.stop)?;
    let mut message = Message::new();
    loop {
        connection.limit(Some(Duration::from_secs(60)));
        connection.receive(&mut message)?;
        let [empty, from] = &message[..] else { return Err(io::Error::other("no request")) };
        let from = <[u8; 8]>::try_from(&from[..]).ok().filter(|_| empty.is_empty());
        let from = u64::from_be_bytes(from.ok_or_else(|| io::Error::other("no request"))?);
        let kept: Vec<_> =
            shared.lock().kept.iter().filter(|(number, _)| *number >= from).cloned().collect();
        for (number, payload) in kept {
            connection.send(&[b"", &number.to_be_bytes(), &payload])?;
        }
        connection.send(&[b"", &u64::MAX.to_be_bytes(), b""])?;
    }
}
