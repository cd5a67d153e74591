//! How long questions and changes wait while something large goes on beside them.
//!
//! Prints percentiles in microseconds: of `UMBEL.WHO` over the port for Redis clients, alone, while
//! keys are loaded over HTTP into another set, and into the same one; and of `add` to a small set,
//! alone and while the filter of a large set is built again. One is asked for every half
//! millisecond. Run it with `cargo bench -p umbel-node --bench waits`, on a machine that does nothing else.
//!
//! The host, the client that asks and the client that loads are processes of their own. What any
//! server would have to wait for on these processors is shown beside it: the same questions to a
//! server that only echoes, and to the host, while other processes use one or two processors; and to
//! the server that echoes while the same load goes to another one that does nothing but take its time
//! for each key.
//!
//! Clients usually run on other machines. Here the one that asks shares two processors with the one
//! that loads, and waits for it in the kernel although its reply has arrived. Rows with *prompt client*
//! leave that out: there the thread that asks has the short time slices that a host's own threads have.
//!
//! `-- --keys N` loads another number than five million, and builds a filter of twice as many.
//! `-- --rows R` measures only some: `echo`, `who`, `prompt` (`who` with the prompt client),
//! `overlay` (a load of a fiftieth of the keys to a host of an overlay) or `add`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use umbel_node::{Host, Lifetime, LocalNetwork, Reserve};

/// From one question to the next.
const EVERY: Duration = Duration::from_micros(500);
/// The answer to `who`: an array of one key, of one host.
const REPLY: &str = "*1\r\n*1\r\n$4\r\nhost\r\n";

/// What a process does instead of measuring, given its arguments.
type Role = fn(&[String]);

/// Roles by the first argument.
const PARTS: [(&str, Role); 5] =
    [("serve", serve), ("echo", echo), ("sink", sink), ("load", load_from_words), ("burn", burn)];

/// What the server that is only loaded does for each key: as long as a host takes, about.
const KEY_TIME: Duration = Duration::from_micros(2);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, run)) = PARTS.iter().find(|(part, _)| words.first().is_some_and(|w| w == part))
    {
        return run(&words[1..]);
    }
    // `cargo test --benches` only wants to know that it runs.
    let is_bench = words.iter().any(|word| word == "--bench");
    let option = |name: &str| {
        words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned()
    };
    let default = if is_bench { 5_000_000 } else { 5_000 };
    let keys = option("--keys").map_or(default, |keys| keys.parse().expect("a number of keys"));
    let idle = Duration::from_millis(if is_bench { 5000 } else { 50 });
    let rows = option("--rows");
    let wants = |row: &str| rows.as_deref().is_none_or(|rows| rows == row);
    if wants("echo") {
        echo_beside_burners(idle);
        echo_beside_a_load(keys, idle);
    }
    if wants("who") {
        who_beside_loads(&["serve"], keys, idle, &Client::Ordinary);
    }
    if wants("prompt") {
        let client = Client::Prompt(umbel_node::runtime().expect("a runtime"));
        println!("prompt client:");
        who_beside_loads(&["serve"], keys, idle, &client);
    }
    if wants("overlay") {
        let keys = (keys / 50).max(100);
        who_beside_loads(&["serve", &keys.to_string()], keys, idle, &Client::Ordinary);
    }
    if wants("add") {
        on_a_host(&[], move |host| adds_beside_a_build(&host, keys, idle));
    }
}

/// Another process of this binary, which ends with this one's interest in it.
struct Part {
    process: Child,
    /// What it printed first.
    message: String,
}

impl Part {
    fn start(words: &[&str]) -> Self {
        let binary = std::env::current_exe().expect("the name of this binary");
        let mut command = Command::new(binary);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("started");
        let mut message = String::new();
        let output = process.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut message).expect("it says a line");
        Self { process, message: message.trim().to_owned() }
    }

    fn wait(mut self) {
        assert!(self.process.wait().expect("waited").success());
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Does something with a host of this process.
fn on_a_host(settings: &[(&str, &str)], run: impl FnOnce(Host) + Send + 'static) {
    let runtime = umbel_node::runtime().expect("a runtime");
    let ports = [("resp", "127.0.0.1:0"), ("http", "127.0.0.1:0")];
    runtime.block_on(async {
        let host = ports.iter().chain(settings).fold(
            Host::builder().name("host").with_ports().local(&LocalNetwork::new()),
            |builder, (key, value)| builder.set(key, [*value]),
        );
        let host = host.start().await.expect("started");
        let given = host.clone();
        tokio::task::spawn_blocking(move || run(given)).await.expect("done");
        host.stop().await;
    });
}

/// A host that says where its ports are, until nobody wants it any more: of a mesh, or of an overlay
/// that is planned for so many keys.
fn serve(words: &[String]) {
    let in_overlay: Vec<(&str, &str)> = match words {
        [keys, ..] => vec![("links", "other"), ("overlay.items", keys)],
        [] => Vec::new(),
    };
    on_a_host(&in_overlay, |host| {
        host.add("asked", &[b"key"], Lifetime::Default, &mut Vec::new()).expect("added");
        let addresses = host.addresses();
        println!("{} {}", addresses.resp.expect("a port"), addresses.http.expect("a port"));
        wait_for_end();
    });
}

/// A server that answers every line as the host does, to one client after another, and does nothing
/// else.
fn echo(_: &[String]) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    for socket in listener.incoming() {
        let mut socket = BufReader::new(socket.expect("a client"));
        socket.get_ref().set_nodelay(true).expect("set");
        let mut line = String::new();
        while socket.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            socket.get_mut().write_all(REPLY.as_bytes()).expect("sent");
            line.clear();
        }
    }
}

/// A server that takes in lines over HTTP, and its time for each.
fn sink(_: &[String]) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let mut socket = BufReader::new(listener.accept().expect("a client").0);
    let (mut line, mut length, mut taken) = (String::new(), 0, 0);
    while socket.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.trim().parse().expect("a number");
        }
        line.clear();
    }
    while taken < length {
        taken += socket.read_line(&mut line).expect("a key");
        line.clear();
        let start = Instant::now();
        while start.elapsed() < KEY_TIME {}
    }
    socket.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("sent");
}

/// Uses a processor, until nobody wants it any more.
fn burn(_: &[String]) {
    println!("burning");
    std::thread::spawn(|| {
        let mut number = 1u64;
        loop {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
    });
    wait_for_end();
}

/// Returns when the process that started this one is gone, or wants no more.
fn wait_for_end() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Other processes that use so many processors.
fn burners(count: usize) -> Vec<Part> {
    (0..count).map(|_| Part::start(&["burn"])).collect()
}

/// What any server has to wait for.
fn echo_beside_burners(time: Duration) {
    let server = Part::start(&["echo"]);
    let client = Client::Ordinary;
    let alone = client.beside(|| std::thread::sleep(time), asking(&server.message));
    print("echo, nothing else", &alone, None);
    for count in 1..=3 {
        let burning = burners(count);
        let times = client.beside(|| std::thread::sleep(time), asking(&server.message));
        print(&format!("echo, {count} burning"), &times, Some(&alone));
        drop(burning);
    }
}

/// What any server has to wait for beside a load that another one takes in.
fn echo_beside_a_load(keys: u64, time: Duration) {
    let (server, sink) = (Part::start(&["echo"]), Part::start(&["sink"]));
    let client = Client::Ordinary;
    let alone = client.beside(|| std::thread::sleep(time), asking(&server.message));
    let load = || Part::start(&["load", &sink.message, "sink", &keys.to_string()]).wait();
    let times = client.beside(load, asking(&server.message));
    print(&format!("echo, {keys} keys to another server"), &times, Some(&alone));
}

fn who_beside_loads(server: &[&str], keys: u64, time: Duration, client: &Client) {
    let server = Part::start(server);
    let (resp, http) = server.message.split_once(' ').expect("two addresses");
    let alone = client.beside(|| std::thread::sleep(time), asking(resp));
    print("WHO, nothing else", &alone, None);
    for count in 1..=2 {
        let burning = burners(count);
        let times = client.beside(|| std::thread::sleep(time), asking(resp));
        print(&format!("WHO, {count} burning"), &times, Some(&alone));
        drop(burning);
    }
    for set in ["other", "asked"] {
        let start = Instant::now();
        let load = || Part::start(&["load", http, set, &keys.to_string()]).wait();
        let times = client.beside(load, asking(resp));
        print(&format!("WHO, {keys} keys into '{set}'"), &times, Some(&alone));
        let seconds = start.elapsed().as_secs_f64();
        println!("{:38} {:.0} keys per second", "", keys as f64 / seconds);
    }
}

fn connect(address: &str) -> BufReader<TcpStream> {
    let socket = TcpStream::connect(address).expect("connected");
    socket.set_nodelay(true).expect("set");
    BufReader::new(socket)
}

fn adds_beside_a_build(host: &Host, keys: u64, idle: Duration) {
    let large = keys * 2;
    for first in (0..large).step_by(1024) {
        let part: Vec<String> = (first..large.min(first + 1024)).map(key).collect();
        let part: Vec<&[u8]> = part.iter().map(String::as_bytes).collect();
        host.add("large", &part, Lifetime::Default, &mut Vec::new()).expect("added");
    }
    wait_until_built(host, 0);
    let adding = |first: u64| {
        let (host, mut number) = (host.clone(), first);
        move || {
            number += 1;
            let key = key(number);
            host.add("small", &[key.as_bytes()], Lifetime::Default, &mut Vec::new())
                .expect("added");
        }
    };
    let client = Client::Ordinary;
    let alone = client.beside(|| std::thread::sleep(idle), adding(0));
    print("add, nothing else", &alone, None);
    let rebuild = || {
        let info = host.set_info("large").expect("known");
        let rebuilds = info.rebuilds;
        // After a load a set may stand on a higher rung than its keys need: reserve twice what that
        // takes, so that a filter has to be built whatever the rung is.
        let takes = large as f64 / info.full.expect("a set on a ladder");
        let plan = Reserve {
            false_positive: 0.01,
            capacity: (takes * 2.0) as u64,
            expected_hosts: None,
            policy: None,
            lifetime: Lifetime::Default,
            confirm: None,
            chains: None,
        };
        host.reserve("large", plan).expect("reserved");
        wait_until_built(host, rebuilds + 1);
    };
    let times = client.beside(rebuild, adding(large));
    print(&format!("add, building {large} keys"), &times, Some(&alone));
}

/// Waits until the large set was built so often, and its rung takes its keys.
fn wait_until_built(host: &Host, rebuilds: u64) {
    loop {
        let info = host.set_info("large").expect("known");
        if info.rebuilds >= rebuilds && info.full.is_some_and(|full| full <= 1.0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn key(number: u64) -> String {
    format!("object-{number:012}")
}

/// Who asks: a thread like any other, or one of this runtime, with short time slices.
enum Client {
    Ordinary,
    Prompt(tokio::runtime::Runtime),
}

impl Client {
    /// Does one thing while another is asked for every half millisecond; the times of that one,
    /// sorted.
    fn beside(&self, one: impl FnOnce(), mut ask: impl FnMut() + Send + 'static) -> Vec<Duration> {
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let asking = move || {
            let mut times = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                let start = Instant::now();
                ask();
                times.push(start.elapsed());
                std::thread::sleep(EVERY);
            }
            times
        };
        let one = || {
            one();
            done.store(true, Ordering::Relaxed);
        };
        let mut times = match self {
            Self::Ordinary => {
                let asking = std::thread::spawn(asking);
                one();
                asking.join().expect("asked")
            }
            Self::Prompt(runtime) => {
                let asking = runtime.spawn_blocking(asking);
                one();
                runtime.block_on(asking).expect("asked")
            }
        };
        times.sort_unstable();
        times
    }
}

/// Asks this server, again and again over one connection.
fn asking(address: &str) -> impl FnMut() + Send + 'static {
    let mut socket = connect(address);
    move || who(&mut socket)
}

/// Asks for one key.
fn who(socket: &mut BufReader<TcpStream>) {
    socket.get_mut().write_all(b"UMBEL.WHO asked key\r\n").expect("sent");
    let mut reply = String::new();
    while reply.len() < REPLY.len() {
        socket.read_line(&mut reply).expect("replied");
    }
    assert_eq!(reply, REPLY);
}

fn load_from_words(words: &[String]) {
    println!("loading");
    let [http, set, keys] = words else { panic!("an address, a set, a number of keys") };
    load(http, set, keys.parse().expect("a number"));
}

/// Adds keys over HTTP, by one request.
fn load(http: &str, set: &str, keys: u64) {
    let mut socket = TcpStream::connect(http).expect("connected");
    let bytes = keys * (key(0).len() as u64 + 1);
    let head = format!(
        "POST /v1/sets/{set}/keys HTTP/1.1\r\nhost: {http}\r\nconnection: close\r\n\
         content-type: text/plain\r\ncontent-length: {bytes}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).expect("sent");
    let mut part = Vec::new();
    for first in (0..keys).step_by(4096) {
        part.clear();
        (first..keys.min(first + 4096)).for_each(|number| {
            part.extend_from_slice(key(number).as_bytes());
            part.push(b'\n');
        });
        socket.write_all(&part).expect("sent");
    }
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("replied");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

fn print(what: &str, times: &[Duration], alone: Option<&[Duration]>) {
    let at = |times: &[Duration], share: f64| {
        times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6
    };
    let ratio = alone.map_or_else(String::new, |alone| {
        format!(" ({:.1} times)", at(times, 0.99) / at(alone, 0.99))
    });
    println!(
        "{what:<38} {:>6} times, µs: median {:.0}, p99 {:.0}{ratio}, longest {:.0}",
        times.len(),
        at(times, 0.5),
        at(times, 0.99),
        at(times, 1.0),
    );
}
