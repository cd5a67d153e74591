//! Any message to a host that holds replicas: refused or taken, never a panic, and what
//! answers is always a whole image.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{Config, Engine};
use umbel::protocol::Protocol as _;
use umbel::replica::{Incarnation, Name, SetPlan};
use umbel::{HashId, KeyHasher, Seed};

fn host(name: &str) -> Engine<MemoryCatalogue> {
    let hasher = KeyHasher::new(HashId::Xxh3, Seed::default());
    let mut config = Config::new(Name::new(name).unwrap(), Incarnation(1), hasher);
    config.max_bits = 1 << 20;
    config.replica_bytes = 1 << 26;
    Engine::new(config)
}

fuzz_target!(|data: &[u8]| {
    let (home, set) = (Name::new("home").unwrap(), Name::new("set").unwrap());
    let (mut a, mut b) = (host("home"), host("host"));
    let plan = SetPlan { capacity: Some(16), ..SetPlan::default() };
    a.create(Duration::ZERO, &set, plan, MemoryCatalogue::new()).unwrap();
    a.add_many(Duration::ZERO, &set, &[b"one", b"two", b"three"], &mut |_| ());
    a.publish(Duration::ZERO, &set);
    while let Some(transmit) = a.poll_transmit() {
        b.handle_message(Duration::ZERO, &home, &transmit.bytes);
    }
    // Several messages, each with its checksum put right.
    for message in data.split(|byte| *byte == 0xFE) {
        let mut sealed = message.to_vec();
        sealed.extend_from_slice(&crc32c::crc32c(message).to_le_bytes());
        b.handle_message(Duration::from_secs(1), &home, &sealed);
        a.handle_message(Duration::from_secs(1), &Name::new("host").unwrap(), &sealed);
    }
    b.handle_timeout(Duration::from_secs(2));
    b.validate();
    a.validate();
});
