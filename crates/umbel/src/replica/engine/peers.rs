//! Which other hosts there are: heard of, suspected, gone.

use std::time::Duration;

use super::Engine;
use crate::catalogue::Catalogue;
use crate::replica::event::Event;
use crate::replica::{Incarnation, Name};

/// Another host.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) incarnation: Incarnation,
    heard: Duration,
    /// When it disappeared.
    pub(super) gone_since: Option<Duration>,
}

impl<C: Catalogue> Engine<C> {
    pub(super) fn heard(&mut self, now: Duration, host: &Name) {
        let known = self.peers.get_mut(host);
        match known {
            Some(peer) => {
                peer.heard = now;
                if peer.gone_since.take().is_some() {
                    self.event(Event::Up(host.clone()));
                }
            }
            None => {
                let peer = Peer { incarnation: Incarnation(0), heard: now, gone_since: None };
                self.peers.insert(host.clone(), peer);
                self.event(Event::Up(host.clone()));
            }
        }
    }

    /// When a host counts as gone for good, unless it is heard of.
    pub(super) fn expiry(&self, peer: &Peer) -> Duration {
        let silent = peer.heard + self.config.silence;
        peer.gone_since.map_or(silent, |since| silent.min(since + self.config.grace))
    }

    pub(super) fn expire(&mut self, now: Duration) {
        let expired = self.peers.iter().filter(|(_, peer)| now >= self.expiry(peer));
        let expired: Vec<Name> = expired.map(|(name, _)| name.clone()).collect();
        for host in expired {
            self.peers.remove(&host);
            for set in self.sets.values_mut() {
                if let Some(mut receiver) = set.receivers.remove(&host) {
                    receiver.expire(&mut set.bank);
                }
                set.owners.retain(|_, owner| *owner != host);
            }
            self.event(Event::Down(host));
        }
        self.sets.retain(|_, set| set.own.is_some() || !set.receivers.is_empty());
    }
}
