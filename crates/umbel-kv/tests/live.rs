//! A sidecar and a publisher with real sockets.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use umbel_kv::blocks::Hashing;
use umbel_kv::follower::Notice;
use umbel_kv::sidecar::Totals;
use umbel_kv::stand_in::{Form, PublishedEvent, Publisher, encode};
use umbel_kv::{BlockKey, Report, SidecarConfig, canonical};

use crate::memory_sink::MemorySink;

const BLOCK: u32 = 4;

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// An engine's message: blocks of a text, from one on.
pub(crate) fn stored(form: Form, seconds: f64, tokens: &[u32], from: usize) -> Vec<u8> {
    let chain = canonical::chain(tokens, BLOCK as usize, &[]);
    // Names of the engine's own, which are not canonical.
    let names: Vec<u64> = chain.iter().map(|hash| hash ^ 0x5555).collect();
    encode(
        form,
        seconds,
        &[PublishedEvent::Stored {
            hashes: names[from..].to_vec(),
            parent: from.checked_sub(1).map(|before| names[before]),
            tokens: tokens[from * BLOCK as usize..names.len() * BLOCK as usize].to_vec(),
            block_size: BLOCK,
        }],
    )
}

pub(crate) fn keys(tokens: &[u32]) -> BTreeSet<BlockKey> {
    let chain = canonical::chain(tokens, BLOCK as usize, &[]);
    chain.into_iter().map(BlockKey::Number).collect()
}

fn text(seed: u32, blocks: u32) -> Vec<u32> {
    (0..blocks * BLOCK).map(|token| seed * 1000 + token).collect()
}

/// A sidecar in a thread of its own, stopped when dropped.
pub(crate) struct Running {
    pub(crate) sink: MemorySink,
    reports: Arc<Mutex<Vec<Report>>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Totals>>,
}

impl Running {
    pub(crate) fn start(events: SocketAddr, replay: Option<SocketAddr>, forget: Duration) -> Self {
        let endpoint =
            |address: SocketAddr| format!("tcp://{address}").parse().expect("an endpoint");
        let config = SidecarConfig {
            events: endpoint(events),
            replay: replay.map(endpoint),
            topic: b"kv".to_vec(),
            rank: Some(0),
            hashing: Hashing::Canonical,
            group: 0,
            forget,
        };
        let (sink, stop) = (MemorySink::default(), Arc::new(AtomicBool::new(false)));
        let reports = Arc::<Mutex<Vec<Report>>>::default();
        let thread = std::thread::spawn({
            let (mut sink, stop, reports) = (sink.clone(), Arc::clone(&stop), Arc::clone(&reports));
            move || {
                umbel_kv::run(&config, &mut sink, &stop, &mut |report| {
                    reports.lock().expect("no panic").push(report.clone());
                })
            }
        });
        Self { sink, reports, stop, thread: Some(thread) }
    }

    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        for _ in 0..6000 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{what}: {:?}, {} keys", self.reports.lock(), self.sink.keys("").len());
    }

    pub(crate) fn holds(&self, what: &str, expected: &BTreeSet<BlockKey>) {
        self.until(what, |it| it.sink.keys("") == *expected);
    }

    fn reported(&self, is_it: impl Fn(&Report) -> bool) -> bool {
        self.reports.lock().expect("no panic").iter().any(is_it)
    }

    pub(crate) fn end(mut self) -> Totals {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_sidecar_follows_an_engine_through_gaps_clears_and_restarts() {
    for form in [Form::Arrays, Form::Maps] {
        let engine = Publisher::bind(any(), any(), "kv", 100).expect("ports");
        let (events, replay) = (engine.events(), engine.replay());
        // Stored before anybody listens.
        engine.publish(stored(form, 1.0, &text(1, 3), 0));
        let sidecar = Running::start(events, Some(replay), LONG);
        let mut expected = keys(&text(1, 3));
        sidecar.holds("what was before is replayed", &expected);
        sidecar.until("it listens", |_| engine.subscribers() == 1);
        engine.publish(stored(form, 2.0, &text(1, 9), 3));
        expected = keys(&text(1, 9));
        sidecar.holds("a text goes on", &expected);
        // Lost on the way, and found out by the next message.
        engine.lose(stored(form, 3.0, &text(2, 5), 0));
        engine.lose(encode(form, 3.5, &[PublishedEvent::Cleared]));
        engine.lose(stored(form, 3.6, &text(3, 5), 0));
        engine.publish(stored(form, 4.0, &text(4, 1), 0));
        expected = keys(&text(3, 5)).union(&keys(&text(4, 1))).cloned().collect();
        sidecar.holds("a gap is replayed", &expected);
        let gap = Report::Noticed(Notice::Gap { missed: 3, replayed: 3 });
        assert!(sidecar.reported(|report| *report == gap));
        let names: Vec<u64> =
            canonical::chain(&text(3, 5), 4, &[]).iter().map(|hash| hash ^ 0x5555).collect();
        engine.publish(encode(form, 5.0, &[PublishedEvent::Removed(names[2..].to_vec())]));
        expected = keys(&text(3, 2)).union(&keys(&text(4, 1))).cloned().collect();
        sidecar.holds("removed", &expected);

        // A new life at the same place, with nothing.
        drop(engine);
        let engine = Publisher::bind(events, replay, "kv", 100).expect("the same ports");
        sidecar.holds("a dead life's blocks are gone", &BTreeSet::new());
        assert!(sidecar.reported(|report| *report == Report::Noticed(Notice::NewLife)));
        sidecar.until("it listens again", |_| engine.subscribers() == 1);
        engine.publish(b"no msgpack".to_vec());
        engine.publish(stored(form, 9.0, &text(7, 4), 0));
        sidecar.holds("the new life's blocks", &keys(&text(7, 4)));
        let totals = sidecar.end();
        assert_eq!((totals.messages.rejected, totals.held), (1, 4));
        assert_eq!(totals.messages.missed, 3);
    }
}

#[test]
fn without_replay_a_gap_drops_all_blocks() {
    let engine = Publisher::bind(any(), any(), "kv", 100).expect("ports");
    let sidecar = Running::start(engine.events(), None, LONG);
    sidecar.until("it listens", |_| engine.subscribers() == 1);
    engine.publish(stored(Form::Maps, 1.0, &text(1, 3), 0));
    sidecar.holds("stored", &keys(&text(1, 3)));
    engine.lose(stored(Form::Maps, 2.0, &text(2, 3), 0));
    engine.publish(stored(Form::Maps, 3.0, &text(3, 3), 0));
    sidecar.holds("only what is certain", &keys(&text(3, 3)));
    assert_eq!(sidecar.end().messages.dropped, 1);
}

/// An engine that is away and comes back as the same one keeps its blocks; one that stays away does not.
#[test]
fn an_engine_that_stays_away_is_forgotten() {
    let engine = Publisher::bind(any(), any(), "kv", 100).expect("ports");
    let sidecar =
        Running::start(engine.events(), Some(engine.replay()), Duration::from_millis(300));
    engine.publish(stored(Form::Arrays, 1.0, &text(1, 3), 0));
    sidecar.holds("stored", &keys(&text(1, 3)));
    drop(engine);
    sidecar.holds("forgotten", &BTreeSet::new());
    assert!(sidecar.reported(|report| *report == Report::Forgotten));
    sidecar.end();
}

/// A host that restarts is shown all blocks again.
#[test]
fn a_sink_that_comes_back_is_shown_everything() {
    let engine = Publisher::bind(any(), any(), "kv", 100).expect("ports");
    let sidecar = Running::start(engine.events(), Some(engine.replay()), LONG);
    engine.publish(stored(Form::Arrays, 1.0, &text(1, 50), 0));
    sidecar.holds("stored", &keys(&text(1, 50)));
    sidecar.sink.fail(true);
    engine.publish(stored(Form::Arrays, 2.0, &text(2, 50), 0));
    sidecar.until("it failed", |it| it.reported(|report| matches!(report, Report::SinkFailed(_))));
    engine.publish(stored(Form::Arrays, 3.0, &text(3, 50), 0));
    sidecar.sink.fail(false);
    let mut all = keys(&text(1, 50));
    all.extend(keys(&text(2, 50)));
    all.extend(keys(&text(3, 50)));
    sidecar.holds("all of it", &all);
    sidecar.end();
}
