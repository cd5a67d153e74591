//! Any message to a host of an overlay: refused or taken, never a panic, and the table keeps its
//! promises.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use umbel::catalogue::MemoryCatalogue;
use umbel::replica::{Incarnation, Name};
use umbel::route::{Config, EntryKind, Plan, Router};
use umbel::{HashId, KeyHasher, Seed};

fn host(name: &str, kind: EntryKind) -> Router<MemoryCatalogue> {
    let plan = Plan { kind, depth: 3, items: 4, filters: 4, false_positive: 0.01 };
    let hasher = KeyHasher::new(HashId::Xxh3, Seed::default());
    let (name, set) = (Name::new(name).unwrap(), Name::new("s").unwrap());
    let mut config = Config::new(name, Incarnation(1), set, hasher, plan);
    config.max_bits = 1 << 20;
    let mut router = Router::new(Duration::ZERO, config, MemoryCatalogue::new()).unwrap();
    router.add(Duration::ZERO, b"held");
    router.publish(Duration::ZERO);
    router
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    let kind = EntryKind::ALL[usize::from(*kind) % 3];
    let (a, b, c) = (Name::new("a").unwrap(), Name::new("b").unwrap(), Name::new("c").unwrap());
    let (mut home, mut router) = (host("a", kind), host("b", kind));
    home.handle_link_up(Duration::ZERO, &b);
    router.handle_link_up(Duration::ZERO, &a);
    router.handle_link_up(Duration::ZERO, &c);
    while let Some(transmit) = home.poll_transmit() {
        router.handle_message(Duration::ZERO, &a, &transmit.bytes);
    }
    router.locate(Duration::ZERO, b"sought", None);
    // Several messages of this set, each with its checksum put right.
    for (number, body) in data.split(|byte| *byte == 0xFE).enumerate() {
        let Some((kind, body)) = body.split_first() else { continue };
        let mut sealed = vec![1, 16 + kind % 6, 1, b's'];
        sealed.extend_from_slice(body);
        let checksum = crc32c::crc32c(&sealed);
        sealed.extend_from_slice(&checksum.to_le_bytes());
        let from = if number % 2 == 0 { &a } else { &c };
        router.handle_message(Duration::from_millis(number as u64), from, &sealed);
    }
    router.handle_timeout(Duration::from_secs(2));
    router.validate();
    router.handle_timeout(Duration::from_secs(60));
    router.validate();
    // Given up by then, and forgotten a little later.
    router.handle_timeout(Duration::from_secs(120));
    assert_eq!(router.queries(), 0);
});
