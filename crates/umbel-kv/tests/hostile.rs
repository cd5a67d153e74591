//! Bytes that no engine sends: rejected and counted, never worse.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use umbel_kv::blocks::{Blocks, Hashing};
use umbel_kv::event::{Batch, EventError};
use umbel_kv::follower::{Follower, NoReplay};
use umbel_kv::{Report, SidecarConfig};

use crate::memory_sink::MemorySink;
use crate::recorded::{STREAMS, records};

/// Numbers that look random, the same in every run.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn truncated_messages_are_rejected_and_change_nothing() {
    for (name, stream) in STREAMS {
        let messages = records(stream).into_iter().filter(|record| record.0 == 0).take(6);
        for (_, _, payload) in messages {
            assert!(Batch::decode(payload).is_ok(), "{name}");
            for end in 0..payload.len() {
                assert!(Batch::decode(&payload[..end]).is_err(), "{name}, {end}");
            }
        }
    }
}

#[test]
fn messages_with_other_bytes_are_applied_or_rejected() {
    let mut next = random(7);
    for (_, stream) in STREAMS {
        let mut follower = Follower::new(Blocks::new(Hashing::Canonical, 0), None);
        let messages: Vec<_> =
            records(stream).into_iter().filter(|record| record.0 == 0).map(|r| r.2).collect();
        let mut sent = 0;
        for round in 0..3000 {
            let mut payload = messages[next() as usize % messages.len()].to_vec();
            for _ in 0..=next() % 4 {
                let place = next() as usize % payload.len();
                payload[place] = next() as u8;
            }
            follower.handle_message(round, &payload, &mut NoReplay);
            sent += 1;
        }
        let counts = follower.counts();
        assert_eq!(counts.messages + counts.rejected, sent);
        assert!(counts.rejected > 100, "{counts:?}");
        follower.blocks().show_all();
        follower.blocks().take_changes();
    }
}

#[test]
fn random_bytes_are_rejected() {
    let mut next = random(8);
    for _ in 0..20_000 {
        let length = next() as usize % 64;
        let bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        _ = Batch::decode(&bytes);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let cases: [(&[u8], &str); 10] = [
        (b"", "the message ends in the middle of a value"),
        (b"\x05", "expected an array at byte 0, found a value of type 0x05"),
        (b"\x91\x01", "a batch event without events"),
        (b"\x92\x01\x91\x90", "a nameless event without name"),
        (b"\x92\x01\x91\x80", "a nameless event without type"),
        (b"\x92\x01\x91\x91\xacBlockRemoved", "a BlockRemoved event without block_hashes"),
        (
            b"\x92\x01\x91\x95\xabBlockStored\x91\x01\xc0\x93\x01\x02\x03\x02",
            "3 tokens for 1 blocks of 2",
        ),
        (
            b"\x92\x01\x91\x95\xabBlockStored\x91\x01\xc0\x92\x01\xff\x02",
            "a token is -1, which cannot be",
        ),
        (
            b"\x92\x01\x91\x92\xacBlockRemoved\x91\xa0",
            "the hash of a block has 0 bytes; 1 to 255 are accepted",
        ),
        (
            b"\x82\xa2ts\x01\xa6events\x91\x81\xa4type\x05",
            "expected bytes or a text at byte 19, found a value of type 0x05",
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(Batch::decode(bytes).unwrap_err().to_string(), message);
    }
    let unknown = b"\x92\x01\x92\x92\xaaBlockMoved\x01\x91\xb0AllBlocksCleared";
    let batch = Batch::decode(unknown).unwrap();
    assert_eq!((batch.unknown, batch.events.len()), (1, 1));
    assert!(matches!(Batch::decode(b"\xc1"), Err(EventError::Msgpack(_))));
}

/// A server that is no ZeroMQ socket, or one of another kind: reported, and tried again.
#[test]
fn other_servers_are_reported() {
    let greeting = {
        let mut bytes = vec![0; 64];
        (bytes[0], bytes[9], bytes[10]) = (0xff, 0x7f, 3);
        bytes[12..16].copy_from_slice(b"NULL");
        bytes
    };
    let ready = |kind: &str| {
        let body =
            [b"\x05READY\x0bSocket-Type\0\0\0", &[kind.len() as u8][..], kind.as_bytes()].concat();
        [&[4, body.len() as u8], &body[..]].concat()
    };
    let cases = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".repeat(4), "not a ZeroMQ peer"),
        ([&greeting[..], &ready("REP")].concat(), "a REP socket, where PUB or XPUB is expected"),
        ([&greeting[..], &ready("PUB"), b"\x00\x03abc"].concat(), "not topic, number and payload"),
        ([&greeting[..], &ready("PUB"), &[2; 9]].concat(), "a frame of"),
        (Vec::new(), "failed to fill whole buffer"),
    ];
    for (bytes, message) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("tcp://{}", listener.local_addr().expect("an address"));
        let stop = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a connection");
                stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is open");
                _ = stream.write_all(&bytes);
                _ = stream.shutdown(std::net::Shutdown::Write);
                _ = stream.read_to_end(&mut Vec::new());
            });
            let config = SidecarConfig {
                events: endpoint.parse().expect("an endpoint"),
                replay: None,
                topic: Vec::new(),
                rank: None,
                hashing: Hashing::Canonical,
                group: 0,
                forget: Duration::from_secs(30),
            };
            let mut reports = Vec::new();
            umbel_kv::run(&config, &mut MemorySink::default(), &stop, &mut |report| {
                if matches!(report, Report::Lost(_)) {
                    stop.store(true, Ordering::Relaxed);
                }
                reports.push(report.to_string());
            });
            assert!(
                reports.iter().any(|report| report.contains(message)),
                "{message}: {reports:?}"
            );
        });
    }
}
