//! What tests do to the hosts of a cluster while clients use them: the one place for the checker and
//! for soak.
//!
//! Kinds are drawn from a bag that holds each of them once, so that a short run meets all; hosts,
//! pauses and the rest are drawn from the same seed. Always true: after a disturbance all hosts run,
//! all links carry and all disks have room. Cuts are noted, because answers may be wrong until a
//! silence that nobody reports has been noticed.

mod namespaces;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::hostile::Dice;
use super::hosts::{Cluster, binary, eventually, name};
use super::names::Twin;
pub(super) use namespaces::run;
use namespaces::{Cut, Places};

/// A second host of a name stops within moments; on a busy machine the hosts ask each other several times,
/// for seconds each, before one of them does.
const MAX_TWIN: Duration = Duration::from_secs(120);

/// One kind of disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A host hangs.
    Stop,
    /// One host or all get a fraction of a processor.
    Starve,
    /// A host ends in good order and starts again.
    End,
    /// A host is killed and starts again.
    Kill,
    /// All hosts are killed and start together.
    RestartAll,
    /// A second host of a name starts; it must stop by itself.
    Twin,
    /// Links between hosts that run carry nothing.
    Cut,
    /// A disk is full.
    FillDisk,
    /// A host's clock jumps.
    MoveClock,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Stop,
        Self::Starve,
        Self::End,
        Self::Kill,
        Self::RestartAll,
        Self::Twin,
        Self::Cut,
        Self::FillDisk,
        Self::MoveClock,
    ];
}

/// Where the ports of a host are, while it runs: for Redis clients and for HTTP.
pub(super) type Ports = Arc<Mutex<Option<(String, String)>>>;

/// Which links were cut, and when.
pub(super) type Cuts = Arc<Mutex<Vec<([usize; 2], Instant)>>>;

/// When hosts were stopped or starved, and until when; `None`: they are.
pub(super) type Stops = Arc<Mutex<Vec<(usize, Instant, Option<Instant>)>>>;

/// A cluster whose hosts all run, and what was done to it.
pub(super) struct Testbed {
    pub(super) cluster: Cluster,
    ports: Vec<Ports>,
    flags: Vec<String>,
    places: Option<Places>,
    cuts: Cuts,
    stops: Stops,
    /// A host whose process is never ended.
    veteran: Option<usize>,
    dice: Dice,
    bag: Vec<Kind>,
    /// Seconds by which clocks are wrong.
    offsets: Vec<i64>,
    start: Instant,
    counts: BTreeMap<Kind, u64>,
    history: Vec<String>,
}

impl Testbed {
    /// A cluster of hosts with these flags; with a place for each, if the test has namespaces of its
    /// own.
    pub(super) fn start(hosts: usize, flags: &[&str], seed: u64, has_namespaces: bool) -> Self {
        let mut cluster = Cluster::new(hosts);
        let mut flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        let places = has_namespaces.then(|| Places::new(&mut cluster));
        if places.is_some() {
            let secret = cluster.path("secret");
            std::fs::write(&secret, "a secret of thirty bytes or more").expect("written");
            flags.extend(["--allow-remote", "--hash-key-file", &secret].map(str::to_owned));
        }
        let mut testbed = Self {
            ports: (0..hosts).map(|_| Ports::default()).collect(),
            cluster,
            flags,
            places,
            cuts: Cuts::default(),
            stops: Stops::default(),
            veteran: None,
            dice: Dice(seed),
            bag: Vec::new(),
            offsets: vec![0; hosts],
            start: Instant::now(),
            counts: BTreeMap::new(),
            history: Vec::new(),
        };
        testbed.start_all();
        testbed
    }

    /// Lets the process of this host live all the time.
    pub(super) fn spare(&mut self, host: usize) {
        self.veteran = Some(host);
    }

    pub(super) fn ports(&self) -> Vec<Ports> {
        self.ports.clone()
    }

    pub(super) fn cuts(&self) -> Cuts {
        Arc::clone(&self.cuts)
    }

    pub(super) fn stops(&self) -> Stops {
        Arc::clone(&self.stops)
    }

    /// How often what was done.
    pub(super) fn counts(&self) -> &BTreeMap<Kind, u64> {
        &self.counts
    }

    /// What was done, and when.
    pub(super) fn history(&self) -> &[String] {
        &self.history
    }

    /// Disturbs for this long, and until everything that can be done was done once. Clients are told
    /// when it is over, by a panic too: the test would wait for them for ever.
    pub(super) fn disturb_for(&mut self, time: Duration, is_over: &AtomicBool) {
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(is_over);
        let start = Instant::now();
        loop {
            self.disturb();
            if self.bag.is_empty() && start.elapsed() >= time {
                return;
            }
        }
    }

    fn disturb(&mut self) {
        if self.bag.is_empty() {
            self.fill_bag();
        }
        let kind = self.bag.pop().expect("it was filled");
        let began = self.start.elapsed();
        let host = self.dice.below(self.cluster.len());
        let pause = Duration::from_millis(self.dice.next() % 3000);
        match kind {
            Kind::Stop => self.stop(host, pause),
            Kind::Starve => self.starve(host, pause),
            Kind::End => self.end(host, pause),
            Kind::Kill => self.kill(host, pause),
            Kind::RestartAll => self.restart_all(),
            Kind::Twin => self.twin(host),
            Kind::Cut => self.cut(host, pause),
            Kind::FillDisk => self.fill_disk(host, pause),
            Kind::MoveClock => self.move_clock(host, pause),
        }
        *self.counts.entry(kind).or_default() += 1;
        let ended = self.start.elapsed();
        self.history.push(format!("{kind:?} of {host} {began:.1?} to {ended:.1?}"));
    }

    fn fill_bag(&mut self) {
        let can_be_done = |kind: &Kind| match kind {
            Kind::Cut | Kind::FillDisk => self.places.is_some(),
            Kind::MoveClock => self.places.as_ref().is_some_and(Places::has_clocks),
            Kind::RestartAll => self.veteran.is_none(),
            _ => true,
        };
        self.bag = Kind::ALL.into_iter().filter(can_be_done).collect();
        for at in (1..self.bag.len()).rev() {
            let other = self.dice.below(at + 1);
            self.bag.swap(at, other);
        }
    }

    /// Kills a host and starts it again.
    pub(super) fn restart(&mut self, host: usize) {
        self.down(host);
        self.cluster.kill(host);
        self.start_host(host);
    }

    // ---- processes

    fn stop(&mut self, host: usize, pause: Duration) {
        self.note_stop(&[host]);
        self.cluster.signal(host, "STOP");
        // At times for longer than the silence limit.
        std::thread::sleep(pause * if self.dice.below(3) == 0 { 4 } else { 1 });
        self.cluster.signal(host, "CONT");
        self.note_end_of_stop();
    }

    fn note_stop(&self, hosts: &[usize]) {
        let now = Instant::now();
        let stops = hosts.iter().map(|host| (*host, now, None));
        self.stops.lock().expect("no panic").extend(stops);
    }

    fn note_end_of_stop(&self) {
        let now = Instant::now();
        let mut stops = self.stops.lock().expect("no panic");
        stops.iter_mut().for_each(|(.., until)| _ = until.get_or_insert(now));
    }

    /// Lets a host, or all of them, run for a small part of the time.
    fn starve(&mut self, host: usize, pause: Duration) {
        let all = self.dice.below(2) == 0;
        let hosts: Vec<usize> = if all { (0..self.cluster.len()).collect() } else { vec![host] };
        let start = Instant::now();
        self.note_stop(&hosts);
        while start.elapsed() < pause {
            hosts.iter().for_each(|host| self.cluster.signal(*host, "STOP"));
            std::thread::sleep(Duration::from_millis(50 + self.dice.next() % 150));
            hosts.iter().for_each(|host| self.cluster.signal(*host, "CONT"));
            std::thread::sleep(Duration::from_millis(5 + self.dice.next() % 20));
        }
        self.note_end_of_stop();
    }

    fn end(&mut self, host: usize, pause: Duration) {
        let host = self.but_the_veteran(host);
        self.down(host);
        self.cluster.terminate(host);
        std::thread::sleep(pause);
        self.start_host(host);
    }

    fn kill(&mut self, host: usize, pause: Duration) {
        let host = self.but_the_veteran(host);
        self.down(host);
        self.cluster.kill(host);
        // At times back at once.
        std::thread::sleep(pause * self.dice.below(3) as u32);
        self.start_host(host);
    }

    fn restart_all(&mut self) {
        (0..self.cluster.len()).for_each(|host| self.down(host));
        (0..self.cluster.len()).for_each(|host| self.cluster.kill(host));
        self.start_all();
    }

    /// Starts a second host of a name, once all hosts know each other: a host that was cut off for
    /// long or does not reply is replaced by whoever comes with its name.
    fn twin(&self, host: usize) {
        self.wait_for_hosts();
        let listen = self.places.as_ref().map(|_| Places::address_for_twin());
        let listen = listen.unwrap_or_else(|| String::from("127.0.0.1:0"));
        let other = self.cluster.listen((host + 1) % self.cluster.len());
        let mut flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        flags.extend(["--peer", other]);
        let mut twin = Twin::start_at(&listen, &name(host), &flags);
        let start = Instant::now();
        while twin.runs() && start.elapsed() < MAX_TWIN {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(
            !twin.runs(),
            "a second host {host} goes on: {:#?}\n{}",
            self.history,
            self.lines_about_names()
        );
        let (_, line) = twin.end();
        assert!(line.contains("another host is called"), "it stopped for another reason: {line}");
    }

    /// Waits until all hosts know each other.
    fn wait_for_hosts(&self) {
        let hosts = self.cluster.len();
        eventually("all hosts know each other", || {
            let known = |host| self.cluster.status_number(host, "hosts_known");
            (0..hosts).all(|host| known(host) == hosts as u64)
        });
    }

    /// What hosts have logged about names, most recent life each.
    fn lines_about_names(&self) -> String {
        let lines = |host: usize| {
            let log = self.cluster.log(host);
            let about =
                log.lines().filter(|line| line.contains("called") || line.contains("ERROR"));
            about.map(|line| format!("{}: {line}\n", name(host))).collect::<String>()
        };
        (0..self.cluster.len()).map(lines).collect()
    }

    // ---- what hosts need

    /// Cuts a link, or all links of a host; one direction or both.
    fn cut(&mut self, host: usize, pause: Duration) {
        let hosts = self.cluster.len();
        let others: Vec<usize> = match self.dice.below(2) {
            0 => (0..hosts).filter(|other| *other != host).collect(),
            _ => vec![(host + 1) % hosts],
        };
        let both = self.dice.below(3) > 0;
        let mut cuts = Vec::new();
        for other in others {
            self.cuts.lock().expect("no panic").push(([host, other], Instant::now()));
            cuts.push(Cut::new(host, other));
            if both {
                cuts.push(Cut::new(other, host));
            }
        }
        // At times for longer than the silence limit.
        std::thread::sleep(pause * if self.dice.below(2) == 0 { 5 } else { 1 });
    }

    /// Leaves no room on a host's disk for a while: changes are refused, and accepted again when
    /// there is room. At times the host is killed meanwhile.
    fn fill_disk(&mut self, host: usize, pause: Duration) {
        let places = self.places.as_ref().expect("this is done with places only");
        places.fill_disk(host);
        let long = "x".repeat(8000);
        eventually("a full disk refuses keys", || {
            let added: redis::RedisResult<Vec<u8>> =
                self.cluster.try_ask(host, &["UMBEL.ADD", "long", &long]);
            let _: redis::RedisResult<Vec<u8>> =
                self.cluster.try_ask(host, &["UMBEL.REM", "long", &long]);
            added.is_err_and(|error| error.to_string().contains("No space left"))
        });
        std::thread::sleep(pause);
        if self.dice.below(3) == 0 && self.veteran != Some(host) {
            self.down(host);
            self.cluster.kill(host);
            self.empty_disk(host);
            self.start_host(host);
        }
        self.empty_disk(host);
        eventually("a disk with room takes keys", || {
            let key = format!("{}", self.history.len());
            self.cluster.try_ask::<Vec<u8>>(host, &["UMBEL.ADD", "room", &key]).is_ok()
        });
    }

    fn empty_disk(&self, host: usize) {
        self.places.as_ref().expect("this is done with places only").empty_disk(host);
    }

    /// Sets a host's clock forward or back by up to three hours. A key that lives for a minute
    /// expires when the clock jumps over its end, and not before.
    fn move_clock(&mut self, host: usize, pause: Duration) {
        const HOURS: u64 = 3;
        let before = self.offsets[host];
        let distance = 120 + (self.dice.next() % (HOURS * 3600)) as i64;
        let offset = if before > 0 { before - distance } else { before + distance };
        let _: Vec<u8> = self.cluster.ask(host, &["UMBEL.ADDEX", "brief", "60", "key"]);
        let is_held = |testbed: &Self| {
            testbed.cluster.ask::<Vec<u8>>(host, &["UMBEL.HAS", "brief", "key"]) == [1]
        };
        let places = self.places.as_ref().expect("this is done with places only");
        places.set_clock(host, offset);
        self.offsets[host] = offset;
        std::thread::sleep(pause);
        if offset > before {
            eventually("a key expires whose end is past", || !is_held(self));
        } else {
            assert!(is_held(self), "a key is lost because a clock went back");
            let _: Vec<u8> = self.cluster.ask(host, &["UMBEL.REM", "brief", "key"]);
        }
    }

    // ---- helpers

    const fn but_the_veteran(&self, host: usize) -> usize {
        match self.veteran {
            Some(veteran) if veteran == host => (host + 1) % self.offsets.len(),
            _ => host,
        }
    }

    fn command(&self, host: usize) -> Command {
        self.places.as_ref().map_or_else(binary, |places| places.command(host))
    }

    fn start_host(&mut self, host: usize) {
        let (command, flags) = (self.command(host), self.flags.clone());
        self.cluster.start_by(host, command, &borrowed(&flags));
        self.up(host);
    }

    fn start_all(&mut self) {
        let commands: Vec<Command> =
            (0..self.cluster.len()).map(|host| self.command(host)).collect();
        let flags = self.flags.clone();
        self.cluster.start_all_by(commands, &borrowed(&flags));
        (0..self.cluster.len()).for_each(|host| self.up(host));
    }

    fn up(&self, host: usize) {
        let running = (self.cluster.resp(host).to_owned(), self.cluster.http(host).to_owned());
        *self.ports[host].lock().expect("no panic") = Some(running);
    }

    fn down(&self, host: usize) {
        *self.ports[host].lock().expect("no panic") = None;
    }
}

fn borrowed(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}
