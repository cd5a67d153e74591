//! How large own sets may be, and for how many hosts they are planned.
//!
//! A set whose plan names no number of hosts is planned for the homes that are known of it
//! ([`ExpectedHosts`]). When that number grows, homes on a full rung must climb: each waits a
//! time of its own, drawn from the names of host and set.

use std::time::Duration;

use siphasher::sip::SipHasher13;

use super::Engine;
use super::budget::Reason;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::design::ladder::ExpectedHosts;
use crate::replica::Name;

/// From one count of a set's homes to the next, if nothing changes: what was seen last is
/// remembered for an hour.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// The longest time that a climb waits because only the number of hosts has grown.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// Counts the homes of own sets, where their number has changed or was not counted for long.
    pub(super) fn count_homes(&mut self, now: Duration) {
        for name in &self.chores.take_counts(now) {
            let Some(set) = self.sets.get(name) else { continue };
            let Some(local) = &set.own else { continue };
            self.chores.count_at(name, now + COUNT_EVERY);
            let homes = u32::try_from(set.receivers.len()).unwrap_or(u32::MAX).saturating_add(1);
            local.with_state(|own| {
                if own.home.plan().expected_hosts.is_some() {
                    own.hosts = ExpectedHosts::new();
                } else if let Some(planned) = own.hosts.see(now, homes) {
                    own.home.expect_hosts(now, planned, wait_of(&self.config.name, name));
                }
            });
        }
    }

    /// Lists an own set that may not grow, and lists it no more when it may.
    pub(super) fn list_confined(&mut self, set: &Name, is_confined: bool) {
        let host = self.config.name.clone();
        match (is_confined, self.refusals.contains_key(&(host.clone(), Some(set.clone())))) {
            (true, false) => {
                let most = self.config.own_bytes;
                self.list_refusal(&host, Some(set), Reason::OwnSets { most });
            }
            (false, true) => _ = self.refusals.remove(&(host, Some(set.clone()))),
            _ => {}
        }
    }
}

/// A time between nothing and a minute that is a host's own, for each of its sets.
fn wait_of(host: &Name, set: &Name) -> Duration {
    let name = format!("{host} {set}");
    let hash = SipHasher13::new_with_keys(0, 0).hash(name.as_bytes());
    Duration::from_millis(hash % LONGEST_WAIT.as_millis() as u64)
}
