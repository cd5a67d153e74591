//! What a host's sets are kept and told by: the replica protocol where everybody knows
//! everybody, or the routers of an overlay.
//!
//! What both can do has one name here, so that adding a key or publishing a set reads the same
//! wherever a host lives; what one can do alone is asked of [`Protocol::mesh`] or
//! [`Protocol::overlay`].

use std::time::Duration;

use umbel::mesh::Engine;
use umbel::params::ParamError;
use umbel::replica::{self, Counters, Home, Incarnation, Name, Policy, SetPlan};
use umbel::route;

use crate::catalogue::HostCatalogue;
use crate::huge_rows::HugeRows;
use crate::overlay::Overlay;

/// What a host's sets are kept and told by.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// Everybody knows everybody.
    Mesh(Box<Engine<HostCatalogue, HugeRows>>),
    /// Hosts know their links.
    Overlay(Box<Overlay>),
}

/// A message that is to be sent.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Mesh(umbel::mesh::Transmit),
    Overlay(route::Transmit),
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    Mesh(replica::Event),
    /// To this set.
    Overlay(Name, route::Event),
}

impl Protocol {
    pub(crate) fn mesh(&self) -> Option<&Engine<HostCatalogue, HugeRows>> {
        match self {
            Self::Mesh(engine) => Some(engine),
            Self::Overlay(_) => None,
        }
    }

    pub(crate) fn mesh_mut(&mut self) -> Option<&mut Engine<HostCatalogue, HugeRows>> {
        match self {
            Self::Mesh(engine) => Some(engine),
            Self::Overlay(_) => None,
        }
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        match self {
            Self::Mesh(_) => None,
            Self::Overlay(overlay) => Some(overlay),
        }
    }

    pub(crate) fn overlay_mut(&mut self) -> Option<&mut Overlay> {
        match self {
            Self::Mesh(_) => None,
            Self::Overlay(overlay) => Some(overlay),
        }
    }

    // ---- own sets

    /// Owns a set from now on, with the keys that its catalogue holds. An overlay takes of the
    /// plan the policy alone: shapes are those that all hosts agreed on.
    pub(crate) fn create(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: HostCatalogue,
    ) -> Result<(), ParamError> {
        match self {
            Self::Mesh(engine) => engine.create(now, set, plan, catalogue),
            Self::Overlay(overlay) => overlay.create(now, set, plan, catalogue),
        }
    }

    /// Another plan for an own set; whether there is one that can have a plan of its own.
    pub(crate) fn replan(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
    ) -> Result<bool, ParamError> {
        self.mesh_mut().map_or(Ok(false), |engine| engine.replan(now, set, plan))
    }

    /// Owns a set no longer; whether it did.
    pub(crate) fn delete(&mut self, set: &Name) -> bool {
        match self {
            Self::Mesh(engine) => engine.delete(set).is_some(),
            Self::Overlay(overlay) => overlay.delete(set),
        }
    }

    /// Adds keys; `told` hears of each whether it is new. Whether this host owns the set.
    pub(crate) fn add_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[K],
        told: impl FnMut(bool),
    ) -> bool {
        match self {
            Self::Mesh(engine) => engine.add_many(now, set, keys, told),
            Self::Overlay(overlay) => {
                overlay.change(set, |router| router.add_many(now, keys, told)).is_some()
            }
        }
    }

    /// Removes keys; `told` hears of each whether it was held. Whether this host owns the set.
    pub(crate) fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[K],
        told: impl FnMut(bool),
    ) -> bool {
        match self {
            Self::Mesh(engine) => engine.remove_many(now, set, keys, told),
            Self::Overlay(overlay) => {
                overlay.change(set, |router| router.remove_many(now, keys, told)).is_some()
            }
        }
    }

    /// Publishes everything of an own set now; whether there is one.
    pub(crate) fn publish(&mut self, now: Duration, set: &Name) -> bool {
        match self {
            Self::Mesh(engine) => engine.publish(now, set),
            Self::Overlay(overlay) => overlay.change(set, |router| router.publish(now)).is_some(),
        }
    }

    /// Another policy for an own set; whether there is one.
    pub(crate) fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool {
        match self {
            Self::Mesh(engine) => engine.set_policy(now, set, policy),
            Self::Overlay(overlay) => overlay.set_policy(now, set, policy),
        }
    }

    /// An own set.
    pub(crate) fn home(&self, set: &Name) -> Option<&Home<HostCatalogue>> {
        match self {
            Self::Mesh(engine) => engine.home(set),
            Self::Overlay(overlay) => overlay.home(set),
        }
    }

    /// What an own set is planned for, in force or not.
    pub(crate) fn plan(&self, set: &Name) -> Option<SetPlan> {
        match self {
            Self::Mesh(engine) => engine.home(set).map(|home| *home.plan()),
            Self::Overlay(overlay) => overlay.plan(set),
        }
    }

    /// The last update of an own set; 0 if there was none.
    pub(crate) fn epoch(&self, set: &Name) -> u64 {
        match self {
            Self::Mesh(engine) => engine.published_checksum(set).map_or(0, |(_, epoch, _)| epoch.0),
            Self::Overlay(overlay) => overlay.epoch(set),
        }
    }

    /// What happened so far, in numbers. An overlay's filters are its updates.
    pub(crate) fn counters(&self) -> Counters {
        match self {
            Self::Mesh(engine) => *engine.counters(),
            Self::Overlay(overlay) => {
                let counted = overlay.counters();
                let mut counters = Counters::default();
                counters.messages = counted.messages;
                counters.refused = counted.refused;
                counters.gaps = counted.gaps;
                counters.updates_sent = counted.adverts_sent;
                counters.update_bytes_sent = counted.advert_bytes_sent;
                counters.dropped = counted.dropped;
                counters
            }
        }
    }

    /// The sets that are known of, own and others'.
    pub(crate) fn sets(&self) -> Vec<&Name> {
        match self {
            Self::Mesh(engine) => engine.sets().collect(),
            Self::Overlay(overlay) => overlay.sets().collect(),
        }
    }

    /// Hosts of which all is known that should be, and hosts that should be there; this one
    /// counts as both.
    pub(crate) fn known_hosts(&self, now: Duration) -> (u64, u64) {
        let engine = match self {
            Self::Mesh(engine) => engine,
            Self::Overlay(overlay) => return overlay.known_hosts(),
        };
        let (mut known, mut expected) = (1, 1);
        for (_, peer) in engine.peers(now) {
            expected += 1;
            known += u64::from(peer.is_known);
        }
        (known, expected)
    }

    /// The latest life of a host that was heard of.
    pub(crate) fn life_of(&self, now: Duration, host: &Name) -> Option<Incarnation> {
        match self {
            Self::Mesh(engine) => {
                let mut peers = engine.peers(now);
                peers.find(|(name, _)| *name == host).map(|(_, peer)| peer.incarnation)
            }
            Self::Overlay(overlay) => overlay.life_of(host),
        }
    }

    // ---- what happened

    pub(crate) fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        match self {
            Self::Mesh(engine) => engine.handle_message(now, from, bytes),
            Self::Overlay(overlay) => overlay.handle_message(now, from, bytes),
        }
    }

    pub(crate) fn handle_alive(&mut self, now: Duration, host: &Name, life: Incarnation) {
        match self {
            Self::Mesh(engine) => engine.handle_alive(now, host, life),
            Self::Overlay(overlay) => overlay.handle_alive(now, host, life),
        }
    }

    /// A life of a host is over; a later one of it may be there.
    pub(crate) fn handle_gone(&mut self, now: Duration, host: &Name, life: Incarnation) {
        match self {
            Self::Mesh(engine) => {
                let peer = engine.peers(now).find(|(name, _)| *name == host);
                if peer.is_some_and(|(_, peer)| peer.incarnation <= life) {
                    engine.handle_gone(now, host);
                }
            }
            Self::Overlay(overlay) => overlay.handle_gone(now, host, life),
        }
    }

    /// A host is let in no more.
    pub(crate) fn handle_excluded(&mut self, now: Duration, host: &Name) {
        match self {
            Self::Mesh(engine) => engine.handle_excluded(now, host),
            Self::Overlay(overlay) => overlay.handle_gone(now, host, Incarnation(u64::MAX)),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        match self {
            Self::Mesh(engine) => engine.handle_timeout(now),
            Self::Overlay(overlay) => overlay.handle_timeout(now),
        }
    }

    // ---- what to do

    pub(crate) fn poll_transmit(&mut self) -> Option<Outgoing> {
        match self {
            Self::Mesh(engine) => engine.poll_transmit().map(Outgoing::Mesh),
            Self::Overlay(overlay) => overlay.poll_transmit().map(Outgoing::Overlay),
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Mesh(engine) => engine.poll_event().map(Event::Mesh),
            Self::Overlay(overlay) => {
                overlay.poll_event().map(|(set, event)| Event::Overlay(set, event))
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Duration {
        match self {
            Self::Mesh(engine) => engine.poll_timeout(),
            Self::Overlay(overlay) => overlay.poll_timeout(),
        }
    }

    /// Whether a driver that sleeps until `then` should be woken for this set.
    pub(crate) fn is_urgent(&self, set: &Name, then: Duration) -> bool {
        match self {
            Self::Mesh(engine) => engine.is_urgent(set, then),
            Self::Overlay(overlay) => overlay.is_urgent(set, then),
        }
    }
}
