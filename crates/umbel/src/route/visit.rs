//! One query at one host: where it must still be forwarded, and whether it is finished.
//!
//! Links that claim the key are tried first: all at once, or one after the other, nearest first, if
//! entries know distances (attenuated). If they find nothing and steps of the walk are left, the
//! walk continues over one random link. Every forward gets one final reply. When all have arrived,
//! this host replies to the host that the query came from.
//!
//! Always true: a query leaves a host at most once over each link, and never over the one that it
//! came by. The number of steps of a walk only decreases. A visit ends once every forward was
//! answered or given up.
//!
//! Not here: which links claim a key (`table`); which hosts were visited already (the owner of the
//! visits: a host that knows a query replies at once, with nothing); time (`router`).

use std::collections::VecDeque;

use super::plan::EntryKind;
use super::table::{LinkId, RouteMatch};

/// How a query arrives at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The link that it came by; `None` at the host that asked.
    pub from: Option<LinkId>,
    /// Hops for which it may still follow filters.
    pub hops: u8,
    /// Hops for which it may follow filters from each host that the walk reaches.
    pub limit: u8,
    /// Steps that it may still walk.
    pub walk: u32,
}

/// A query to be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forward {
    /// The link to forward it over.
    pub link: LinkId,
    /// Hops for which it may follow filters from there.
    pub hops: u8,
    /// Steps that it may walk from there.
    pub walk: u32,
    /// Whether the link claims the key; otherwise it was chosen at random.
    pub claimed: bool,
}

/// One query at one host.
#[derive(Debug, Clone)]
pub struct Visit {
    asked: Asked,
    /// Links that claim the key, in turns: the turns are tried one after the other, all links of a
    /// turn at once.
    turns: VecDeque<Vec<LinkId>>,
    used: Vec<LinkId>,
    waiting: Vec<LinkId>,
    walk: u32,
    /// The link that continues the walk, and the number of steps given to it.
    walking: Option<(LinkId, u32)>,
    is_found: bool,
}

impl Visit {
    /// A query arrives where the object is not held, at a host whose table has these
    /// [matches](super::RouteTable::matches), nearest first.
    #[must_use]
    pub fn new(asked: Asked, matches: &[RouteMatch], kind: EntryKind) -> Self {
        let links = matches.iter().map(|found| found.link).filter(|link| Some(*link) != asked.from);
        let turns = match kind {
            _ if asked.hops == 0 => VecDeque::new(),
            EntryKind::Attenuated => links.map(|link| vec![link]).collect(),
            EntryKind::Cubf | EntryKind::Abf => {
                let all: Vec<LinkId> = links.collect();
                if all.is_empty() { VecDeque::new() } else { VecDeque::from([all]) }
            }
        };
        let (used, waiting) = (Vec::new(), Vec::new());
        let walk = asked.walk;
        Self { asked, turns, used, waiting, walk, walking: None, is_found: false }
    }

    /// What to forward now, if anything. To be called at the beginning and after every reply.
    /// `links` are the host's present links; `pick` returns a random number below its argument.
    pub fn forward(
        &mut self,
        links: &[LinkId],
        mut pick: impl FnMut(usize) -> usize,
    ) -> Vec<Forward> {
        if !self.waiting.is_empty() || self.is_found {
            return Vec::new();
        }
        while let Some(turn) = self.turns.pop_front() {
            let here = turn.into_iter().filter(|link| links.contains(link));
            let hops = self.asked.hops - 1;
            let turn: Vec<Forward> =
                here.map(|link| Forward { link, hops, walk: 0, claimed: true }).collect();
            if !turn.is_empty() {
                self.waiting = turn.iter().map(|forward| forward.link).collect();
                self.used.extend(&self.waiting);
                return turn;
            }
        }
        self.step(links, &mut pick).into_iter().collect()
    }

    /// One step of the walk, over a link that was not used yet.
    fn step(&mut self, links: &[LinkId], pick: &mut impl FnMut(usize) -> usize) -> Option<Forward> {
        let steps = self.walk.checked_sub(1)?;
        let unused = |link: &&LinkId| !self.used.contains(link) && Some(**link) != self.asked.from;
        let unused: Vec<LinkId> = links.iter().filter(unused).copied().collect();
        if unused.is_empty() {
            return None;
        }
        let link = unused[pick(unused.len()) % unused.len()];
        self.walk = 0;
        self.walking = Some((link, steps));
        self.used.push(link);
        self.waiting.push(link);
        Some(Forward { link, hops: self.asked.limit, walk: steps, claimed: false })
    }

    /// A host that the query was sent to has finished: `walk` steps are left, and `found` says
    /// whether a holder was found there. Returns whether this reply was awaited.
    pub fn answered(&mut self, link: LinkId, walk: u32, found: bool) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|other| *other != link);
        if self.waiting.len() == before {
            return false;
        }
        // Only the link that was given the walk can return steps, and no more than it was given.
        if let Some((_, given)) = self.walking.take_if(|(walking, _)| *walking == link) {
            self.walk = walk.min(given);
        }
        self.is_found |= found;
        true
    }

    /// Records that a holder was found. The query may go on to find more.
    pub const fn found(&mut self) {
        self.is_found = true;
    }

    /// Whether no reply is awaited. If [`Self::forward`] then returns nothing, the query is
    /// finished.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether some holder was found.
    #[must_use]
    pub const fn is_found(&self) -> bool {
        self.is_found
    }

    /// How the query arrived.
    #[must_use]
    pub const fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Links whose replies are awaited.
    #[must_use]
    pub fn waiting(&self) -> &[LinkId] {
        &self.waiting
    }

    /// Steps of the walk that are left.
    #[must_use]
    pub const fn walk(&self) -> u32 {
        self.walk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: [LinkId; 4] = [LinkId(0), LinkId(1), LinkId(2), LinkId(3)];

    fn asked(hops: u8, walk: u32) -> Asked {
        Asked { from: Some(LinkId(0)), hops, limit: 3, walk }
    }

    fn found(link: u32, hops: u8) -> RouteMatch {
        RouteMatch { link: LinkId(link), hops: Some(hops) }
    }

    fn links(forwards: &[Forward]) -> Vec<u32> {
        forwards.iter().map(|forward| forward.link.0).collect()
    }

    #[test]
    fn all_claiming_links_are_tried_at_once_but_for_the_one_it_came_by() {
        let matches = [found(2, 1), found(0, 2), found(3, 2)];
        let mut visit = Visit::new(asked(2, 0), &matches, EntryKind::Cubf);
        let sent = visit.forward(&LINKS, |_| 0);
        assert_eq!(links(&sent), [2, 3]);
        assert!(
            sent.iter()
                .all(|forward| (forward.hops, forward.walk, forward.claimed) == (1, 0, true))
        );
        assert!(visit.forward(&LINKS, |_| 0).is_empty() && !visit.is_idle());
        assert!(visit.answered(LinkId(2), 0, false) && !visit.answered(LinkId(2), 0, false));
        assert!(visit.answered(LinkId(3), 0, true) && visit.is_idle() && visit.is_found());
        assert!(visit.forward(&LINKS, |_| 0).is_empty());
    }

    #[test]
    fn the_nearest_is_tried_first_where_distances_are_known() {
        let matches = [found(2, 1), found(1, 2), found(3, 3)];
        let mut visit = Visit::new(asked(2, 0), &matches, EntryKind::Attenuated);
        assert_eq!(links(&visit.forward(&LINKS, |_| 0)), [2]);
        visit.answered(LinkId(2), 0, false);
        assert_eq!(links(&visit.forward(&LINKS, |_| 0)), [1]);
        visit.answered(LinkId(1), 0, true);
        assert!(visit.forward(&LINKS, |_| 0).is_empty() && visit.is_idle());
    }

    #[test]
    fn without_claims_a_walk_goes_on_and_what_it_does_not_spend_comes_back() {
        let mut visit = Visit::new(asked(2, 5), &[], EntryKind::Abf);
        let sent = visit.forward(&LINKS, |below| below - 1);
        assert_eq!(sent, [Forward { link: LinkId(3), hops: 3, walk: 4, claimed: false }]);
        visit.answered(LinkId(3), 2, false);
        assert_eq!(visit.forward(&LINKS, |_| 0)[0].walk, 1);
        visit.answered(LinkId(1), 9, false);
        assert_eq!(visit.walk(), 1, "no more comes back than was given");
        assert_eq!(links(&visit.forward(&LINKS, |_| 0)), [2]);
        visit.answered(LinkId(2), 3, false);
        assert!(visit.forward(&LINKS, |_| 0).is_empty() && visit.is_idle() && !visit.is_found());
    }

    #[test]
    fn a_link_that_went_down_is_passed_over_and_no_hops_mean_no_forwards() {
        let mut visit = Visit::new(asked(2, 1), &[found(2, 1)], EntryKind::Cubf);
        assert_eq!(links(&visit.forward(&LINKS[..2], |_| 0)), [1]);
        let mut visit = Visit::new(asked(0, 0), &[found(2, 1)], EntryKind::Cubf);
        assert!(visit.forward(&LINKS, |_| 0).is_empty());
    }
}
