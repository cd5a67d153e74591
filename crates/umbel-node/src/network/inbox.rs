//! What happened and waits for the driver, bounded in number and in bytes.
//!
//! Always true: what waits takes at most the bytes that the inbox was made for, and one sender
//! takes at most half of what is free when it comes, so that somebody who floods a host does not
//! silence the others. What finds no room is dropped and counted, which is loss like any other.
//! What carries no bytes (who came, who went) finds room even when messages do not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use umbel::replica::Name;

use super::Happening;

/// Happenings that wait at most.
const WAITING: usize = 8192;
/// Of these, messages.
const MESSAGES: usize = 7168;
/// What a message takes beside its bytes.
const ENVELOPE: u64 = 128;

/// Where a network hands over what happens. Clones share it.
#[derive(Debug, Clone)]
pub struct Inbox {
    sender: SyncSender<Happening>,
    held: Arc<Held>,
}

/// The driver's end of an inbox.
#[derive(Debug)]
pub(crate) struct Happenings {
    receiver: Receiver<Happening>,
    held: Arc<Held>,
}

/// What waits.
#[derive(Debug)]
struct Held {
    bytes: u64,
    dropped: AtomicU64,
    messages: Mutex<Messages>,
}

/// Messages that wait, and how many bytes whose take. Greetings are nobody's: they may come from
/// another cluster.
#[derive(Debug, Default)]
struct Messages {
    count: usize,
    bytes: u64,
    by_sender: BTreeMap<Option<Name>, u64>,
}

impl Inbox {
    /// An inbox for messages of so many bytes in all, and the end from which they are taken.
    pub(crate) fn new(bytes: u64) -> (Self, Happenings) {
        let (sender, receiver) = sync_channel(WAITING);
        let (dropped, messages) = (AtomicU64::new(0), Mutex::default());
        let held = Arc::new(Held { bytes, dropped, messages });
        (Self { sender, held: Arc::clone(&held) }, Happenings { receiver, held })
    }

    /// Hands over; when the host cannot keep up, it is loss like any other, and counted.
    pub fn put(&self, happening: Happening) {
        let message = message_of(&happening).map(|(from, bytes)| (from.cloned(), bytes));
        let has_room = message.as_ref().is_none_or(|(from, bytes)| self.held.take(from, *bytes));
        if has_room && self.sender.try_send(happening).is_ok() {
            return;
        }
        if let Some((from, bytes)) = message.filter(|_| has_room) {
            self.held.give_back(&from, bytes);
        }
        self.held.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Happenings that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.held.dropped.load(Ordering::Relaxed)
    }
}

impl Happenings {
    /// The next one, if one comes in time.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Happening, RecvTimeoutError> {
        self.receiver.recv_timeout(timeout).inspect(|happening| self.taken(happening))
    }

    /// Those that are there already.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Happening> {
        self.receiver.try_iter().inspect(|happening| self.taken(happening))
    }

    fn taken(&self, happening: &Happening) {
        if let Some((from, bytes)) = message_of(happening) {
            self.held.give_back(&from.cloned(), bytes);
        }
    }
}

impl Held {
    /// Takes room for a message; whether there is some.
    fn take(&self, from: &Option<Name>, bytes: u64) -> bool {
        let mut messages = self.messages();
        let own = messages.by_sender.get(from).copied().unwrap_or(0);
        // What is free if this sender had nothing here, shared between it and all others.
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

/// Who sent a message, and what it takes; `None` for what a network itself tells.
fn message_of(happening: &Happening) -> Option<(Option<&Name>, u64)> {
    let (from, bytes) = match happening {
        Happening::Said { from, bytes } | Happening::Asked { from, bytes, .. } => {
            (Some(from), bytes)
        }
        Happening::Greeted { bytes } => (None, bytes),
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

    fn said(from: &str, bytes: usize) -> Happening {
        Happening::Said { from: name(from), bytes: vec![7; bytes] }
    }

    fn left(happenings: &Happenings) -> usize {
        happenings.waiting().count()
    }

    #[test]
    fn a_flood_of_one_sender_leaves_room_for_others() {
        let (inbox, happenings) = Inbox::new(ROOM);
        (0..100).for_each(|_| inbox.put(said("flood", 100_000)));
        assert_eq!(inbox.dropped(), 95, "half of a mebibyte takes five");
        (0..3).for_each(|_| inbox.put(said("other", 80_000)));
        inbox.put(Happening::Greeted { bytes: vec![1; 1000] });
        assert_eq!(inbox.dropped(), 95);
        assert_eq!(left(&happenings), 9);
    }

    #[test]
    fn what_was_taken_makes_room_again() {
        let (inbox, happenings) = Inbox::new(ROOM);
        for _ in 0..1000 {
            inbox.put(said("a", 400_000));
            assert!(matches!(happenings.wait(Duration::ZERO), Ok(Happening::Said { .. })));
        }
        assert_eq!(inbox.dropped(), 0);
        let messages = inbox.held.messages();
        assert!(messages.bytes == 0 && messages.count == 0 && messages.by_sender.is_empty());
    }

    #[test]
    fn who_went_is_heard_of_in_a_full_inbox() {
        let (inbox, happenings) = Inbox::new(u64::MAX);
        (0..WAITING).for_each(|_| inbox.put(said("flood", 1)));
        assert_eq!(inbox.dropped() as usize, WAITING - MESSAGES);
        inbox.put(Happening::Gone { host: name("b"), incarnation: Incarnation(1) });
        assert_eq!(inbox.dropped() as usize, WAITING - MESSAGES);
        assert!(happenings.waiting().any(|happening| matches!(happening, Happening::Gone { .. })));
        assert_eq!(left(&happenings), 0);
    }

    #[test]
    fn a_message_that_never_fits_is_dropped_and_charged_to_nobody() {
        let (inbox, happenings) = Inbox::new(ROOM);
        inbox.put(said("a", ROOM as usize));
        assert_eq!((inbox.dropped(), left(&happenings)), (1, 0));
        inbox.put(said("a", 1));
        assert_eq!((inbox.dropped(), left(&happenings)), (1, 1));
    }
}
