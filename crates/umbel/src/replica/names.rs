//! Names and numbers of the protocol: hosts, sets, incarnations, updates.

use std::fmt;
use std::sync::Arc;

use crate::text::is_unsafe;

/// The name of a host or of a set: 1 to 255 bytes of printable text without spaces and without
/// marks that change the direction of writing. Copies share it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The most bytes that a name may have.
    pub const LONGEST: usize = 255;

    /// A name, or `None` if the text is empty, too long, or contains spaces or characters that
    /// [`is_unsafe`] rejects.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::LONGEST).contains(&text.len());
        let printable = !text.chars().any(|c| c.is_whitespace() || is_unsafe(c));
        (fits && printable).then(|| Self(text.into()))
    }

    /// The plain text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Orders the runs of a home: a larger number at every restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The incarnation of a home that starts now: above the one that it stored, at least the wall
    /// clock in milliseconds, and above the highest one that other hosts know for its name. So
    /// messages of a host that was restored from a backup, or has no disk, are accepted too.
    #[must_use]
    pub fn next(stored: Option<Self>, wall_clock_ms: u64, heard: Option<Self>) -> Self {
        let above = |life: Option<Self>| life.map_or(0, |life| life.0.saturating_add(1));
        Self(above(stored).max(wall_clock_ms).max(above(heard)))
    }
}

/// Counts a home's published updates of a set, within one incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_change_how_text_is_shown_are_refused() {
        for text in ["", "a b", "a\nb", "a\u{1b}[2J", "\u{202e}gnp.tac", "a\u{2028}", "a\u{7f}"] {
            assert_eq!(Name::new(text), None, "{text:?}");
        }
        for text in ["images", "cache-1.example:80/a", "bücher", "\u{1f33f}"] {
            assert!(Name::new(text).is_some(), "{text}");
        }
        assert!(Name::new(&"a".repeat(Name::LONGEST)).is_some());
        assert_eq!(Name::new(&"a".repeat(Name::LONGEST + 1)), None);
    }
}
