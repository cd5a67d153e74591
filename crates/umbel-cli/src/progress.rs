//! A progress bar for inputs that take a while, on a terminal only.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how much of the input is read, on standard error. Appears after a moment, so that
/// small inputs do not flicker; never where standard error is not a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    appears: Cell<Option<Instant>>,
}

const APPEARS_AFTER: Duration = Duration::from_millis(500);

impl Progress {
    /// A bar with a message that says what is being done.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::hidden().with_message(what);
        Self { bar, appears: Cell::new(Some(Instant::now() + APPEARS_AFTER)) }
    }

    /// No bar: for commands that print to the same terminal meanwhile.
    pub(crate) fn none() -> Self {
        Self { bar: ProgressBar::hidden(), appears: Cell::new(None) }
    }

    /// Sets the length of the input, if it is known.
    pub(crate) fn expect_bytes(&self, total: Option<u64>) {
        let template = match total {
            Some(total) => {
                self.bar.set_length(total);
                "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left"
            }
            None => "{msg} {bytes}, {bytes_per_sec} {spinner}",
        };
        self.bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
    }

    /// Adds bytes that were read.
    pub(crate) fn advance(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
        if self.appears.get().is_some_and(|time| time <= Instant::now()) {
            self.appears.set(None);
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Removes the bar when everything is read.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
