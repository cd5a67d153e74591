//! Two hosts find each other's objects. The transport is a loop in memory: put your own in
//! its place.
//!
//! `cargo run -p umbel --example two_homes_in_memory`

use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{Engine, MeshConfig};
use umbel::protocol::{Protocol as _, Transmit};
use umbel::replica::{Incarnation, Name, SetPlan};
use umbel::{HashId, KeyHasher, Seed};

type Host = Engine<MemoryCatalogue>;

fn host(name: &str) -> Result<Host, Box<dyn std::error::Error>> {
    let seed = Seed::from_secret(b"known to the cluster alone");
    let hasher = KeyHasher::secret(HashId::SipHash13, seed);
    let name = Name::new(name).ok_or("a name without spaces")?;
    let mut host = Engine::new(MeshConfig::new(name, Incarnation(1), hasher));
    let set = Name::new("images").ok_or("a name without spaces")?;
    host.create(Duration::ZERO, &set, SetPlan::default(), MemoryCatalogue::new())?;
    Ok(host)
}

/// Carries every message that `from` has for the others to `to`.
fn carry(now: Duration, from: &mut Host, to: &mut Host) {
    let sender = from.config().name.clone();
    while let Some(Transmit { bytes, .. }) = from.poll_transmit() {
        to.handle_message(now, &sender, &bytes);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut lily, mut fern) = (host("lily")?, host("fern")?);
    let images = Name::new("images").ok_or("a name without spaces")?;
    lily.add(Duration::ZERO, &images, b"cat.png");
    fern.add(Duration::ZERO, &images, b"dog.png");

    // One clock, a tick every 100 ms: timers fire, messages cross.
    for tick in 1..20 {
        let now = Duration::from_millis(100 * tick);
        lily.handle_timeout(now);
        fern.handle_timeout(now);
        carry(now, &mut lily, &mut fern);
        carry(now, &mut fern, &mut lily);
    }

    for (host, key) in [(&lily, "dog.png"), (&fern, "cat.png"), (&fern, "owl.png")] {
        let found = host.who(&images, host.hash(key.as_bytes())).unwrap_or_default();
        println!("{} says of {key}: {found:?}", host.config().name);
    }
    assert_eq!(lily.who(&images, lily.hash(b"dog.png")), Some(vec![fern.config().name.clone()]));
    Ok(())
}
