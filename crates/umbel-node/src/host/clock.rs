//! The clocks of a host.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since the host started: what the protocol calls `now`. Copies show the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    /// A clock that starts at zero.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(crate) fn now(self) -> Duration {
        self.started.elapsed()
    }
}

/// Milliseconds since 1970.
pub(crate) fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
