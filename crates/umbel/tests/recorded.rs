//! Hosts of a released version and of this one understand each other.
//!
//! `tests/recorded/v1.txt` is a conversation of two hosts that spoke version 1 of the
//! messages: a home and a host that learns its set, with an update that was lost and fetched
//! again. Each side is played back to a host of today: the recorded home to a host that
//! learns from it, the recorded learner to a home that answers it. A recording of a released
//! version is never made again; one of a version in the making is, by
//!
//! ```text
//! UMBEL_RECORD=1 cargo test -p umbel --test integration recorded::
//! ```

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{Engine, MeshConfig};
use umbel::protocol::Protocol as _;
use umbel::replica::{Incarnation, Name, SetPlan};
use umbel::{HashId, KeyHasher, Seed};

/// One message: when, by whom, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    step: u64,
    by: String,
    bytes: Vec<u8>,
}

const STEPS: u64 = 300;
/// The step at which an update of the home is lost.
const LOST: u64 = 80;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn at(step: u64) -> Duration {
    Duration::from_millis(1000 + 50 * step)
}

fn host(text: &str) -> Engine<MemoryCatalogue> {
    let hasher = KeyHasher::secret(HashId::SipHash13, Seed::from_number(7));
    let mut config = MeshConfig::new(name(text), Incarnation(5), hasher);
    config.intervals.shortest = Duration::ZERO;
    Engine::new(config)
}

fn key(number: u64) -> Vec<u8> {
    format!("object {number}").into_bytes()
}

/// What happens to the home's set, step by step: it is filled, grows, and loses keys.
fn live(home: &mut Engine<MemoryCatalogue>, step: u64) {
    let set = name("objects");
    let policy = "manual".parse().unwrap();
    let plan = SetPlan { capacity: Some(200), policy, ..SetPlan::default() };
    match step {
        0 => home.create(at(0), &set, plan, MemoryCatalogue::new()).unwrap(),
        10 | 40 | 80 | 120 => {
            let first = step * 10;
            (first..first + 150).for_each(|number| _ = home.add(at(step), &set, &key(number)));
            home.publish(at(step), &set);
        }
        160 => {
            (100..200).for_each(|number| _ = home.remove(at(step), &set, &key(number)));
            home.publish(at(step), &set);
        }
        _ => {}
    }
}

/// The keys that are held in the end.
fn members() -> impl Iterator<Item = u64> {
    (200..250).chain(400..550).chain(800..950).chain(1200..1350)
}

/// Lets time pass at a host; what it says.
fn sent(engine: &mut Engine<MemoryCatalogue>, by: &str, step: u64) -> Vec<Said> {
    if at(step) >= engine.poll_timeout() {
        engine.handle_timeout(at(step));
    }
    let transmits = std::iter::from_fn(|| engine.poll_transmit());
    transmits.map(|transmit| Said { step, by: by.to_owned(), bytes: transmit.bytes }).collect()
}

/// A home and a learner of today, and all that they say to each other.
fn conversation() -> (Vec<Said>, Engine<MemoryCatalogue>, Engine<MemoryCatalogue>) {
    let (mut home, mut learner) = (host("home"), host("learner"));
    home.handle_alive(at(0), &name("learner"), Incarnation(5));
    learner.handle_alive(at(0), &name("home"), Incarnation(5));
    let mut all = Vec::new();
    for step in 0..STEPS {
        live(&mut home, step);
        for message in sent(&mut home, "home", step) {
            if step != LOST {
                learner.handle_message(at(step), &name("home"), &message.bytes);
                all.push(message);
            }
        }
        for message in sent(&mut learner, "learner", step) {
            home.handle_message(at(step), &name("learner"), &message.bytes);
            all.push(message);
        }
    }
    (all, home, learner)
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/v1.txt")
}

fn recorded() -> Vec<Said> {
    let text = std::fs::read_to_string(file()).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (step, by, hex) = (words.next()?, words.next()?, words.next()?);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes = hex.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
        Some(Said { step: step.parse().ok()?, by: by.to_owned(), bytes })
    };
    text.lines().map(|text| line(text).unwrap()).collect()
}

fn agree(home: &Engine<MemoryCatalogue>, learner: &Engine<MemoryCatalogue>) {
    let set = name("objects");
    let learnt = learner.replica_checksum(&set, &name("home"));
    assert_eq!(learnt, home.published_checksum(&set));
    assert!(learnt.is_some(), "something was learnt");
    for number in members() {
        let holders = learner.who(&set, learner.hash(&key(number))).unwrap();
        assert_eq!(holders, [name("home")], "key {number}");
    }
}

#[test]
fn a_host_of_today_learns_from_a_recorded_home() {
    let mut learner = host("learner");
    learner.handle_alive(at(0), &name("home"), Incarnation(5));
    let recorded = recorded();
    for step in 0..STEPS {
        for message in recorded.iter().filter(|sent| sent.step == step && sent.by == "home") {
            learner.handle_message(at(step), &name("home"), &message.bytes);
        }
        sent(&mut learner, "learner", step);
    }
    let (_, home, _) = conversation();
    agree(&home, &learner);
}

#[test]
fn a_home_of_today_answers_a_recorded_host() {
    let (mut home, mut learner) = (host("home"), host("learner"));
    home.handle_alive(at(0), &name("learner"), Incarnation(5));
    learner.handle_alive(at(0), &name("home"), Incarnation(5));
    let (recorded, mut answers) = (recorded(), 0);
    for step in 0..STEPS {
        live(&mut home, step);
        let asked = recorded.iter().filter(|sent| sent.step == step && sent.by == "learner");
        for message in sent(&mut home, "home", step) {
            if step != LOST {
                learner.handle_message(at(step), &name("home"), &message.bytes);
            }
        }
        for message in asked {
            home.handle_message(at(step), &name("learner"), &message.bytes);
            let sent = sent(&mut home, "home", step);
            answers += sent.len();
            for answer in sent {
                learner.handle_message(at(step), &name("home"), &answer.bytes);
            }
        }
        // What today's learner would ask, the recorded one has asked for it.
        sent(&mut learner, "learner", step);
    }
    assert!(answers > 0, "the recorded host has asked for what it lost");
    agree(&home, &learner);
}

/// As long as this is the newest version: nothing about the messages has changed unseen.
#[test]
fn the_recording_is_what_would_be_said_now() {
    let (all, home, learner) = conversation();
    agree(&home, &learner);
    if std::env::var_os("UMBEL_RECORD").is_some() {
        let mut text = String::new();
        for Said { step, by, bytes } in &all {
            write!(text, "{step} {by} ").unwrap();
            bytes.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
            text.push('\n');
        }
        std::fs::write(file(), text).unwrap();
    }
    assert_eq!(recorded(), all);
}
