//! The protocol against its promises, in small worlds without faults or with chosen ones.
//! Random faults are the lab's.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::catalogue::{Catalogue, MemoryCatalogue};
use crate::{HashId, KeyHasher, Seed};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn hasher() -> KeyHasher {
    KeyHasher::secret(HashId::SipHash13, Seed::from_number(42))
}

const AT_ONCE: Intervals =
    Intervals { shortest: Duration::ZERO, longest: Duration::from_secs(600) };

fn plan(policy: &str, capacity: u64) -> SetPlan {
    SetPlan {
        false_positive: 0.02,
        expected_hosts: 1,
        capacity,
        max_components: 4,
        policy: policy.parse().unwrap(),
        by_digests: true,
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn home(policy: &str, capacity: u64) -> Home<MemoryCatalogue> {
    Home::new(hasher(), plan(policy, capacity), AT_ONCE, MemoryCatalogue::new()).unwrap()
}

/// Members that the published copy denies, counted one by one.
fn denied(home: &Home<MemoryCatalogue>) -> u64 {
    let mut denied = 0;
    home.catalogue().for_each(&mut |key, _| {
        denied += u64::from(!home.published_claims(hasher().hash(key)));
    });
    denied
}

#[derive(Debug, Clone)]
enum Step {
    Add(u64),
    AddMany(u64, u64),
    Remove(u64),
    Publish,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0u64..400).prop_map(Step::Add),
        1 => (0u64..400, 0u64..60).prop_map(|(from, count)| Step::AddMany(from, count)),
        8 => (0u64..400).prop_map(Step::Remove),
        1 => Just(Step::Publish),
        1 => (1u64..400).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    /// Re-adds, merges, growth into other shapes, late clears: the count stays exact.
    #[test]
    fn misses_are_counted_exactly(
        steps in steps(),
        policy in prop::sample::select(vec![
            "miss:0.05,ghost=0.1", "miss:0.3,ghost=0.02", "miss:0,ghost=1", "dirty:0.1",
            "overall:0.1", "interval:30", "budget:20", "manual", "miss:0.2,longest=20",
        ]),
    ) {
        let mut home = home(policy, 16);
        let mut twin = BTreeSet::new();
        let mut now = Duration::ZERO;
        for step in steps {
            now += Duration::from_millis(100);
            match step {
                Step::Add(number) => prop_assert_eq!(home.add(now, &key(number)), twin.insert(number)),
                Step::AddMany(from, count) => {
                    // Some of them twice.
                    let numbers = || (from..from + count).chain(from..from + count / 2);
                    let keys: Vec<[u8; 8]> = numbers().map(key).collect();
                    let mut new = Vec::new();
                    home.add_many(now, &keys, |is_new| new.push(is_new));
                    prop_assert!(numbers().map(|number| twin.insert(number)).eq(new));
                }
                Step::Remove(number) => {
                    prop_assert_eq!(home.remove(now, &key(number)), twin.remove(&number));
                }
                Step::Publish => {
                    home.publish(now);
                    prop_assert_eq!(denied(&home), 0);
                }
                Step::Wait(seconds) => now += Duration::from_secs(seconds),
            }
            if home.poll(now).is_some() {
                prop_assert_eq!(denied(&home), 0, "an update covers every member");
            }
            let items = twin.len().max(1) as f64;
            prop_assert_eq!((home.freshness().miss * items).round() as u64, denied(&home));
        }
        prop_assert_eq!(home.catalogue().len(), twin.len() as u64);
        prop_assert!(twin.iter().all(|number| home.filter().contains(key(*number))));
        home.filter().validate();
    }

    #[test]
    fn the_miss_rate_never_passes_its_target(steps in steps(), target in 0.0f64..0.3) {
        let mut home = home(&format!("miss:{target}"), 16);
        let mut now = Duration::ZERO;
        for step in steps {
            now += Duration::from_millis(100);
            match step {
                Step::Add(number) => drop(home.add(now, &key(number))),
                Step::AddMany(from, count) => {
                    let keys: Vec<[u8; 8]> = (from..from + count).map(key).collect();
                    home.add_many(now, &keys, |_| ());
                }
                Step::Remove(number) => drop(home.remove(now, &key(number))),
                Step::Publish | Step::Wait(_) => {}
            }
            home.poll(now);
            let items = home.catalogue().len().max(1);
            prop_assert!(denied(&home) as f64 <= target * items as f64);
            prop_assert!(home.freshness().ghost <= 0.05);
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut cluster = Cluster::of(&["a", "b"]);
        cluster.engines[0].handle_message(Duration::ZERO, &name("b"), &bytes);
        let mut sealed = bytes;
        let checksum = crc32c::crc32c(&sealed);
        sealed.extend_from_slice(&checksum.to_le_bytes());
        cluster.engines[0].handle_message(Duration::ZERO, &name("b"), &sealed);
        cluster.engines[0].validate();
    }
}

/// Engines and the messages between them, delivered at once or not at all.
struct Cluster {
    engines: Vec<Engine<MemoryCatalogue>>,
    now: Duration,
}

impl Cluster {
    fn of(names: &[&str]) -> Self {
        let engine = |text: &&str| {
            let mut config = Config::new(name(text), Incarnation(1), hasher());
            config.intervals = AT_ONCE;
            Engine::new(config)
        };
        Self { engines: names.iter().map(engine).collect(), now: Duration::from_secs(1) }
    }

    fn create(&mut self, index: usize, plan: SetPlan) {
        self.engines[index].create(self.now, &name("set"), plan, MemoryCatalogue::new()).unwrap();
    }

    fn add(&mut self, index: usize, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            assert_eq!(self.engines[index].add(self.now, &name("set"), &key(number)), Some(true));
        }
    }

    /// Delivers messages until none are left; `passes` says which get through.
    fn deliver(&mut self, mut passes: impl FnMut(&Name, &Name, &[u8]) -> bool) {
        loop {
            let mut sent = Vec::new();
            for engine in &mut self.engines {
                let from = engine.config().name.clone();
                while let Some(transmit) = engine.poll_transmit() {
                    sent.push((from.clone(), transmit));
                }
            }
            if sent.is_empty() {
                return;
            }
            for (from, Transmit { to, bytes }) in sent {
                for engine in &mut self.engines {
                    let me = engine.config().name.clone();
                    let meant = match &to {
                        Destination::All => me != from,
                        Destination::Host(host) | Destination::Reply(host) => *host == me,
                    };
                    if meant && passes(&from, &me, &bytes) {
                        engine.handle_message(self.now, &from, &bytes);
                    }
                }
            }
        }
    }

    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.engines.iter_mut().for_each(|engine| engine.handle_timeout(self.now));
            self.deliver(|_, _, _| true);
        }
    }

    /// Who, as the host at `index` sees it.
    fn who(&self, index: usize, number: u64) -> Vec<String> {
        let engine = &self.engines[index];
        let found = engine.who(&name("set"), engine.hash(&key(number)));
        found.unwrap_or_default().iter().map(|host| host.as_str().to_owned()).collect()
    }

    fn agree(&self, home: usize, host: usize) {
        let home = &self.engines[home];
        let published = home.published_checksum(&name("set"));
        assert_eq!(
            self.engines[host].replica_checksum(&name("set"), &home.config().name),
            published
        );
        self.engines[host].validate();
    }
}

#[test]
fn what_one_host_adds_the_others_find() {
    let mut cluster = Cluster::of(&["a", "b", "c"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.create(1, plan("miss:0", 200));
    cluster.add(0, 0..50);
    cluster.add(1, 40..90);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(2, 10), ["a"]);
    assert_eq!(cluster.who(2, 45), ["a", "b"]);
    assert_eq!(cluster.who(0, 60), ["b"]);
    assert!(cluster.engines[2].who(&name("other"), cluster.engines[2].hash(b"x")).is_none());
    cluster.agree(0, 2);
    cluster.agree(1, 0);
    let now = cluster.now;
    assert_eq!(cluster.engines[0].remove(now, &name("set"), &key(10)), Some(true));
    assert_eq!(cluster.engines[0].remove(now, &name("set"), &key(10)), Some(false));
    assert_eq!(cluster.engines[2].remove(now, &name("set"), &key(10)), None);
    cluster.engines[0].publish(now, &name("set"));
    cluster.deliver(|_, _, _| true);
    assert!(cluster.who(2, 10).is_empty());
}

#[test]
fn a_bulk_load_is_one_update() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, SetPlan { capacity: 100_000, ..SetPlan::default() });
    let keys: Vec<_> = (0..1_000_000u64).map(key).collect();
    let mut new = 0;
    let told = |is_new| new += u64::from(is_new);
    assert!(cluster.engines[0].add_many(cluster.now, &name("set"), &keys, told));
    assert_eq!(new, 1_000_000);
    cluster.wait(2);
    assert_eq!(cluster.engines[0].counters().updates_sent, 1);
    cluster.agree(0, 1);
    assert_eq!(cluster.who(1, 999_999), ["a"]);
}

#[test]
fn a_stream_of_adds_within_the_settling_time_is_one_update() {
    let intervals = Intervals::default();
    let plan = SetPlan { capacity: 10_000, ..SetPlan::default() };
    let mut home = Home::new(hasher(), plan, intervals, MemoryCatalogue::new()).unwrap();
    let mut updates = 0;
    for number in 0..10_000u64 {
        let now = Duration::from_micros(5 * number);
        home.add(now, &key(number));
        updates += u64::from(home.poll(now).is_some());
    }
    let due = home.next_timeout().unwrap();
    assert!(due <= Duration::from_secs(1));
    updates += u64::from(home.poll(due).is_some());
    assert_eq!(updates, 1);
    assert_eq!(denied(&home), 0);
}

#[test]
fn a_lost_update_is_noticed_and_repaired() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, _| true);
    cluster.add(0, 10..11);
    cluster.deliver(|_, _, _| false);
    assert!(cluster.who(1, 10).is_empty());
    // The next update does not follow on what is there: the gap is seen at once.
    cluster.add(0, 11..12);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 10), ["a"]);
    assert_eq!(cluster.engines[1].counters().gaps, 1);
    // The last update is lost: an announcement tells.
    cluster.add(0, 12..13);
    cluster.deliver(|_, _, _| false);
    cluster.wait(7);
    assert_eq!(cluster.who(1, 12), ["a"]);
    cluster.agree(0, 1);
}

#[test]
fn duplicates_and_old_lives_change_nothing() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    let mut seen: Vec<Vec<u8>> = Vec::new();
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, bytes| {
        seen.push(bytes.to_vec());
        true
    });
    for bytes in &seen {
        cluster.engines[1].handle_message(cluster.now, &name("a"), bytes);
    }
    assert_eq!(cluster.engines[1].counters().duplicates, seen.len() as u64);
    cluster.agree(0, 1);
    // The home restarts with less: its old life's messages are worth nothing.
    let mut config = Config::new(name("a"), Incarnation(2), hasher());
    config.intervals = AT_ONCE;
    cluster.engines[0] = Engine::new(config);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 3..5);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 3), ["a"]);
    assert!(cluster.who(1, 7).is_empty());
    for bytes in &seen {
        cluster.engines[1].handle_message(cluster.now, &name("a"), bytes);
    }
    assert!(cluster.who(1, 7).is_empty());
    assert_eq!(cluster.engines[1].counters().old_lives, seen.len() as u64);
    cluster.agree(0, 1);
}

#[test]
fn a_set_that_outgrows_its_plan_is_never_unanswerable() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 20));
    for number in 0..400 {
        cluster.add(0, [number]);
        cluster.deliver(|_, _, _| true);
        for earlier in 0..=number {
            assert_eq!(cluster.who(1, earlier), ["a"], "{earlier} after {number}");
        }
    }
    let home = cluster.engines[0].home(&name("set")).unwrap();
    assert!(home.rebuilds() >= 2, "80 keys, then 160: it was built again");
    assert!(home.filter().false_positive() < 0.02);
    cluster.agree(0, 1);
    // And back: most keys go, and the filter with them.
    let before = home.filter().memory_bytes();
    let now = cluster.now;
    for number in 10..400 {
        cluster.engines[0].remove(now, &name("set"), &key(number));
    }
    cluster.engines[0].publish(now, &name("set"));
    cluster.deliver(|_, _, _| true);
    let home = cluster.engines[0].home(&name("set")).unwrap();
    assert!(home.filter().memory_bytes() < before / 4);
    assert!((0..10).all(|number| cluster.who(1, number) == ["a"]));
    cluster.agree(0, 1);
}

#[test]
fn updates_bring_the_pages_of_a_joiner_up_to_date() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let plan = SetPlan { max_components: 1, ..plan("miss:0", 400_000) };
    cluster.create(0, plan);
    let keys: Vec<_> = (0..300_000u64).map(key).collect();
    cluster.engines[0].add_many(cluster.now, &name("set"), &keys, |_| ());
    cluster.deliver(|_, _, _| false);
    let pages =
        paged::pages(cluster.engines[0].home(&name("set")).unwrap().filter().scheme().shape());
    assert!(pages >= 4, "{pages} pages");
    // The joiner hears an announcement and fetches; with every page that arrives the home
    // publishes another update.
    cluster.now += Duration::from_secs(10);
    cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
    let mut next = 1_000_000u64;
    for _ in 0..100 {
        let mut budget = 2;
        cluster.deliver(|_, _, bytes| {
            let is_page = bytes[1] == 4;
            budget -= i32::from(is_page);
            !is_page || budget >= 0
        });
        cluster.add(0, [next]);
        next += 1;
        cluster.now += Duration::from_millis(700);
        cluster.engines[1].handle_timeout(cluster.now);
        if cluster.engines[1].counters().snapshots > 0 {
            break;
        }
    }
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    assert_eq!(cluster.who(1, next - 1), ["a"]);
    let requests = cluster.engines[1].counters().requests_sent;
    assert!(requests < 4 * pages, "{requests} requests for {pages} pages");
}

#[test]
fn a_host_that_leaves_answers_no_more_and_is_heard_in_its_next_life() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 1), ["a"]);
    // An announcement of the same life that the farewell overtakes.
    let now = cluster.now + Duration::from_secs(10);
    cluster.engines[0].handle_timeout(now);
    let late = cluster.engines[0].poll_transmit().unwrap().bytes;
    cluster.engines[0].leave();
    let farewell = cluster.engines[0].poll_transmit().unwrap().bytes;
    let b = &mut cluster.engines[1];
    b.handle_message(now, &name("b"), &farewell);
    b.handle_message(now, &name("c"), &farewell);
    assert_eq!(b.peers(now).count(), 1, "nobody leaves in another's name");
    b.handle_message(now, &name("a"), &farewell);
    b.handle_message(now, &name("a"), &late);
    let life = cluster.engines[0].config().incarnation;
    cluster.engines[1].handle_alive(now, &name("a"), life);
    assert!(cluster.who(1, 1).is_empty());
    assert_eq!(cluster.engines[1].peers(now).count(), 0);
    cluster.engines[1].validate();
    cluster.engines[1].handle_alive(now, &name("a"), Incarnation(life.0 + 1));
    assert_eq!(cluster.engines[1].peers(now).count(), 1);
    // A farewell of a life that is over does not end the next one.
    cluster.engines[1].handle_message(now, &name("a"), &farewell);
    assert_eq!(cluster.engines[1].peers(now).count(), 1);
}

#[test]
fn a_host_that_disappears_answers_for_the_grace_time_only() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, _| true);
    let (now, grace) = (cluster.now, cluster.engines[1].config().grace);
    cluster.engines[1].handle_gone(now, &name("a"));
    cluster.engines[1].handle_timeout(now + grace / 2);
    assert_eq!(cluster.who(1, 1), ["a"], "suspected, not dead");
    cluster.engines[1].handle_timeout(now + grace);
    assert!(cluster.who(1, 1).is_empty());
    cluster.engines[1].validate();
    cluster.now = now + grace;
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"], "it was a false death");
    cluster.agree(0, 1);
}

#[test]
fn an_excluded_host_answers_no_more_at_once() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 1), ["a"]);
    let now = cluster.now;
    for host in ["nobody", "a", "a"] {
        cluster.engines[1].handle_excluded(now, &name(host));
    }
    assert!(cluster.who(1, 1).is_empty());
    cluster.engines[1].validate();
    let events = std::iter::from_fn(|| cluster.engines[1].poll_event());
    let down = events.filter(|event| matches!(event, Event::Down(_)));
    assert_eq!(down.collect::<Vec<_>>(), [Event::Down(name("a"))]);
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"], "let in again");
    cluster.agree(0, 1);
}

#[test]
fn a_silent_host_is_forgotten() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, _| true);
    let silence = cluster.engines[1].config().silence;
    let due = cluster.engines[1].poll_timeout();
    assert!(due <= cluster.now + silence);
    cluster.engines[1].handle_timeout(cluster.now + silence);
    assert!(cluster.who(1, 1).is_empty());
    let events: Vec<_> = std::iter::from_fn(|| cluster.engines[1].poll_event()).collect();
    assert!(events.contains(&Event::Up(name("a"))));
    assert!(events.contains(&Event::Down(name("a"))));
}

#[test]
fn another_seed_another_name_and_too_large_a_filter_are_refused() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let other = KeyHasher::secret(HashId::SipHash13, Seed::from_number(43));
    let mut config = Config::new(name("x"), Incarnation(1), other);
    config.intervals = AT_ONCE;
    let mut stranger: Engine<MemoryCatalogue> = Engine::new(config);
    stranger
        .create(cluster.now, &name("set"), plan("miss:0", 100), MemoryCatalogue::new())
        .unwrap();
    stranger.add(cluster.now, &name("set"), b"key");
    let bytes = stranger.poll_transmit().unwrap().bytes;
    cluster.engines[1].handle_message(cluster.now, &name("x"), &bytes);
    cluster.engines[1].handle_message(cluster.now, &name("y"), &bytes);
    cluster.engines[1].handle_message(cluster.now, &name("b"), &bytes);
    let reasons: Vec<String> = std::iter::from_fn(|| cluster.engines[1].poll_event())
        .filter_map(|event| match event {
            Event::Refused { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert!(reasons[0].contains("different seeds"), "{reasons:?}");
    assert!(reasons[1].contains("speaks for x"), "{reasons:?}");
    assert_eq!(cluster.engines[1].counters().refused, 3);
    assert!(cluster.engines[1].sets().next().is_none());

    let mut config = Config::new(name("b"), Incarnation(1), hasher());
    config.max_bits = 1000;
    cluster.engines[1] = Engine::new(config);
    cluster.create(0, plan("miss:0", 10_000));
    cluster.add(0, 0..1);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.engines[1].counters().refused, 1);
    assert!(cluster.who(1, 0).is_empty());
}

#[test]
fn two_hosts_of_one_name_are_reported() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.engines[0].handle_alive(cluster.now, &name("a"), Incarnation(9));
    assert_eq!(cluster.engines[0].poll_event(), Some(Event::NameTaken));
    cluster.engines[0].handle_alive(cluster.now, &name("a"), Incarnation(1));
    assert_eq!(cluster.engines[0].poll_event(), None);
}

#[test]
fn flipped_bits_are_refused_and_leave_the_columns_alone() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, _| true);
    cluster.add(0, 10..11);
    let mut sent = Vec::new();
    cluster.deliver(|_, _, bytes| {
        sent.push(bytes.to_vec());
        false
    });
    for bytes in &sent {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            cluster.engines[1].handle_message(cluster.now, &name("a"), &damaged);
        }
        // A page that lies: the checksum of the message is right, its contents are not.
        for byte in 2..bytes.len() - 4 {
            let mut lying = bytes[..bytes.len() - 4].to_vec();
            lying[byte] ^= 0x15;
            let checksum = crc32c::crc32c(&lying);
            lying.extend_from_slice(&checksum.to_le_bytes());
            cluster.engines[1].handle_message(cluster.now, &name("a"), &lying);
        }
    }
    cluster.engines[1].validate();
    assert!((0..10).all(|number| cluster.who(1, number) == ["a"]));
    assert!(cluster.engines[1].counters().refused > 0);
}

#[test]
fn samples_in_announcements_measure_the_misses() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("manual", 1000));
    cluster.add(0, 0..500);
    let now = cluster.now;
    cluster.engines[0].publish(now, &name("set"));
    cluster.deliver(|_, _, _| true);
    cluster.add(0, 500..1000);
    for _ in 0..200 {
        cluster.wait(3);
    }
    let info = cluster.engines[1].replica(cluster.now, &name("set"), &name("a")).unwrap();
    let rate = info.sampled.denied as f64 / info.sampled.members as f64;
    assert!(info.sampled.members > 500);
    assert!((0.4..0.6).contains(&rate), "{rate}: half of the members are not published");
    assert!(info.is_current && info.items == 1000);
}

#[test]
fn removals_alone_do_not_starve() {
    for policy in ["miss:0.01", "miss:0.01,ghost=1,longest=60"] {
        let mut home = home(policy, 100);
        for number in 0..100 {
            home.add(Duration::ZERO, &key(number));
        }
        home.publish(Duration::ZERO);
        for number in 0..50 {
            home.remove(Duration::from_secs(1), &key(number));
            home.poll(Duration::from_secs(1));
        }
        home.poll(Duration::from_secs(62));
        assert!(home.freshness().ghost <= 0.05, "{policy}: {:?}", home.freshness());
    }
}

#[test]
fn an_overfull_target_does_not_lead_to_a_loop_of_updates() {
    // The promised rate of the set is twice what the policy asks for: no update can keep it.
    let mut home = home("overall:0.0001", 1000);
    let mut updates = 0;
    for number in 0..3000 {
        home.add(Duration::ZERO, &key(number));
        updates += u64::from(home.poll(Duration::ZERO).is_some());
    }
    assert!(updates < 300, "{updates}");
}

#[test]
fn a_restarted_home_builds_its_filter_from_the_catalogue() {
    let mut first = home("miss:0", 20);
    for number in 0..70 {
        first.add(Duration::ZERO, &key(number));
    }
    for number in 0..35 {
        first.remove(Duration::ZERO, &key(number));
    }
    first.publish(Duration::ZERO);
    let catalogue = first.catalogue().clone();
    let again = Home::new(hasher(), plan("miss:0", 20), AT_ONCE, catalogue).unwrap();
    assert!((35..70).all(|number| again.filter().contains(key(number))));
    assert_eq!(again.filter().items(), 35);
    again.filter().validate();
    assert_eq!(denied(&again), 35, "nothing of this life was published yet");
}

/// The catalogue's components stay exact through growth, restarts and other plans: removing
/// every key then leaves no bit behind.
#[test]
fn no_bit_is_left_of_keys_that_went_through_rebuilds_and_restarts() {
    for (capacity, max_components) in [(20, 8), (20, 1), (1000, 8), (3, 2)] {
        let mut home = home("miss:0", 20);
        (0..500).for_each(|number| _ = home.add(Duration::ZERO, &key(number)));
        (0..100).for_each(|number| _ = home.remove(Duration::ZERO, &key(number)));
        assert!(home.rebuilds() > 0, "it has grown");
        let plan = SetPlan { capacity, max_components, ..plan("miss:0", 20) };
        let catalogue = home.catalogue().clone();
        let mut again = Home::new(hasher(), plan, AT_ONCE, catalogue).unwrap();
        again.filter().validate();
        assert!(!again.filter().is_past_plan());
        let planned = again.filter().capacity();
        assert!(again.filter().components().iter().all(|(_, c)| c.items() <= planned));
        (500..600).for_each(|number| _ = again.add(Duration::ZERO, &key(number)));
        assert!((100..600).all(|number| again.filter().contains(key(number))));
        assert!((100..600).all(|number| again.remove(Duration::ZERO, &key(number))));
        assert_eq!(again.filter().items(), 0);
        let ones: u64 = again.filter().components().iter().map(|(_, c)| c.bits().ones()).sum();
        assert_eq!(ones, 0, "capacity {capacity}, {max_components} components");
    }
}

#[test]
fn incarnations_grow_whatever_was_lost() {
    let heard = Some(Incarnation(9));
    assert_eq!(Incarnation::next(Some(Incarnation(5)), 3, None), Incarnation(6));
    assert_eq!(Incarnation::next(Some(Incarnation(5)), 1000, heard), Incarnation(1000));
    assert_eq!(Incarnation::next(None, 3, heard), Incarnation(10));
}

/// The estimate was made from the mean fill of all components, less than half of the truth
/// when some are full and one is not.
#[test]
fn disagreement_of_several_components_is_what_random_keys_see() {
    let mut home = home("manual", 200);
    for number in 0..500 {
        home.add(Duration::ZERO, &key(number));
    }
    home.publish(Duration::ZERO);
    for number in 0..60 {
        home.remove(Duration::ZERO, &key(number));
    }
    for number in 1000..1160 {
        home.add(Duration::ZERO, &key(number));
    }
    assert_eq!(home.filter().components().len(), 3);
    let (mut claimed, mut differ) = (0, 0);
    const ASKED: u64 = 400_000;
    for number in 1 << 32..(1 << 32) + ASKED {
        let hash = hasher().hash(&key(number));
        let copy = home.published_claims(hash);
        claimed += u64::from(copy);
        differ += u64::from(!copy && home.filter().contains(key(number)));
    }
    let fresh = home.freshness();
    let ratio = |counted: u64, estimated: f64| counted as f64 / ASKED as f64 / estimated;
    assert!((ratio(claimed, fresh.false_positive) - 1.0).abs() < 0.1, "{fresh:?}, {claimed}");
    assert!((ratio(differ, fresh.disagreement) - 1.0).abs() < 0.1, "{fresh:?}, {differ}");
}

/// The quick bound took flipped bits for dirty ones of all components together, which made
/// the rates look lower than they were: the target was passed without an update.
#[test]
fn the_overall_rate_passes_its_target_only_where_no_update_would_mend_it() {
    const TARGET: f64 = 0.009;
    for seed in 0..4u64 {
        let mut home = home(&format!("overall:{TARGET}"), 150);
        let mut state = seed;
        for number in 0..300 {
            home.add(Duration::ZERO, &key(number));
        }
        home.publish(Duration::ZERO);
        for step in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (state >> 33) % 600;
            if !home.remove(Duration::ZERO, &key(number)) {
                home.add(Duration::ZERO, &key(number));
            }
            home.poll(Duration::ZERO);
            let Freshness { false_positive, disagreement, .. } = home.freshness();
            let overall = false_positive + disagreement;
            assert!(
                overall <= TARGET || home.filter().false_positive() >= 0.9 * overall,
                "seed {seed}, step {step}: {overall}"
            );
        }
        assert!(home.sent().updates > 1);
    }
}

/// Components of half of the keys are two, which is past a plan of one and the brim of a plan
/// of two: every further key built the filter again.
#[test]
fn a_set_of_few_components_grows_with_few_rebuilds() {
    for max_components in 1..=4 {
        let plan = SetPlan { max_components, ..plan("miss:0.01", 16) };
        let mut home = Home::new(hasher(), plan, AT_ONCE, MemoryCatalogue::new()).unwrap();
        for number in 0..2000 {
            home.add(Duration::ZERO, &key(number));
            assert!(!home.filter().is_past_plan());
        }
        assert!(home.rebuilds() <= 7, "{max_components}: {} rebuilds", home.rebuilds());
    }
}
