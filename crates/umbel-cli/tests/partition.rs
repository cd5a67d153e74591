//! A cluster in two halves of a network of its own: cut apart, healed, equal again.
//!
//! Two network namespaces joined by one pair of virtual interfaces; needs root and `ip`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Two namespaces and the cable between them; gone with the test.
struct Halves {
    names: [String; 2],
}

/// Addresses for documentation (RFC 5737): nobody else has them.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

impl Halves {
    fn new() -> Self {
        let process = std::process::id();
        let halves = Self { names: [format!("umbel-a-{process}"), format!("umbel-b-{process}")] };
        let cables = [format!("ua{process}"), format!("ub{process}")];
        halves.names.iter().for_each(|name| ip(&["netns", "add", name]));
        ip(&["link", "add", &cables[0], "type", "veth", "peer", "name", &cables[1]]);
        for ((name, cable), address) in halves.names.iter().zip(&cables).zip(ADDRESSES) {
            ip(&["link", "set", cable, "netns", name, "name", "cable"]);
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", "cable"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
            ip(&["-n", name, "link", "set", "cable", "up"]);
        }
        halves
    }

    fn cable(&self, state: &str) {
        ip(&["-n", &self.names[0], "link", "set", "cable", state]);
    }

    /// A command that runs in one half.
    fn within(&self, half: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[half], env!("CARGO_BIN_EXE_umbel")]);
        command
    }
}

impl Drop for Halves {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().expect("install iproute2");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words:?}: {stderr}(this test needs root)");
}

struct Running {
    child: Child,
    half: usize,
    resp: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports within the namespaces, where nobody else can have them.
const PORTS: [u16; 2] = [7447, 7448];

/// Two hosts in each half, each with all others as peers.
fn start(halves: &Halves, folder: &Path) -> Vec<Running> {
    let key = folder.join("key");
    std::fs::write(&key, "a secret that this cluster shares").expect("written");
    let places: Vec<(usize, String)> = [0, 1]
        .into_iter()
        .flat_map(|half| PORTS.map(|port| (half, format!("{}:{port}", ADDRESSES[half]))))
        .collect();
    let host = |(number, (half, listen)): (usize, &(usize, String))| {
        let mut command = halves.within(*half);
        command.args(["serve", "--name", &format!("host-{number}"), "--memory", "--allow-remote"]);
        command.args(["--print-ports", "json", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        command.args(["--listen", listen]).arg("--hash-key-file").arg(&key);
        for (_, peer) in places.iter().filter(|(_, peer)| peer != listen) {
            command.args(["--peer", peer]);
        }
        let log = folder.join(format!("{number}.log"));
        command.stdout(Stdio::piped()).stderr(File::create(&log).expect("a log"));
        let mut child = command.spawn().expect("the binary runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the ports");
        let ports: serde_json::Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{}", std::fs::read_to_string(&log).unwrap_or_default()));
        let resp = ports["resp"].as_str().expect("an address").to_owned();
        Running { child, half: *half, resp }
    };
    places.iter().enumerate().map(host).collect()
}

impl Running {
    fn run(&self, halves: &Halves, words: &[&str]) -> String {
        let mut command = halves.within(self.half);
        let output = command.args(words).args(["--at", &self.resp]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn knows(&self, halves: &Halves, key: &str, holder: usize) -> bool {
        self.run(halves, &["who", "images", key]) == format!("{key}\thost-{holder}\n")
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(90), "not within 90 s: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn halves_that_were_cut_apart_agree_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let halves = Halves::new();
    let hosts = start(&halves, folder.path());
    let publish = |number: usize, key: &str| {
        hosts[number].run(&halves, &["add", "images", key]);
        hosts[number].run(&halves, &["publish", "images"]);
    };
    let all_know =
        |key: &str, holder: usize| hosts.iter().all(|host| host.knows(&halves, key, holder));
    publish(0, "together");
    publish(2, "there");
    eventually("everybody knows both keys", || all_know("together", 0) && all_know("there", 2));

    halves.cable("down");
    publish(0, "here-alone");
    publish(3, "there-alone");
    eventually("each half goes on", || {
        hosts[1].knows(&halves, "here-alone", 0) && hosts[2].knows(&halves, "there-alone", 3)
    });
    eventually("each half forgets the other", || {
        !hosts[1].knows(&halves, "there", 2) && !hosts[3].knows(&halves, "together", 0)
    });
    assert!(!hosts[2].knows(&halves, "here-alone", 0), "nothing crosses the cut");

    halves.cable("up");
    eventually("everybody knows everything", || {
        [("together", 0), ("there", 2), ("here-alone", 0), ("there-alone", 3)]
            .iter()
            .all(|(key, holder)| all_know(key, *holder))
    });
}
