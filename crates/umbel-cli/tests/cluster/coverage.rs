//! What hosts say of their own answers: `complete` is true only while all keys of all hosts that
//! should be known are named, and whoever is missing is named with the reason.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::add;
use super::hosts::{Cluster, binary, eventually, get, name};

/// An answer over HTTP to which hosts may hold some keys.
#[derive(Debug)]
pub(super) struct Answer {
    /// Whether the host calls it complete.
    pub(super) is_complete: bool,
    /// The hosts that are missing, with the reasons.
    pub(super) missing: Vec<String>,
    /// The hosts that are named for each key.
    pub(super) hosts: Vec<Vec<String>>,
}

impl Answer {
    /// How many keys are not said to be at a host.
    pub(super) fn denied(&self, holder: &str) -> usize {
        let names_it = |hosts: &&Vec<String>| hosts.iter().any(|host| host == holder);
        self.hosts.len() - self.hosts.iter().filter(names_it).count()
    }
}

/// Asks a host over HTTP who may hold these keys; nothing while it does not answer.
pub(super) fn who(http: &str, keys: &[String]) -> Option<Answer> {
    let mut stream = TcpStream::connect(http).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let body = keys.join("\n");
    let length = body.len();
    let head = format!(
        "POST /v1/sets/images/who HTTP/1.0\r\nHost: {http}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.contains(" 200 ") {
        return None;
    }
    let json: serde_json::Value = serde_json::from_str(body).ok()?;
    let texts = |value: &serde_json::Value, text: fn(&serde_json::Value) -> String| {
        value.as_array().map(|values| values.iter().map(text).collect()).unwrap_or_default()
    };
    let plain = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let named = |answer: &serde_json::Value| texts(&answer["hosts"], plain);
    Some(Answer {
        is_complete: json["complete"].as_bool()?,
        missing: texts(&json["missing_hosts"], |missing| {
            let text = |field: &str| missing[field].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("host"), text("reason"))
        }),
        hosts: json["answers"].as_array()?.iter().map(named).collect(),
    })
}

fn keys_of(host: usize, count: usize) -> Vec<String> {
    (0..count).map(|key| format!("of-{host}-{key}")).collect()
}

/// Adds keys to every host and waits until all others name it for them.
fn load(cluster: &Cluster, hosts: usize, count: usize) {
    for host in 0..hosts {
        add(cluster, host, "images", &format!("of-{host}"), count);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("all know all", || (0..hosts).all(|host| is_whole(cluster, host, hosts, count)));
}

/// Whether a host's answer is complete, and names every host for all of its keys.
fn is_whole(cluster: &Cluster, host: usize, hosts: usize, count: usize) -> bool {
    (0..hosts).all(|home| {
        let answer = who(cluster.http(host), &keys_of(home, count));
        answer.is_some_and(|answer| answer.is_complete && answer.denied(&name(home)) == 0)
    })
}

/// Asks a host, again and again without a pause, until it is ready and its answers are complete. No
/// answer that is complete, and none of a host that is ready, may deny a key.
fn watch(http: &str, host: usize, hosts: usize, count: usize) {
    let keys: Vec<String> = (0..hosts).flat_map(|home| keys_of(home, count)).collect();
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < Duration::from_secs(60), "{} is not complete", name(host));
        let is_ready = get(http, "/readyz").0 == 200;
        let Some(answer) = who(http, &keys) else { continue };
        for home in 0..hosts {
            let named = answer.hosts[home * count..][..count].iter();
            let denied = named.filter(|hosts| !hosts.contains(&name(home))).count();
            assert!(
                !(is_ready || answer.is_complete) || denied == 0,
                "{} denies {denied} of {count} keys of {}: ready {is_ready}, complete {}",
                name(host),
                name(home),
                answer.is_complete,
            );
        }
        if is_ready && answer.is_complete {
            return;
        }
    }
}

#[test]
fn hosts_that_all_restart_at_once_are_complete_only_when_they_know_each_other() {
    const HOSTS: usize = 3;
    const KEYS: usize = 100;
    let mut cluster = Cluster::running(HOSTS);
    load(&cluster, HOSTS, KEYS);
    // Together, and with one that comes later than the others know each other.
    for late in [Duration::ZERO, Duration::from_secs(3)] {
        (0..HOSTS).for_each(|host| cluster.kill(host));
        let commands = (0..HOSTS).map(|_| binary()).collect();
        let pause = |host| if host == HOSTS - 1 { late } else { Duration::ZERO };
        let watch = |host, http: &str| watch(http, host, HOSTS, KEYS);
        // Nobody is ready only because time is over.
        cluster.start_all_watched(commands, &["--timing-ready", "300"], &pause, &watch);
    }
}

/// Its last image answers until the next one is whole. The set is so long that its updates are encoded by
/// another thread.
#[test]
fn a_host_that_is_killed_and_started_again_at_once_is_never_denied() {
    const KEYS: usize = 150_000;
    let mut cluster = Cluster::new(2);
    cluster.start(0, &[]);
    // However long the start takes on a busy machine.
    cluster.start(1, &["--timing-grace", "100", "--timing-silence", "200"]);
    add(&cluster, 0, "images", "of-0", KEYS);
    let keys: Vec<String> = (0..KEYS).step_by(1000).map(|key| format!("of-0-{key}")).collect();
    let asked = |cluster: &Cluster| who(cluster.http(1), &keys).expect("it answers");
    eventually("the other one knows", || {
        let answer = asked(&cluster);
        answer.is_complete && answer.denied(&name(0)) == 0
    });
    cluster.kill(0);
    let (http, is_back) = (cluster.http(1).to_owned(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut asked = 0;
            while !is_back.load(Ordering::Relaxed) {
                let answer = who(&http, &keys).expect("it answers");
                assert_eq!(answer.denied(&name(0)), 0, "complete {}", answer.is_complete);
                asked += 1;
            }
            asked
        });
        cluster.start(0, &[]);
        eventually("it is known again", || asked(&cluster).is_complete);
        is_back.store(true, Ordering::Relaxed);
        assert!(watcher.join().expect("nothing was denied") > 10);
    });
}

#[test]
fn a_host_that_reaches_none_of_its_peers_is_ready_in_time_and_says_who_is_missing() {
    let mut cluster = Cluster::new(3);
    cluster.start(0, &["--timing-ready", "2"]);
    add(&cluster, 0, "images", "of-0", 10);
    let (status, text) = cluster.get(0, "/readyz");
    assert!(status == 503 || text.contains("ready\nmissing"), "{text}");
    eventually("it is ready", || cluster.get(0, "/readyz").0 == 200);
    let answer = who(cluster.http(0), &keys_of(0, 1)).expect("it answers");
    assert!(!answer.is_complete);
    assert_eq!(answer.missing, ["host-1: unreachable", "host-2: unreachable"]);
    // Both come: answers are complete. One dies: they are not, and the host is still ready.
    cluster.start(1, &[]);
    cluster.start(2, &[]);
    eventually("all are known", || is_whole(&cluster, 0, 1, 10));
    cluster.kill(2);
    eventually("it is missing", || {
        let answer = who(cluster.http(0), &keys_of(0, 1)).expect("it answers");
        !answer.is_complete && answer.missing == ["host-2: unreachable"]
    });
    let (status, text) = cluster.get(0, "/readyz");
    assert!(status == 200 && text.ends_with("ready\nmissing host-2: unreachable\n"), "{text}");
    let (_, metrics) = cluster.get(0, "/metrics");
    assert!(metrics.contains("umbel_host_complete 0") && metrics.contains("umbel_host_ready 1"));
}

/// Peers that only others know are found by their word.
#[test]
fn a_host_is_complete_only_when_it_knows_whom_its_peers_know() {
    let mut cluster = Cluster::new(3);
    let first = cluster.peer(0);
    cluster.start_with(0, &[]);
    cluster.start_with(1, &["--peer", &first]);
    for host in [0, 1] {
        add(&cluster, host, "images", &format!("of-{host}"), 500);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("both know each other", || is_whole(&cluster, 0, 2, 500));
    cluster.start_with(2, &["--peer", &first]);
    watch(cluster.http(2), 2, 2, 500);

    // Who leaves is not expected any more, unless the settings name it; who dies is.
    cluster.terminate(2);
    eventually("two are all", || is_whole(&cluster, 0, 2, 500));
    cluster.start_with(2, &["--peer", &first]);
    eventually("it is heard of", || cluster.status_number(0, "hosts_known") == 3);
    cluster.kill(2);
    eventually("its replicas are gone", || {
        cluster.status_number(0, "hosts_known") == 2 && cluster.status_number(1, "hosts_known") == 2
    });
    for host in [0, 1] {
        assert_eq!(cluster.status_number(host, "hosts_expected"), 3, "it has not left");
    }
}

#[test]
fn hosts_that_do_not_match_are_missing_and_the_doctor_says_why() {
    let mut cluster = Cluster::new(3);
    cluster.start(0, &["--timing-ready", "1"]);
    cluster.start(1, &["--cluster", "other"]);
    let secret = cluster.path("secret");
    std::fs::write(&secret, "another secret, of thirty bytes or more").expect("written");
    cluster.start(2, &["--hash-key-file", &secret]);
    add(&cluster, 0, "images", "of-0", 10);
    let expected = ["host-1: refused: other cluster 'other'", "host-2: refused: other hash key"];
    eventually("both are missing, with the reason", || {
        let answer = who(cluster.http(0), &keys_of(0, 1)).expect("it answers");
        !answer.is_complete && answer.missing == expected
    });
    let (code, text) = cluster.doctor(0);
    assert_eq!(code, Some(1), "{text}");
    for expected in expected {
        assert!(text.contains(expected), "{text}");
    }
}
