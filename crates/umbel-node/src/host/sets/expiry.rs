//! Lifetimes of own keys: given, taken back, and over.

use std::time::Duration;

use umbel::replica::Name;

use super::{Sets, State};
use crate::host::clock::wall_clock_ms;

/// How long a key is held unless it is removed or added again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifetime {
    /// As long as the set's keys are by default: for ever unless it was reserved otherwise.
    #[default]
    Default,
    /// For this long from now.
    For(Duration),
    /// Until it is removed, whatever was said before.
    Forever,
}

/// Keys that expire before others get a turn.
const EXPIRED_AT_ONCE: usize = 4096;

impl Sets {
    /// Lets keys of an own set live so long from now.
    pub(in crate::host) fn set_lifetimes(
        &self,
        state: &mut State,
        set: &Name,
        keys: &[&[u8]],
        lifetime: Lifetime,
    ) {
        let Some(own) = state.own.get_mut(set) else { return };
        let lifetime = match lifetime {
            Lifetime::Default => own.lifetime,
            Lifetime::For(time) => Some(time),
            Lifetime::Forever => None,
        };
        let at = lifetime.map(|time| {
            let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            wall_clock_ms().saturating_add(time)
        });
        if at.is_none() && own.lifetimes.len() == 0 {
            return;
        }
        for key in keys {
            if own.lifetimes.set(key, at)
                && let Some(journal) = &self.journal
            {
                journal.set_lifetime(own.number, key, at);
            }
        }
    }

    /// Removes keys whose time has come, a bounded number at a time; when the next one's
    /// comes.
    pub(crate) fn expire(&self, state: &mut State) -> Option<Duration> {
        let (now, wall) = (self.clock.now(), wall_clock_ms());
        let State { protocol, own, .. } = state;
        for (name, set) in own.iter_mut() {
            let keys = set.lifetimes.expired(wall, EXPIRED_AT_ONCE);
            if keys.is_empty() {
                continue;
            }
            let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
            protocol.remove_many(now, name, &keys, &mut |_| ());
            if let Some(journal) = &self.journal {
                keys.iter().for_each(|key| journal.set_lifetime(set.number, key, None));
            }
        }
        let next = own.values().filter_map(|set| set.lifetimes.next()).min()?;
        Some(now + Duration::from_millis(next.saturating_sub(wall_clock_ms())))
    }
}
