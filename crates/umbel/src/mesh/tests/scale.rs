//! What a mesh costs each host, with as many hosts as there are: a measurement, to read.

use std::collections::BTreeMap;
use std::time::Instant;

use super::*;

/// Bytes and messages that reached all hosts, and the time that they took to handle them.
#[derive(Default)]
struct Cost {
    messages: u64,
    bytes: u64,
    time: Duration,
}

/// Hosts that are found by their names.
struct Mesh {
    engines: Vec<Engine<MemoryCatalogue>>,
    numbers: BTreeMap<Name, usize>,
    now: Duration,
}

impl Mesh {
    fn of(hosts: usize, keys: u64) -> Self {
        let mut mesh =
            Self { engines: Vec::new(), numbers: BTreeMap::new(), now: Duration::from_secs(1) };
        (0..hosts).for_each(|_| mesh.add_host(keys));
        mesh
    }

    /// Hosts that a host knows, itself included.
    fn known(&self, engine: &Engine<MemoryCatalogue>) -> usize {
        1 + engine.heard_of(self.now).iter().filter(|(_, gap)| gap.is_none()).count()
    }

    /// One more host, whose announcements come at a time of its own.
    fn add_host(&mut self, keys: u64) {
        let number = self.engines.len();
        let host = name(&format!("host-{number}"));
        let mut config = Config::new(host.clone(), Incarnation(1), hasher());
        (config.intervals, config.seed) = (AT_ONCE, number as u64);
        let mut engine = Engine::new(config);
        let (set, plan) = (name("set"), plan("miss:0", keys));
        engine.create(self.now, &set, plan, MemoryCatalogue::new()).unwrap();
        let keys: Vec<_> = (0..keys).map(|key| (number as u64) << 32 | key).map(key).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        engine.add_many(self.now, &set, &keys, &mut |_| ());
        engine.handle_timeout(self.now);
        self.numbers.insert(host, number);
        self.engines.push(engine);
    }

    /// Delivers everything, also to whoever has been added last.
    fn deliver(&mut self, cost: &mut Cost) {
        let mut from = 0;
        let mut idle = 0;
        while idle < self.engines.len() {
            idle += 1;
            let sender = self.engines[from].config().name.clone();
            while let Some(Transmit { to, bytes }) = self.engines[from].poll_transmit() {
                idle = 0;
                match to {
                    Destination::All => {
                        for host in (0..self.engines.len()).filter(|host| *host != from) {
                            self.hand_over(host, &sender, &bytes, cost);
                        }
                    }
                    Destination::Host(host) | Destination::Reply(host) => {
                        self.hand_over(self.numbers[&host], &sender, &bytes, cost);
                    }
                    Destination::Neighbour(_) => panic!("a mesh has no neighbours"),
                }
            }
            from = (from + 1) % self.engines.len();
        }
    }

    fn hand_over(&mut self, host: usize, from: &Name, bytes: &[u8], cost: &mut Cost) {
        let start = Instant::now();
        self.engines[host].handle_message(self.now, from, bytes);
        cost.time += start.elapsed();
        cost.messages += 1;
        cost.bytes += bytes.len() as u64;
        while self.engines[host].poll_event().is_some() {}
    }

    fn wait(&mut self, seconds: u64) -> Cost {
        let mut cost = Cost::default();
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            let start = Instant::now();
            self.engines.iter_mut().for_each(|engine| engine.handle_timeout(self.now));
            cost.time += start.elapsed();
            self.deliver(&mut cost);
        }
        cost
    }
}

#[test]
#[ignore = "a measurement, to read"]
fn table_of_what_hosts_cost() {
    const KEYS: u64 = 1000;
    println!("hosts, messages and bytes received per second and host, processor share, charged");
    for hosts in [10, 100, 1000] {
        let mut mesh = Mesh::of(hosts, KEYS);
        mesh.deliver(&mut Cost::default());
        mesh.wait(9);
        assert!(mesh.engines.iter().all(|engine| mesh.known(engine) == hosts));
        let seconds = 12;
        let Cost { messages, bytes, time } = mesh.wait(seconds);
        let each = hosts as f64 * seconds as f64;
        println!(
            "{hosts:>6} {:>10.1} {:>10.0} {:>10.4} % {:>12}",
            messages as f64 / each,
            bytes as f64 / each,
            100.0 * time.as_secs_f64() / each,
            mesh.engines[0].replica_bytes_charged(),
        );
        mesh.add_host(KEYS);
        let joined = mesh.wait(6);
        println!(
            "       one more host: {} messages and {} bytes in 6 s, {} of {hosts} others known",
            joined.messages,
            joined.bytes,
            mesh.known(&mesh.engines[hosts]) - 1,
        );
    }
}
