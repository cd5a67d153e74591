//! Churn that violates paper 1's assumptions: fresh keys are queried most, and changes come in
//! bursts.

use std::collections::VecDeque;

use super::History;
use super::lines::{Kind, Line, Lines};
use crate::random::Random;

/// How hosts change, and which keys they query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    /// Hosts.
    pub(crate) hosts: usize,
    /// Keys of each host, always.
    pub(crate) items: u32,
    /// Keys that are replaced at each host per second, on average.
    pub(crate) changes: u32,
    /// The changes of this many seconds happen at once; 1 means steadily.
    pub(crate) burst_seconds: u32,
    /// Lookups of each host per second.
    pub(crate) lookups: u32,
    /// Percentage of lookups for one of the last [`RECENT`] keys of another host.
    pub(crate) fresh_percent: u32,
    /// Duration in seconds, after a first second in which all keys are added.
    pub(crate) seconds: u32,
}

/// How many of a host's newest keys count as fresh.
pub(crate) const RECENT: usize = 10;

/// The keys of the hosts while their history is generated.
struct World {
    random: Random,
    next: u32,
    members: Vec<Vec<u32>>,
    recent: Vec<VecDeque<u32>>,
    lines: Vec<Line>,
}

impl Habits {
    /// A history of such hosts.
    pub(crate) fn history(&self, random: Random) -> History {
        let mut world = World {
            random,
            next: 0,
            members: vec![Vec::new(); self.hosts],
            recent: vec![VecDeque::new(); self.hosts],
            lines: Vec::new(),
        };
        for host in 0..self.hosts {
            (0..self.items).for_each(|_| world.add(host, 0));
        }
        for second in 1..=self.seconds {
            for host in 0..self.hosts {
                self.change(&mut world, host, second);
            }
            for host in 0..self.hosts {
                (0..self.lookups).for_each(|_| world.ask(host, second, self.fresh_percent));
            }
        }
        // Changes and lookups alternate within a second.
        world.lines.sort_by_key(|line| line.at);
        History::of_lines(Lines {
            hosts: self.hosts,
            lines: world.lines,
            max_items: self.items.into(),
        })
    }

    /// The changes of one host in one second.
    fn change(&self, world: &mut World, host: usize, second: u32) {
        let changes = match second.is_multiple_of(self.burst_seconds) {
            true => self.changes * self.burst_seconds,
            false => 0,
        };
        for change in 0..changes {
            let at = 1000 * u64::from(second) + u64::from(1000 * change / changes);
            world.remove(host, at);
            world.add(host, at);
        }
    }
}

impl World {
    fn push(&mut self, kind: Kind, at: u64, host: usize, key: u32) {
        self.lines.push(Line { kind, at, host: host as u32, key });
    }

    fn add(&mut self, host: usize, at: u64) {
        let key = self.next;
        self.next += 1;
        self.members[host].push(key);
        self.recent[host].push_back(key);
        if self.recent[host].len() > RECENT {
            self.recent[host].pop_front();
        }
        self.push(Kind::Add, at, host, key);
    }

    fn remove(&mut self, host: usize, at: u64) {
        let place = self.random.below(self.members[host].len());
        let key = self.members[host].swap_remove(place);
        self.recent[host].retain(|recent| *recent != key);
        self.push(Kind::Remove, at, host, key);
    }

    /// A lookup at a random time of a second, for a key that another host has at the end of the
    /// second.
    fn ask(&mut self, host: usize, second: u32, fresh_percent: u32) {
        let other = (host + 1 + self.random.below(self.members.len() - 1)) % self.members.len();
        let is_fresh = self.random.below(100) < fresh_percent as usize;
        let key = match is_fresh {
            true => self.recent[other][self.random.below(self.recent[other].len())],
            false => self.members[other][self.random.below(self.members[other].len())],
        };
        let at = 1000 * u64::from(second) + self.random.below(1000) as u64;
        self.push(Kind::Ask, at, host, key);
    }
}
