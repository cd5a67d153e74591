//! Encodes updates of long filters in a thread that holds no lock.
//!
//! ```text
//! handle_timeout   lock of the engine, lock of the set: the next image counts (its epoch too)
//! encode           no lock: its bytes
//! handle_encoded   both locks again: the update is logged, listed and sent
//! ```
//!
//! Between the first and the last step the set publishes nothing else. The host already serves
//! pages of the new image, but changes only up to the previous epoch.
//!
//! Always true: an update is sent once, by the thread that finishes encoding it first. A host that
//! leaves to restart encodes the remaining updates itself.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::config::Work;
use super::local::{LocalState, Unsent};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::replica::Name;
use crate::replica::message::Update;
use crate::replica::publisher::{PreparedUpdate, Publication};

/// An update of an own set that must be encoded.
#[derive(Debug)]
pub struct Encoding {
    set: Name,
    prepared: Arc<PreparedUpdate>,
}

/// An update of an own set that has been encoded.
#[derive(Debug)]
pub struct EncodedUpdate {
    encoding: Encoding,
    publication: Publication,
}

impl Encoding {
    /// Encodes the update. Takes several passes over all bits of the filter.
    #[must_use]
    pub fn encode(self) -> EncodedUpdate {
        EncodedUpdate { publication: self.prepared.encode(), encoding: self }
    }
}

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// The next update to encode. Call [`Encoding::encode`] in a thread that holds no lock of the
    /// host, then pass the result to [`Self::handle_encoded`]. Only engines whose [`Work`] is
    /// deferred return any.
    pub fn poll_encoding(&mut self) -> Option<Encoding> {
        self.encodings.pop_front()
    }

    /// Sends an update that has been encoded, unless its set was deleted meanwhile.
    pub fn handle_encoded(&mut self, now: Duration, encoded: EncodedUpdate) {
        let EncodedUpdate { encoding: Encoding { set, prepared }, publication } = encoded;
        let Some(local) = self.local_set(&set).cloned() else { return };
        let update = local.with_state(|state| {
            let is_it = |unsent: &mut Unsent| Arc::ptr_eq(&unsent.prepared, &prepared);
            let unsent = state.unsent.take_if(is_it)?;
            Some(self.update_of(now, &set, state, unsent.base, &publication))
        });
        if let Some(update) = update {
            self.unsent.remove(&set);
            self.send_update(now, update);
        }
    }

    /// Encodes and sends all unsent updates, without waiting for other threads.
    pub(super) fn encode_all(&mut self, now: Duration) {
        self.unsent.clone().iter().for_each(|set| self.encode_at_once(now, set));
    }

    /// As [`Self::encode_all`], for one set.
    pub(super) fn encode_at_once(&mut self, now: Duration, set: &Name) {
        let Some(local) = self.local_set(set) else { return };
        let prepared = local.lock().unsent.as_ref().map(|unsent| Arc::clone(&unsent.prepared));
        if let Some(prepared) = prepared {
            self.encodings.retain(|encoding| encoding.set != *set);
            self.handle_encoded(now, Encoding { set: set.clone(), prepared }.encode());
        }
    }

    /// Starts the next epoch of an own set with this update. Encodes the update at once and returns
    /// the message, unless the filter is long and work is deferred: then the update is queued for
    /// another thread.
    pub(super) fn begin_update(
        &mut self,
        now: Duration,
        set: &Name,
        state: &mut LocalState<C>,
        prepared: PreparedUpdate,
    ) -> Option<Update> {
        let base = state.epoch;
        state.epoch = base.next();
        if self.config.work == Work::AtOnce || prepared.bits() <= self.config.max_bits_at_once {
            return Some(self.update_of(now, set, state, base, &prepared.encode()));
        }
        let prepared = Arc::new(prepared);
        state.unsent = Some(Unsent { base, prepared: Arc::clone(&prepared) });
        self.unsent.insert(set.clone());
        self.encodings.push_back(Encoding { set: set.clone(), prepared });
        None
    }
}
