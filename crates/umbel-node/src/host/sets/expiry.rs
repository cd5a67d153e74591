//! Keys whose lifetimes are over.

use std::sync::Arc;
use std::time::Duration;

use super::{OwnSet, Sets};
use crate::host::clock::wall_clock_ms;

/// Keys that expire before others get a turn.
const EXPIRED_AT_ONCE: usize = 4096;

impl Sets {
    /// Removes keys whose time has come, a bounded number at a time; when the next one's
    /// comes.
    pub(crate) fn expire(&self) -> Option<Duration> {
        let (now, wall) = (self.clock.now(), wall_clock_ms());
        let own: Vec<Arc<OwnSet>> = self.lock().own.values().cloned().collect();
        let next = |own: &Arc<OwnSet>| {
            let mut next = own.next_expiry();
            if next.is_some_and(|at| at <= wall)
                && let Ok(Some(mut change)) = self.change(own)
            {
                change.expire(wall, EXPIRED_AT_ONCE);
                drop(change);
                next = own.next_expiry();
            }
            next
        };
        let next = own.iter().filter_map(next).min()?;
        Some(now + Duration::from_millis(next.saturating_sub(wall)))
    }
}
