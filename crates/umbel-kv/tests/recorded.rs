//! Event streams of both engines, recorded with their own message definitions (`golden/make.py`): with
//! gaps, clears, lost connections and restarts. The blocks must be what the recorder computed.

use std::collections::{BTreeSet, VecDeque};

use umbel_kv::blocks::{Blocks, Hashing};
use umbel_kv::follower::{Counts, Follower, Replay, ReplayError};
use umbel_kv::{BlockKey, Sink as _};

use crate::memory_sink::MemorySink;

pub(crate) const STREAMS: [(&str, &[u8]); 3] = [
    ("vllm-maps", include_bytes!("golden/vllm-maps.bin")),
    ("vllm-arrays", include_bytes!("golden/vllm-arrays.bin")),
    ("sglang-arrays", include_bytes!("golden/sglang-arrays.bin")),
];

/// A record: kind, number, bytes. `golden/make.py` says what they are.
pub(crate) fn records(mut bytes: &[u8]) -> Vec<(u8, u64, &[u8])> {
    let mut records = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<13>() {
        let number = u64::from_be_bytes(header[1..9].try_into().expect("eight"));
        let length = u32::from_be_bytes(header[9..].try_into().expect("four")) as usize;
        let (payload, rest) = rest.split_at(length);
        records.push((header[0], number, payload));
        bytes = rest;
    }
    assert!(bytes.is_empty());
    records
}

/// What an engine still has.
#[derive(Default)]
struct Kept<'a>(VecDeque<(u64, &'a [u8])>);

impl<'a> Kept<'a> {
    fn push(&mut self, number: u64, payload: &'a [u8]) {
        self.0.push_back((number, payload));
        if self.0.len() > 50 {
            self.0.pop_front();
        }
    }
}

impl Replay for Kept<'_> {
    fn replay(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), ReplayError> {
        let mut kept = self.0.iter().filter(|(number, _)| *number >= from);
        _ = kept.all(|(number, payload)| each(*number, payload));
        Ok(())
    }
}

fn keys_of_numbers(bytes: &[u8]) -> BTreeSet<BlockKey> {
    let (numbers, []) = bytes.as_chunks::<8>() else { panic!("whole keys") };
    numbers.iter().map(|bytes| BlockKey::Number(u64::from_le_bytes(*bytes))).collect()
}

fn keys_of_engine(mut bytes: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut keys = BTreeSet::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (key, rest) = rest.split_at(usize::from(*length));
        keys.insert(key.to_vec());
        bytes = rest;
    }
    keys
}

/// Follows a stream, and compares at every check of it; what was counted.
fn follow(name: &str, stream: &[u8], hashing: Hashing) -> (Counts, usize) {
    let mut follower = Follower::new(Blocks::new(hashing, 0), Some(0));
    let (mut kept, mut sink) = (Kept::default(), MemorySink::default());
    let (mut checks, mut largest) = (0, 0);
    for (place, (kind, number, bytes)) in records(stream).into_iter().enumerate() {
        let here = || format!("{name}, {hashing:?}, record {place}");
        match kind {
            0 => {
                kept.push(number, bytes);
                follower.handle_message(number, bytes, &mut kept);
            }
            1 => kept.push(number, bytes),
            2 => kept = Kept::default(),
            3 => follower.connected(&mut kept),
            _ => {
                for changes in follower.blocks().take_changes() {
                    sink.apply(&changes).expect("it works");
                }
                let tier = if kind == 5 { "cpu" } else { "" };
                if kind == 6 && hashing == Hashing::Engine {
                    let held: BTreeSet<Vec<u8>> =
                        sink.keys("").iter().map(|key| key.with_bytes(<[u8]>::to_vec)).collect();
                    assert!(held == keys_of_engine(bytes), "{}", here());
                } else if kind != 6 && hashing == Hashing::Canonical {
                    let expected = keys_of_numbers(bytes);
                    let held = sink.keys(tier);
                    assert!(held == expected, "{}: {} of {}", here(), held.len(), expected.len());
                }
                (checks, largest) = (checks + 1, largest.max(sink.keys("").len()));
            }
        }
    }
    assert!(checks > 50 && largest > 50, "{name}: {checks} checks, {largest} blocks at most");
    (follower.counts(), largest)
}

#[test]
fn recorded_streams_reproduce_the_blocks_exactly() {
    for (name, stream) in STREAMS {
        for hashing in [Hashing::Canonical, Hashing::Engine] {
            let (counts, _) = follow(name, stream, hashing);
            assert_eq!(counts.rejected, 0, "{name}");
            assert_eq!(counts.other_ranks, 0, "{name}");
            // Two rounds of 1, 7 and 60 missing messages, and two of 5 over a lost connection.
            assert_eq!(counts.missed, 2 * (1 + 7 + 60), "{name}");
            assert_eq!(counts.replayed, 2 * (1 + 7 + 5 + 3), "{name}");
            // Two gaps that cannot be closed, four restarts.
            assert_eq!(counts.dropped, 2 + 4, "{name}");
        }
    }
}

/// Without replay, every gap and every lost connection drops all blocks: nothing is claimed that
/// might be gone.
#[test]
fn without_replay_what_is_uncertain_is_dropped() {
    let mut follower = Follower::new(Blocks::new(Hashing::Engine, 0), None);
    let mut none = umbel_kv::follower::NoReplay;
    let (_, stream) = STREAMS[1];
    let (mut heard, mut claimed) = (0, 0);
    for (kind, number, bytes) in records(stream) {
        match kind {
            0 => {
                follower.handle_message(number, bytes, &mut none);
                heard += 1;
            }
            3 => follower.connected(&mut none),
            6 => {
                let held = keys_of_engine(bytes);
                let mut sink = MemorySink::default();
                follower.blocks().show_all();
                for changes in follower.blocks().take_changes() {
                    sink.apply(&changes).expect("it works");
                }
                let keys = sink.keys("");
                let is_held = |key: &BlockKey| key.with_bytes(|bytes| held.contains(bytes));
                assert!(keys.iter().all(is_held), "a block is claimed that is not held");
                claimed += keys.len();
            }
            _ => {}
        }
    }
    let counts = follower.counts();
    assert_eq!((counts.messages, counts.replayed), (heard, 0));
    assert!(counts.dropped >= 6 + 6 && claimed > 100, "{counts:?}, {claimed}");
}

#[test]
fn other_ranks_are_ignored_and_counted() {
    let mut follower = Follower::new(Blocks::new(Hashing::Engine, 0), Some(3));
    let (_, stream) = STREAMS[1];
    let first = records(stream).into_iter().find(|record| record.0 == 0).expect("a message");
    follower.handle_message(first.1, first.2, &mut umbel_kv::follower::NoReplay);
    assert_eq!((follower.counts().other_ranks, follower.blocks().len()), (1, 0));
}
