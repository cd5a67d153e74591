//! A place for every host: a network, a disk and a clock of its own, so that tests can cut links
//! between processes that run, fill disks and move clocks.
//!
//! | what | how | needs |
//! |---|---|---|
//! | links | a network namespace per host, routed through the namespace of the test; a cut is a blackhole rule there, so nobody is told | root |
//! | disks | the host's data directory is a tmpfs in a mount namespace; a full disk is one of the size of what it holds | root |
//! | clocks | libfaketime, which reads the offset from a file while the host runs | `libfaketime` of Debian |
//!
//! Why libfaketime: a time namespace shifts the monotonic clocks only and only before its first
//! process starts; setting the system's clock would move it for everybody else on the machine.
//! Offsets apply to the wall clock alone, as on real machines.
//!
//! The test runs itself again inside namespaces of its own, of processes too: whatever it leaves
//! behind ends with it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::super::hosts::{Cluster, binary};

/// Set for the test that runs inside.
const INSIDE: &str = "UMBEL_IN_NAMESPACES";
/// What unshare is asked for; the last process of them ends all others.
const UNSHARE: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// The size of a disk that is not full.
const DISK: &str = "1g";

/// Runs a test, given by its whole name, in namespaces of its own; where that is not permitted,
/// without them. The test is told which.
pub(in super::super) fn run(test: &str, run: impl FnOnce(bool)) {
    if std::env::var_os(INSIDE).is_some() {
        return run(true);
    }
    let unshare = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(UNSHARE).arg(program).args(arguments).env(INSIDE, "1");
        command.stdin(Stdio::null()).output()
    };
    if !unshare(Path::new("true"), &[]).is_ok_and(|output| output.status.success()) {
        println!("skipped: full disks, cut links and moved clocks need root and unshare");
        return run(false);
    }
    let exe = std::env::current_exe().expect("a test has a file");
    let arguments = ["--exact", test, "--nocapture", "--test-threads", "1"];
    let output = unshare(&exe, &arguments).expect("it ran a moment ago");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    println!("{stdout}");
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "there is no test called {test}: {stdout}");
}

/// The places of a cluster's hosts.
pub(super) struct Places {
    all: Vec<Place>,
    has_clocks: bool,
}

/// Where one host runs. The namespaces live as long as a process that sleeps in them.
struct Place {
    holder: Child,
    data: PathBuf,
    /// What libfaketime reads.
    clock: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The address of a host.
fn address(host: usize) -> String {
    format!("10.9.{host}.2")
}

/// The address of the test in a host's network.
fn gateway(host: usize) -> String {
    format!("10.9.{host}.1")
}

fn shell(script: &str) {
    let output = Command::new("sh").args(["-c", script]).output().expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {stderr}");
}

impl Places {
    /// Places for all hosts of a cluster, which listen there from their next start on.
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        shell("ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward");
        let all = (0..cluster.len()).map(|host| Place::new(cluster, host)).collect();
        let has_clocks = Path::new(FAKETIME).exists();
        if !has_clocks {
            println!("skipped: moved clocks need {FAKETIME} (Debian: apt-get install libfaketime)");
        }
        Self { all, has_clocks }
    }

    /// Whether clocks can be moved.
    pub(super) const fn has_clocks(&self) -> bool {
        self.has_clocks
    }

    /// Becomes a host at its place.
    pub(super) fn command(&self, host: usize) -> Command {
        let place = &self.all[host];
        let mut command = place.enter(&["--net", "--mount"]);
        command.arg("env");
        if self.has_clocks {
            command.arg(format!("LD_PRELOAD={FAKETIME}"));
            command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", place.clock.display()));
            command.args(["FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]);
        }
        command.arg(binary().get_program());
        command
    }

    /// Where a second host of a name may listen.
    pub(super) fn address_for_twin() -> String {
        format!("{}:0", gateway(0))
    }

    /// Leaves no room on a host's disk.
    pub(super) fn fill_disk(&self, host: usize) {
        // The host writes meanwhile, so that a size may be too small by the time it is set.
        self.all[host].remount(
            "for try in 1 2 3 4 5 6 7 8 9; do \
               used=$(df --output=used --block-size=1024 \"$0\" | tail -n 1); \
               mount -o remount,size=$((used + 4))k \"$0\" && exit 0; \
             done; exit 1",
        );
    }

    /// Makes room again.
    pub(super) fn empty_disk(&self, host: usize) {
        self.all[host].remount(&format!("mount -o remount,size={DISK} \"$0\""));
    }

    /// Moves a host's clock so many seconds from the true time; it is seen within two seconds.
    pub(super) fn set_clock(&self, host: usize, offset: i64) {
        write_clock(&self.all[host].clock, offset);
    }
}

fn write_clock(file: &Path, offset: i64) {
    // Replaced, so that nobody reads half of it.
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{offset:+}\n")).expect("written");
    std::fs::rename(&new, file).expect("replaced");
}

impl Place {
    fn new(cluster: &mut Cluster, host: usize) -> Self {
        let data = cluster.data(host);
        std::fs::create_dir_all(&data).expect("a folder");
        let clock = PathBuf::from(cluster.path(&format!("clock-{host}")));
        write_clock(&clock, 0);
        let script = format!(
            "mount -t tmpfs -o size={DISK} none \"$0\" && ip link set lo up && echo ready && exec sleep infinity"
        );
        let mut holder = Command::new("unshare")
            .args(["--net", "--mount", "sh", "-c", &script])
            .arg(&data)
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare works");
        let mut line = String::new();
        let stdout = holder.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "host {host} has no place");
        let place = Self { holder, data, clock };
        let (id, there, here) = (place.holder.id(), address(host), gateway(host));
        shell(&format!(
            "ip link add wire{host} type veth peer name wire netns {id} \
             && ip addr add {here}/24 dev wire{host} && ip link set wire{host} up \
             && nsenter --target {id} --net sh -c 'ip addr add {there}/24 dev wire \
             && ip link set wire up && ip route add default via {here}'"
        ));
        cluster.move_to(host, format!("{there}:7447"));
        cluster.serve_at(host, there);
        place
    }

    fn enter(&self, namespaces: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string()]).args(namespaces);
        command
    }

    fn remount(&self, script: &str) {
        let mut command = self.enter(&["--mount"]);
        let output = command.args(["sh", "-c", script]).arg(&self.data).output().expect("a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// What one host sends to another is dropped, and nobody is told, until this is dropped itself.
pub(super) struct Cut {
    rule: String,
}

impl Cut {
    pub(super) fn new(from: usize, to: usize) -> Self {
        let rule = format!("from {} to {} blackhole", address(from), address(to));
        shell(&format!("ip rule add pref 100 {rule}"));
        Self { rule }
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        let rule = format!("ip rule del pref 100 {}", self.rule);
        let _ = Command::new("sh").args(["-c", &rule]).status();
    }
}
