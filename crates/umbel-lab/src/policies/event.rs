//! What can happen in a history.

use super::ids::Id;

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A host has a key from the start.
    Held { host: usize, key: Id },
    /// Everybody has published what is held from the start.
    Started,
    /// A key came to a host.
    Added { host: usize, key: Id },
    /// A key went from a host, if it was there.
    Removed { host: usize, key: Id },
    /// A host wants a key.
    Asked { host: usize, key: Id },
    /// It is so many milliseconds after the start.
    Now { milliseconds: u64 },
    /// A second has passed.
    SecondPassed,
}
