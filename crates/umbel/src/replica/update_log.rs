//! A home's latest updates, for receivers that missed some of them.
//!
//! A receiver that is at epoch `e` requests the *changes since e*: the updates after `e`, one record
//! after the other, as one stream of bytes that is fetched in parts. So an update of any length can
//! be fetched, and many short ones take one request.
//!
//! ```text
//! record = varint epoch, 0 from nothing | 1 from the epoch before, scheme, u64 checksum,
//!          varint length, changes
//! ```
//!
//! Always true: the log takes at most the bytes of the plain image, and at most a quarter of them
//! once its updates are older than [`FRESH`]. If it reaches back to an epoch, the stream since then
//! leads to the published image. If it does not reach back far enough, that is no error: receivers
//! fetch pages instead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Epoch;
use super::fields::{epoch, put_scheme, scheme};
use crate::codec::{DecodeError, Reader, put_varint};
use crate::scheme::Scheme;

/// Updates of this age are dropped until the log takes at most a quarter of the image's bytes. So
/// receivers have this long to fetch the updates of a bulk load before they need pages.
pub(crate) const FRESH: Duration = Duration::from_secs(10);

/// The longest part of a stream.
pub(crate) const PART: u64 = 128 << 10;

/// One update of the log, or of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) epoch: Epoch,
    pub(crate) from_nothing: bool,
    pub(crate) scheme: Scheme,
    /// Of the image that results.
    pub(crate) checksum: u64,
    pub(crate) changes: Arc<Vec<u8>>,
}

/// Changes between two epochs, or a part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The epoch that all parts together lead to.
    pub(crate) until: Epoch,
    /// Bytes of all parts together.
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The latest updates of a home.
#[derive(Debug, Default)]
pub(crate) struct UpdateLog {
    /// Each with its time; sorted by epoch, without gaps.
    records: VecDeque<(Duration, Record)>,
    /// Bytes of all changes.
    bytes: u64,
}

impl UpdateLog {
    /// Appends an update. `image_bytes` is the length of the plain image that it leads to.
    pub(crate) fn push(&mut self, now: Duration, record: Record, image_bytes: u64) {
        let follows = self.records.back().is_none_or(|(_, last)| last.epoch.next() == record.epoch);
        if record.from_nothing || !follows {
            // Earlier records are not needed to reach this image.
            self.clear();
        }
        self.bytes += record.changes.len() as u64;
        self.records.push_back((now, record));
        self.trim(now, image_bytes);
    }

    /// Drops the oldest updates while the log takes too many bytes for their age.
    pub(crate) fn trim(&mut self, now: Duration, image_bytes: u64) {
        while let Some((at, first)) = self.records.front() {
            let is_fresh = now < *at + FRESH;
            if self.bytes <= if is_fresh { image_bytes } else { image_bytes / 4 } {
                break;
            }
            self.bytes -= first.changes.len() as u64;
            self.records.pop_front();
        }
    }

    /// Whether an update is so fresh that the log may still be longer than a quarter of the image.
    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        self.records.back().is_some_and(|(at, _)| now < *at + FRESH)
    }

    fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }

    /// Bytes that the log takes.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// A part of the changes since an epoch, up to `until` or the newest epoch; `None` if the log
    /// does not reach back that far.
    pub(crate) fn part(&self, since: Epoch, until: Option<Epoch>, offset: u64) -> Option<Part> {
        let newest = self.records.back()?.1.epoch;
        let until = until.map_or(newest, |until| until.min(newest));
        if since >= until {
            return (since == newest).then(|| Part {
                until: since,
                length: 0,
                offset: 0,
                bytes: Vec::new(),
            });
        }
        let (_, oldest) = self.records.front()?;
        if since < oldest.epoch && since.next() != oldest.epoch && !oldest.from_nothing {
            return None;
        }
        let records = self.records.iter().map(|(_, record)| record);
        let records = records.filter(|record| record.epoch > since && record.epoch <= until);
        let (mut length, mut bytes) = (0, Vec::new());
        for record in records {
            let header = record.header();
            for piece in [header.as_slice(), record.changes.as_slice()] {
                take_overlap(&mut bytes, piece, length, offset);
                length += piece.len() as u64;
            }
        }
        Some(Part { until, length, offset, bytes })
    }
}

/// Appends the overlap of a piece, which starts at `start` of a stream, and the part at `offset`.
fn take_overlap(bytes: &mut Vec<u8>, piece: &[u8], start: u64, offset: u64) {
    let from = offset.saturating_sub(start).min(piece.len() as u64);
    let to = (offset + PART).saturating_sub(start).min(piece.len() as u64);
    if from < to {
        bytes.extend_from_slice(&piece[from as usize..to as usize]);
    }
}

impl Record {
    fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.epoch.0);
        out.push(u8::from(!self.from_nothing));
        put_scheme(&mut out, &self.scheme);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        put_varint(&mut out, self.changes.len() as u64);
        out
    }

    /// Reads the next record of a stream, without copying the changes.
    pub(crate) fn read<'a>(reader: &mut Reader<'a>) -> Result<RecordRef<'a>, DecodeError> {
        let epoch = epoch(reader)?;
        let from_nothing = match reader.byte()? {
            0 => true,
            1 => false,
            _ => return Err(DecodeError::Malformed("a record has a base or none")),
        };
        let (scheme, checksum, length) = (scheme(reader)?, reader.u64()?, reader.varint()?);
        let changes = reader.take(length)?;
        Ok(RecordRef { epoch, from_nothing, scheme, checksum, changes })
    }
}

/// A record of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordRef<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) from_nothing: bool,
    pub(crate) scheme: Scheme,
    pub(crate) checksum: u64,
    pub(crate) changes: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Shape;
    use crate::replica::tests::hasher;

    fn record(epoch: u64, length: usize, from_nothing: bool) -> Record {
        let scheme = Scheme::new(Shape::new(1024, 3).unwrap(), hasher());
        let changes = Arc::new(vec![epoch as u8; length]);
        Record { epoch: Epoch(epoch), from_nothing, scheme, checksum: epoch, changes }
    }

    fn epochs(log: &UpdateLog, since: u64, until: Option<u64>) -> Option<Vec<u64>> {
        let mut stream = Vec::new();
        loop {
            let offset = stream.len() as u64;
            let part = log.part(Epoch(since), until.map(Epoch), offset)?;
            stream.extend_from_slice(&part.bytes);
            if stream.len() as u64 == part.length {
                break;
            }
            assert_eq!(part.bytes.len() as u64, PART, "only the last part is shorter");
        }
        let (mut reader, mut found) = (Reader::new(&stream), Vec::new());
        while !reader.is_empty() {
            let record = Record::read(&mut reader).unwrap();
            assert!(record.changes.iter().all(|byte| u64::from(*byte) == record.epoch.0));
            found.push(record.epoch.0);
        }
        Some(found)
    }

    #[test]
    fn serves_what_changed_since_an_epoch_in_parts() {
        let mut log = UpdateLog::default();
        for (epoch, length) in [(5, 100), (6, 300_000), (7, 1), (8, 0)] {
            log.push(Duration::ZERO, record(epoch, length, false), 1 << 20);
        }
        assert_eq!(epochs(&log, 3, None), None, "it does not reach back");
        assert_eq!(epochs(&log, 4, None), Some(vec![5, 6, 7, 8]));
        assert_eq!(epochs(&log, 5, None), Some(vec![6, 7, 8]));
        assert_eq!(epochs(&log, 4, Some(6)), Some(vec![5, 6]));
        assert_eq!(epochs(&log, 5, Some(99)), Some(vec![6, 7, 8]));
        assert_eq!(epochs(&log, 8, None), Some(vec![]), "nothing is missing");
        assert_eq!(epochs(&log, 9, None), None, "of another life");
    }

    #[test]
    fn takes_a_quarter_of_the_image_in_the_long_run() {
        let mut log = UpdateLog::default();
        for epoch in 1..=30 {
            log.push(Duration::from_secs(epoch), record(epoch, 100, false), 1000);
            assert!(log.memory_bytes() <= 1000);
        }
        assert_eq!(epochs(&log, 20, None).map(|epochs| epochs.len()), Some(10));
        log.trim(Duration::from_secs(60), 1000);
        assert_eq!(log.memory_bytes(), 200);
        log.push(Duration::from_secs(61), record(31, 1001, false), 1000);
        assert_eq!((log.memory_bytes(), epochs(&log, 30, None)), (0, None));
    }

    #[test]
    fn an_update_from_nothing_serves_everybody() {
        let mut log = UpdateLog::default();
        log.push(Duration::ZERO, record(1, 10, true), 1000);
        log.push(Duration::ZERO, record(2, 10, false), 1000);
        log.push(Duration::ZERO, record(9, 10, true), 1000);
        assert_eq!(epochs(&log, 2, None), Some(vec![9]));
        assert_eq!(log.memory_bytes(), 10);
    }
}
