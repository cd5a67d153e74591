//! A pass over the keys of a folder's set as they were at one moment. A thread of its own reads
//! them, so that the caller does not wait for the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use parking_lot::Mutex;

use super::journal::{Journal, Moment};

/// Keys per part.
const PART: usize = 1024;
/// Maximum number of parts that the thread reads ahead.
const AHEAD: usize = 8;

/// A pass over the keys of a set.
#[derive(Debug)]
pub(super) struct Pass {
    parts: Mutex<Receiver<Vec<Box<[u8]>>>>,
}

impl Pass {
    /// Begins to read the records that start with `prefix`, as they are now. The caller must ensure
    /// that none of them changes before this returns.
    pub(super) fn begin(journal: &Arc<Journal>, prefix: Vec<u8>) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(AHEAD);
        let (journal, moment) = (Arc::clone(journal), journal.moment(&prefix));
        let thread = std::thread::Builder::new().name("umbel-pass".into());
        thread.spawn(move || read(&journal, moment, &prefix, &sender))?;
        Ok(Self { parts: Mutex::new(receiver) })
    }

    /// Calls `show` with keys that were read meanwhile; returns whether there may be more.
    pub(super) fn part(&self, show: &mut dyn FnMut(&[u8])) -> bool {
        let part = self.parts.lock().try_recv();
        match part {
            Ok(keys) => keys.iter().for_each(|key| show(key)),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return false,
        }
        true
    }
}

/// Reads all keys. If the receiver is gone, the rest is skipped.
fn read(journal: &Journal, moment: Moment, prefix: &[u8], sender: &SyncSender<Vec<Box<[u8]>>>) {
    let Moment { snapshot, unwritten } = moment;
    let (mut part, mut is_wanted) = (Vec::with_capacity(PART), true);
    let mut put = |key: &[u8]| {
        part.push(Box::from(&key[prefix.len()..]));
        if part.len() == PART && is_wanted {
            is_wanted = sender.send(std::mem::take(&mut part)).is_ok();
        }
        part.truncate(PART);
    };
    let visited = snapshot.visit_prefix(prefix, |name, _| {
        if !unwritten.contains_key(name) {
            put(name);
        }
    });
    if let Err(error) = visited {
        journal.fail(&error.to_string());
    }
    let held = unwritten.iter().filter(|(_, is_there)| **is_there);
    held.for_each(|(name, _)| put(name));
    // The receiver may be gone.
    let _ = sender.send(part);
}
