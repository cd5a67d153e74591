//! Which sets each host has: announcements, and lists for hosts that compute a different sum.

use std::time::Duration;

use super::peer_sets::NextStep;
use super::{Engine, SAMPLES};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::{Destination, Event, Protocol as _};
use crate::replica::message::{Announce, List, ListRequest, MAX_SETS, Members, Message};
use crate::replica::{Epoch, Incarnation, Name};

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// Announces what was published, in a message of constant length.
    pub(super) fn announce(&mut self) {
        let members = self.next_members();
        let announce = Announce {
            home: self.config.name.clone(),
            incarnation: self.config.incarnation,
            sequence: self.published.sequence(),
            sum: self.published.sum(),
            members,
        };
        self.transmit(Destination::All, Message::Announce(announce).encode());
    }

    /// Sampled members of one set; the next call samples the next set.
    fn next_members(&mut self) -> Option<Members> {
        let (sequence, set) = self.published.next(self.sampled_at)?;
        let set = set.clone();
        self.sampled_at = sequence;
        let mut random = self.random;
        let members = self.local_set(&set).map(|local| {
            let pick = |below| super::sending::next_random(&mut random) % below;
            let home = local.home();
            Members {
                set: set.clone(),
                items: home.catalogue().len(),
                digest_bits: home.kept().scheme().shape().digest_bits(),
                samples: home.sample(SAMPLES, pick),
            }
        });
        self.random = random;
        members
    }

    pub(super) fn handle_announce(&mut self, now: Duration, announce: &Announce) {
        let Announce { home, incarnation, sequence, sum, members } = announce;
        if !self.is_latest_life(home, *incarnation) {
            self.counters.old_lives += 1;
            return;
        }
        if let Some(members) = members
            && self.has_receiver(&members.set, home)
        {
            let set = &members.set;
            self.with_receiver(now, set, home, *incarnation, |receiver, replicas, _| {
                receiver.sampled_by(members, replicas);
                Ok(())
            });
        }
        let step = self.peers.get_mut(home).map(|peer| peer.sets.announced(now, *sequence, *sum));
        self.follow_list(home, step);
    }

    pub(super) fn handle_list(&mut self, now: Duration, list: &List) {
        let List { home, incarnation, after, sets, .. } = list;
        let expects = self.peers.get(home).is_some_and(|peer| peer.sets.expects(*after));
        if !self.is_latest_life(home, *incarnation) || !expects {
            return;
        }
        for set in sets {
            if !self.accepts(home, &set.set, &set.scheme) {
                if let Some(peer) = self.peers.get_mut(home) {
                    peer.sets.refused();
                }
                continue;
            }
            self.with_receiver(now, &set.set, home, *incarnation, |receiver, _, counters| {
                receiver.listed(now, *incarnation, set, counters);
                Ok(())
            });
        }
        let step = self.peers.get_mut(home).map(|peer| peer.sets.listed(list));
        self.follow_list(home, step);
    }

    /// Requests the next part of a host's list. When the whole list has arrived, removes the sets
    /// that it does not name.
    pub(super) fn follow_list(&mut self, home: &Name, step: Option<NextStep>) {
        match step {
            None | Some(NextStep::Nothing) => {}
            Some(NextStep::Request(after)) => self.request_list(home, after),
            Some(NextStep::Keep { names, sequence }) => {
                let Some(peer) = self.peers.get(home) else { return };
                let unnamed = peer.sets.names().iter().filter(|set| !names.contains(*set));
                let gone: Vec<Name> =
                    unnamed.filter(|set| !self.is_newer(set, home, sequence)).cloned().collect();
                for set in gone {
                    self.remove_receiver(&set, home);
                    let (home, epoch) = (home.clone(), Epoch(0));
                    let since = Duration::MAX;
                    self.event(Event::Updated { set, home, epoch, since });
                }
                if let Some(peer) = self.peers.get_mut(home) {
                    peer.sets.settled();
                }
            }
        }
    }

    /// Whether a set was published after this publication, in the current incarnation of its home.
    fn is_newer(&self, set: &Name, home: &Name, sequence: u64) -> bool {
        let life = self.incarnation_of(home);
        let receiver = self.sets.get(set).and_then(|set| set.receivers.get(home));
        receiver.is_some_and(|receiver| {
            Some(receiver.incarnation()) == life && receiver.sequence > sequence
        })
    }

    fn request_list(&mut self, home: &Name, after: u64) {
        let Some(incarnation) = self.peers.get(home).map(|peer| peer.incarnation) else { return };
        let request = ListRequest { home: home.clone(), incarnation, after };
        self.counters.requests_sent += 1;
        self.transmit(Destination::Host(home.clone()), Message::ListRequest(request).encode());
    }

    pub(super) fn handle_list_request(&mut self, from: &Name, request: &ListRequest) {
        if request.home != self.config.name || request.incarnation != self.config.incarnation {
            self.counters.old_lives += 1;
            return;
        }
        let (sets, until) = self.published.after(request.after, MAX_SETS);
        let list = List {
            home: request.home.clone(),
            incarnation: request.incarnation,
            after: request.after,
            until,
            sequence: self.published.sequence().max(until),
            sum: self.published.sum(),
            sets,
        };
        self.transmit(Destination::Reply(from.clone()), Message::List(list).encode());
    }

    /// Whether a message is from the newest incarnation of a host. If it is from a newer one than
    /// was known, that one becomes the newest.
    fn is_latest_life(&mut self, host: &Name, incarnation: Incarnation) -> bool {
        self.live_anew(host, incarnation);
        self.peers.get(host).is_some_and(|peer| peer.incarnation == incarnation)
    }
}
