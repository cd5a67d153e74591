//! Which other hosts there are: heard of, suspected, gone.
//!
//! A host that disappears may come back, so that its replicas answer for a grace time; one
//! that says that it leaves is missing at once and forgotten by the next `handle_timeout`, and what it
//! said before in that life is not listened to any more, should it arrive late. One that says that it restarts is away: its replicas
//! answer for as long as it asked for, within a limit of this host's.
//!
//! A host that was stopped itself has heard nobody: that time does not count as their silence.

use std::time::Duration;

use super::Engine;
use super::peer_sets::PeerSets;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::coverage::Gap;
use crate::protocol::Event;
use crate::replica::message::Leave;
use crate::replica::{Incarnation, Name};

/// Another host.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) incarnation: Incarnation,
    heard: Duration,
    /// When it disappeared.
    pub(super) gone_since: Option<Duration>,
    /// Whether the driver sees this life of it.
    pub(super) is_seen: bool,
    /// Whether it said that it leaves. Its replicas go with the next timeout, before which the driver
    /// can note that it is missing: no answer without them is called complete.
    has_left: bool,
    /// Until when its replicas answer although it is not heard: it said that it restarts.
    away_until: Option<Duration>,
    pub(super) sets: PeerSets,
}

/// What is known of another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its life.
    pub incarnation: Incarnation,
    /// Whether it disappeared, and the grace time is not over yet.
    pub is_suspected: bool,
    /// Whether it disappeared after it said that it restarts.
    pub is_away: bool,
    /// Since it was last heard of.
    pub silence: Duration,
    /// What is missing of its sets.
    pub gap: Option<Gap>,
}

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// A host was heard of that has not left, or has come back.
    pub(super) fn heard(&mut self, now: Duration, host: &Name) {
        self.left.remove(host);
        self.lost.remove(host);
        let known = self.peers.get_mut(host);
        match known {
            Some(peer) => {
                peer.heard = now;
                if peer.gone_since.take().is_some() {
                    self.event(Event::Up(host.clone()));
                }
            }
            None => {
                let peer = Peer {
                    incarnation: Incarnation(0),
                    heard: now,
                    gone_since: None,
                    is_seen: false,
                    has_left: false,
                    away_until: None,
                    sets: PeerSets::default(),
                };
                self.peers.insert(host.clone(), peer);
                self.announce_soon(now);
                self.event(Event::Up(host.clone()));
            }
        }
    }

    /// Notes that this host runs. If it did not for long, as its own announcements show, nobody
    /// else is to blame for what was not heard.
    pub(super) fn wake(&mut self, now: Duration) {
        let stopped = now.saturating_sub(std::mem::replace(&mut self.awake, now));
        if stopped > self.config.announce_every * 2 {
            for peer in self.peers.values_mut() {
                peer.heard += stopped;
                peer.gone_since = peer.gone_since.map(|since| since + stopped);
                peer.away_until = peer.away_until.map(|until| until + stopped);
            }
        }
    }

    /// A newcomer need not wait for the next announcement. Where many come at once, one
    /// announcement serves several of them, so that a cluster that starts sends each host a few.
    fn announce_soon(&mut self, now: Duration) {
        let every = self.config.announce_every;
        let earliest = self.last_announce.map_or(now, |last| last + every / 4);
        self.next_announce = self.next_announce.min(earliest.max(now));
    }

    /// The other hosts that are heard of.
    pub fn peers(&self, now: Duration) -> impl Iterator<Item = (&Name, PeerInfo)> {
        self.peers.iter().map(move |(name, peer)| {
            let info = PeerInfo {
                incarnation: peer.incarnation,
                is_suspected: peer.gone_since.is_some(),
                is_away: peer.gone_since.is_some()
                    && peer.away_until.is_some_and(|until| now < until),
                silence: now.saturating_sub(peer.heard),
                gap: self.gap_of(now, name, peer),
            };
            (name, info)
        })
    }

    /// A host lives in this life of it, or a later one.
    pub(super) fn live_anew(&mut self, host: &Name, incarnation: Incarnation) {
        if let Some(peer) = self.peers.get_mut(host).filter(|peer| peer.incarnation < incarnation) {
            peer.incarnation = incarnation;
            peer.is_seen = false;
            peer.has_left = false;
            peer.away_until = None;
            peer.sets.restart();
        }
    }

    /// Whether a host has not been heard for too long, whatever it said about its absence.
    pub(super) fn is_silent(&self, now: Duration, peer: &Peer) -> bool {
        now >= peer.heard + self.config.silence
    }

    /// When a host counts as gone for good, unless it is heard of.
    pub(super) fn expiry(&self, peer: &Peer) -> Duration {
        if peer.has_left {
            return Duration::ZERO;
        }
        let silent = peer.heard + self.config.silence;
        let gone = peer.gone_since.map_or(silent, |since| silent.min(since + self.config.grace));
        peer.away_until.map_or(gone, |until| gone.max(until))
    }

    pub(super) fn expire(&mut self, now: Duration) {
        let expired = self.peers.iter().filter(|(_, peer)| now >= self.expiry(peer));
        let expired: Vec<(Name, bool)> =
            expired.map(|(name, peer)| (name.clone(), peer.has_left)).collect();
        for (host, has_left) in expired {
            if !has_left {
                self.lose(now, &host);
            }
            self.forget(host);
        }
        self.left.retain(|_, (_, since)| now < *since + self.config.silence);
        self.lost.retain(|_, since| now < *since + self.config.forget);
    }

    /// A host disappeared without leaving. Whoever is beyond the limit takes the place of the one
    /// that was lost first.
    fn lose(&mut self, now: Duration, host: &Name) {
        if self.lost.len() >= self.config.max_peers {
            let first = self.lost.iter().min_by_key(|(_, since)| **since);
            if let Some(first) = first.map(|(first, _)| first.clone()) {
                self.lost.remove(&first);
            }
        }
        self.lost.insert(host.clone(), now);
    }

    /// Whether this is another life of a host than the one that the driver sees: only the driver
    /// can tell whether that one still replies, and says so by `handle_alive` or `handle_gone`.
    pub(super) fn is_rival(&self, host: &Name, life: Incarnation) -> bool {
        let peer = self.peers.get(host).filter(|peer| peer.is_seen && peer.gone_since.is_none());
        peer.is_some_and(|peer| peer.incarnation < life)
    }

    /// A host says that it leaves: its replicas answer no more from the next timeout on, which is at
    /// once, or for as long as it is to be away.
    pub(super) fn handle_leave(&mut self, now: Duration, leave: &Leave) {
        let (host, life) = (&leave.home, leave.incarnation);
        let absence = leave.absence.min(self.config.max_absence);
        let Some(peer) = self.peers.get_mut(host).filter(|peer| peer.incarnation <= life) else {
            return;
        };
        if absence.is_zero() {
            (peer.has_left, peer.is_seen, peer.gone_since) = (true, false, Some(now));
            self.left.insert(host.clone(), (life, now));
        } else {
            peer.away_until = Some(now + absence);
        }
    }

    /// Whether a host has left in this life of it, or in whichever one if that is not known.
    pub(super) fn has_left(&self, host: &Name, life: Option<Incarnation>) -> bool {
        let left = self.left.get(host);
        left.is_some_and(|(left, _)| life.is_none_or(|life| life <= *left))
    }

    pub(super) fn forget(&mut self, host: Name) {
        let peer = self.peers.remove(&host);
        let sets = peer.iter().flat_map(|peer| peer.sets.names());
        sets.for_each(|set| self.remove_receiver(set, &host));
        self.forget_refusals(&host);
        self.event(Event::Down(host));
    }
}
