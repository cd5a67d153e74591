//! When the driver looks at the hosts that should be known, and what follows: readiness.

use std::time::Duration;

use umbel::protocol::Event;
use umbel::replica::Name;

use super::{ANSWER, Driver};
use crate::host::{Coverage, LOOK_EVERY, MAX_AGE, State};

/// From one look at the hosts that should be known to the next, for each of them.
const LOOK_PAUSE: Duration = Duration::from_micros(20);
/// Hosts that are asked at once who they are.
const ASKED_AT_ONCE: usize = 16;

impl Driver {
    /// Notices that this host did not run for a while, or could not keep up: what it knows may be
    /// old by now.
    pub(super) fn notice_stop(&mut self) {
        let (now, dropped) = (self.inner.now(), self.inner.cluster.inbox.dropped());
        let was_dropped = std::mem::replace(&mut self.dropped, dropped) != dropped;
        if now.saturating_sub(self.looked.get()) > MAX_AGE || was_dropped {
            let mut state = self.inner.sets.lock();
            state.protocol.handle_stopped(now);
            self.look(&state, now);
        }
    }

    /// Looks at the hosts that should be known if something may have changed, or it is time to.
    /// Where there are very many, a look may wait for a moment: it takes a step for each host.
    pub(super) fn look_if_due(&self, state: &State, now: Duration, events: &[Event]) {
        let since = now.saturating_sub(self.looked.get());
        let hosts = self.inner.cluster.coverage().hosts_expected;
        let pause = LOOK_PAUSE * u32::try_from(hosts).unwrap_or(u32::MAX);
        let has_changed = events.iter().any(Event::changes_sets);
        if (has_changed && since >= pause) || since >= LOOK_EVERY {
            self.look(state, now);
        }
    }

    /// Asks hosts that have not said who they are: a greeting may be lost, and the next one comes
    /// after half a minute.
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
        // Routers are no hosts: somebody may be behind them.
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
