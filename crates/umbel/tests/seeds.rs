//! Every seed of the fuzz targets for filters, prefixes and messages is survived.
//!
//! Seeds of messages are made by a program: when the messages have changed, make them anew with
//!
//! ```text
//! UMBEL_RECORD=1 cargo test -p umbel --test integration seeds::
//! ```

use std::time::Duration;

use umbel::protocol::Protocol as _;
use umbel::replica::Name;
use umbel::route::EntryKind;

use targets::{BETWEEN, mesh_pair, overlay_pair};

#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/replica.rs"]
#[expect(unreachable_pub, reason = "it is public where targets call it")]
mod targets;

#[test]
fn seeds_are_survived() {
    if std::env::var_os("UMBEL_RECORD").is_some() {
        record();
    }
    let golden = |target: &str| {
        let has_frames = matches!(target, "apply_delta" | "decode_filter" | "decode_prefixes");
        has_frames.then_some("crates/umbel/tests/golden/v1")
    };
    replay::replay(targets::TARGETS, golden);
}

fn record() {
    replay::write("message", &mesh());
    let kinds = EntryKind::ALL.into_iter().enumerate();
    let seeds = kinds.map(|(number, kind)| [&[number as u8][..], &overlay(kind)].concat());
    replay::write("route_message", &seeds.collect::<Vec<_>>());
}

/// Messages without their checksums, in groups of three.
fn grouped(messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let bodies: Vec<&[u8]> = messages.iter().map(|bytes| &bytes[..bytes.len() - 4]).collect();
    bodies.chunks(3).map(|group| group.join(BETWEEN)).collect()
}

/// What two hosts of a mesh send each other in a few minutes, some of it lost.
fn mesh() -> Vec<Vec<u8>> {
    let (mut home, mut host) = mesh_pair();
    let (home_name, host_name) = (name("home"), name("host"));
    let mut all: Vec<Vec<u8>> = Vec::new();
    for second in 1..120 {
        let now = Duration::from_secs(second);
        if second % 20 == 3 {
            let keys: Vec<String> = (0..second * 2).map(|key| format!("{second} {key}")).collect();
            let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            home.add_many(now, &name("set"), &keys, &mut |_| ());
            home.publish(now, &name("set"));
        }
        home.handle_timeout(now);
        host.handle_timeout(now);
        while let Some(transmit) = home.poll_transmit() {
            if second % 40 != 3 {
                host.handle_message(now, &home_name, &transmit.bytes);
            }
            all.push(transmit.bytes);
        }
        while let Some(transmit) = host.poll_transmit() {
            home.handle_message(now, &host_name, &transmit.bytes);
            all.push(transmit.bytes);
        }
    }
    // A message of each kind and length class is enough.
    let class = |bytes: &Vec<u8>| (bytes[1], bytes.len().ilog2());
    all.retain(|bytes| bytes.len() <= 1200);
    all.sort_by_key(class);
    all.dedup_by_key(|bytes| class(bytes));
    grouped(&all)
}

/// What two hosts of an overlay send each other, with a query.
fn overlay(kind: EntryKind) -> Vec<u8> {
    let (mut home, mut router) = overlay_pair(kind);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for second in 0..20 {
        let now = Duration::from_secs(second);
        if second == 5 {
            router.locate(now, b"held", None);
            home.locate(now, b"sought", None);
        }
        home.handle_timeout(now);
        router.handle_timeout(now);
        while let Some(transmit) = home.poll_transmit() {
            router.handle_message(now, &name("a"), &transmit.bytes);
            all.push(transmit.bytes);
        }
        while let Some(transmit) = router.poll_transmit() {
            home.handle_message(now, &name("b"), &transmit.bytes);
            all.push(transmit.bytes);
        }
    }
    all.sort_by_key(|bytes| bytes[1]);
    all.dedup_by_key(|bytes| bytes[1]);
    grouped(&all).join(BETWEEN)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}
