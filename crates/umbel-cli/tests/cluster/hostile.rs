//! A member that turns hostile: it has joined, with a valid certificate where there are any, and
//! sends what the protocol permits and forbids, drawn from a seed.
//!
//! Its messages are made by the protocol itself, for sets that are huge, empty, many, overlap with
//! those of honest hosts or change all the time; then they are sent as they are, again, late, in
//! another order, cut, changed with their checksums put right, or filled with ones. It answers
//! requests for pages in the same ways, asks for anything, and greets with anything.
//!
//! Asserted all the while: honest hosts answer, name each other for exactly the keys that they
//! hold, and take a bounded amount of memory; afterwards they still hear each other. How long an
//! honest client waits is printed: a machine that is busy with something else makes it wait too.
//!
//! `cargo xtask hostile --minutes M` runs for longer; `UMBEL_HOSTILE_SEED` chooses another seed.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{Engine, MeshConfig};
use umbel::protocol::{Destination, Protocol as _};
use umbel::replica::{Incarnation, Name, SetPlan};
use umbel::{HashId, KeyHasher, Seed};
use zenoh::Wait as _;

use super::hosts::{Cluster, eventually, name};
use super::secured::{says, start_secured, write_peers};
use super::{add, named};

/// Which host of the cluster is the hostile one; the others are honest.
const HOSTILE: usize = 2;
/// What honest hosts may take for replicas, and beyond that for everything else.
const REPLICA_BYTES: u64 = 64 << 20;
const OTHER_BYTES: u64 = 256 << 20;

/// Numbers from a seed (splitmix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Makes messages, good and bad.
struct Maker {
    dice: Dice,
    engine: Engine<MemoryCatalogue>,
    now: Duration,
    sets: usize,
    /// Sets of 2^28 bits among them.
    huge: usize,
    /// What was made before, to be sent again.
    made: Vec<Vec<u8>>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let hasher = KeyHasher::new(HashId::SipHash13, Seed::default());
        let own = Name::new(&name(HOSTILE)).expect("a name");
        let mut config = MeshConfig::new(own, Incarnation(7), hasher);
        config.max_bits = 1 << 33;
        config.own_bytes = 1 << 40;
        let now = Duration::from_secs(1);
        Self {
            dice: Dice(seed),
            engine: Engine::new(config),
            now,
            sets: 0,
            huge: 0,
            made: Vec::new(),
        }
    }

    /// A set of this name and capacity; in an honest host's memory it is what it claims to be.
    fn create(&mut self, set: &str, capacity: Option<u64>) {
        let set = Name::new(set).expect("a name");
        let plan = SetPlan { capacity, ..SetPlan::default() };
        let _ = self.engine.create(self.now, &set, plan, MemoryCatalogue::new());
        self.engine.publish(self.now, &set);
        self.sets += 1;
    }

    /// Lets the protocol say what it has to say; what goes to everybody is handed over.
    fn speak(&mut self) -> Vec<Vec<u8>> {
        self.now += Duration::from_millis(1 + self.dice.next() % 5000);
        self.engine.handle_timeout(self.now);
        let sent = std::iter::from_fn(|| self.engine.poll_transmit());
        let sent = sent.filter(|sent| sent.to == Destination::All).map(|sent| sent.bytes);
        let sent: Vec<Vec<u8>> = sent.collect();
        self.made.extend(sent.iter().cloned());
        let excess = self.made.len().saturating_sub(2000);
        self.made.drain(..excess);
        sent
    }

    /// What the protocol answers to a request.
    fn answer(&mut self, from: &str, request: &[u8]) -> Vec<Vec<u8>> {
        let (Some(from), Some((_, message))) = (Name::new(from), request.split_first()) else {
            return Vec::new();
        };
        self.engine.handle_message(self.now, &from, message);
        let sent = std::iter::from_fn(|| self.engine.poll_transmit());
        let reply = |to: &Destination| matches!(to, Destination::Reply(_));
        sent.filter(|sent| reply(&sent.to)).map(|sent| sent.bytes).collect()
    }

    /// A message, made worse in one of many ways.
    fn spoil(&mut self, mut message: Vec<u8>) -> Vec<u8> {
        let end = message.len().saturating_sub(4);
        match self.dice.below(8) {
            0 => message.truncate(self.dice.below(message.len())),
            1 => message.extend(vec![0xff; self.dice.below(4096)]),
            2 | 3 if end > 2 => {
                for _ in 0..=self.dice.below(8) {
                    let at = 2 + self.dice.below(end - 2);
                    message[at] = self.dice.next() as u8;
                }
                seal(&mut message);
            }
            4 if end > 2 => {
                let from = 2 + self.dice.below(end - 2);
                message[from..end].fill(0xff);
                seal(&mut message);
            }
            5 => message = self.dice.bytes(self.dice.0 as usize % 2000),
            6 => message.clear(),
            _ => {}
        }
        message
    }

    /// The next messages.
    fn next(&mut self) -> Vec<Vec<u8>> {
        match self.dice.below(12) {
            0 if self.sets < 3000 => {
                for number in 0..50 {
                    let long = "x".repeat(self.dice.below(200));
                    self.create(&format!("many-{number}-{}-{long}", self.sets), None);
                }
            }
            1 if self.huge < 12 => {
                // Empty, and 2^28 bits long: a message of half a kilobyte that asks for 32 MiB.
                self.huge += 1;
                self.create(&format!("huge-{}", self.huge), Some(20_000_000));
            }
            2 | 3 => {
                let set = Name::new("images").expect("a name");
                let keys: Vec<Vec<u8>> = (0..self.dice.below(2000))
                    .map(|_| format!("good-{}", self.dice.below(20_000)).into_bytes())
                    .collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                self.engine.add_many(self.now, &set, &keys, &mut |_| ());
                self.engine.publish(self.now, &set);
            }
            4 => {
                let sets: Vec<Name> = self.engine.sets().into_iter().cloned().collect();
                if let Some(set) = sets.get(self.dice.below(sets.len())) {
                    self.engine.publish(self.now, set);
                    if self.dice.below(4) == 0 && set.as_str() != "images" {
                        self.engine.delete(set);
                    }
                }
            }
            5..=8 if !self.made.is_empty() => {
                let old = self.made[self.dice.below(self.made.len())].clone();
                let old = if self.dice.below(3) == 0 { old } else { self.spoil(old) };
                return vec![old];
            }
            _ => {}
        }
        let mut sent = self.speak();
        for at in (1..sent.len()).rev() {
            let other = self.dice.below(at + 1);
            sent.swap(at, other);
        }
        sent
    }
}

/// Puts the checksum at the end of a message right.
fn seal(message: &mut [u8]) {
    let end = message.len() - 4;
    let sum = crc32c::crc32c(&message[..end]);
    message[end..].copy_from_slice(&sum.to_le_bytes());
}

/// A session of the hostile member.
fn session(cluster: &Cluster, is_secured: bool) -> zenoh::Session {
    let mut config = zenoh::Config::default();
    let protocol = if is_secured { "tls" } else { "tcp" };
    let to = [0, 1].map(|host| format!("\"{protocol}/{}\"", cluster.listen(host)));
    let certs = cluster.path("certs");
    let own = format!("{certs}/{}", name(HOSTILE));
    let tls = serde_json::json!({
        "root_ca_certificate": format!("{certs}/ca.pem"),
        "connect_certificate": format!("{own}.pem"),
        "connect_private_key": format!("{own}.key"),
        "enable_mtls": true,
        "verify_name_on_connect": false,
    });
    let mut settings = vec![
        ("mode", "\"peer\"".to_owned()),
        ("listen/endpoints", "[]".to_owned()),
        ("connect/endpoints", format!("[{}]", to.join(","))),
        ("scouting/multicast/enabled", "false".to_owned()),
    ];
    if is_secured {
        settings.push(("transport/link/tls", tls.to_string()));
    }
    for (key, value) in settings {
        config.insert_json5(key, &value).expect("a sound configuration");
    }
    zenoh::open(config).wait().expect("a session")
}

/// The greeting in a request of an honest host, under the hostile one's name. Hosts send it to ask
/// a host that they have just seen for its own one.
fn greeting_in(request: &[u8]) -> Option<serde_json::Value> {
    let (_kind, greeting) = request.split_first()?;
    let mut greeting: serde_json::Value = serde_json::from_slice(greeting).ok()?;
    greeting["name"] = name(HOSTILE).into();
    greeting["incarnation"] = 7.into();
    Some(greeting)
}

/// Greets: mostly well, now and then with anything.
fn greet(session: &zenoh::Session, good: &serde_json::Value, dice: &mut Dice) {
    let mut greeting = good.clone();
    match dice.below(6) {
        0 => greeting["advertise"] = "x".repeat(dice.below(20_000)).into(),
        1 => greeting["cluster"] = "local\n2026 INFO all is well \u{1b}[2J".into(),
        2 => greeting["hosts"] = format!("{:x}", dice.next()).into(),
        3 => greeting["listen"] = "256.0.0.1:99999".into(),
        _ => {}
    }
    let own = format!("umbel-hello/{}", name(HOSTILE));
    let _ = session.put(own, greeting.to_string()).wait();
    let other = format!("umbel-hello/{}", "n".repeat(1 + dice.below(250)));
    let _ = session.put(other, good.to_string()).wait();
}

/// Asks an honest host for anything.
fn ask(session: &zenoh::Session, dice: &mut Dice) {
    let to = format!("umbel/local/{}/requests/{}", name(dice.below(2)), name(HOSTILE));
    let kind = dice.below(6) as u8;
    let payload = [vec![kind], dice.bytes(dice.0 as usize % 300)].concat();
    // Nobody waits for the answer.
    let _ = session.get(to).payload(payload).timeout(Duration::from_secs(1)).wait();
}

/// What must hold whatever the hostile member does. Returns how long an honest client waited for
/// each of its requests.
fn check(cluster: &Cluster, seed: u64) -> Vec<Duration> {
    let mut waits = Vec::new();
    for (asked, home) in [(0, 1), (1, 0)] {
        for request in [&["PING"][..], &["UMBEL.WHO", "images", "good-0-7", "good-1-7"]] {
            let sent = Instant::now();
            let _: redis::Value = cluster.ask(asked, request);
            waits.push(sent.elapsed());
        }
        let found = named(cluster, asked, "images", &format!("good-{home}"), 500, home);
        assert_eq!(
            found,
            500,
            "seed {seed}: host {asked} forgot keys of host {home}; {}",
            state(cluster, asked)
        );
        let wrong = named(cluster, asked, "images", &format!("absent-{home}"), 2000, home);
        assert!(wrong < 200, "seed {seed}: host {asked} names host {home} for {wrong} of 2000");
        let memory = cluster.memory_bytes(asked);
        let max = REPLICA_BYTES + OTHER_BYTES;
        assert!(memory <= max, "seed {seed}: host {asked} takes {memory} bytes");
        assert!(!cluster.log(asked).contains("panicked"), "{}", cluster.log(asked));
    }
    waits
}

/// What a host knows of others and has logged, for a test that fails.
fn state(cluster: &Cluster, host: usize) -> String {
    let answer: redis::RedisResult<Vec<Vec<String>>> =
        cluster.try_ask(host, &["UMBEL.WHO", "images", "good-0-7", "good-1-7"]);
    let hosts: redis::RedisResult<redis::Value> = cluster.try_ask(host, &["UMBEL.HOSTS"]);
    format!("it names {answer:?}; its hosts: {hosts:?}; its log: {}", cluster.log(host))
}

fn distribution(mut waits: Vec<Duration>) -> String {
    waits.sort_unstable();
    let [half, most] = [waits.len() / 2, waits.len() * 99 / 100].map(|at| waits[at]);
    let longest = waits.last().copied().unwrap_or_default();
    format!("{half:.1?} (p50), {most:.1?} (p99), {longest:.1?} at most")
}

/// Two honest hosts that know each other's keys; the hostile one may join with a certificate.
fn honest_hosts(is_secured: bool) -> Cluster {
    let mut cluster = Cluster::new(3);
    let limits = ["--limits-replica-bytes", &REPLICA_BYTES.to_string()];
    if is_secured {
        let hosts = [0, 1, HOSTILE].map(name).join(",");
        let certs = cluster.path("certs");
        says(&["config", "certs", "--localhost", "--hosts", &hosts, "--out", &certs], &[], "");
        write_peers(&cluster, 3);
        [0, 1].into_iter().for_each(|host| start_secured(&mut cluster, host, &limits));
    } else {
        [0, 1].into_iter().for_each(|host| cluster.start(host, &limits));
    }
    load(&cluster, "good", 500);
    cluster
}

/// Adds keys to both honest hosts, and waits until each knows the other's.
fn load(cluster: &Cluster, prefix: &str, keys: usize) {
    for home in [0, 1] {
        add(cluster, home, "images", &format!("{prefix}-{home}"), keys);
        let _: () = cluster.ask(home, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("honest hosts know each other's keys", || {
        [(0, 1), (1, 0)].into_iter().all(|(asked, home)| {
            named(cluster, asked, "images", &format!("{prefix}-{home}"), keys, home) == keys
        })
    });
}

/// A host that joins the cluster and replies to requests with anything.
struct Hostile {
    session: zenoh::Session,
    maker: Arc<Mutex<Maker>>,
    /// A greeting that honest hosts accept.
    greeting: serde_json::Value,
    _alive: zenoh::liveliness::LivelinessToken,
    _requests: zenoh::query::Queryable<()>,
}

impl Hostile {
    fn join(cluster: &Cluster, is_secured: bool, seed: u64) -> Self {
        let session = session(cluster, is_secured);
        let maker = Arc::new(Mutex::new(Maker::new(seed)));
        let answering = Arc::clone(&maker);
        let (greeted, greetings) = std::sync::mpsc::channel();
        let reply = move |query: zenoh::query::Query| {
            let mut maker = answering.lock().expect("no panic");
            let request = query.payload().map(|payload| payload.to_bytes().into_owned());
            let from = query.key_expr().as_str().rsplit('/').next().unwrap_or_default().to_owned();
            let request = request.unwrap_or_default();
            if let Some(greeting) = greeting_in(&request) {
                let _ = greeted.send(greeting);
            }
            let answers = maker.answer(&from, &request);
            for answer in answers {
                let answer = if maker.dice.below(2) == 0 { answer } else { maker.spoil(answer) };
                let _ = query.reply(query.key_expr().clone(), answer).wait();
            }
        };
        let requests = format!("umbel/local/{}/requests/*", name(HOSTILE));
        let requests = session.declare_queryable(requests).callback(reply).wait();
        let alive = format!("umbel/local/{}/alive/7/1", name(HOSTILE));
        let alive = session.liveliness().declare_token(alive).wait().expect("declared");
        let greeting = greetings.recv_timeout(Duration::from_secs(60));
        let greeting = greeting.expect("an honest host greets it");
        maker.lock().expect("no panic").create("images", Some(1000));
        let _requests = requests.expect("declared");
        Self { session, maker, greeting, _alive: alive, _requests }
    }

    /// Sends the next messages, and now and then a greeting or a request. Returns the number of
    /// messages.
    fn act(&self, dice: &mut Dice) -> usize {
        let messages = self.maker.lock().expect("no panic").next();
        let sent = messages.len();
        for message in messages {
            let updates = format!("umbel/local/{}/updates", name(HOSTILE));
            let _ = self.session.put(updates, message).wait();
        }
        match dice.below(20) {
            0 => greet(&self.session, &self.greeting, dice),
            1 => ask(&self.session, dice),
            _ => {}
        }
        sent
    }
}

fn attack(is_secured: bool) {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let seed = number("UMBEL_HOSTILE_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("UMBEL_HOSTILE_SECONDS").unwrap_or(30));
    let cluster = honest_hosts(is_secured);
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let _threads = runtime.enter();
    let hostile = Hostile::join(&cluster, is_secured, seed);

    let (start, mut sent, mut next_check) = (Instant::now(), 0, Duration::ZERO);
    let (mut waits, mut dice, mut is_heard) = (Vec::new(), Dice(!seed), false);
    let is_over = |is_heard: bool| {
        start.elapsed() >= if is_heard { time } else { time + Duration::from_secs(60) }
    };
    while !is_over(is_heard) {
        sent += hostile.act(&mut dice);
        if start.elapsed() >= next_check {
            waits.extend(check(&cluster, seed));
            is_heard |= named(&cluster, 0, "images", "good", 2000, HOSTILE) > 0;
            next_check = start.elapsed() + Duration::from_secs(1);
        }
    }
    waits.extend(check(&cluster, seed));
    assert!(is_heard, "seed {seed}: it was not even heard: {}", cluster.log(0));
    load(&cluster, "after", 50);
    let memory = [0, 1].map(|host| cluster.memory_bytes(host) >> 20);
    let Maker { sets, huge, .. } = *hostile.maker.lock().expect("no panic");
    println!(
        "seed {seed}: {sent} messages of {sets} sets, {huge} of them huge, in {time:?}; honest hosts \
         take {memory:?} MiB; an honest client waited {}",
        distribution(waits)
    );
    hostile.session.close().wait().expect("closed");
}

#[test]
fn a_member_with_a_certificate_harms_nobody_but_itself() {
    attack(true);
}

#[test]
fn a_member_without_certificates_harms_nobody_but_itself() {
    attack(false);
}
