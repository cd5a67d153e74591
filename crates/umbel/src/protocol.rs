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

/// An own set that is looked at: it may be locked meanwhile.
pub type HomeRef<'a, C> = Box<dyn Deref<Target = Home<C>> + 'a>;

/// A protocol between hosts, whose own keys are in catalogues of type `C`.
pub trait Protocol<C> {
    // ---- own sets

    /// Owns a set from now on, with the keys that its catalogue holds.
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

    /// As [`Self::create`], for a set that stood on a rung before: if its keys still fit, it has
    /// the same bits as then, and hosts that have them need nothing.
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

    /// Another plan for an own set: its filter is built again, and the old one answers until
    /// the new one is published. Returns whether there is such a set and it can have a plan of
    /// its own.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    fn replan(&mut self, now: Duration, set: &Name, plan: SetPlan) -> Result<bool, ParamError>;

    /// Owns a set no longer, and tells the others; returns whether it did.
    fn delete(&mut self, set: &Name) -> bool;

    /// Adds keys to an own set, so that they make one update at most. `on_result` is called for
    /// each with whether it is new. Returns whether this host owns such a set.
    fn add_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool;

    /// Removes keys from an own set. `on_result` is called for each with whether it was held.
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

    /// Removes a key from an own set; `None` if this host owns no such set, else whether it was
    /// held.
    fn remove(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<bool> {
        let mut removed = None;
        self.remove_many(now, set, &[key], &mut |was_held| removed = Some(was_held));
        removed
    }

    /// Publishes everything of an own set now, removals included; whether there is such a set.
    fn publish(&mut self, now: Duration, set: &Name) -> bool;

    /// Another policy for an own set; whether there is such a set.
    fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool;

    /// An own set, to look at. Changes of it wait meanwhile.
    fn home(&self, set: &Name) -> Option<HomeRef<'_, C>>;

    /// What an own set is planned for, in force or not.
    fn plan(&self, set: &Name) -> Option<SetPlan>;

    /// The last update of an own set; 0 if there was none.
    fn epoch(&self, set: &Name) -> Epoch;

    // ---- what is known

    /// The sets that somebody is known to have, this host included, in the order of their names.
    fn sets(&self) -> Vec<&Name>;

    /// Whether somebody is known to have a set, this host included.
    fn has_set(&self, set: &Name) -> bool;

    /// The other hosts that were heard of and have not left, each with what is missing of its
    /// sets.
    fn heard_of(&self, now: Duration) -> Vec<(Name, Option<Gap>)>;

    /// The life of another host that the driver sees at present.
    fn live_of(&self, host: &Name) -> Option<Incarnation>;

    /// The latest life of another host that is known of.
    fn incarnation_of(&self, host: &Name) -> Option<Incarnation>;

    /// What happened so far, in numbers. An overlay's filters are its updates.
    fn counters(&self) -> Counters;

    /// Checks everything that must hold inside.
    ///
    /// # Panics
    /// If it does not: a bug in this crate.
    fn validate(&self);

    // ---- what happened

    /// A message arrived.
    fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]);

    /// The driver sees a host, in this life of it, which is the one to be believed from now on.
    fn handle_alive(&mut self, now: Duration, host: &Name, incarnation: Incarnation);

    /// The driver no longer sees this life of a host; a later one may be there.
    fn handle_gone(&mut self, now: Duration, host: &Name, incarnation: Incarnation);

    /// A host is not admitted any more. The driver delivers no message of it after this.
    fn handle_excluded(&mut self, now: Duration, host: &Name);

    /// The settings name this host no longer: if it has disappeared, it is not waited for.
    fn handle_unexpected(&mut self, host: &Name) {
        let _ = host;
    }

    /// A host of the cluster described itself: whether it can work with this one.
    fn handle_greeting(&mut self, now: Duration, host: &Name, fits: bool);

    /// This host did not run for a while. What it has of others counts as known only when they
    /// have announced what they have.
    fn handle_stopped(&mut self, now: Duration) {
        let _ = now;
    }

    /// Time has passed.
    fn handle_timeout(&mut self, now: Duration);

    /// Builds on a filter of an own set, if one is being built in steps, by about so many keys;
    /// whether there is more to do of it.
    fn build_part(&mut self, now: Duration, keys: usize) -> bool {
        let _ = (now, keys);
        false
    }

    /// This host is about to stop. If `absence` is zero, others need not wait for it; otherwise
    /// it will be back with the same keys, and they are asked to go on naming it for so long. Nothing
    /// is to be done after that but to send what [`Self::poll_transmit`] returns.
    fn leave(&mut self, now: Duration, absence: Duration);

    // ---- what to do

    /// The next message to send.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// The next thing that somebody may want to know.
    fn poll_event(&mut self) -> Option<Event>;

    /// When to call [`Self::handle_timeout`], if nothing happens before.
    fn poll_timeout(&self) -> Duration;

    /// Whether there is something to send or report, or an own set's next timeout comes before
    /// `then`: whether a driver that sleeps until then should be woken.
    fn is_urgent(&self, set: &Name, then: Duration) -> bool;
}

/// A message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// To whom.
    pub to: Destination,
    /// The message.
    pub bytes: Vec<u8>,
}

/// To whom a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Every other host.
    All,
    /// One host, which is asked for something.
    Host(Name),
    /// One host, in answer to what it asked for.
    Reply(Name),
    /// One neighbour, over its link.
    Neighbour(Name),
}

/// Something that happened in the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A host was heard of, for the first time or again.
    Up(Name),
    /// A host disappeared; its replicas answer until the grace time is over.
    Suspected(Name),
    /// A host is gone; its replicas answer no more.
    Down(Name),
    /// A replica has a newer image.
    Updated {
        /// The set.
        set: Name,
        /// Whose image it is.
        home: Name,
        /// Which update.
        epoch: Epoch,
        /// When the image before it arrived: what the new one claims beyond it was added since.
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
    /// The published copy of an own set is staler than its policy permits: an update is due,
    /// as soon as the shortest interval lets it go.
    Broken(Name),
    /// An own set stands on another rung than before.
    Reshaped(Name),
    /// A message was refused; nothing changed.
    Refused {
        /// Who sent it.
        from: Name,
        /// What is wrong with it.
        reason: String,
    },
    /// Another host lives under this host's name.
    NameTaken,
    /// In an overlay, a later life of a neighbour is spoken of than the one that is linked, or two
    /// lives of a home are spoken of.
    Namesake {
        /// The neighbour or home.
        host: Name,
        /// The later life.
        life: Incarnation,
    },
    /// A neighbour of an overlay is there.
    LinkUp(Name),
    /// A neighbour of an overlay is not there any more.
    LinkDown(Name),
    /// Another home of a set is within range.
    Reached {
        /// The set.
        set: Name,
        /// The home.
        home: Name,
    },
    /// A home of a set is not within range any more.
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
        /// Keys of a home, on average.
        items: u64,
        /// Filters of an entry.
        filters: u64,
    },
    /// A query that was asked here is done.
    Located {
        /// The set that it was asked of.
        set: Name,
        /// What became of it.
        located: Located,
    },
}

impl Event {
    /// Whether a set may have come or gone by it, or somebody's replica of one.
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
