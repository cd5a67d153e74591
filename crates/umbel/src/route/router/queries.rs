//! Queries: those asked here, those passing through, and their replies.
//!
//! A host forwards a query, waits for replies, retries if they do not arrive, and gives up when the
//! time of the query is over. Each host gives the hosts behind it a little less time than it has
//! itself. If a query arrives a second time over another link, the host replies at once, with
//! nothing, so that no query passes twice through a host. If it arrives again from the same
//! neighbour, it is a retry and gets the same reply.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Router;
use crate::catalogue::Catalogue;
use crate::replica::Name;
use crate::route::event::{Holder, Located, QueryId, RouterEvent, Search};
use crate::route::message::{LONGEST_KEY, MAX_HOLDERS, Message, Query, Reply};
use crate::route::table::LinkId;
use crate::route::visit::{Asked, Forward, Visit};

/// A query at this host.
#[derive(Debug)]
pub(super) struct Passing {
    visit: Visit,
    key: Vec<u8>,
    /// The neighbour that asked; `None` if it was asked here.
    from: Option<Name>,
    holders: BTreeMap<Name, Holder>,
    /// What was forwarded, for retries.
    sent: Vec<Forward>,
    tries: u32,
    deadline: Duration,
    /// When to act if no message arrives before.
    pub(super) timer: Duration,
    /// Whether all hosts have replied in time so far.
    is_complete: bool,
    /// The final reply, once there is one.
    answer: Option<Reply>,
}

/// The most queries that are remembered at once; further ones get an empty reply.
const MAX_QUERIES: usize = 65_536;
/// How much of a query's time a host keeps for itself, if there is plenty.
const ALLOWANCE: Duration = Duration::from_millis(50);

impl<C: Catalogue> Router<C> {
    /// Asks which hosts hold a key. The query follows filters that claim the key for at most `hops`
    /// hops; `None` means the plan's depth, and more than that is useless. The result is a
    /// [`RouterEvent::Located`], preceded by a [`RouterEvent::Found`] for every holder.
    ///
    /// No host holds a key longer than 64 KiB.
    pub fn locate(&mut self, now: Duration, key: &[u8], hops: Option<u8>) -> QueryId {
        let hops = hops.unwrap_or(self.plan.plan.depth);
        let (walk, patience) = (self.config.walk, self.config.patience);
        self.search(now, key, Search { hops, walk, patience })
    }

    /// As [`Self::locate`], with the caller's own limits.
    pub fn search(&mut self, now: Duration, key: &[u8], search: Search) -> QueryId {
        self.next_query += 1;
        let (host, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let id = QueryId { host, incarnation, number: self.next_query };
        let Search { hops, walk, patience } = search;
        if self.holds(key) {
            let (query, holder) = (id.clone(), Holder::itself(&self.config.name));
            self.event(RouterEvent::Found { query: query.clone(), holder: holder.clone() });
            self.located(Located { query, holders: vec![holder], is_complete: true });
        } else if key.len() > LONGEST_KEY || self.passing.len() >= MAX_QUERIES {
            let (query, is_complete) = (id.clone(), key.len() > LONGEST_KEY);
            self.located(Located { query, holders: Vec::new(), is_complete });
        } else {
            let asked = Asked { from: None, hops, limit: hops, walk };
            self.pass(now, &id, asked, None, key.to_vec(), now + patience);
        }
        id
    }

    /// A query that was asked here is finished.
    fn located(&mut self, located: Located) {
        self.counters.asked += 1;
        self.counters.not_found += u64::from(located.holders.is_empty());
        self.event(RouterEvent::Located(located));
    }

    pub(super) fn handle_query(&mut self, now: Duration, from: &Name, query: Query) {
        let Some(link) = self.links.get(from).map(|link| link.id) else { return };
        let Query { id, hops, limit, walk, patience_ms, key } = query;
        if let Some(passing) = self.passing.get(&id) {
            self.counters.repeated_queries += 1;
            let is_repetition = passing.from.as_ref() == Some(from);
            return match (&passing.answer, is_repetition) {
                (Some(answer), true) => drop(self.send(from, &Message::Reply(answer.clone()))),
                (None, true) => {}
                (_, false) => self.reply(from, id, walk, Vec::new()),
            };
        }
        if self.holds(&key) {
            self.counters.answered += 1;
            return self.reply(from, id, walk, vec![Holder::itself(&self.config.name)]);
        }
        if self.passing.len() >= MAX_QUERIES || id.host == self.config.name {
            self.counters.dropped += u64::from(id.host != self.config.name);
            return self.reply(from, id, walk, Vec::new());
        }
        let asked = Asked { from: Some(link), hops, limit, walk };
        let patience = Duration::from_millis(patience_ms.into()).min(self.config.patience);
        self.pass(now, &id, asked, Some(from.clone()), key, now + patience);
    }

    fn reply(&mut self, to: &Name, id: QueryId, walk: u32, holders: Vec<Holder>) {
        let reply = Reply { id, done: true, is_complete: true, walk, holders };
        self.send(to, &Message::Reply(reply));
    }

    /// Begins to search for a key that is not held here.
    fn pass(
        &mut self,
        now: Duration,
        id: &QueryId,
        asked: Asked,
        from: Option<Name>,
        key: Vec<u8>,
        deadline: Duration,
    ) {
        let matches = self.table.matches(self.config.hasher.hash(&key));
        let passing = Passing {
            visit: Visit::new(asked, &matches, self.plan.plan.kind),
            key,
            from,
            holders: BTreeMap::new(),
            sent: Vec::new(),
            tries: 0,
            deadline,
            timer: deadline,
            is_complete: true,
            answer: None,
        };
        self.timers.insert((deadline, id.clone()));
        self.passing.insert(id.clone(), passing);
        self.advance(now, id);
    }

    /// Forwards the query where it must go next, or replies if there is nothing more to do.
    fn advance(&mut self, now: Duration, id: &QueryId) {
        let links: Vec<LinkId> = self.links.values().map(|link| link.id).collect();
        let random = self.random();
        let Some(passing) = self.passing.get_mut(id).filter(|passing| passing.answer.is_none())
        else {
            return;
        };
        let forwards =
            passing.visit.forward(&links, |below| (random % below.max(1) as u64) as usize);
        if forwards.is_empty() {
            if passing.visit.is_idle() {
                self.finish(now, id);
            }
            return;
        }
        let claimed = forwards.iter().filter(|forward| forward.claimed).count() as u64;
        self.counters.claimed_forwards += claimed;
        self.counters.walk_forwards += forwards.len() as u64 - claimed;
        (passing.sent, passing.tries) = (forwards, 0);
        self.send_on(now, id);
    }

    /// Sends a query to all links whose replies it waits for, and sets the time to retry.
    fn send_on(&mut self, now: Duration, id: &QueryId) {
        let Some(passing) = self.passing.get_mut(id) else { return };
        let left = passing.deadline.saturating_sub(now);
        let patience = left - ALLOWANCE.min(left / 8);
        let mut queries = Vec::new();
        for forward in &passing.sent {
            let waiting = passing.visit.waiting().contains(&forward.link);
            if let (true, Some(to)) = (waiting, self.link_names.get(&forward.link)) {
                let query = Query {
                    id: id.clone(),
                    hops: forward.hops,
                    limit: passing.visit.asked().limit,
                    walk: forward.walk,
                    patience_ms: patience.as_millis() as u32,
                    key: passing.key.clone(),
                };
                queries.push((to.clone(), Message::Query(query)));
            }
        }
        let again = now + self.config.retry * (1 << passing.tries.min(6));
        passing.tries += 1;
        let timer = again.min(passing.deadline);
        self.set_timer(id, timer);
        for (to, query) in &queries {
            self.send(to, query);
        }
    }

    pub(super) fn handle_reply(&mut self, now: Duration, from: &Name, reply: Reply) {
        let Some(link) = self.links.get(from).map(|link| link.id) else { return };
        if reply.holders.iter().any(|holder| holder.path.first() != Some(from)) {
            return self.refuse(from, String::from("its path does not begin with its sender"));
        }
        let Reply { id, done, is_complete, walk, holders } = reply;
        let Some(passing) = self.passing.get_mut(&id) else { return };
        if passing.answer.is_some() || !passing.visit.waiting().contains(&link) {
            return;
        }
        let found = !holders.is_empty();
        let mut new = Vec::new();
        for holder in holders {
            let (name, room) = (holder.name().clone(), passing.holders.len() < MAX_HOLDERS);
            if room && !passing.holders.contains_key(&name) {
                let holder = holder.reported_by(&self.config.name);
                passing.holders.insert(name, holder.clone());
                new.push(holder);
            }
        }
        if !passing.holders.is_empty() {
            passing.visit.found();
        }
        if done {
            let claimed = |sent: &Forward| sent.link == link && sent.claimed;
            let wrong = !found && passing.sent.iter().any(claimed);
            self.counters.wrong_forwards += u64::from(wrong);
            passing.visit.answered(link, walk, found);
            passing.is_complete &= is_complete;
        }
        let (to, is_idle) = (passing.from.clone(), passing.visit.is_idle());
        match to {
            None => {
                for holder in new {
                    self.event(RouterEvent::Found { query: id.clone(), holder });
                }
            }
            // The final reply contains all holders anyway.
            Some(to) if !new.is_empty() && !is_idle => {
                let (id, is_complete) = (id.clone(), true);
                let more = Reply { id, done: false, is_complete, walk: 0, holders: new };
                self.send(&to, &Message::Reply(more));
            }
            Some(_) => {}
        }
        self.advance(now, &id);
    }

    /// A link is down: queries stop waiting for replies over it, and those that came over it are
    /// dropped.
    pub(super) fn unanswered(&mut self, now: Duration, link: LinkId) {
        let ids: Vec<QueryId> = self.passing.keys().cloned().collect();
        for id in ids {
            let Some(passing) = self.passing.get_mut(&id) else { continue };
            if passing.visit.asked().from == Some(link) {
                self.timers.remove(&(passing.timer, id.clone()));
                self.passing.remove(&id);
            } else if passing.visit.answered(link, 0, false) {
                passing.is_complete = false;
                self.advance(now, &id);
            }
        }
    }

    /// Retries queries without replies, gives up those whose time is over, and forgets finished
    /// ones.
    pub(super) fn expire_queries(&mut self, now: Duration) {
        while let Some((_, id)) = self.timers.first().filter(|(when, _)| *when <= now).cloned() {
            let Some(passing) = self.passing.get_mut(&id) else {
                self.timers.pop_first();
                continue;
            };
            if passing.answer.is_some() {
                self.timers.pop_first();
                self.passing.remove(&id);
            } else if now >= passing.deadline {
                passing.is_complete = false;
                self.counters.expired_queries += 1;
                self.finish(now, &id);
            } else {
                self.send_on(now, &id);
            }
        }
    }

    /// Sends the final reply, and remembers it for as long as the query may arrive again.
    fn finish(&mut self, now: Duration, id: &QueryId) {
        let (linger, retry) = (self.config.patience, self.config.retry);
        let Some(passing) = self.passing.get_mut(id) else { return };
        let holders: Vec<Holder> = passing.holders.values().cloned().collect();
        let (to, is_complete) = (passing.from.clone(), passing.is_complete);
        let walk = passing.visit.walk();
        let reply = Reply { id: id.clone(), done: true, is_complete, walk, holders };
        passing.answer = Some(reply.clone());
        let over = passing.deadline.max(now) + retry.max(linger / 8);
        self.set_timer(id, over);
        match to {
            Some(to) => drop(self.send(&to, &Message::Reply(reply))),
            None => {
                self.located(Located { query: id.clone(), holders: reply.holders, is_complete });
            }
        }
    }

    fn set_timer(&mut self, id: &QueryId, timer: Duration) {
        let Some(passing) = self.passing.get_mut(id) else { return };
        self.timers.remove(&(passing.timer, id.clone()));
        passing.timer = timer;
        self.timers.insert((timer, id.clone()));
    }
}
