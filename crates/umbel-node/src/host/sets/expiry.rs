//! Expiry of keys.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use umbel::replica::Name;

use super::Sets;
use crate::host::clock::wall_clock_ms;

/// Maximum number of keys to expire per set before others get a turn.
const EXPIRED_AT_ONCE: usize = 4096;
/// Pause before a retry if keys cannot be removed now: the disk is full or the host stops.
const WAIT: Duration = Duration::from_secs(1);

/// When the next key of each own set expires, in milliseconds since 1970. Sets without expiring
/// keys are not listed.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    order: Mutex<BTreeSet<(u64, Name)>>,
}

impl Expiries {
    /// Changes the time at which the next key of a set expires.
    pub(super) fn change(&self, set: &Name, listed: Option<u64>, next: Option<u64>) {
        if listed == next {
            return;
        }
        let mut order = self.order.lock();
        if let Some(at) = listed {
            order.remove(&(at, set.clone()));
        }
        if let Some(at) = next {
            order.insert((at, set.clone()));
        }
    }

    fn due(&self, wall_clock_ms: u64) -> Vec<Name> {
        let order = self.order.lock();
        let due = order.iter().take_while(|(at, _)| *at <= wall_clock_ms);
        due.map(|(_, set)| set.clone()).collect()
    }

    fn next(&self) -> Option<u64> {
        self.order.lock().first().map(|(at, _)| *at)
    }
}

impl Sets {
    /// Removes expired keys, a bounded number at a time; returns when to call it again.
    pub(crate) fn expire(&self) -> Option<Duration> {
        let (now, wall) = (self.clock.now(), wall_clock_ms());
        let mut all_removed = true;
        for set in self.expiries.due(wall) {
            let Some(own) = self.own(set.as_str()) else { continue };
            match self.change(&own) {
                Ok(Some(mut change)) => change.expire(wall, EXPIRED_AT_ONCE),
                Ok(None) => {}
                Err(_) => all_removed = false,
            }
        }
        let next = Duration::from_millis(self.expiries.next()?.saturating_sub(wall));
        Some(now + if all_removed { next } else { next.max(WAIT) })
    }
}
