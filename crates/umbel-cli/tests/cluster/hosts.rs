//! Real host processes on loopback, linked by zenoh; they end with the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue};
use tempfile::TempDir;

/// Some hosts that know each other's addresses from the start.
pub(crate) struct Cluster {
    folder: TempDir,
    names: Vec<String>,
    listen: Vec<String>,
    /// Where each host's clients connect, without the port.
    serve: Vec<String>,
    hosts: Vec<Option<Running>>,
}

struct Running {
    child: Child,
    resp: String,
    http: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A stopped process takes no other signal.
        signal(self.child.id(), "CONT");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cluster {
    /// A cluster of this many hosts, none of which runs yet.
    pub(crate) fn new(hosts: usize) -> Self {
        Self::of((0..hosts).map(name).collect())
    }

    /// A cluster of hosts of these names, none of which runs yet.
    pub(crate) fn named(names: &[&str]) -> Self {
        Self::of(names.iter().map(ToString::to_string).collect())
    }

    fn of(names: Vec<String>) -> Self {
        let hosts = names.len();
        // A network of their own: between a host's end and its next start nobody else's
        // connection happens to take its port.
        let network = network();
        let bind = |host| TcpListener::bind(format!("{network}{}:0", host + 1)).expect("a port");
        let ports: Vec<TcpListener> = (0..hosts).map(bind).collect();
        let listen = ports.iter().map(|port| port.local_addr().expect("bound").to_string());
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            names,
            listen: listen.collect(),
            serve: vec![String::from("127.0.0.1"); hosts],
            hosts: (0..hosts).map(|_| None).collect(),
        }
    }

    /// A cluster whose hosts all run.
    pub(crate) fn running(hosts: usize) -> Self {
        let mut cluster = Self::new(hosts);
        (0..hosts).for_each(|host| cluster.start(host, &[]));
        cluster
    }

    /// Starts a host that is told where all others listen, with more flags than it needs.
    pub(crate) fn start(&mut self, host: usize, flags: &[&str]) {
        self.start_by(host, Command::new(env!("CARGO_BIN_EXE_umbel")), flags);
    }

    /// Starts a host through a command that becomes the host in the end.
    pub(crate) fn start_by(&mut self, host: usize, command: Command, flags: &[&str]) {
        let others = (0..self.listen.len()).filter(|other| *other != host);
        let peers: Vec<String> = others.map(|other| self.peer(other)).collect();
        let mut all: Vec<&str> = peers.iter().flat_map(|peer| ["--peer", peer]).collect();
        all.extend(flags);
        self.run(host, command, &all);
    }

    /// Starts a host of an overlay, with these links.
    pub(crate) fn start_linked(&mut self, host: usize, links: &[String], flags: &[&str]) {
        let mut all: Vec<&str> = links.iter().flat_map(|link| ["--link", link]).collect();
        all.extend(flags);
        self.start_with(host, &all);
    }

    /// Starts a host with these flags and no word of others.
    pub(crate) fn start_with(&mut self, host: usize, flags: &[&str]) {
        self.run(host, Command::new(env!("CARGO_BIN_EXE_umbel")), flags);
    }

    /// Hosts that may run.
    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Processor time that the running hosts have taken, to a hundredth of a second.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let ticks = |running: &Running| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.child.id()));
            let stat = stat.expect("it runs");
            // The name in parentheses may hold anything.
            let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            let times = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
            times.sum::<f64>()
        };
        self.hosts.iter().flatten().map(ticks).sum::<f64>() / 100.0
    }

    /// Memory that a running host takes.
    pub(crate) fn memory_bytes(&self, host: usize) -> u64 {
        let id = self.hosts[host].as_ref().expect("it runs").child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("a number of kB") * 1024
    }

    /// Files that a running host has open.
    pub(crate) fn descriptors(&self, host: usize) -> usize {
        let id = self.hosts[host].as_ref().expect("it runs").child.id();
        std::fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").count()
    }

    /// A host's name and where it listens, as peers are written.
    pub(crate) fn peer(&self, host: usize) -> String {
        format!("{}={}", self.names[host], self.listen[host])
    }

    /// A place for a file.
    pub(crate) fn path(&self, file: &str) -> String {
        self.folder.path().join(file).to_str().expect("text").to_owned()
    }

    /// Where a host's Redis clients connect.
    pub(crate) fn resp(&self, host: usize) -> &str {
        &self.hosts[host].as_ref().expect("it runs").resp
    }

    /// Where a host serves HTTP.
    pub(crate) fn http(&self, host: usize) -> &str {
        &self.hosts[host].as_ref().expect("it runs").http
    }

    /// Starts a host with these flags through a command that becomes the host in the end.
    pub(crate) fn run(&mut self, host: usize, command: Command, flags: &[&str]) {
        let child = self.spawn(host, command, flags);
        self.hosts[host] = Some(self.ports_of(host, child));
    }

    fn spawn(&self, host: usize, mut command: Command, flags: &[&str]) -> Child {
        without_settings(&mut command);
        command.args(["serve", "--print-ports", "json"]);
        if !flags.contains(&"--name") {
            command.args(["--name", &self.names[host]]);
        }
        let serve = format!("{}:0", self.serve[host]);
        command.args(["--resp", &serve, "--http", &serve]);
        command.args(["--listen", &self.listen[host]]);
        if !flags.contains(&"--memory") {
            command.arg("--data").arg(self.data(host));
        }
        let log = std::fs::File::create(self.log_file(host)).expect("a log");
        let child = command.args(flags).stdout(Stdio::piped()).stderr(log).spawn();
        child.expect("the binary runs")
    }

    /// Waits until a host has told where its clients connect.
    fn ports_of(&self, host: usize, mut child: Child) -> Running {
        let stdout = child.stdout.take().expect("piped");
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).expect("the ports");
            let _ = send.send(line);
        });
        // One that hangs is a failure, and ends with the test.
        let line = receive.recv_timeout(Duration::from_secs(180)).unwrap_or_default();
        let Ok(ports) = serde_json::from_str::<serde_json::Value>(&line) else {
            let _ = child.kill().and_then(|()| child.wait());
            panic!("{} did not start: {}", name(host), self.log(host));
        };
        let [resp, http] =
            ["resp", "http"].map(|port| ports[port].as_str().expect("an address").to_owned());
        Running { child, resp, http }
    }

    /// Starts all hosts, each through a command that becomes it in the end, before waiting for any of
    /// them.
    pub(crate) fn start_all_by(&mut self, commands: Vec<Command>, flags: &[&str]) {
        self.start_all_watched(commands, flags, &|_| Duration::ZERO, &|_, _| ());
    }

    /// As [`Self::start_all_by`], each host after a pause of its own; `watch` is called for each as soon as
    /// its ports are open, with where it serves HTTP.
    pub(crate) fn start_all_watched(
        &mut self,
        commands: Vec<Command>,
        flags: &[&str],
        pause: &(impl Fn(usize) -> Duration + Sync),
        watch: &(impl Fn(usize, &str) + Sync),
    ) {
        let cluster = &*self;
        let start = move |host: usize, command: Command| {
            std::thread::sleep(pause(host));
            let others = (0..cluster.listen.len()).filter(|other| *other != host);
            let peers: Vec<String> = others.map(|other| cluster.peer(other)).collect();
            let peers = peers.iter().flat_map(|peer| ["--peer", peer.as_str()]);
            let flags: Vec<&str> = peers.chain(flags.iter().copied()).collect();
            let running = cluster.ports_of(host, cluster.spawn(host, command, &flags));
            watch(host, &running.http);
            running
        };
        let running: Vec<Running> = std::thread::scope(|scope| {
            let hosts = commands.into_iter().enumerate();
            let started: Vec<_> =
                hosts.map(|(host, command)| scope.spawn(move || start(host, command))).collect();
            started.into_iter().map(|host| host.join().expect("it was watched")).collect()
        });
        for (host, running) in running.into_iter().enumerate() {
            self.hosts[host] = Some(running);
        }
    }

    /// A number of a host's status; 0 while it does not answer.
    pub(crate) fn status_number(&self, host: usize, what: &str) -> u64 {
        self.number_of(host, &["UMBEL.INFO"], what)
    }

    /// A number that a host tells of a set; 0 while it does not know the set.
    pub(crate) fn set_number(&self, host: usize, set: &str, what: &str) -> u64 {
        self.number_of(host, &["UMBEL.INFO", set], what)
    }

    fn number_of(&self, host: usize, words: &[&str], what: &str) -> u64 {
        let info: redis::RedisResult<std::collections::HashMap<String, redis::Value>> =
            self.try_ask(host, words);
        let number = info.ok().and_then(|mut info| info.remove(what));
        number.and_then(|number| redis::from_redis_value(number).ok()).unwrap_or_default()
    }

    /// What a host answers over HTTP: the status, and all that follows.
    pub(crate) fn get(&self, host: usize, path: &str) -> (u16, String) {
        get(self.http(host), path)
    }

    /// Whether a host that was started still runs.
    pub(crate) fn runs(&mut self, host: usize) -> bool {
        let running = self.hosts[host].as_mut().expect("it was started");
        running.child.try_wait().expect("waited").is_none()
    }

    /// The process of a host.
    pub(crate) fn process_id(&self, host: usize) -> u32 {
        self.hosts[host].as_ref().expect("it runs").child.id()
    }

    /// Where a host listens for others.
    pub(crate) fn listen(&self, host: usize) -> &str {
        &self.listen[host]
    }

    /// What `umbel doctor` finds at a host that runs: its exit code, and what it prints.
    pub(crate) fn doctor(&self, host: usize) -> (Option<i32>, String) {
        let (resp, listen) = (self.resp(host), self.listen(host));
        let output = binary()
            .args(["doctor", "--name", &name(host), "--memory", "--resp", resp, "--listen", listen])
            .output()
            .expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Lets a host listen for others at another address from its next start on.
    pub(crate) fn move_to(&mut self, host: usize, address: String) {
        self.listen[host] = address;
    }

    /// Lets a host serve its clients at another address from its next start on.
    pub(crate) fn serve_at(&mut self, host: usize, address: String) {
        self.serve[host] = address;
    }

    pub(crate) fn data(&self, host: usize) -> PathBuf {
        self.folder.path().join(name(host))
    }

    fn log_file(&self, host: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", name(host)))
    }

    pub(crate) fn log(&self, host: usize) -> String {
        std::fs::read_to_string(self.log_file(host)).unwrap_or_default()
    }

    /// Ends a host as a power cut would.
    pub(crate) fn kill(&mut self, host: usize) {
        self.hosts[host] = None;
    }

    /// Ends a host in good order; it must do so within the time that is promised.
    pub(crate) fn terminate(&mut self, host: usize) {
        let mut running = self.hosts[host].take().expect("it runs");
        signal(running.child.id(), "TERM");
        eventually("the host stops", || running.child.try_wait().expect("waited").is_some());
        let status = running.child.wait().expect("waited");
        assert!(status.success(), "{status}: {}", self.log(host));
    }

    pub(crate) fn signal(&self, host: usize, what: &str) {
        signal(self.hosts[host].as_ref().expect("it runs").child.id(), what);
    }

    pub(crate) fn connect(&self, host: usize) -> Connection {
        let at = self.resp(host);
        let client = redis::Client::open(format!("redis://{at}/")).expect("an address");
        client.get_connection().expect("it answers")
    }

    /// Asks a host for something, in the words of a Redis client.
    pub(crate) fn ask<T: FromRedisValue>(&self, host: usize, words: &[&str]) -> T {
        self.try_ask(host, words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub(crate) fn try_ask<T: FromRedisValue>(
        &self,
        host: usize,
        words: &[&str],
    ) -> redis::RedisResult<T> {
        ask(&mut self.connect(host), words)
    }

    /// The hosts that a host names for a key; none while it has not heard of the set.
    pub(crate) fn who(&self, host: usize, set: &str, key: &str) -> Vec<String> {
        let answer: redis::RedisResult<Vec<Vec<String>>> =
            self.try_ask(host, &["UMBEL.WHO", set, key]);
        answer.unwrap_or_default().into_iter().flatten().collect()
    }
}

pub(crate) fn ask<T: FromRedisValue>(
    connection: &mut Connection,
    words: &[&str],
) -> redis::RedisResult<T> {
    redis::cmd(words[0]).arg(&words[1..]).query(connection)
}

/// What is answered over HTTP at an address: the status, and all that follows.
pub(crate) fn get(at: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), answer)
}

pub(crate) fn name(host: usize) -> String {
    format!("host-{host}")
}

/// The binary, or the one that `UMBEL_BINARY` names: measurements are of a release.
pub(crate) fn binary() -> Command {
    let binary = std::env::var("UMBEL_BINARY");
    Command::new(binary.as_deref().unwrap_or(env!("CARGO_BIN_EXE_umbel")))
}

/// What tests are told by the environment is not for hosts, which would take it as settings.
pub(crate) fn without_settings(command: &mut Command) {
    let variables = std::env::vars_os().map(|(name, _)| name);
    variables
        .filter(|name| name.to_string_lossy().starts_with("UMBEL_"))
        .for_each(|name| _ = command.env_remove(name));
}

/// A number that the environment gives, or the default.
pub(crate) fn from_environment(variable: &str, default: usize) -> usize {
    let number = std::env::var(variable).ok();
    number.map_or(default, |number| number.parse().expect("a number"))
}

fn signal(process: u32, what: &str) {
    let _ = Command::new("kill").args([&format!("-{what}"), &process.to_string()]).status();
}

/// The first three parts of addresses of this machine that no other test has.
pub(crate) fn network() -> String {
    let process = std::process::id();
    format!("127.{}.{}.", 10 + process / 250 % 200, 1 + process % 250)
}

/// Waits until something is so, and complains after a while.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("copied");
        }
    }
}
