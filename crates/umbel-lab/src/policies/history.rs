//! What happens to hosts, second by second, independent of their policy.

use super::event::Event;
use super::ids::Id;
use super::lines::{self, Kind, Line, LineError, Lines};
use super::synthetic::Synthetic;

/// Which host adds, removes and queries which key, second by second.
#[derive(Debug, Clone, PartialEq)]
pub struct History(Source);

#[derive(Debug, Clone, PartialEq)]
enum Source {
    Synthetic(Synthetic),
    Lines(Lines),
}

impl History {
    /// Steady churn.
    #[must_use]
    pub const fn synthetic(churn: Synthetic) -> Self {
        Self(Source::Synthetic(churn))
    }

    /// Parses lines `+ host key`, `- host key` and `? host key`. `rate` is the number of lines per
    /// second; by default as many as there are hosts.
    ///
    /// # Errors
    /// If there is no line, or one that is not of this form.
    pub fn from_lines(text: &[u8], rate: Option<f64>) -> Result<Self, LineError> {
        lines::history(text, rate).map(Source::Lines).map(Self)
    }

    /// Cooperative caches: requests, one key per line, are assigned to the hosts in turn. A host
    /// queries the others for what its LRU cache of `cache_items` objects lacks, and keeps it.
    /// Requests arrive at a steady rate: `rate` per second, or as many as there are hosts.
    ///
    /// # Errors
    /// If there is no line, or an empty one.
    pub fn from_requests(
        text: &[u8],
        hosts: usize,
        cache_items: u64,
        rate: Option<f64>,
    ) -> Result<Self, LineError> {
        lines::requests(text, hosts.max(1), cache_items, rate).map(Source::Lines).map(Self)
    }

    /// The history of these lines.
    pub(super) const fn of_lines(lines: Lines) -> Self {
        Self(Source::Lines(lines))
    }

    /// How many hosts there are.
    #[must_use]
    pub const fn hosts(&self) -> usize {
        match &self.0 {
            Source::Synthetic(churn) => churn.hosts,
            Source::Lines(lines) => lines.hosts,
        }
    }

    /// Default number of keys that a host is planned for: those at the start of steady churn, or
    /// the most that any host ever has in lines that were read.
    #[must_use]
    pub fn items(&self) -> u64 {
        match &self.0 {
            Source::Synthetic(churn) => churn.items.max(1),
            Source::Lines(lines) => lines.max_items.max(1),
        }
    }

    /// How many seconds it takes.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        match &self.0 {
            Source::Synthetic(churn) => churn.steps,
            Source::Lines(lines) => lines.lines.last().map_or(0, |line| line.at / 1000 + 1),
        }
    }

    /// Calls `happen` with every event, in order.
    pub(super) fn replay(&self, mut happen: impl FnMut(Event)) {
        match &self.0 {
            Source::Synthetic(churn) => churn.replay(happen),
            Source::Lines(lines) => {
                let (mut now, mut second) = (0, 0);
                for Line { kind, at, host, key } in lines.lines.iter().copied() {
                    while at >= 1000 * (second + 1) {
                        second += 1;
                        happen(Event::SecondPassed);
                    }
                    if at > std::mem::replace(&mut now, at) {
                        happen(Event::Now { milliseconds: at });
                    }
                    let (host, key) = (host as usize, Id::from(key));
                    happen(match kind {
                        Kind::Add => Event::Added { host, key },
                        Kind::Remove => Event::Removed { host, key },
                        Kind::Ask => Event::Asked { host, key },
                    });
                }
                happen(Event::SecondPassed);
            }
        }
    }
}
