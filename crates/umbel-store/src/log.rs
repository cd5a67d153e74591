//! A differential file: appended to while the store is open, and read once when it is opened.
//!
//! Reading it back must decide the one hard question of recovery. Bytes that cannot be decoded are
//! either the end of a write that a crash cut off, and that was never acknowledged; or they are
//! damage to something that was acknowledged. A record with the flag `SYNCED` was written when
//! everything before it was durable. So a bad record before a good one with that flag is damage,
//! and is reported. Any other bad bytes at the end are cut off.

use crate::error::{Error, Result};
use crate::format::Malformed;
use crate::format::manifest::differential_name;
use crate::format::record::{HEADER, Header, Kind, RECORD, Record, SYNCED};
use crate::storage::{Storage, StorageFile};

/// A differential file that is being appended to.
#[derive(Debug)]
pub(crate) struct Log {
    name: String,
    file: Box<dyn StorageFile>,
    salt: u32,
    /// Where the next record goes.
    len: u64,
    /// Where the file ends: between `len` and here are preallocated zeros. Overwriting them changes
    /// only their bytes, so a sync does not wait for the file system to record a new length or
    /// new blocks.
    room: u64,
    /// Bytes that are known to be durable.
    synced: u64,
    /// Records written since the file was opened.
    written: u64,
    /// Whether the file ended in a `Closed` record that may not be durable yet.
    mark_in_doubt: bool,
}

impl Log {
    /// Creates an empty file, durable under its name.
    pub(crate) fn create(storage: &dyn Storage, number: u64, first_sequence: u64) -> Result<Self> {
        let name = differential_name(number);
        let mut file = storage.create(&name).map_err(Error::io("create", &name))?;
        let salt = storage.salt() as u32;
        let header = Header { number, first_sequence, salt }.encode();
        file.append(&header).map_err(Error::io("write", &name))?;
        file.sync().map_err(Error::io("sync", &name))?;
        storage.sync_dir().map_err(Error::io("sync the folder of", &name))?;
        let len = HEADER as u64;
        let (synced, room) = (len, len);
        Ok(Self { name, file, salt, len, room, synced, written: 0, mark_in_doubt: false })
    }

    /// Opens a replayed file for appending: cuts what a crash left, and makes the rest durable.
    pub(crate) fn resume(storage: &dyn Storage, replay: &Replay) -> Result<Self> {
        let name = replay.name.clone();
        let mut file = storage.append(&name).map_err(Error::io("open", &name))?;
        if replay.torn_bytes > 0 {
            file.truncate(replay.good_bytes).map_err(Error::io("cut", &name))?;
        }
        if replay.torn_bytes > 0 || !replay.closed {
            // What readers will see must survive the next crash.
            file.sync().map_err(Error::io("sync", &name))?;
        }
        let (salt, len) = (replay.header.salt, replay.good_bytes);
        let (synced, room) = (len, len + replay.room_bytes);
        let mark_in_doubt = replay.closed;
        Ok(Self { name, file, salt, len, room, synced, written: 0, mark_in_doubt })
    }

    /// Makes everything in the file durable. Called before anything that relies on that.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.is_synced() && !self.mark_in_doubt { Ok(()) } else { self.sync() }
    }

    /// Makes the `Closed` record durable. Called before records are written: a crash could damage a
    /// `Closed` record that is not durable, and the next record says everything before it is.
    pub(crate) fn settle_mark(&mut self) -> Result<()> {
        if self.mark_in_doubt { self.sync() } else { Ok(()) }
    }

    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether everything written is known to be durable.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.len
    }

    /// Appends whole batches. On failure it tries to truncate the file to its former length.
    pub(crate) fn append(&mut self, bytes: &[u8], records: u64) -> Result<()> {
        let end = self.len + bytes.len() as u64;
        let written = if end <= self.room || bytes.len() >= LARGE {
            self.file.write_at(self.len, bytes)
        } else {
            self.write_with_room(bytes, end)
        };
        if let Err(error) = written {
            // Best effort: recovery cuts what is left, and a full disk regains the space.
            let _ = self.file.truncate(self.len);
            return Err(Error::io("write", &self.name)(error));
        }
        self.len = end;
        self.room = self.room.max(end);
        self.written += records;
        Ok(())
    }

    /// Writes, and preallocates zeros behind. Preallocation grows with the file: small files stay
    /// small, large ones are rarely extended.
    fn write_with_room(&mut self, bytes: &[u8], end: u64) -> std::io::Result<()> {
        let ahead = (end - HEADER as u64).min(MAX_ROOM);
        let room = (end + ahead).next_multiple_of(4096);
        let mut padded = bytes.to_vec();
        padded.resize((room - self.len) as usize, 0);
        self.file.write_at(self.len, &padded)?;
        self.room = room;
        Ok(())
    }

    /// Truncates the file to what is known to be durable. It must not be written to after that.
    pub(crate) fn cut_to_durable(&mut self) -> Result<()> {
        self.file.truncate(self.synced).map_err(Error::io("cut", &self.name))
    }

    /// Checks that the file is still in its folder.
    pub(crate) fn check_place(&self) -> Result<()> {
        self.file.check_place().map_err(Error::io("write", &self.name))
    }

    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(Error::io("sync", &self.name))?;
        self.synced = self.len;
        self.mark_in_doubt = false;
        Ok(())
    }

    /// Appends a `Closed` record, which marks the file as cleanly closed. It lets recovery tell
    /// damage to the last records from a crash. Losing the record loses no data.
    pub(crate) fn close(&mut self, next_sequence: u64) {
        if self.written == 0 || !self.is_synced() {
            return;
        }
        let (kind, more, synced, sequence) = (Kind::Closed, false, true, next_sequence);
        let mark = Record { kind, more, synced, sequence, key: &[], value: &[] };
        let mut bytes = Vec::with_capacity(RECORD);
        mark.encode(self.salt, &mut bytes);
        let _ = self.file.write_at(self.len, &bytes);
    }
}

/// Maximum number of preallocated zeros.
const MAX_ROOM: u64 = 1 << 20;
/// Writes of this size or more preallocate nothing: recording a new length is cheap compared with
/// the write itself, while writing zeros is not.
const LARGE: usize = 32 << 10;

/// Result of reading a differential file.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) name: String,
    pub(crate) header: Header,
    /// Records in whole batches.
    pub(crate) records: u64,
    /// Sequence of the next record.
    pub(crate) next_sequence: u64,
    /// Length of the header and all whole batches.
    pub(crate) good_bytes: u64,
    /// Bytes after them, which a crash left.
    pub(crate) torn_bytes: u64,
    /// Preallocated zeros after them.
    pub(crate) room_bytes: u64,
    /// Whether the file ends in a `Closed` record: it was cleanly closed.
    pub(crate) closed: bool,
}

/// Reads a differential file, and calls `each` with each record of each whole batch.
/// Its first record must have `next_sequence`.
pub(crate) fn replay(
    name: &str,
    bytes: &[u8],
    number: u64,
    next_sequence: u64,
    mut each: impl FnMut(&Record<'_>),
) -> Result<Replay> {
    let header = Header::decode(bytes).map_err(|error| error.in_file(name, 0))?;
    if header.number != number {
        return Err(Error::corrupt(name, 16, "the file is not the one its name says"));
    }
    if header.first_sequence > next_sequence {
        return Err(Error::corrupt(name, 24, "the file before it lacks records"));
    }
    let mut found = Replay {
        name: name.to_owned(),
        header,
        records: 0,
        next_sequence,
        good_bytes: HEADER as u64,
        torn_bytes: 0,
        room_bytes: 0,
        closed: false,
    };
    let mut batch = Vec::new();
    let mut at = HEADER;
    while at < bytes.len() {
        let expected = found.next_sequence + batch.len() as u64;
        let record = match Record::decode(header.salt, &bytes[at..]) {
            Ok(record) => record,
            Err(error) => {
                refuse_damage(name, bytes, at, expected, header.salt, error)?;
                break;
            }
        };
        if record.sequence != expected {
            return Err(Error::corrupt(name, at, "a record is out of sequence"));
        }
        at += record.encoded_len();
        found.closed = record.kind == Kind::Closed;
        if found.closed {
            if !batch.is_empty() {
                return Err(Error::corrupt(name, at, "a batch has no end"));
            }
        } else {
            batch.push(record);
            if record.more {
                continue;
            }
        }
        batch.iter().for_each(&mut each);
        found.records += batch.len() as u64;
        found.next_sequence += batch.len() as u64;
        found.good_bytes = at as u64;
        batch.clear();
    }
    let rest = &bytes[found.good_bytes as usize..];
    if rest.iter().all(|&byte| byte == 0) {
        found.room_bytes = rest.len() as u64;
    } else {
        found.torn_bytes = rest.len() as u64;
    }
    found.closed &= found.torn_bytes == 0;
    Ok(found)
}

/// Returns an error if a good record after `at` proves that the bytes at `at` were once durable.
fn refuse_damage(
    name: &str,
    bytes: &[u8],
    at: usize,
    expected: u64,
    salt: u32,
    error: Malformed,
) -> Result<()> {
    let rest = &bytes[at..];
    let max = expected.saturating_add((rest.len() / RECORD) as u64 + 1);
    let proof = (1..rest.len().saturating_sub(RECORD - 1)).any(|later| {
        // Cheap tests first: nearly every offset fails them.
        rest[later + 10] & SYNCED != 0
            && (expected..=max).contains(&crate::numbers::u64_at(rest, later + 11))
            && Record::decode(salt, &rest[later..]).is_ok()
    });
    if proof { Err(error.in_file(name, at)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::testing::TestDisk;
    use proptest::prelude::*;

    /// A file of batches; each batch is a group of its own, as if synced before the next.
    fn file(batches: &[usize]) -> Vec<u8> {
        let mut bytes = Header { number: 1, first_sequence: 1, salt: 77 }.encode().to_vec();
        let mut sequence = 1;
        for &len in batches {
            for i in 0..len {
                let key = sequence.to_string();
                let (more, synced) = (i + 1 < len, i == 0);
                let (kind, key) = (Kind::Insert, key.as_bytes());
                Record { kind, more, synced, sequence, key, value: b"v" }.encode(77, &mut bytes);
                sequence += 1;
            }
        }
        bytes
    }

    fn count(bytes: &[u8]) -> Result<u64> {
        replay("f", bytes, 1, 1, |_| {}).map(|found| found.records)
    }

    #[test]
    fn a_cut_file_gives_its_whole_batches() {
        let bytes = file(&[1, 3, 2]);
        let whole: Vec<(usize, u64)> =
            [(vec![], 0), (vec![1], 1), (vec![1, 3], 4), (vec![1, 3, 2], 6)]
                .iter()
                .map(|(batches, records)| (file(batches).len(), *records))
                .collect();
        for cut in HEADER..=bytes.len() {
            let expected = whole.iter().rev().find(|(len, _)| *len <= cut).unwrap().1;
            assert_eq!(count(&bytes[..cut]).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn damage_before_a_synced_record_is_said_to_be_damage() {
        let bytes = file(&[1, 1, 1]);
        let last = file(&[1, 1]).len();
        for bit in HEADER * 8..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match count(&damaged) {
                Err(Error::Corrupt { .. }) => assert!(bit / 8 < last, "bit {bit}"),
                Err(error) => panic!("{error}"),
                // The last record alone cannot be told from a torn one.
                Ok(records) => assert!(bit / 8 >= last && records == 2, "bit {bit}"),
            }
        }
    }

    #[test]
    fn a_group_that_arrived_in_part_is_cut_whatever_part_it_was() {
        // Three batches written in one group: only the first carries the flag.
        let mut bytes = file(&[1]);
        let start = bytes.len();
        for sequence in 2..5 {
            let (kind, synced, more) = (Kind::Insert, sequence == 2, false);
            Record { kind, more, synced, sequence, key: b"k", value: b"" }.encode(77, &mut bytes);
        }
        let mut holed = bytes.clone();
        holed[start + 3..start + 12].fill(0);
        assert_eq!(count(&holed).unwrap(), 1);
    }

    #[test]
    fn a_mark_of_closing_proves_what_is_before_it() {
        let disk = TestDisk::new();
        let mut log = Log::create(&disk, 1, 1).unwrap();
        let mut bytes = Vec::new();
        let (kind, key) = (Kind::Insert, &b"k"[..]);
        Record { kind, more: false, synced: true, sequence: 1, key, value: b"" }
            .encode(log.salt(), &mut bytes);
        log.append(&bytes, 1).unwrap();
        log.sync().unwrap();
        log.close(2);
        let mut bytes = disk.bytes(&log.name).unwrap();
        assert!(replay("f", &bytes, 1, 1, |_| {}).unwrap().closed);
        bytes[HEADER + 12] ^= 1;
        assert!(count(&bytes).is_err(), "the only record is damaged, and the mark proves it");
    }

    proptest! {
        #[test]
        fn junk_never_panics(junk in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..200) {
            let _ = count(&junk);
            let mut bytes = file(&[1, 2]);
            let at = HEADER + at % (bytes.len() - HEADER);
            bytes.truncate(at);
            bytes.extend_from_slice(&junk);
            let _ = count(&bytes);
        }
    }
}
