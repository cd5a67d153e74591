//! What this host lacks of other hosts' sets: the mesh's part of [`crate::coverage`].
//!
//! A host is known if three things are true: it was heard from within the silence limit, by a
//! message or as reported by the driver, and has not disappeared; its list of sets in this
//! incarnation has arrived; every replica is at the last announced epoch, or has been behind it for
//! less than [`MeshConfig::max_lag`]. A host that disappeared without leaving is expected until it
//! is seen again, leaves, is excluded, or [`MeshConfig::forget`] has passed.
//!
//! The time is proportional to the number of hosts plus the number of incomplete sets.
//!
//! [`MeshConfig::max_lag`]: super::MeshConfig::max_lag
//! [`MeshConfig::forget`]: super::MeshConfig::forget

use std::time::Duration;

use super::peers::Peer;
use super::{Engine, Reason};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::coverage::Gap;
use crate::replica::Name;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// The hosts that should be known, each with what is missing of it.
    pub(super) fn gaps(&self, now: Duration) -> Vec<(Name, Option<Gap>)> {
        let peers = self.peers.iter();
        let heard = peers.map(|(host, peer)| (host.clone(), self.gap_of(now, host, peer)));
        let lost = self.lost.keys().map(|host| (host.clone(), Some(Gap::Unreachable)));
        let refused = self.refusals.iter().filter(|((host, set), _)| {
            set.is_none() && !self.peers.contains_key(host) && *host != self.config.name
        });
        let refused = refused.map(|((host, _), refusal)| (host.clone(), Some(gap(refusal.reason))));
        heard.chain(lost).chain(refused).collect()
    }

    pub(super) fn gap_of(&self, now: Duration, host: &Name, peer: &Peer) -> Option<Gap> {
        if peer.gone_since.is_some() || self.is_silent(now, peer) {
            return Some(Gap::Unreachable);
        }
        self.refused_of(host, peer)
            .or_else(|| peer.sets.gap(now, self.config.max_lag))
            .or_else(|| self.late_of(now, host, peer))
    }

    /// Why sets of a host are not accepted; `None` if all are.
    fn refused_of(&self, host: &Name, peer: &Peer) -> Option<Gap> {
        let first = (host.clone(), None);
        let listed = self.refusals.range(first..).next().filter(|((other, _), _)| other == host);
        match listed {
            Some((_, refusal)) => Some(gap(refusal.reason)),
            // The list of refusals is bounded: this one may not be in it.
            None => peer.sets.is_refused().then(|| Gap::Refused(String::from("over budget"))),
        }
    }

    /// The replica that has been behind for longest, if that is too long.
    fn late_of(&self, now: Duration, host: &Name, peer: &Peer) -> Option<Gap> {
        let lag = |set: &Name| self.sets.get(set)?.receivers.get(host)?.lag();
        let unfinished = peer.sets.requests.unfinished();
        let oldest = unfinished.filter_map(lag).min_by_key(|(_, since)| *since);
        let (epochs, since) = oldest.map(|(epochs, since)| (epochs, now.saturating_sub(since)))?;
        (since >= self.config.max_lag).then_some(Gap::Behind { epochs, since })
    }
}

fn gap(reason: Reason) -> Gap {
    let why = match reason {
        Reason::Budget { .. } => "over budget",
        Reason::TooLong { .. } => "its filter is too long",
        Reason::Sets { .. } => "it has too many sets",
        Reason::Peers { .. } => "there are too many hosts",
        Reason::OwnSets { .. } => "own sets take all memory",
    };
    Gap::Refused(String::from(why))
}
