//! The queue of events for the driver, bounded in number and in bytes.
//!
//! Always true: queued messages take at most the bytes that the inbox was created for. One sender
//! may take at most half of what is free when its message arrives, so that a host that floods this
//! one does not silence the others. An event that finds no room is dropped and counted, like any
//! other lost message. Events without bytes (a host came or went) find room even when messages do
//! not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use umbel::replica::Name;

use super::NetworkEvent;

/// Maximum number of queued events.
const WAITING: usize = 8192;
/// Maximum number of messages among them.
const MESSAGES: usize = 7168;
/// Bytes that a message takes in addition to its content.
const ENVELOPE: u64 = 128;

/// Where a network puts its events. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Inbox {
    sender: SyncSender<NetworkEvent>,
    backlog: Arc<Backlog>,
}

/// The driver's end of an inbox.
#[derive(Debug)]
pub(crate) struct NetworkEvents {
    receiver: Receiver<NetworkEvent>,
    backlog: Arc<Backlog>,
}

/// Accounting of the queue.
#[derive(Debug)]
struct Backlog {
    bytes: u64,
    dropped: AtomicU64,
    messages: Mutex<Messages>,
}

/// The number of queued messages, and their bytes per sender. Greetings have no sender: they may
/// come from another cluster.
#[derive(Debug, Default)]
struct Messages {
    count: usize,
    bytes: u64,
    by_sender: BTreeMap<Option<Name>, u64>,
}

impl Inbox {
    /// An inbox for messages of at most `bytes` bytes together, and the end from which they are
    /// taken.
    pub(crate) fn new(bytes: u64) -> (Self, NetworkEvents) {
        let (sender, receiver) = sync_channel(WAITING);
        let (dropped, messages) = (AtomicU64::new(0), Mutex::default());
        let backlog = Arc::new(Backlog { bytes, dropped, messages });
        (Self { sender, backlog: Arc::clone(&backlog) }, NetworkEvents { receiver, backlog })
    }

    /// Queues an event; if the host cannot keep up, the event is dropped and counted.
    pub fn put(&self, event: NetworkEvent) {
        let message = message_of(&event).map(|(from, bytes)| (from.cloned(), bytes));
        let has_room = message.as_ref().is_none_or(|(from, bytes)| self.backlog.take(from, *bytes));
        if has_room && self.sender.try_send(event).is_ok() {
            return;
        }
        if let Some((from, bytes)) = message.filter(|_| has_room) {
            self.backlog.give_back(&from, bytes);
        }
        self.backlog.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Events that were dropped because there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.backlog.dropped.load(Ordering::Relaxed)
    }
}

impl NetworkEvents {
    /// The next event, if one arrives within the timeout.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<NetworkEvent, RecvTimeoutError> {
        self.receiver.recv_timeout(timeout).inspect(|event| self.taken(event))
    }

    /// The events that are queued already.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = NetworkEvent> {
        self.receiver.try_iter().inspect(|event| self.taken(event))
    }

    fn taken(&self, event: &NetworkEvent) {
        if let Some((from, bytes)) = message_of(event) {
            self.backlog.give_back(&from.cloned(), bytes);
        }
    }
}

impl Backlog {
    /// Reserves room for a message; returns whether there was enough.
    fn take(&self, from: &Option<Name>, bytes: u64) -> bool {
        let mut messages = self.messages();
        let own = messages.by_sender.get(from).copied().unwrap_or(0);
        // What would be free without this sender's messages; the sender may use half of it.
        let free = self.bytes - messages.bytes;
        if messages.count >= MESSAGES || bytes > free || own + bytes > (free + own) / 2 {
            return false;
        }
        messages.count += 1;
        messages.bytes += bytes;
        *messages.by_sender.entry(from.clone()).or_default() += bytes;
        true
    }

    fn give_back(&self, from: &Option<Name>, bytes: u64) {
        let mut messages = self.messages();
        messages.count -= 1;
        messages.bytes -= bytes;
        if let Some(own) = messages.by_sender.get_mut(from) {
            *own -= bytes;
            if *own == 0 {
                messages.by_sender.remove(from);
            }
        }
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sender of a message and the bytes it takes; `None` for an event of the network itself.
fn message_of(event: &NetworkEvent) -> Option<(Option<&Name>, u64)> {
    let (from, bytes) = match event {
        NetworkEvent::Message { from, bytes } | NetworkEvent::Request { from, bytes, .. } => {
            (Some(from), bytes)
        }
        NetworkEvent::Greeting { bytes } => (None, bytes),
        _ => return None,
    };
    Some((from, bytes.len() as u64 + ENVELOPE))
}

#[cfg(test)]
mod tests {
    use umbel::replica::Incarnation;

    use super::*;

    const ROOM: u64 = 1 << 20;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn update(from: &str, bytes: usize) -> NetworkEvent {
        NetworkEvent::Message { from: name(from), bytes: vec![7; bytes] }
    }

    fn left(events: &NetworkEvents) -> usize {
        events.waiting().count()
    }

    #[test]
    fn a_flood_of_one_sender_leaves_room_for_others() {
        let (inbox, events) = Inbox::new(ROOM);
        (0..100).for_each(|_| inbox.put(update("flood", 100_000)));
        assert_eq!(inbox.dropped(), 95, "half of a mebibyte takes five");
        (0..3).for_each(|_| inbox.put(update("other", 80_000)));
        inbox.put(NetworkEvent::Greeting { bytes: vec![1; 1000] });
        assert_eq!(inbox.dropped(), 95);
        assert_eq!(left(&events), 9);
    }

    #[test]
    fn what_was_taken_makes_room_again() {
        let (inbox, events) = Inbox::new(ROOM);
        for _ in 0..1000 {
            inbox.put(update("a", 400_000));
            assert!(matches!(events.wait(Duration::ZERO), Ok(NetworkEvent::Message { .. })));
        }
        assert_eq!(inbox.dropped(), 0);
        let messages = inbox.backlog.messages();
        assert!(messages.bytes == 0 && messages.count == 0 && messages.by_sender.is_empty());
    }

    #[test]
    fn who_went_is_heard_of_in_a_full_inbox() {
        let (inbox, events) = Inbox::new(u64::MAX);
        (0..WAITING).for_each(|_| inbox.put(update("flood", 1)));
        assert_eq!(inbox.dropped() as usize, WAITING - MESSAGES);
        inbox.put(NetworkEvent::Gone { host: name("b"), incarnation: Incarnation(1) });
        assert_eq!(inbox.dropped() as usize, WAITING - MESSAGES);
        assert!(events.waiting().any(|event| matches!(event, NetworkEvent::Gone { .. })));
        assert_eq!(left(&events), 0);
    }

    #[test]
    fn a_message_that_never_fits_is_dropped_and_charged_to_nobody() {
        let (inbox, events) = Inbox::new(ROOM);
        inbox.put(update("a", ROOM as usize));
        assert_eq!((inbox.dropped(), left(&events)), (1, 0));
        inbox.put(update("a", 1));
        assert_eq!((inbox.dropped(), left(&events)), (1, 1));
    }
}
