//! The events of a history.

use super::ids::Id;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A host has a key from the start.
    Held { host: usize, key: Id },
    /// All hosts publish what they have from the start.
    Started,
    /// A host adds a key.
    Added { host: usize, key: Id },
    /// A host removes a key, if it has it.
    Removed { host: usize, key: Id },
    /// A host looks up a key.
    Asked { host: usize, key: Id },
    /// The time, in milliseconds after the start.
    Now { milliseconds: u64 },
    /// A second has passed.
    SecondPassed,
}
