//! Engines' events at the one end, depths of chains at the other: followers, hosts and a router's
//! questions, all real but the engines.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use umbel_kv::canonical;
use umbel_kv::stand_in::{Form, PublishedEvent, Publisher, encode};

use super::hosts::{Cluster, eventually, without_settings};

const BLOCK: usize = 16;

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

fn text(seed: u32, blocks: u32) -> Vec<u32> {
    (0..blocks * BLOCK as u32).map(|token| seed * 100_000 + token).collect()
}

/// A message that stores all blocks of a text, under names of the engine's own.
fn stored(seconds: f64, tokens: &[u32], engine: u64) -> Vec<u8> {
    let names = canonical::chain(tokens, BLOCK, &[]).iter().map(|hash| hash ^ engine).collect();
    let (tokens, block_size) = (tokens.to_vec(), BLOCK as u32);
    encode(
        Form::Maps,
        seconds,
        &[PublishedEvent::Stored { hashes: names, parent: None, tokens, block_size }],
    )
}

/// A follower, ended when dropped.
struct Follower(Child);

impl Follower {
    fn start(at: &str, engine: &Publisher) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umbel"));
        without_settings(&mut command);
        let endpoint = |address: SocketAddr| format!("tcp://{address}");
        command.args(["kv", "follow", "kv", "--at", at, "--events", &endpoint(engine.events())]);
        command.args(["--replay", &endpoint(engine.replay()), "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("it runs"))
    }

    /// Ends it in good order; what it counted.
    fn end(mut self) -> serde_json::Value {
        let id = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("told");
        eventually("the follower stops", || self.0.try_wait().expect("waited").is_some());
        let output = self.0.stdout.take().map(std::io::read_to_string);
        let output = output.expect("piped").expect("text");
        serde_json::from_str(&output).expect("JSON")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Hosts and depths that a host answers for a text.
fn depths(cluster: &Cluster, host: usize, tokens: &[u32]) -> Vec<(String, u32)> {
    let mut command = redis::cmd("UMBEL.CHAIN");
    command.arg("kv");
    for hash in canonical::chain(tokens, BLOCK, &[]) {
        command.arg(&hash.to_le_bytes());
    }
    type Answer = (String, Vec<(String, u32)>, String, bool, String, Vec<String>);
    let answer: Answer = command.query(&mut cluster.connect(host)).expect("answered");
    answer.1
}

#[test]
fn a_router_knows_the_blocks_of_three_engines_and_forgets_a_dead_life() {
    let mut cluster = Cluster::named(&["worker-1", "worker-2", "worker-3", "router"]);
    (0..4).for_each(|host| cluster.start(host, &["--memory"]));
    let mut engines: Vec<Publisher> =
        (0..3).map(|_| Publisher::bind(any(), any(), "kv-events", 1000).expect("ports")).collect();
    let followers: Vec<Follower> =
        engines.iter().enumerate().map(|(w, e)| Follower::start(cluster.resp(w), e)).collect();
    // A text that all know, the first one most of it.
    for (worker, blocks) in [40, 400, 100].into_iter().enumerate() {
        engines[worker].publish(stored(1.0, &text(7, blocks), worker as u64));
    }
    let expected = |depths: &[(u32, u32)]| -> Vec<(String, u32)> {
        depths.iter().map(|(worker, depth)| (format!("worker-{worker}"), *depth)).collect()
    };
    let all = expected(&[(2, 400), (3, 96), (1, 40)]);
    eventually("the router knows all", || depths(&cluster, 3, &text(7, 5000)) == all);
    assert_eq!(depths(&cluster, 3, &text(8, 100)), []);

    // The engine of the second worker starts anew.
    let (events, replay) = (engines[1].events(), engines[1].replay());
    drop(engines.remove(1));
    engines.insert(1, Publisher::bind(events, replay, "kv-events", 1000).expect("the same ports"));
    let others = expected(&[(3, 96), (1, 40)]);
    eventually("the dead life is forgotten", || depths(&cluster, 3, &text(7, 5000)) == others);
    engines[1].publish(stored(2.0, &text(7, 16), 99));
    let anew = expected(&[(3, 96), (1, 40), (2, 16)]);
    eventually("the new life is known", || depths(&cluster, 3, &text(7, 5000)) == anew);

    // A host that restarts is told all blocks again.
    cluster.kill(0);
    cluster.start(0, &["--memory"]);
    // Its port may be another one: the follower would not find it.
    let follower = Follower::start(cluster.resp(0), &engines[0]);
    eventually("told again", || depths(&cluster, 3, &text(7, 5000)) == anew);

    // A follower that ends takes its blocks back.
    let mut followers = followers.into_iter();
    drop(followers.next());
    let counted = followers.next_back().expect("the third").end();
    assert_eq!((&counted["messages"], &counted["held"]), (&1.into(), &100.into()));
    let left = expected(&[(1, 40), (2, 16)]);
    eventually("its blocks are gone", || depths(&cluster, 3, &text(7, 5000)) == left);
    drop(follower);
}

#[test]
fn hashes_of_blocks_are_printed() {
    let run = |arguments: &[&str], input: &str| {
        let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("built");
        umbel.args(["kv", "hash"]).args(arguments).write_stdin(input).output().expect("it runs")
    };
    let lines = |extra: &[u8]| -> String {
        let chain = canonical::chain(&[1, 2, 3, 4], 2, extra);
        chain.iter().map(|hash| format!("{hash}\n")).collect()
    };
    let printed = |arguments: &[&str], input: &str| {
        let output = run(arguments, input);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(printed(&["--block-size", "2", "1", "2", "3", "4", "5"], ""), lines(&[]));
    assert_eq!(printed(&["--block-size", "2", "-"], "1, 2\n3 4\r\n\t5"), lines(&[]));
    let adapter = canonical::extra(Some("sql"), Some("salt"));
    let arguments = ["--block-size", "2", "--adapter", "sql", "--salt", "salt", "1 2 3 4"];
    assert_eq!(printed(&arguments, ""), lines(&adapter));
    for (arguments, message) in [
        (&["1"][..], "--block-size"),
        (&["--block-size", "0", "1"], "--block-size"),
        (&["--block-size", "2"], "TOKENS"),
        (&["--block-size", "2", "x"], "'x': a token is a whole number"),
        (&["--block-size", "2", "4294967296"], "2^32"),
        (&["--block-size", "2", "--file", "/no/such/file"], "/no/such/file"),
        (&["--block-size", "2", "--salt", "", "1"], "1 to 65535 bytes"),
    ] {
        let output = run(arguments, "");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
    }
}

#[test]
fn bad_endpoints_are_refused_before_anything_is_asked() {
    for (arguments, message) in [
        (&["kv", "--events", "tcp://*:5557"][..], "name the engine's own address"),
        (&["kv", "--events", "5557"], "tcp://127.0.0.1:5557"),
        (&["kv"], "--events"),
        (&["a b", "--events", "tcp://a:1"], "a set's name"),
        (&["kv", "--events", "tcp://a:65535", "--rank", "1"], "no port for rank 1"),
        (&["kv", "--events", "tcp://a:1", "--forget", "soon"], "30s"),
        (&["kv", "--events", "tcp://a:1", "--step", "0"], "--step"),
        (&["kv", "--events", "tcp://a:1", "--at", "127.0.0.1:1"], "umbel serve"),
    ] {
        let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("built");
        let output = umbel.args(["kv", "follow"]).args(arguments).output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
    }
}
