//! Commands that ask a host: a real one, and a stand-in for what no real one would say.

mod bad_input;
mod fake;
mod real;
mod sync;
mod watch;

use std::io::{Read as _, Write as _};
use std::process::Output;

use assert_cmd::Command;
use fake::{Fake, bulk, error, map};
use real::Real;
use serde_json::Value;

use crate::cluster::hosts::eventually;

fn umbel(at: &str, arguments: &[&str], input: &str) -> Output {
    let mut umbel = Command::cargo_bin("umbel").expect("the binary is built");
    let output = umbel.env("UMBEL_AT", at).args(arguments).write_stdin(input).output();
    output.expect("the binary runs")
}

/// What a command prints and its exit status; it must say nothing on standard error.
pub(crate) fn run(at: &str, arguments: &[&str], input: &str) -> (i32, String) {
    let output = umbel(at, arguments, input);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.is_empty(), "{arguments:?}: {stderr}");
    let printed = String::from_utf8(output.stdout).expect("text");
    (output.status.code().expect("an exit status"), printed)
}

/// The one line on standard error of a command that fails.
pub(crate) fn refused(at: &str, arguments: &[&str], input: &str) -> String {
    let output = umbel(at, arguments, input);
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    stderr
}

fn json(at: &str, arguments: &[&str]) -> Value {
    let (_, printed) = run(at, arguments, "");
    serde_json::from_str(&printed).expect("one JSON value")
}

#[test]
fn keys_are_listed_and_a_set_is_deleted() {
    let host = Real::start();
    let at = &host.at;
    let many: String = (0..2500).map(|n| format!("{n}\n")).collect();
    run(at, &["add", "s", "-"], &many);
    let mut keys: Vec<u32> =
        run(at, &["keys", "s"], "").1.lines().map(|line| line.parse().expect("a number")).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..2500).collect::<Vec<_>>());
    run(at, &["add", "t", "a"], "");
    assert_eq!(json(at, &["keys", "t", "--json"]), serde_json::json!({"keys": ["a"], "count": 1}));
    assert_eq!(run(at, &["delete", "t"], ""), (0, "deleted t\n".into()));
    assert_eq!(run(at, &["sets"], ""), (0, "s\n".into()));
    assert!(refused(at, &["delete", "t"], "").contains("has no set 't' of its own"));
    assert!(refused(at, &["keys", "t"], "").contains("no such set 't'"));
    assert!(refused(at, &["delete", "a b"], "").contains("a set's name"));
    let deleted = json(at, &["delete", "s", "--json"]);
    assert_eq!(deleted, serde_json::json!({"set": "s", "deleted": true}));
    run(at, &["add", "s", "a"], "");
    assert!(run(at, &["delete", "s", "--all-hosts"], "").1.ends_with(": done\n"));
    assert_eq!(run(at, &["sets"], ""), (0, String::new()));
}

#[test]
fn keys_are_added_asked_for_and_removed() {
    let host = Real::start();
    let at = &host.at;
    assert_eq!(run(at, &["add", "s", "a", "b", "a"], ""), (0, "added 2 of 3 keys to s\n".into()));
    assert_eq!(run(at, &["has", "s", "b", "x", "a"], ""), (0, "b\na\n".into()));
    assert_eq!(run(at, &["has", "s", "x"], ""), (1, String::new()));
    assert_eq!(run(at, &["who", "s", "a", "x"], ""), (0, "a\ta\nx\t\n".into()));
    assert_eq!(run(at, &["who", "s", "x"], ""), (1, "x\t\n".into()));
    assert_eq!(run(at, &["locate", "s", "a", "--timeout", "50"], ""), (0, "a\ta\n".into()));
    assert_eq!(run(at, &["locate", "s", "x"], ""), (1, "x\t\n".into()));
    assert_eq!(run(at, &["locate", "s", "a", "--path"], ""), (0, "a\ta\n".into()));
    assert_eq!(run(at, &["missing", "s", "a", "x"], ""), (0, "x\n".into()));
    assert_eq!(run(at, &["missing", "s", "a"], ""), (0, String::new()));
    assert_eq!(run(at, &["remove", "s", "a", "x"], ""), (0, "removed 1 of 2 keys from s\n".into()));
    assert_eq!(run(at, &["sets"], ""), (0, "s\n".into()));
    assert_eq!(run(at, &["add", "s", "c", "--lifetime", "1.5"], "").0, 0);
}

#[test]
fn prefixes_are_announced_matched_and_withdrawn() {
    let host = Real::start();
    let at = &host.at;
    let announce = ["announce", "n", "/video", "/video/2024/", "/video"];
    assert_eq!(run(at, &announce, ""), (0, "announced 2 of 3 prefixes in n\n".into()));
    assert_eq!(
        run(at, &["match", "n", "/video/2024/intro", "/audio", "/video/"], ""),
        (0, "/video/2024/intro\t/video/2024\ta\n/audio\t-\n/video/\t/video\ta\n".into())
    );
    assert_eq!(run(at, &["match", "n", "/videos"], ""), (1, "/videos\t-\n".into()));
    let withdraw = ["withdraw", "n", "/video/2024", "/x"];
    assert_eq!(run(at, &withdraw, ""), (0, "withdrew 1 of 2 prefixes from n\n".into()));
    for confirm in ["--confirm", "--confirm=500"] {
        assert_eq!(
            run(at, &["match", "n", confirm, "-"], "/video/2024\n\n/x\n"),
            (0, "/video/2024\t/video\ta\n/x\t-\n".into())
        );
    }
    assert_eq!(
        json(at, &["match", "n", "/video/1", "/x", "--json"]),
        serde_json::json!({"names": [
            {"name": "/video/1", "prefix": "/video", "hosts": ["a"]},
            {"name": "/x", "prefix": null, "hosts": []},
        ], "asked": 2, "count": 1})
    );
    let announced = json(at, &["announce", "n", "/a", "--json"]);
    assert_eq!(announced, serde_json::json!({"set": "n", "prefixes": 1, "announced": 1}));
    let withdrawn = json(at, &["withdraw", "n", "/a", "/b", "--json"]);
    assert_eq!(withdrawn, serde_json::json!({"set": "n", "prefixes": 2, "withdrawn": 1}));
}

#[test]
fn a_chain_is_asked_for() {
    let host = Real::start();
    let at = &host.at;
    assert_eq!(run(at, &["reserve", "kv", "--chains", "8", "--capacity", "1e4"], "").0, 0);
    let keys: Vec<String> = (0..30).map(|key| format!("k{key}")).collect();
    run(at, &["add", "kv", "-"], &keys[..22].join("\n"));
    let chain = keys.join("\n");
    assert_eq!(run(at, &["chain", "kv", "-"], &chain), (0, "a\t16\n".into()));
    assert_eq!(run(at, &["chain", "kv", "-", "--step", "1"], &chain), (0, "a\t22\n".into()));
    assert_eq!(run(at, &["chain", "kv", "k1", "k99", "--step=1"], ""), (0, "a\t1\n".into()));
    assert_eq!(run(at, &["chain", "kv", "k99"], ""), (1, String::new()));
    assert_eq!(run(at, &["chain", "none", "k1"], ""), (1, String::new()));
    // The words of options are keys as well.
    run(at, &["add", "kv", "STEP", "LIMIT", "8"], "");
    let words = ["chain", "kv", "STEP", "LIMIT", "8", "--step", "3", "--limit", "1"];
    assert_eq!(run(at, &words, ""), (0, "a\t3\n".into()));
    assert_eq!(
        json(at, &["chain", "kv", "k0", "k1", "--step", "2", "--json"]),
        serde_json::json!({"hosts": [{"host": "a", "depth": 2}], "keys": 2, "complete": true,
                           "missing_hosts": []})
    );
    let info = json(at, &["info", "kv", "--json"]);
    assert_eq!((&info["chain_step"], &info["loose"]), (&8.into(), &true.into()));
    assert_eq!(info["chain_lookups"], 6, "a set that nobody has counts nothing");
}

#[test]
fn numbers_of_a_chain_are_eight_bytes() {
    let answer = "*1\r\n*2\r\n$1\r\nw\r\n:8\r\n";
    let host = Fake::start(move |_| {
        Some(map(&[("hosts", answer), ("complete", "#f\r\n"), ("missing_hosts", "*0\r\n")]))
    });
    let chain = ["chain", "kv", "--numbers", "--", "258", "-1", "18446744073709551615"];
    assert_eq!(run(&host.at, &chain, ""), (0, "w\t8\n".into()));
    let [words] = &host.asked()[..] else { panic!("one command") };
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let (options, keys) = words.split_at(6);
    let all = u32::MAX.to_string();
    assert_eq!(options, [b"UMBEL.CHAIN" as &[u8], b"kv", b"STEP", b"8", b"LIMIT", all.as_bytes()]);
    assert_eq!(keys, [&[2, 1, 0, 0, 0, 0, 0, 0], &[0xff; 8], &[0xff; 8]]);
}

#[test]
fn many_names_are_matched_in_order() {
    let host = Real::start();
    let at = &host.at;
    let lines: String = (0..5000).map(|n| format!("/{}/{n}\n", n % 7)).collect();
    run(at, &["announce", "n", "-"], "/0\n/1/\n/3\n/3/10\n");
    let expected = |n: usize| match (n % 7, n) {
        (3, 10) => "\t/3/10\ta".to_owned(),
        (0 | 1 | 3, _) => format!("\t/{}\ta", n % 7),
        _ => "\t-".to_owned(),
    };
    let expected: String =
        lines.lines().enumerate().map(|(n, line)| format!("{line}{}\n", expected(n))).collect();
    let (code, matched) = run(at, &["match", "n", "-"], &lines);
    assert!(code == 0 && matched == expected, "all of them, in order");
    assert!(run(at, &["match", "n", "-", "--confirm"], &lines) == (0, expected), "asked as well");
}

/// Before, 1,100 idle connections took all 1,024 descriptors, and both ports stopped.
#[test]
fn a_host_with_few_descriptors_serves_on() {
    // Nobody is closed for being idle: there is room because others make it.
    let times = ["--timing-login", "--timing-http-header", "--timing-http-idle"];
    let patient: Vec<&str> = times.into_iter().flat_map(|time| [time, "3600"]).collect();
    let host = Real::with_descriptors(160, &patient);
    let alone = host.descriptors();
    let idle: Vec<_> = [&host.http, &host.at]
        .into_iter()
        .cycle()
        .take(400)
        .map(|at| std::net::TcpStream::connect(at).expect("a place in the backlog at least"))
        .collect();
    assert_eq!(run(&host.at, &["add", "s", "a"], ""), (0, "added 1 of 1 keys to s\n".into()));
    assert_eq!(run(&host.at, &["who", "s", "a"], ""), (0, "a\ta\n".into()));
    let mut http = std::net::TcpStream::connect(&host.http).expect("a connection");
    http.write_all(b"GET /v1/sets/s HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    http.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    // Of 160 descriptors 96 are the clients'; the host needs a few, too, and some connections are
    // just being closed for others.
    let max = alone + 96 + 16;
    eventually("clients take no more than their share", || host.descriptors() <= max);
    drop(idle);
}

#[test]
fn a_host_raises_its_limit_of_descriptors_as_far_as_it_may() {
    let host = Real::after("ulimit -S -n 300 && ulimit -H -n 500", &[]);
    assert_eq!(host.limit_descriptors(300), 500);
}

/// A port that cannot accept for a while goes on when it can.
#[test]
fn ports_pause_while_there_are_no_descriptors_and_then_go_on() {
    let host = Real::start();
    assert_eq!(run(&host.at, &["add", "s", "a"], "").0, 0);
    // It has standard input: no other descriptor can be had.
    let before = host.limit_descriptors(1);
    let mut waiting = [&host.http, &host.at]
        .map(|at| std::net::TcpStream::connect(at).expect("a place in the backlog"));
    waiting[0].write_all(b"GET /livez HTTP/1.0\r\n\r\n").expect("sent");
    waiting[1].write_all(b"PING\r\n").expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(300));
    for socket in &mut waiting {
        socket.set_nonblocking(true).expect("a socket");
        assert!(socket.read(&mut [0; 64]).is_err(), "nobody can be accepted");
        socket.set_nonblocking(false).expect("a socket");
    }
    host.limit_descriptors(before);
    for (mut socket, expected) in waiting.into_iter().zip(["HTTP/1.0 200", "+PONG"]) {
        let mut answer = vec![0; expected.len()];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }
    assert_eq!(run(&host.at, &["who", "s", "a"], ""), (0, "a\ta\n".into()));
}

#[test]
fn many_keys_come_through_in_order() {
    let host = Real::start();
    let at = &host.at;
    let lines: String = (0..25_000).map(|n| format!("key-{n}\n")).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    std::fs::write(&file, format!("\n{lines}\r\n")).expect("a file");
    let file = file.to_str().expect("text");
    assert_eq!(run(at, &["add", "s", "--file", file], "").1, "added 25,000 of 25,000 keys to s\n");
    let (code, held) = run(at, &["has", "s", "-"], &lines);
    assert!(code == 0 && held == lines, "all of them, in order");
    let (_, absent) = run(at, &["missing", "s", "-"], "x\nkey-7\ny\n");
    assert_eq!(absent, "x\ny\n");
    assert_eq!(run(at, &["add", "s", "-"], "").1, "added 0 of 0 keys to s\n");
}

#[test]
fn answers_come_as_json() {
    let host = Real::start();
    let at = &host.at;
    assert_eq!(
        json(at, &["add", "s", "a", "--json"]),
        serde_json::json!({"set": "s", "keys": 1, "added": 1})
    );
    let has = json(at, &["has", "s", "a", "x", "--json"]);
    assert_eq!(has, serde_json::json!({"keys": ["a"], "asked": 2, "count": 1}));
    let who = json(at, &["who", "s", "a", "x", "--json"]);
    let keys = serde_json::json!([{"key": "a", "hosts": ["a"]}, {"key": "x", "hosts": []}]);
    assert_eq!(who, serde_json::json!({"keys": keys, "asked": 2, "count": 1}));
    assert_eq!(json(at, &["locate", "s", "a", "--json"])["count"], 1);
    assert_eq!(json(at, &["missing", "s", "x", "--json"])["keys"], serde_json::json!(["x"]));
    assert_eq!(json(at, &["sets", "--json"]), serde_json::json!(["s"]));
    let info = json(at, &["info", "s", "--json"]);
    assert_eq!((&info["set"], &info["items"]), (&"s".into(), &1.into()));
    assert_eq!(json(at, &["info", "--json"])["name"], "a");
    assert_eq!(json(at, &["hosts", "--json"])[0]["resp"], at.as_str());
    assert_eq!(json(at, &["policy", "s", "--json"])["policy"], "miss:0.01,ghost=0.05,longest=1s");
    assert_eq!(json(at, &["publish", "s", "--json"])[0]["done"], true);
    let removed = json(at, &["remove", "s", "a", "--json"]);
    assert_eq!(removed, serde_json::json!({"set": "s", "keys": 1, "removed": 1}));
}

#[test]
fn a_set_is_shown_and_told() {
    let host = Real::start();
    let at = &host.at;
    run(at, &["add", "s", "a"], "");
    assert!(run(at, &["info", "s"], "").1.contains("false positive"));
    assert!(run(at, &["info"], "").1.contains("cluster"));
    assert_eq!(run(at, &["policy", "s", "miss:0.02"], ""), (0, String::new()));
    assert_eq!(run(at, &["policy", "s"], ""), (0, "miss:0.02,ghost=0.05\n".into()));
    assert_eq!(run(at, &["publish", "s"], ""), (0, String::new()));
    let reserve =
        ["reserve", "t", "--false-positive", "0.001", "--capacity", "5000", "--all-hosts"];
    assert_eq!(run(at, &reserve, ""), (0, format!("a at {at}: done\n")));
    assert_eq!(json(at, &["info", "t", "--json"])["capacity"], 5000);
    assert_eq!(run(at, &["sets"], "").1, "s\nt\n");
}

#[test]
fn a_set_that_nobody_is_known_to_have_is_an_empty_one() {
    let host = Real::start();
    for command in ["has", "locate"] {
        assert_eq!(run(&host.at, &[command, "none", "k"], "").0, 1, "{command}: none");
    }
    assert_eq!(run(&host.at, &["missing", "none", "k"], ""), (0, "k\n".into()));
    assert_eq!(run(&host.at, &["match", "none", "/k"], "").0, 1);
    let output = umbel(&host.at, &["who", "none", "k"], "");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("knows of nobody who has a set 'none'"), "{stderr}");
    run(&host.at, &["add", "s", "a"], "");
    assert_eq!(umbel(&host.at, &["who", "s", "k"], "").stderr, b"", "a set that is known");
}

#[test]
fn changes_and_facts_of_a_set_that_nobody_has_are_refused() {
    let host = Real::start();
    assert!(refused(&host.at, &["remove", "none", "k"], "").contains("no such set"));
    assert!(refused(&host.at, &["withdraw", "none", "/k"], "").contains("no such set"));
    for command in ["info", "policy", "publish"] {
        assert!(refused(&host.at, &[command, "none"], "").contains("no such set"));
    }
}

#[test]
fn commands_are_what_a_host_expects() {
    let host = Fake::start(|words| {
        let keys = words.len() - if words[0] == b"UMBEL.ADDEX" { 3 } else { 2 };
        Some(fake::array((0..keys).map(|_| b":1\r\n".to_vec())))
    });
    assert_eq!(run(&host.at, &["add", "s", "c", "--lifetime", "1.5"], "").0, 0);
    let words: Vec<Vec<u8>> = ["UMBEL.ADDEX", "s", "1.5", "c"].map(Into::into).to_vec();
    assert!(host.asked().contains(&words));
    let lines: String = (0..5000).map(|n| format!("key-{n}\n")).collect();
    run(&host.at, &["add", "s", "-"], &lines);
    assert!(host.asked().iter().all(|words| words.len() <= 1002), "about a thousand a command");
}

#[test]
fn all_hosts_are_told_and_each_is_named() {
    let other = Fake::start(|_| Some(b"+OK\r\n".to_vec()));
    let there = other.at.clone();
    let gone = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let failing = Fake::start(|_| Some(error("out of memory")));
    let refusing = failing.at.clone();
    let asked = Fake::start(move |words| {
        let text = |text: &str| String::from_utf8(bulk(text.as_bytes())).unwrap();
        let host = |name: &str, at: &str| map(&[("name", &text(name)), ("resp", &text(at))]);
        Some(match &words[0][..] {
            b"UMBEL.HOSTS" => fake::array(
                [host("b", &there), host("c", &gone.to_string()), host("d", &refusing)].into_iter(),
            ),
            _ => error("it was not asked"),
        })
    });
    let reserve = [
        "reserve",
        "s",
        "--false-positive",
        "1%",
        "--capacity",
        "1e6",
        "--hosts",
        "40",
        "--policy",
        "manual",
        "--lifetime",
        "none",
        "--confirm",
        "{advertise}/{key}",
        "--all-hosts",
    ];
    let mut umbel = Command::cargo_bin("umbel").expect("the binary is built");
    let output = umbel.args(reserve).args(["--at", &asked.at]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], format!("b at {}: done", other.at));
    assert!(lines[1].starts_with(&format!("c at {gone}: nobody answers")), "{printed}");
    assert!(lines[2].ends_with("out of memory"), "{printed}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "umbel: the command failed on 2 of 3 hosts\n"
    );
    let words = "UMBEL.RESERVE s 0.01 1000000 HOSTS 40 POLICY manual LIFETIME none CONFIRM";
    let words = words.split(' ').chain(["HEAD {advertise}/{key}"]);
    assert_eq!(other.asked(), [words.map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>()]);
}

#[test]
fn hosts_are_a_table() {
    let asked = Fake::start(|_| {
        let host = |name: &str, age| {
            let name = String::from_utf8(bulk(name.as_bytes())).unwrap();
            map(&[("name", &name), ("last_update_seconds", age), ("alive", "#t\r\n")])
        };
        Some(fake::array([host("a", ",0.25\r\n"), host("cache-2", "_\r\n")].into_iter()))
    });
    let (code, printed) = run(&asked.at, &["hosts"], "");
    assert_eq!(code, 0);
    assert_eq!(
        printed,
        "name     last update seconds  alive\na        0.25                 yes\ncache-2  -                    yes\n"
    );
    assert_eq!(json(&asked.at, &["hosts", "--json"])[1]["last_update_seconds"], Value::Null);
}
