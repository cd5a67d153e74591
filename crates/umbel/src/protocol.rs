//! The one interface of the protocols by which hosts inform each other: [`crate::mesh`], where
//! every host knows every other, and [`crate::overlay`], where hosts know their neighbours only.
//!
//! Sans-I/O: `handle_*` takes what happened and when, `poll_*` returns what to do; no clock, no
//! socket, no randomness inside. The host drives it with a network, the lab with a simulated one.
//!
//! Call order: any `handle_*` or change of a set, then `poll_transmit` and `poll_event` until
//! both return `None`, then sleep until `poll_timeout` or the next input, and `handle_timeout`.
//! Calls may be interleaved as they come. `now` is the time since any fixed moment and never
//! goes back.
//!
//! Always true: same inputs, same outputs, bit for bit; whatever a message holds, nothing worse
//! than a count comes of it.
//!
//! Not here: questions. A mesh answers them from replicas ([`crate::mesh::Engine::who`]), an
//! overlay by queries ([`crate::overlay::Overlay::search`]).

use std::ops::Deref;
use std::time::Duration;

use crate::coverage::Gap;
use crate::design::ladder::Standing;
use crate::params::ParamError;
use crate::replica::{Counters, Epoch, Home, Incarnation, Name, Policy, SetPlan};
use crate::route::Located;

/// Access to an own set for reading; it may be locked while this exists.
pub type HomeRef<'a, C> = Box<dyn Deref<Target = Home<C>> + 'a>;

/// A protocol between hosts, whose own keys are in catalogues of type `C`.
pub trait Protocol<C> {
    // ---- own sets

    /// Makes this host own a set, with the keys of its catalogue.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    fn create(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
    ) -> Result<(), ParamError> {
        self.restore(now, set, plan, catalogue, None)
    }

    /// As [`Self::create`], for a set that was on a rung before. If its keys still fit, it has the
    /// same bits as then, and hosts that have these bits need not fetch anything.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    fn restore(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
        before: Option<Standing>,
    ) -> Result<(), ParamError>;

    /// Changes the plan of an own set: its filter is rebuilt, and other hosts use the old one until
    /// the new one is published. Returns whether there is such a set and it can have its own plan.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    fn replan(&mut self, now: Duration, set: &Name, plan: SetPlan) -> Result<bool, ParamError>;

    /// Deletes an own set, and announces that to the other hosts. Returns whether there was such a
    /// set.
    fn delete(&mut self, set: &Name) -> bool;

    /// Adds keys to an own set, which are published in at most one update. Calls `on_result` for
    /// each key with whether it is new. Returns whether this host owns such a set.
    fn add_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool;

    /// Removes keys from an own set. Calls `on_result` for each key with whether it was in the set.
    /// Returns whether this host owns such a set.
    fn remove_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool;

    /// Adds a key to an own set; `None` if this host owns no such set, else whether it is new.
    fn add(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<bool> {
        let mut added = None;
        self.add_many(now, set, &[key], &mut |is_new| added = Some(is_new));
        added
    }

    /// Removes a key from an own set; `None` if this host owns no such set, else whether the key
    /// was in it.
    fn remove(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<bool> {
        let mut removed = None;
        self.remove_many(now, set, &[key], &mut |was_held| removed = Some(was_held));
        removed
    }

    /// Publishes everything of an own set now, removals included. Returns whether there is such a
    /// set.
    fn publish(&mut self, now: Duration, set: &Name) -> bool;

    /// Changes the policy of an own set. Returns whether there is such a set.
    fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool;

    /// An own set, for reading. Changes must wait until the guard is dropped.
    fn home(&self, set: &Name) -> Option<HomeRef<'_, C>>;

    /// The plan of an own set, whether it is in force or not.
    fn plan(&self, set: &Name) -> Option<SetPlan>;

    /// The last update of an own set; 0 if there was none.
    fn epoch(&self, set: &Name) -> Epoch;

    // ---- what is known

    /// The sets that any known host has, this one included, sorted by name.
    fn sets(&self) -> Vec<&Name>;

    /// Whether any known host has a set, this one included.
    fn has_set(&self, set: &Name) -> bool;

    /// The other hosts that are known and have not left, each with what is missing of its sets.
    fn heard_of(&self, now: Duration) -> Vec<(Name, Option<Gap>)>;

    /// The incarnation of another host that the driver currently reports as alive.
    fn live_of(&self, host: &Name) -> Option<Incarnation>;

    /// The incarnation of another host that the driver reported as alive and, a moment ago, as
    /// gone, if the host did not announce that. It may be alive and only out of reach, so its name
    /// is not free yet. Ends before the grace time does, so that whoever takes the name next finds
    /// the replicas in use. Overlays do not keep names so.
    fn vanished(&self, now: Duration, host: &Name) -> Option<Incarnation> {
        let _ = (now, host);
        None
    }

    /// The latest known incarnation of another host.
    fn incarnation_of(&self, host: &Name) -> Option<Incarnation>;

    /// The counters. An overlay counts its filters as updates.
    fn counters(&self) -> Counters;

    /// Checks all internal invariants.
    ///
    /// # Panics
    /// If it does not: a bug in this crate.
    fn validate(&self);

    // ---- what happened

    /// A message arrived.
    fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]);

    /// The driver sees that a host is alive in this incarnation, which is the valid one from now
    /// on.
    fn handle_alive(&mut self, now: Duration, host: &Name, incarnation: Incarnation);

    /// As [`Self::handle_alive`], for an incarnation that replied: it is no remnant, even if a later
    /// one was known and has left.
    fn handle_replied(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        self.handle_alive(now, host, incarnation);
    }

    /// The driver no longer sees this incarnation of a host; a later one may be alive.
    fn handle_gone(&mut self, now: Duration, host: &Name, incarnation: Incarnation);

    /// A host is no longer admitted. The driver must not deliver messages of it after this.
    fn handle_excluded(&mut self, now: Duration, host: &Name);

    /// The settings no longer name this host: if it has disappeared, it is no longer expected back.
    fn handle_unexpected(&mut self, host: &Name) {
        let _ = host;
    }

    /// A host of the cluster described itself; `fits` says whether it is compatible with this one.
    fn handle_greeting(&mut self, now: Duration, host: &Name, fits: bool);

    /// This host did not run for a while. Its replicas count as known only after the other hosts
    /// have announced again what they have.
    fn handle_stopped(&mut self, now: Duration) {
        let _ = now;
    }

    /// Time has passed.
    fn handle_timeout(&mut self, now: Duration);

    /// Continues to build a filter of an own set by about this many keys, if one is being built in
    /// steps. Returns whether there is more to do.
    fn build_part(&mut self, now: Duration, keys: usize) -> bool {
        let _ = (now, keys);
        false
    }

    /// This host is about to stop. If `absence` is zero, it is not expected back; otherwise it will
    /// be back with the same keys, and other hosts are asked to keep using its replicas for this
    /// long. After this call, only send what [`Self::poll_transmit`] returns.
    fn leave(&mut self, now: Duration, absence: Duration);

    // ---- what to do

    /// The next message to send.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// The next event.
    fn poll_event(&mut self) -> Option<Event>;

    /// When to call [`Self::handle_timeout`], if nothing happens before.
    fn poll_timeout(&self) -> Duration;

    /// Whether there is something to send or report, or an own set's next timeout comes before
    /// `then`: whether a driver that sleeps until then should be woken.
    fn is_urgent(&self, set: &Name, then: Duration) -> bool;
}

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Its destination.
    pub to: Destination,
    /// The message.
    pub bytes: Vec<u8>,
}

/// The destination of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Every other host.
    All,
    /// One host, with a request.
    Host(Name),
    /// One host, in reply to its request.
    Reply(Name),
    /// One neighbour, over its link.
    Neighbour(Name),
}

/// Something that happened in the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A host is alive, for the first time or again.
    Up(Name),
    /// A host disappeared; its replicas are used until the grace time is over.
    Suspected(Name),
    /// A host is gone; its replicas are no longer used.
    Down(Name),
    /// A replica has a newer image.
    Updated {
        /// The set.
        set: Name,
        /// The home of the image.
        home: Name,
        /// Which update.
        epoch: Epoch,
        /// When the previous image arrived: keys that only the new image claims were added since.
        since: Duration,
    },
    /// An own set was published.
    Published {
        /// The set.
        set: Name,
        /// Which update.
        epoch: Epoch,
        /// Length of the message.
        bytes: u64,
    },
    /// The published copy of an own set is staler than its policy permits: an update is due as soon
    /// as the shortest interval is over.
    Broken(Name),
    /// An own set moved to another rung.
    Reshaped(Name),
    /// A message was refused; nothing changed.
    Refused {
        /// Who sent it.
        from: Name,
        /// What is wrong with it.
        reason: String,
    },
    /// Another host uses this host's name.
    NameTaken,
    /// In an overlay, a later incarnation of a neighbour is advertised than the one that is linked,
    /// or two incarnations of a home are advertised.
    Namesake {
        /// The neighbour or home.
        host: Name,
        /// The later incarnation.
        life: Incarnation,
    },
    /// The link to a neighbour of an overlay is up.
    LinkUp(Name),
    /// The link to a neighbour of an overlay is down.
    LinkDown(Name),
    /// Another home of a set is within range.
    Reached {
        /// The set.
        set: Name,
        /// The home.
        home: Name,
    },
    /// A home of a set is no longer within range.
    Lost {
        /// The set.
        set: Name,
        /// The home.
        home: Name,
    },
    /// The overlay agreed on another plan for a set.
    Replanned {
        /// The set.
        set: Name,
        /// Average number of keys per home.
        items: u64,
        /// Number of filters per entry.
        filters: u64,
    },
    /// A query that was asked here is finished.
    Located {
        /// The set that it was asked of.
        set: Name,
        /// Its result.
        located: Located,
    },
}

impl Event {
    /// Whether this event may mean that a set, or a replica of one, was added or removed.
    #[must_use]
    pub const fn changes_sets(&self) -> bool {
        match self {
            Self::Up(_)
            | Self::Suspected(_)
            | Self::Down(_)
            | Self::Updated { .. }
            | Self::Reshaped(_)
            | Self::Refused { .. }
            | Self::NameTaken
            | Self::Reached { .. }
            | Self::Lost { .. } => true,
            Self::Published { .. }
            | Self::Broken(_)
            | Self::LinkUp(_)
            | Self::LinkDown(_)
            | Self::Replanned { .. }
            | Self::Namesake { .. }
            | Self::Located { .. } => false,
        }
    }
}
