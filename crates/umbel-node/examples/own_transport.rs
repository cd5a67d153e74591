//! The pure protocol over the caller's own transport: here, two queues between two threads.
//!
//! The engine neither sends nor sleeps: whoever drives it hands over what arrives, and takes
//! what is to be sent.
//!
//! `cargo run -p umbel-node --example own_transport`

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{Engine, MeshConfig};
use umbel::protocol::Protocol as _;
use umbel::replica::{Incarnation, Name, SetPlan};
use umbel::{HashId, KeyHasher, Seed};

type Message = (Name, Vec<u8>);

struct Driver {
    engine: Engine<MemoryCatalogue>,
    start: Instant,
    to: Sender<Message>,
    from: Receiver<Message>,
}

impl Driver {
    fn new(name: &str, to: Sender<Message>, from: Receiver<Message>) -> Self {
        let name = Name::new(name).expect("a name");
        let hasher = KeyHasher::secret(HashId::SipHash13, Seed::from_secret(b"the cluster's"));
        let engine = Engine::new(MeshConfig::new(name, Incarnation(1), hasher));
        Self { engine, start: Instant::now(), to, from }
    }

    /// Takes what arrives, and sends what there is to send, until `done`.
    fn run(&mut self, done: impl Fn(&Engine<MemoryCatalogue>) -> bool) {
        while !done(&self.engine) {
            let wait = self.engine.poll_timeout().saturating_sub(self.start.elapsed());
            let arrived = self.from.recv_timeout(wait.min(Duration::from_millis(100)));
            let now = self.start.elapsed();
            if let Ok((from, bytes)) = arrived {
                self.engine.handle_message(now, &from, &bytes);
            }
            self.engine.handle_timeout(now);
            while let Some(transmit) = self.engine.poll_transmit() {
                // With two hosts, "everybody" and "that host" are the same.
                let _ = self.to.send((self.engine.config().name.clone(), transmit.bytes));
            }
            while self.engine.poll_event().is_some() {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (to_fern, at_fern) = channel();
    let (to_lily, at_lily) = channel();
    let images = Name::new("images").expect("a name");

    let set = images.clone();
    let fern = thread::spawn(move || {
        let mut fern = Driver::new("fern", to_lily, at_fern);
        let plan = SetPlan::default();
        fern.engine.create(Duration::ZERO, &set, plan, MemoryCatalogue::new()).expect("a plan");
        fern.engine.add(Duration::ZERO, &set, b"cat.png");
        let end = Instant::now() + Duration::from_secs(3);
        fern.run(|_| Instant::now() > end);
    });
    let mut lily = Driver::new("lily", to_fern, at_lily);
    let holders = |engine: &Engine<MemoryCatalogue>| {
        engine.who(&images, engine.hash(b"cat.png")).unwrap_or_default()
    };
    lily.run(|engine| !holders(engine).is_empty());
    println!("cat.png: {:?}", holders(&lily.engine));
    fern.join().map_err(|_| "fern panicked")?;
    Ok(())
}
