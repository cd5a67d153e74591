//! Plans own sets: for how many hosts, and how large they may be.
//!
//! If the plan of a set has no number of hosts, the set is planned for the number of its known
//! homes ([`ExpectedHosts`]). When that number grows, homes on a full rung must climb. Each home
//! waits for a different time, derived from the names of host and set.

use std::time::Duration;

use siphasher::sip::SipHasher13;

use super::Engine;
use super::budget::Reason;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::design::ladder::ExpectedHosts;
use crate::replica::Name;

/// Time between two counts of a set's homes, if nothing changes: a count is remembered for an hour.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// The longest delay of a climb whose only cause is a larger number of hosts.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// Counts the homes of own sets whose number of homes has changed or was not counted recently.
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

    /// Adds an own set that may not grow to the list of refusals, or removes it once it may.
    pub(super) fn list_confined(&mut self, set: &Name, is_confined: bool) {
        let host = self.config.name.clone();
        match (is_confined, self.refusals.contains_key(&(host.clone(), Some(set.clone())))) {
            (true, false) => {
                let max = self.config.own_bytes;
                self.list_refusal(&host, Some(set), Reason::OwnSets { max });
            }
            (false, true) => _ = self.refusals.remove(&(host, Some(set.clone()))),
            _ => {}
        }
    }
}

/// A delay of less than a minute that depends only on host and set.
fn wait_of(host: &Name, set: &Name) -> Duration {
    let name = format!("{host} {set}");
    let hash = SipHasher13::new_with_keys(0, 0).hash(name.as_bytes());
    Duration::from_millis(hash % LONGEST_WAIT.as_millis() as u64)
}
