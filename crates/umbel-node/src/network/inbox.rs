//! The queue of events for the driver, bounded in number and in bytes, with a turn for each sender.
//!
//! Always true: queued messages take at most the bytes that the inbox was created for. One sender
//! may take at most half of what is free when its message arrives, in bytes and in number, so that
//! a host that floods this one does not silence the others. An event that finds no room is dropped
//! and counted, like any other lost message. Events without bytes (a host came or went) find room
//! even when messages do not.
//!
//! Senders take turns: an event waits for at most one event of each other sender and for those of
//! its own. Otherwise the announcements of honest hosts would wait behind thousands of messages of
//! a host that sends faster than this one can process, until they count as silent. Events of one
//! host, or about it, stay in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use umbel::replica::Name;

use super::NetworkEvent;

/// Maximum number of queued messages.
const MAX_MESSAGES: usize = 14_336;
/// Maximum number of queued events without bytes.
const MAX_OTHERS: usize = 2048;
/// Bytes that a message takes in addition to its content.
const ENVELOPE: u64 = 128;

/// Where a network puts its events. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Inbox {
    shared: Arc<Shared>,
}

/// The driver's end of an inbox. When it is dropped, so are all queued and later events.
#[derive(Debug)]
pub(crate) struct NetworkEvents {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    max_bytes: u64,
    dropped: AtomicU64,
    queue: Mutex<Queue>,
    /// Notified when an event is queued.
    arrived: Condvar,
}

/// Events by sender. What has no sender takes turns as one: greetings, which may come from another
/// cluster, and wake-ups.
#[derive(Debug, Default)]
struct Queue {
    is_closed: bool,
    /// Senders with queued events, each once; the first one is next.
    turns: VecDeque<Option<Name>>,
    by_sender: BTreeMap<Option<Name>, Waiting>,
    messages: Load,
    others: usize,
}

/// What is queued of one sender. Never without events.
#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<NetworkEvent>,
    messages: Load,
}

/// Queued messages: their number, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    count: usize,
    bytes: u64,
}

impl Inbox {
    /// An inbox for messages of at most `max_bytes` bytes together, and the end from which they are
    /// taken.
    pub(crate) fn new(max_bytes: u64) -> (Self, NetworkEvents) {
        let (dropped, queue, arrived) = (AtomicU64::new(0), Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { max_bytes, dropped, queue, arrived });
        (Self { shared: Arc::clone(&shared) }, NetworkEvents { shared })
    }

    /// Queues an event; if the host cannot keep up, the event is dropped and counted.
    pub fn put(&self, event: NetworkEvent) {
        if self.shared.queue().put(event, self.shared.max_bytes) {
            self.shared.arrived.notify_one();
        } else {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events that were dropped because there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl NetworkEvents {
    /// The next event, if one arrives within the timeout.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<NetworkEvent> {
        let is_empty = |queue: &mut Queue| queue.turns.is_empty();
        let waited = self.shared.arrived.wait_timeout_while(self.shared.queue(), timeout, is_empty);
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }

    /// The next event, if one is queued already.
    pub(crate) fn next_waiting(&self) -> Option<NetworkEvent> {
        self.shared.queue().take()
    }
}

impl Drop for NetworkEvents {
    fn drop(&mut self) {
        let closed = Queue { is_closed: true, ..Queue::default() };
        // Dropped without the lock: replies to requests may run code of the network.
        let _queued = std::mem::replace(&mut *self.shared.queue(), closed);
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Queues an event if there is room; returns whether there was.
    fn put(&mut self, event: NetworkEvent, max_bytes: u64) -> bool {
        let (sender, bytes) = (sender_of(&event).cloned(), bytes_of(&event));
        let has_room = match bytes {
            Some(bytes) => self.has_room(&sender, bytes, max_bytes),
            None => self.others < MAX_OTHERS,
        };
        if self.is_closed || !has_room {
            return false;
        }
        let waiting = self.by_sender.entry(sender.clone()).or_default();
        if waiting.events.is_empty() {
            self.turns.push_back(sender);
        }
        waiting.events.push_back(event);
        if let Some(bytes) = bytes {
            self.messages.add(bytes);
            waiting.messages.add(bytes);
        } else {
            self.others += 1;
        }
        true
    }

    /// Whether a message of this sender may be queued. Of what is not taken by others, the sender
    /// may use half.
    fn has_room(&self, sender: &Option<Name>, bytes: u64, max_bytes: u64) -> bool {
        let own = self.by_sender.get(sender).map(|waiting| waiting.messages).unwrap_or_default();
        let free_bytes = max_bytes - self.messages.bytes;
        let free_count = MAX_MESSAGES - self.messages.count;
        own.bytes + bytes <= (free_bytes + own.bytes) / 2
            && own.count < (free_count + own.count) / 2
    }

    /// Takes the next event of the sender whose turn it is.
    fn take(&mut self) -> Option<NetworkEvent> {
        let sender = self.turns.pop_front()?;
        let waiting = self.by_sender.get_mut(&sender)?;
        let event = waiting.events.pop_front()?;
        if let Some(bytes) = bytes_of(&event) {
            self.messages.remove(bytes);
            waiting.messages.remove(bytes);
        } else {
            self.others -= 1;
        }
        if waiting.events.is_empty() {
            self.by_sender.remove(&sender);
        } else {
            self.turns.push_back(sender);
        }
        Some(event)
    }
}

impl Load {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: u64) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

/// The host that an event comes from, or that it is about.
fn sender_of(event: &NetworkEvent) -> Option<&Name> {
    match event {
        NetworkEvent::Message { from: host, .. }
        | NetworkEvent::Request { from: host, .. }
        | NetworkEvent::Hosts { from: host, .. }
        | NetworkEvent::Alive { host, .. }
        | NetworkEvent::Gone { host, .. }
        | NetworkEvent::Excluded { host }
        | NetworkEvent::Unexpected { host }
        | NetworkEvent::Tested { host, .. }
        | NetworkEvent::LinkReopened { host } => Some(host),
        NetworkEvent::Greeting { .. } | NetworkEvent::Woken => None,
    }
}

/// The bytes that a message takes; `None` for an event of the network itself.
fn bytes_of(event: &NetworkEvent) -> Option<u64> {
    match event {
        NetworkEvent::Message { bytes, .. }
        | NetworkEvent::Request { bytes, .. }
        | NetworkEvent::Greeting { bytes } => Some(bytes.len() as u64 + ENVELOPE),
        _ => None,
    }
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

    fn waiting(events: &NetworkEvents) -> impl Iterator<Item = NetworkEvent> {
        std::iter::from_fn(|| events.next_waiting())
    }

    fn left(events: &NetworkEvents) -> usize {
        waiting(events).count()
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
    fn small_messages_of_one_sender_leave_room_for_others() {
        let (inbox, events) = Inbox::new(u64::MAX);
        (0..2 * MAX_MESSAGES).for_each(|_| inbox.put(update("flood", 1)));
        let dropped = inbox.dropped();
        (0..1000).for_each(|_| inbox.put(update("other", 1)));
        assert_eq!(inbox.dropped(), dropped);
        assert_eq!(left(&events), MAX_MESSAGES / 2 + 1000);
    }

    /// Before, the other host's message waited until all those of the flood were processed.
    #[test]
    fn senders_take_turns() {
        let (inbox, events) = Inbox::new(ROOM);
        (0..500).for_each(|_| inbox.put(update("flood", 100)));
        inbox.put(update("other", 1));
        inbox.put(NetworkEvent::Greeting { bytes: vec![1; 1000] });
        inbox.put(NetworkEvent::Gone { host: name("other"), incarnation: Incarnation(1) });
        let order = waiting(&events).take(6).map(|event| match event {
            NetworkEvent::Message { from, .. } => from.as_str().to_owned(),
            NetworkEvent::Greeting { .. } => "greeting".to_owned(),
            NetworkEvent::Gone { host, .. } => format!("{host} is gone"),
            _ => unreachable!("nothing else was queued"),
        });
        let order: Vec<String> = order.collect();
        assert_eq!(order, ["flood", "other", "greeting", "flood", "other is gone", "flood"]);
    }

    #[test]
    fn a_request_that_nobody_will_take_is_dropped_at_once() {
        let (inbox, events) = Inbox::new(ROOM);
        let (sender, answer) = std::sync::mpsc::channel::<Vec<u8>>();
        let request = |sender: std::sync::mpsc::Sender<Vec<u8>>| NetworkEvent::Request {
            from: name("a"),
            bytes: Vec::new(),
            reply: crate::network::Reply::new(move |bytes| drop(sender.send(bytes))),
        };
        inbox.put(request(sender.clone()));
        drop(events);
        inbox.put(request(sender));
        assert_eq!(answer.recv(), Err(std::sync::mpsc::RecvError));
    }

    #[test]
    fn what_was_taken_makes_room_again() {
        let (inbox, events) = Inbox::new(ROOM);
        for _ in 0..1000 {
            inbox.put(update("a", 400_000));
            assert!(matches!(events.wait(Duration::ZERO), Some(NetworkEvent::Message { .. })));
        }
        assert_eq!(inbox.dropped(), 0);
        let queue = inbox.shared.queue();
        assert_eq!((queue.messages, queue.others), (Load::default(), 0));
        assert!(queue.by_sender.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn who_went_is_heard_of_in_a_full_inbox() {
        let (inbox, events) = Inbox::new(1000);
        (0..100).for_each(|_| inbox.put(update("flood", 200)));
        assert_eq!(inbox.dropped(), 99);
        inbox.put(NetworkEvent::Gone { host: name("b"), incarnation: Incarnation(1) });
        assert_eq!(inbox.dropped(), 99);
        assert!(waiting(&events).any(|event| matches!(event, NetworkEvent::Gone { .. })));
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
