//! Updates of long filters, whose bytes are made by a thread that holds no lock.
//!
//! ```text
//! handle_timeout   lock of the engine, lock of the set: the next image counts (its epoch too)
//! encode           no lock: its bytes
//! handle_encoded   both locks again: the update is logged, listed and sent
//! ```
//!
//! Between the first and the last step the set publishes nothing else; pages of the new image are
//! served already, and changes up to the epoch before it.
//!
//! Always true: an update is sent once, by whoever makes its bytes first. A host that leaves makes
//! those that are missing itself.

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

/// An update of an own set that is to be encoded.
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
    /// Makes the bytes of the update: takes as long as passes over all bits of the filter do.
    #[must_use]
    pub fn encode(self) -> EncodedUpdate {
        EncodedUpdate { publication: self.prepared.encode(), encoding: self }
    }
}

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// The next update that is to be encoded: by a thread that has no lock of the host, with
    /// [`Encoding::encode`]; the result goes to [`Self::handle_encoded`]. Only engines whose
    /// [`Work`] is deferred have any.
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

    /// Encodes and sends all updates that are not sent, without waiting for anybody.
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

    /// An update of an own set counts from now on. It is encoded at once, unless that takes long and
    /// somebody else can do it; the message is returned then.
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
