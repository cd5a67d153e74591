//! When the driver computes the coverage, and when the host becomes ready.

use std::time::Duration;

use umbel::protocol::Event;
use umbel::replica::Name;

use super::{ANSWER, Driver};
use crate::host::{Coverage, LOOK_EVERY, MAX_AGE, State};

/// Minimum interval between two computations of the coverage, per expected host.
const LOOK_PAUSE: Duration = Duration::from_micros(20);
/// Maximum number of hosts that are asked for their greetings at once.
const ASKED_AT_ONCE: usize = 16;

impl Driver {
    /// Detects that this host did not run for a while, or dropped events: what it knows may be
    /// outdated.
    pub(super) fn notice_stop(&mut self) {
        let (now, dropped) = (self.inner.now(), self.inner.cluster.inbox.dropped());
        let was_dropped = std::mem::replace(&mut self.dropped, dropped) != dropped;
        if now.saturating_sub(self.looked.get()) > MAX_AGE || was_dropped {
            let mut state = self.inner.sets.lock();
            state.protocol.handle_stopped(now);
            self.look(&state, now);
        }
    }

    /// Computes the coverage if something may have changed, or if it is due. With very many hosts
    /// it may wait for a moment, because the cost grows with the number of hosts.
    pub(super) fn look_if_due(&self, state: &State, now: Duration, events: &[Event]) {
        let since = now.saturating_sub(self.looked.get());
        let hosts = self.inner.cluster.coverage().hosts_expected;
        let pause = LOOK_PAUSE * u32::try_from(hosts).unwrap_or(u32::MAX);
        let has_changed = events.iter().any(Event::changes_sets);
        if (has_changed && since >= pause) || since >= LOOK_EVERY {
            self.look(state, now);
        }
    }

    /// Asks hosts that have not greeted this one for their greetings: a greeting may be lost, and
    /// the next one comes after half a minute.
    fn ask_who_they_are(&self, now: Duration, silent: Vec<Name>) {
        let asked = self.asked_for_greetings.get();
        if silent.is_empty() {
            self.asked_for_greetings.set(now);
        } else if now.saturating_sub(asked) >= ANSWER {
            self.asked_for_greetings.set(now);
            silent.into_iter().take(ASKED_AT_ONCE).for_each(|host| self.ask_greeting(host));
        }
    }

    pub(super) fn look(&self, state: &State, now: Duration) {
        self.looked.set(now);
        let (coverage, silent) = self.inner.cluster.look(now, &self.inner.settings.name, state);
        self.ask_who_they_are(now, silent);
        if self.inner.lifecycle.is_ready() {
            return;
        }
        // Routers are not hosts: there may be hosts behind them.
        let is_alone = coverage.hosts_expected == 1 && !self.inner.cluster.is_alone();
        let is_complete = coverage.complete && !is_alone;
        if is_complete || now >= self.inner.settings.timing.ready {
            if !is_complete {
                warn_incomplete(&coverage);
            }
            self.inner.lifecycle.set_ready();
        }
    }
}

fn warn_incomplete(coverage: &Coverage) {
    let missing: Vec<String> = coverage.missing_hosts.iter().map(ToString::to_string).collect();
    let (known, expected) = (coverage.hosts_known, coverage.hosts_expected);
    let missing = missing.join(", ");
    tracing::warn!(known, expected, missing, "ready without the replicas of all hosts");
}
