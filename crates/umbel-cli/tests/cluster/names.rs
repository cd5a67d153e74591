//! Hosts of one name: the one that is known and replies keeps it, the other one stops.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::coverage::who;
use super::hosts::{Cluster, binary, eventually, name, without_settings};
use super::secured::{says, start_secured, write_peers};
use super::{add, named};

const KEYS: usize = 300;

/// A host with another one's name and nothing in its catalogue, which is expected to stop by itself.
pub(super) struct Twin(Child);

impl Twin {
    /// Starts one with these flags, which tell it where others listen.
    fn start(host: &str, flags: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", host, flags)
    }

    /// As [`Self::start`], listening at another address.
    pub(super) fn start_at(listen: &str, host: &str, flags: &[&str]) -> Self {
        let mut command = binary();
        without_settings(&mut command);
        command.args(["serve", "--name", host, "--memory", "--listen", listen]);
        command.args(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]).args(flags);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        Self(child.expect("the binary runs"))
    }

    /// Whether it still runs.
    pub(super) fn runs(&mut self) -> bool {
        self.0.try_wait().expect("waited").is_none()
    }

    /// What it says at its end: the exit code, and the last line.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        let mut stderr = self.0.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut stderr, &mut text).expect("text");
        let status = self.0.wait().expect("waited");
        (status.code(), text.lines().last().unwrap_or_default().to_owned())
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Watches that hosts 1 and 2 name host 0 for all of its keys until the twin has stopped.
fn stops_and_harms_nobody(cluster: &Cluster, mut twin: Twin) {
    let keys: Vec<String> = (0..KEYS).map(|key| format!("key-{key}")).collect();
    let start = Instant::now();
    while twin.runs() {
        assert!(start.elapsed() < Duration::from_secs(60), "it goes on");
        for host in [1, 2] {
            let answer = who(cluster.http(host), &keys).expect("it answers");
            assert_eq!(answer.denied(&name(0)), 0, "keys of the first host are denied");
        }
    }
    let (code, line) = twin.end();
    assert_eq!(code, Some(2), "{line}");
    assert!(line.contains("another host is called 'host-0'"), "{line}");
    assert!(line.contains(cluster.listen(0)), "it names the other's address: {line}");
    assert_eq!(named(cluster, 1, "images", "key", KEYS, 0), KEYS);
    let _: Vec<u8> = cluster.ask(0, &["UMBEL.ADD", "images", "later"]);
    let _: () = cluster.ask(0, &["UMBEL.PUBLISH", "images"]);
    eventually("the first host is still heard", || cluster.who(2, "images", "later") == [name(0)]);
}

fn load(cluster: &Cluster) {
    add(cluster, 0, "images", "key", KEYS);
    let _: () = cluster.ask(0, &["UMBEL.PUBLISH", "images"]);
    eventually("the others know", || {
        [1, 2].iter().all(|host| named(cluster, *host, "images", "key", KEYS, 0) == KEYS)
    });
}

#[test]
fn a_second_host_of_a_name_stops_and_harms_nobody() {
    let mut cluster = Cluster::running(3);
    load(&cluster);
    // It knows all hosts, or one of the others.
    let all: Vec<String> = (0..3).map(|host| cluster.listen(host).to_owned()).collect();
    let flags: Vec<&str> = all.iter().flat_map(|peer| ["--peer", peer]).collect();
    stops_and_harms_nobody(&cluster, Twin::start(&name(0), &flags));
    stops_and_harms_nobody(&cluster, Twin::start(&name(0), &["--peer", &all[1]]));

    // The first one dies: another one may take its name.
    cluster.kill(0);
    let mut twin = Twin::start(&name(0), &["--peer", &all[1]]);
    eventually("its keys are gone", || named(&cluster, 1, "images", "key", KEYS, 0) == 0);
    eventually("it is believed", || cluster.status_number(1, "hosts_known") == 3);
    assert!(twin.runs());
}

/// Starts a second host 0 that is told of these hosts while the first one hangs for so long, and waits
/// until one of the two has stopped. Returns the other one, if it is the second.
fn second_while_the_first_hangs(
    cluster: &mut Cluster,
    peers: &[usize],
    pause: Duration,
) -> Option<Twin> {
    let peers: Vec<&str> = peers.iter().map(|peer| cluster.listen(*peer)).collect();
    let flags: Vec<&str> = peers.iter().flat_map(|peer| ["--peer", peer]).collect();
    cluster.signal(0, "STOP");
    let mut twin = Twin::start(&name(0), &flags);
    std::thread::sleep(pause);
    cluster.signal(0, "CONT");
    eventually("one of the two stops", || !cluster.runs(0) || !twin.runs());
    twin.runs().then_some(twin)
}

/// Whichever is left is believed by the others, and goes on.
fn one_is_left(cluster: &mut Cluster, twin: Option<Twin>) {
    let others = 1..cluster.len();
    eventually("the others know all hosts", || {
        others.clone().all(|host| cluster.status_number(host, "hosts_known") == 3)
    });
    match twin {
        Some(mut twin) => {
            assert!(twin.runs(), "both have stopped: {}", cluster.log(0));
            assert!(cluster.log(0).contains("another host is called 'host-0'"));
        }
        None => {
            assert!(cluster.runs(0), "both have stopped: {}", cluster.log(0));
            assert_eq!(named(cluster, 1, "images", "key", KEYS, 0), KEYS);
        }
    }
}

/// The others asked the first one once, for three seconds, and believed the second one for good; the
/// first one went on, or both stopped because each of them counted the other's word.
#[test]
fn a_second_host_that_starts_while_the_first_one_hangs_does_not_stay_beside_it() {
    // Shorter and longer than links survive.
    for seconds in [5, 12] {
        let mut cluster = Cluster::running(3);
        load(&cluster);
        let pause = Duration::from_secs(seconds);
        let twin = second_while_the_first_hangs(&mut cluster, &[1, 2], pause);
        one_is_left(&mut cluster, twin);
    }
}

/// Nobody else is there to decide: the later one stops.
#[test]
fn of_two_hosts_that_have_one_name_and_know_nobody_else_the_first_one_goes_on() {
    let mut cluster = Cluster::running(1);
    let pause = Duration::from_secs(5);
    let twin = second_while_the_first_hangs(&mut cluster, &[0], pause);
    assert!(twin.is_none(), "{}", cluster.log(0));
    // It was asked by the second one before that stopped, and has decided since.
    eventually("the first one knows", || cluster.log(0).contains("another host is called"));
    std::thread::sleep(Duration::from_secs(5));
    assert!(cluster.runs(0), "both have stopped: {}", cluster.log(0));
}

#[test]
fn a_second_host_of_a_name_stops_with_certificates_too() {
    let mut cluster = Cluster::new(3);
    let certs = cluster.path("certs");
    let hosts = "host-0,host-1,host-2";
    says(&["config", "certs", "--localhost", "--hosts", hosts, "--out", &certs], &[], "");
    write_peers(&cluster, 3);
    (0..3).for_each(|host| start_secured(&mut cluster, host, &[]));
    load(&cluster);
    let file = |end: &str| format!("{certs}/{end}");
    let (peers, ca) = (cluster.path("peers"), file("ca.pem"));
    let (cert, key) = (file("host-0.pem"), file("host-0.key"));
    let flags =
        ["--peers-file", &peers, "--peer-ca", &ca, "--peer-cert", &cert, "--peer-key", &key];
    stops_and_harms_nobody(&cluster, Twin::start(&name(0), &flags));
}

/// A line of hosts of these names in an overlay, each with a key of its own.
fn overlay(names: &[&str]) -> Cluster {
    let places: Vec<String> = (0..names.len()).map(|host| format!("place-{host}")).collect();
    let mut cluster = Cluster::named(&places.iter().map(String::as_str).collect::<Vec<_>>());
    for host in 0..names.len() {
        let next = names.get(host + 1).map(|name| (*name).to_owned());
        let last = (host > 0).then(|| format!("{}@{}", names[host - 1], cluster.listen(host - 1)));
        let links: Vec<String> = next.into_iter().chain(last).collect();
        let flags = [
            "--name",
            names[host],
            "--overlay-depth=4",
            "--timing-announce=0.3",
            "--timing-silence=4",
        ];
        cluster.start_linked(host, &links, &flags);
        let _: Vec<u8> = cluster.ask(host, &["UMBEL.ADD", "images", &format!("of-{host}")]);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    cluster
}

#[test]
fn two_hosts_of_one_name_in_an_overlay_are_reported() {
    let cluster = overlay(&["A", "B", "C", "A"]);
    eventually("it is counted", || cluster.status_number(0, "name_taken") > 0);
    assert!(cluster.log(0).contains("another host is called 'A'"), "{}", cluster.log(0));
}

/// The host in the middle hears of both and of neither first. It keeps the later one's filter, and
/// denied the other one's keys without a word.
#[test]
fn two_hosts_of_one_name_at_equal_distance_are_reported() {
    let cluster = overlay(&["A", "B", "C", "D", "A"]);
    eventually("the host in the middle calls no answer complete", || {
        let answer = who(cluster.http(2), &["of-0".to_owned(), "of-4".to_owned()]);
        answer.is_some_and(|answer| {
            !answer.is_complete
                && answer.missing.contains(&"A: two hosts have this name".to_owned())
        })
    });
    eventually("it logs it", || cluster.log(2).contains("two hosts of the overlay are called 'A'"));
    eventually("one of them knows", || cluster.status_number(0, "name_taken") > 0);
}
