//! Fetches the updates that a receiver missed: one stream of changes, in parts.
//!
//! The first reply says how long the stream is and which epoch it leads to; the other parts are
//! then requested several at a time. Nothing is applied before the whole stream has arrived, so
//! that a receiver catches up in one step.
//!
//! Always true: the parts that make up a returned stream belong together, without gaps.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Epoch;
use super::message::Wanted;
use super::update_log::{PART, Part};
use super::window::Window;
use crate::codec::DecodeError;

/// Changes since an epoch, being fetched.
#[derive(Debug)]
pub(crate) struct CatchUp {
    since: Epoch,
    /// The epoch that the stream leads to: before the first reply the one requested, then the one
    /// that the reply names.
    until: Option<Epoch>,
    /// Length of the stream; `None` until the first reply.
    length: Option<u64>,
    parts: BTreeMap<u64, Vec<u8>>,
    window: Window,
}

impl CatchUp {
    pub(crate) const fn new(since: Epoch, until: Option<Epoch>) -> Self {
        Self { since, until, length: None, parts: BTreeMap::new(), window: Window::new() }
    }

    /// The parts to request now.
    pub(crate) fn requests(
        &mut self,
        now: Duration,
        patience: impl Fn(u32) -> Duration,
    ) -> Vec<Wanted> {
        let count = self.length.map_or(1, |length| length.div_ceil(PART));
        let missing = (0..count).filter(|number| !self.parts.contains_key(number));
        let numbers = self.window.open(now, missing, patience);
        let (since, until) = (self.since, self.until);
        let wanted = |number| Wanted::Changes { since, until, offset: number * PART };
        numbers.into_iter().map(wanted).collect()
    }

    /// When to retry.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.window.next_timeout()
    }

    /// Stores a part. Returns the whole stream once it is complete. A stream of more than `max`
    /// bytes is rejected.
    ///
    /// # Errors
    /// If the part cannot belong to the stream; the caller must then discard what was fetched so
    /// far.
    pub(crate) fn part(
        &mut self,
        since: Epoch,
        part: &Part,
        max: u64,
    ) -> Result<Option<Vec<u8>>, DecodeError> {
        let is_first = self.length.is_none();
        let is_same = self.length == Some(part.length) && self.until == Some(part.until);
        if since != self.since || !(is_first || is_same) {
            // A reply to an earlier request, delivered late.
            return Ok(None);
        }
        let (number, expected) = (part.offset / PART, part.length.saturating_sub(part.offset));
        if part.length > max
            || !part.offset.is_multiple_of(PART)
            || part.bytes.len() as u64 != expected.min(PART)
        {
            return Err(DecodeError::Malformed("a part that its stream does not have"));
        }
        (self.length, self.until) = (Some(part.length), Some(part.until));
        self.window.arrived(number);
        self.parts.insert(number, part.bytes.clone());
        let is_whole = self.parts.len() as u64 == part.length.div_ceil(PART).max(1);
        Ok(is_whole.then(|| std::mem::take(&mut self.parts).into_values().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(until: u64, length: u64, offset: u64) -> Part {
        let bytes = vec![(offset / PART) as u8; PART.min(length - offset) as usize];
        Part { until: Epoch(until), length, offset, bytes }
    }

    #[test]
    fn parts_in_any_order_make_one_stream() {
        let (length, second) = (3 * PART + 5, Duration::from_secs(1));
        let mut catch_up = CatchUp::new(Epoch(4), None);
        assert_eq!(catch_up.requests(Duration::ZERO, |_| second).len(), 1);
        let mut take = |since: u64, part: &Part| catch_up.part(Epoch(since), part, 1 << 20);
        assert_eq!(take(3, &part(9, length, 0)), Ok(None), "since another epoch");
        assert_eq!(take(4, &part(9, length, 0)), Ok(None));
        assert_eq!(take(4, &part(8, length, PART)), Ok(None), "of another stream");
        assert_eq!(take(4, &part(9, length, 3 * PART)), Ok(None));
        assert!(take(4, &Part { offset: 1, ..part(9, length, 0) }).is_err());
        assert!(catch_up.part(Epoch(4), &part(9, length, PART), length - 1).is_err());
        let wanted = catch_up.requests(Duration::ZERO, |_| second);
        let offset = |number| {
            let (since, until) = (Epoch(4), Some(Epoch(9)));
            Wanted::Changes { since, until, offset: number * PART }
        };
        assert_eq!(wanted, [offset(1), offset(2)]);
        assert!(catch_up.requests(Duration::ZERO, |_| second).is_empty());
        assert_eq!(catch_up.requests(second, |_| second).len(), 2, "lost: asked for again");
        assert_eq!(catch_up.part(Epoch(4), &part(9, length, 2 * PART), 1 << 20), Ok(None));
        let stream = catch_up.part(Epoch(4), &part(9, length, PART), 1 << 20).unwrap().unwrap();
        assert_eq!(stream.len() as u64, length);
        assert!(stream.is_sorted());
    }
}
