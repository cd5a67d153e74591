//! The other hosts: known, suspected, gone.
//!
//! A host that disappears may come back, so its replicas are used for a grace time. A host that
//! announces that it leaves counts as missing at once, and the next `handle_timeout` removes it;
//! messages that it sent earlier in that incarnation are ignored if they arrive late. A host that
//! announces a restart is away: its replicas are used for as long as it requested, up to a limit of
//! this host.
//!
//! A host that was itself stopped has received nothing: that time does not count as silence of the
//! others.

use std::time::Duration;

use super::Engine;
use super::peer_sets::PeerSets;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::coverage::Gap;
use crate::protocol::Event;
use crate::replica::message::Leave;
use crate::replica::{Incarnation, Name};

/// A host that disappeared may be out of reach only for this long, or for three quarters of the
/// grace time if that is less.
const MAX_VANISHED: Duration = Duration::from_secs(3);

/// Another host.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) incarnation: Incarnation,
    heard: Duration,
    /// When it disappeared.
    pub(super) gone_since: Option<Duration>,
    /// Whether the driver reported this incarnation as alive until it disappeared.
    pub(super) was_seen: bool,
    /// Whether messages of a later incarnation were refused.
    has_rival: bool,
    /// Whether it announced that it leaves. Its replicas are removed at the next timeout. Until
    /// then the driver can record that the host is missing, so that no answer without these
    /// replicas is called complete.
    has_left: bool,
    /// It announced a restart: until this time its replicas are used although it sends nothing.
    away_until: Option<Duration>,
    pub(super) sets: PeerSets,
}

/// What is known about another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Whether it disappeared, and the grace time is not over yet.
    pub is_suspected: bool,
    /// Whether it disappeared after it announced a restart, and is still expected back.
    pub is_away: bool,
    /// Time since it last sent anything or was reported as alive.
    pub silence: Duration,
    /// What is missing of its sets.
    pub gap: Option<Gap>,
}

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// Something was heard from a host that has not left, or has come back.
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
                    was_seen: false,
                    has_rival: false,
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

    /// Records that this host runs. If it was stopped for long, measured by its announcement
    /// interval, that time does not count as silence of the other hosts.
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

    /// Moves the next announcement forward for a new host. If many hosts join at once, one
    /// announcement serves several of them, so that during the start of a cluster each host
    /// receives only a few.
    fn announce_soon(&mut self, now: Duration) {
        let every = self.config.announce_every;
        let earliest = self.last_announce.map_or(now, |last| last + every / 4);
        self.next_announce = self.next_announce.min(earliest.max(now));
    }

    /// The other hosts that are known.
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

    /// Hosts that disappeared without leaving, and how long ago they counted as gone.
    pub fn lost(&self, now: Duration) -> impl Iterator<Item = (&Name, Duration)> {
        self.lost.iter().map(move |(name, since)| (name, now.saturating_sub(*since)))
    }

    /// Records that a host is in this incarnation, unless a later one is known.
    pub(super) fn live_anew(&mut self, host: &Name, incarnation: Incarnation) {
        if let Some(peer) = self.peers.get_mut(host).filter(|peer| peer.incarnation < incarnation) {
            peer.incarnation = incarnation;
            peer.was_seen = false;
            peer.has_left = false;
            peer.away_until = None;
            peer.sets.restart();
        }
    }

    /// Whether a host has sent nothing for too long, even if it announced an absence.
    pub(super) fn is_silent(&self, now: Duration, peer: &Peer) -> bool {
        now >= peer.heard + self.config.silence
    }

    /// When a host is removed, unless it is heard from before.
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

    /// Records a host that disappeared without leaving. If the list is full, drops the host that
    /// was lost first.
    fn lose(&mut self, now: Duration, host: &Name) {
        if self.lost.len() >= self.config.max_peers {
            let first = self.lost.iter().min_by_key(|(_, since)| **since);
            if let Some(first) = first.map(|(first, _)| first.clone()) {
                self.lost.remove(&first);
            }
        }
        self.lost.insert(host.clone(), now);
    }

    /// The incarnation of a host that disappeared a moment ago without a word, and may be out of
    /// reach only.
    pub(super) fn vanished_life(&self, now: Duration, host: &Name) -> Option<Incarnation> {
        let peer = self.peers.get(host).filter(|peer| peer.was_seen)?;
        let until = (self.config.grace * 3 / 4).min(MAX_VANISHED);
        let is_recent = peer.gone_since.is_some_and(|since| now < since + until);
        let is_announced = peer.has_left || peer.away_until.is_some_and(|until| now < until);
        (is_recent && !is_announced).then_some(peer.incarnation)
    }

    /// Whether this is a later incarnation than the one that the driver reports as alive, or that
    /// vanished. Only the driver can tell whether the earlier one is still there, and reports the
    /// later one by `handle_alive` if it is not.
    pub(super) fn is_rival(&self, now: Duration, host: &Name, life: Incarnation) -> bool {
        let known = self.seen.get(host).copied().or_else(|| self.vanished_life(now, host));
        known.is_some_and(|known| known < life)
    }

    /// A message of a later incarnation of a host is refused. If the host vanished, it may be its
    /// restart, so that this is no mistake.
    pub(super) fn refuse_rival(&mut self, host: &Name, has_vanished: bool) {
        if let Some(peer) = self.peers.get_mut(host) {
            peer.has_rival = true;
        }
        if !has_vanished {
            let reason = "another host has its name, and replies";
            self.refuse(host, String::from(reason));
        }
    }

    /// Requests the list of a host whose first messages were refused, because its incarnation was
    /// not accepted yet.
    pub(super) fn make_up_for_refused(&mut self, host: &Name) {
        let peer = self.peers.get_mut(host).filter(|peer| peer.has_rival);
        if let Some(peer) = peer {
            peer.has_rival = false;
            let step = peer.sets.doubt();
            self.follow_list(host, Some(step));
        }
    }

    /// A host announced that it leaves. Without an absence its replicas are removed at the next
    /// timeout, which is due at once. With an absence they are used until it is over.
    pub(super) fn handle_leave(&mut self, now: Duration, leave: &Leave) {
        let (host, life) = (&leave.home, leave.incarnation);
        let absence = leave.absence.min(self.config.max_absence);
        let Some(peer) = self.peers.get_mut(host).filter(|peer| peer.incarnation <= life) else {
            return;
        };
        if absence.is_zero() {
            (peer.has_left, peer.gone_since) = (true, Some(now));
            if self.seen.get(host).is_some_and(|seen| *seen <= life) {
                self.seen.remove(host);
            }
            self.left.insert(host.clone(), (life, now));
        } else {
            peer.away_until = Some(now + absence);
        }
    }

    /// Whether a host has left in this incarnation or a later one; if `life` is `None`, in any
    /// incarnation.
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
