//! The port for Redis clients from outside, byte by byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use umbel_node::resp::request::RequestLimits;
use umbel_node::resp::{Limits, Server};
use umbel_node::{Host, LocalNetwork};

/// A host with a port, stopped when dropped.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<()>>,
    runtime: Runtime,
}

impl Port {
    pub(crate) fn open() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self::named("here", limits)
    }

    fn named(name: &str, limits: Limits) -> Self {
        let runtime = Runtime::new().expect("in a test");
        let host = host(&runtime, name);
        runtime.block_on(host.ready());
        let guard = runtime.enter();
        let server = Server::bind("127.0.0.1:0".parse().expect("in a test"), host, limits)
            .expect("in a test");
        let (stop, stopped) = oneshot::channel::<()>();
        let address = server.local_addr();
        let served = runtime.spawn(server.run(async { drop(stopped.await) }));
        drop(guard);
        Self { address, stop: Some(stop), served: Some(served), runtime }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// What comes back for these bytes until the connection ends.
    pub(crate) fn ask(&self, bytes: &[u8]) -> String {
        ask(self.address, bytes)
    }

    fn stop(mut self) {
        drop(self.stop.take());
        self.runtime.block_on(self.served.take().expect("in a test")).expect("in a test");
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("in a test");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("in a test");
    socket.set_nodelay(true).expect("in a test");
    socket
}

/// What comes back for these bytes until the connection ends.
pub(crate) fn ask(address: SocketAddr, bytes: &[u8]) -> String {
    String::from_utf8_lossy(&ask_bytes(address, bytes)).into_owned()
}

/// As [`ask`], where the replies are no text.
pub(crate) fn ask_bytes(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = connect(address);
    socket.write_all(bytes).expect("in a test");
    socket.shutdown(Shutdown::Write).expect("in a test");
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).expect("in a test");
    reply
}

/// A host in memory, alone in its network.
fn host(runtime: &Runtime, name: &str) -> Host {
    let start = Host::builder().name(name).local(&LocalNetwork::new()).start();
    runtime.block_on(start).expect("in a test")
}

fn rest(socket: &mut TcpStream) -> String {
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).expect("in a test");
    String::from_utf8(reply).expect("in a test")
}

/// Lines that fit a reply of this many bytes.
fn exactly(socket: &mut TcpStream, expected: &str) {
    let mut reply = vec![0; expected.len()];
    socket.read_exact(&mut reply).expect("in a test");
    assert_eq!(String::from_utf8(reply).expect("in a test"), expected);
}

pub(crate) fn array(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn keys_are_added_asked_for_and_removed() {
    let port = Port::open();
    let reply = port.ask(
        b"UMBEL.ADD s a b a\r\nUMBEL.HAS s a c\r\nUMBEL.WHO s a c\r\numbel.rem s a c\r\n\
          UMBEL.WHO s a\r\nUMBEL.MISSING s a b\r\nUMBEL.LOCATE s b TIMEOUT 500\r\n\
          UMBEL.ADDEX s 0.5 d b\r\n",
    );
    assert_eq!(
        reply,
        "*3\r\n:1\r\n:1\r\n:0\r\n*2\r\n:1\r\n:0\r\n*2\r\n*1\r\n$4\r\nhere\r\n*0\r\n*2\r\n:1\r\n:0\r\n\
         *1\r\n*0\r\n*1\r\n$1\r\na\r\n*1\r\n$4\r\nhere\r\n*2\r\n:1\r\n:0\r\n"
    );
}

#[test]
fn prefixes_are_announced_matched_and_withdrawn() {
    let port = Port::open();
    let reply = port.ask(
        b"UMBEL.ANNOUNCE s /a /a/b/ /a/b /\r\nUMBEL.MATCH s /a/b/c\r\nUMBEL.HAS s /a/b /a/b/\r\n\
          umbel.withdraw s /a/b/ /c\r\nUMBEL.MATCH s /a/b/c/\r\nUMBEL.MATCH s /ab CONFIRM 500\r\n\
          UMBEL.REM s /\r\nUMBEL.MATCH s /ab confirm 500\r\nUMBEL.MATCH s /\r\nHELLO 3\r\nPING\r\n\
          UMBEL.MATCH s /ab\r\n",
    );
    let (two, three) = reply.split_once("%7").expect("in a test");
    assert_eq!(
        two,
        "*4\r\n:1\r\n:1\r\n:0\r\n:1\r\n*2\r\n$4\r\n/a/b\r\n*1\r\n$4\r\nhere\r\n*2\r\n:1\r\n:0\r\n\
         *2\r\n:1\r\n:0\r\n*2\r\n$2\r\n/a\r\n*1\r\n$4\r\nhere\r\n\
         *2\r\n$1\r\n/\r\n*1\r\n$4\r\nhere\r\n*1\r\n:1\r\n$-1\r\n$-1\r\n"
    );
    assert!(three.ends_with("+PONG\r\n_\r\n"), "{three}");
}

#[test]
fn names_that_are_none_are_refused_and_nothing_is_announced() {
    let port = Port::open();
    let long = format!("/{}", "a".repeat(4096));
    let deep = "/a".repeat(65);
    let bad: &[(&[u8], &str)] = &[
        (b"", "'': a name begins with '/'"),
        (b"a/b", "'a/b': a name begins with '/'"),
        (b"//", "'//': a name has no empty component: '//' is one too many"),
        (b"/a//b", "'/a//b': a name has no empty component: '//' is one too many"),
        (b"/a/..", "'/a/..': a name has no component '.' or '..': resolve them first"),
        (
            b"/a b\r\n-x",
            r"'/a b\r\n-x': a name has no white space or control characters: encode them",
        ),
        (b"/\xff", "a name must be UTF-8"),
        (long.as_bytes(), "a name has at most 64 components and 4096 bytes"),
        (deep.as_bytes(), "a name has at most 64 components and 4096 bytes"),
    ];
    let requests: [&[&[u8]]; 4] = [
        &[b"UMBEL.ANNOUNCE", b"s", b"/good"],
        &[b"UMBEL.WITHDRAW", b"s", b"/good"],
        &[b"UMBEL.MATCH", b"s"],
        &[b"UMBEL.MATCH", b"s"],
    ];
    for (name, expected) in bad {
        for (place, words) in requests.iter().enumerate() {
            let mut words = [words, &[*name][..]].concat();
            if place == 3 {
                words.extend([&b"CONFIRM"[..], b"5"]);
            }
            let reply = port.ask(&[&array(&words)[..], b"DBSIZE\r\n"].concat());
            let (error, rest) = reply.split_once("\r\n").expect("in a test");
            assert!(error.starts_with("-ERR ") && error.ends_with(expected), "{reply}");
            assert_eq!(rest, ":0\r\n", "one line, and no set was made");
        }
    }
}

#[test]
fn sets_are_listed_walked_and_deleted() {
    let port = Port::open();
    let reply = port.ask(
        b"UMBEL.RESERVE one 0.01 1000 HOSTS 8 POLICY manual LIFETIME 60\r\nUMBEL.ADD two k\r\n\
          UMBEL.SETS\r\nDBSIZE\r\nEXISTS one two one none\r\nTYPE one\r\nTYPE none\r\n\
          UMBEL.POLICY one\r\nUMBEL.POLICY one interval:60\r\nUMBEL.PUBLISH two\r\n\
          SCAN 0 MATCH t* COUNT 100\r\nDEL two none\r\nDBSIZE\r\n",
    );
    assert_eq!(
        reply,
        "+OK\r\n*1\r\n:1\r\n*2\r\n$3\r\none\r\n$3\r\ntwo\r\n:2\r\n:3\r\n+umbel\r\n+none\r\n\
         $6\r\nmanual\r\n+OK\r\n+OK\r\n*2\r\n$1\r\n0\r\n*1\r\n$3\r\ntwo\r\n:1\r\n:1\r\n"
    );
}

#[test]
fn a_walk_sees_every_set_once() {
    let port = Port::open();
    let names: Vec<String> = (0..50).map(|i| format!("set-{i:02}")).collect();
    let adds: String = names.iter().map(|name| format!("UMBEL.ADD {name} k\r\n")).collect();
    port.ask(adds.as_bytes());
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let reply = port.ask(format!("SCAN {cursor} COUNT 7\r\n").as_bytes());
        let mut lines = reply.split("\r\n");
        cursor = lines.nth(2).expect("in a test").to_owned();
        seen.extend(lines.filter(|line| line.starts_with("set-")).map(str::to_owned));
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen, names);
}

/// Three patterns of 120 kB with a class that does not end, over 400 names, stopped the host for 15 s: they
/// were read anew at every byte of every name.
#[test]
fn a_pattern_is_bounded_and_a_long_one_is_matched_with_many_names() {
    let port = Port::open();
    let name = |number: usize| format!("{}{number:03}", "a".repeat(200));
    let adds: String = (0..400).map(|i| format!("UMBEL.ADD {} k\r\n", name(i))).collect();
    port.ask(adds.as_bytes());
    let long = |bytes: usize| format!("*[{}", "a-".repeat(bytes / 2))[..bytes].to_owned();
    let refused = "-ERR a pattern may have at most 1024 bytes\r\n";
    for command in ["SCAN 0 MATCH", "CONFIG GET", "COMMAND LIST FILTERBY PATTERN"] {
        let reply = port.ask(format!("{command} {}\r\n", long(1025)).as_bytes());
        assert_eq!(reply, refused, "{command}");
    }
    // Much longer ones too, whose request is within its limits.
    let pattern = long(120_000);
    let scan = format!("*4\r\n$4\r\nSCAN\r\n$1\r\n0\r\n$5\r\nMATCH\r\n$120000\r\n{pattern}\r\n");
    assert_eq!(port.ask(scan.as_bytes()), refused);
    let stars = "*a".repeat(512);
    for pattern in [long(1024), stars] {
        let reply = port.ask(format!("SCAN 0 MATCH {pattern} COUNT 1000\r\n").as_bytes());
        assert_eq!(reply, "*2\r\n$1\r\n0\r\n*0\r\n", "no name ends so");
    }
}

#[test]
fn a_connection_tells_and_is_told_about_itself() {
    let port = Port::open();
    let reply = port.ask(
        b"PING\r\nPING hi\r\nECHO ho\r\nSELECT 0\r\nCLIENT ID\r\nCLIENT GETNAME\r\nCLIENT SETNAME me\r\n\
          CLIENT GETNAME\r\nCLIENT SETINFO lib-name x\r\nRESET\r\nCLIENT GETNAME\r\nQUIT\r\nPING\r\n",
    );
    assert_eq!(
        reply,
        "+PONG\r\n$2\r\nhi\r\n$2\r\nho\r\n+OK\r\n:1\r\n$-1\r\n+OK\r\n$2\r\nme\r\n+OK\r\n+RESET\r\n$-1\r\n+OK\r\n"
    );
    let list = port.ask(b"CLIENT SETNAME a\r\nCLIENT LIST\r\nCLIENT INFO\r\n");
    assert_eq!(list.matches(" name=a ").count(), 2, "{list}");
    assert!(list.contains(" cmd=client ") && list.contains(" resp=2"), "{list}");
}

#[test]
fn hello_chooses_the_protocol() {
    let port = Port::open();
    let reply =
        port.ask(b"HELLO 3 SETNAME me\r\nCLIENT GETNAME\r\nUMBEL.INFO\r\nRESET\r\nHELLO\r\n");
    assert!(reply.starts_with("%7\r\n$6\r\nserver\r\n$5\r\numbel\r\n"), "{reply}");
    assert!(reply.contains("$5\r\nproto\r\n:3\r\n"), "{reply}");
    assert!(reply.contains("\r\n$2\r\nme\r\n%"), "{reply}");
    assert!(reply.contains("$5\r\nready\r\n#"), "a flag: {reply}");
    assert!(reply.contains("+RESET\r\n*14\r\n"), "{reply}");
    assert!(reply.contains("$5\r\nproto\r\n:2\r\n"), "{reply}");
}

#[test]
fn the_server_describes_itself() {
    let port = Port::open();
    let info = port.ask(b"INFO\r\n");
    for part in [
        "# Server\r\n",
        "redis_version:7",
        "umbel_build:",
        "connected_clients:1",
        "# Umbel",
        "name:here",
    ] {
        assert!(info.contains(part), "{part} is not in {info}");
    }
    assert!(!port.ask(b"INFO clients\r\n").contains("# Server"));
    let config = port.ask(b"CONFIG GET maxc* save\r\n");
    assert_eq!(config, "*4\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n$4\r\nsave\r\n$0\r\n\r\n");
    let count = port.ask(b"COMMAND COUNT\r\n");
    let listed = port.ask(b"COMMAND LIST\r\n");
    assert_eq!(count[1..], listed[1..count.len()]);
    assert_eq!(
        port.ask(b"COMMAND LIST FILTERBY PATTERN e*\r\n"),
        "*3\r\n$4\r\necho\r\n$4\r\nexec\r\n$6\r\nexists\r\n"
    );
    assert!(port.ask(b"COMMAND\r\n").starts_with(&format!("*{}", &count[1..])));
    let info = port.ask(b"COMMAND INFO umbel.who nothing client|list\r\n");
    assert!(info.starts_with(
        "*3\r\n*10\r\n$9\r\numbel.who\r\n:-3\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
    ));
    assert!(info.contains("$-1\r\n*10\r\n$11\r\nclient|list\r\n:2\r\n"), "{info}");
    let docs = port.ask(b"HELLO 3\r\nCOMMAND DOCS umbel.locate config\r\n");
    assert!(docs.contains("%2\r\n$12\r\numbel.locate\r\n%5\r\n$7\r\nsummary\r\n"), "{docs}");
    assert!(docs.contains("$10\r\nconfig|get\r\n"), "{docs}");
    assert!(port.ask(b"CLIENT HELP\r\n").contains("+SETINFO attribute value\r\n"));
}

/// What is asked, and what the error says of it.
const BAD_INPUT: &[(&[u8], &str)] = &[
    (b"NOPE a b", "unknown command 'NOPE', with args beginning with: 'a' 'b' "),
    (b"UMBEL.ADD", "wrong number of arguments for 'umbel.add' command"),
    (b"UMBEL.ADD s", "wrong number of arguments for 'umbel.add' command"),
    (b"UMBEL.WHO s", "wrong number of arguments for 'umbel.who' command"),
    (b"UMBEL.CHAIN s", "wrong number of arguments for 'umbel.chain' command"),
    (b"UMBEL.CHAIN s STEP 8", "a chain has at least one key"),
    (b"UMBEL.CHAIN s STEP", "a chain has at least one key"),
    (b"UMBEL.CHAIN s STEP 0 k", "a step must be a whole number of keys, 1 to 1024"),
    (b"UMBEL.CHAIN s STEP 1025 k", "a step must be a whole number of keys, 1 to 1024"),
    (b"UMBEL.CHAIN s LIMIT 0 k", "LIMIT takes a whole number of hosts, at least 1"),
    (b"UMBEL.CHAIN s LIMIT 3 STEP 8", "a chain has at least one key"),
    (b"UMBEL.REM none k", "no such set 'none'"),
    (b"UMBEL.INFO none", "no such set 'none'"),
    (b"UMBEL.INFO a b", "wrong number of arguments for 'umbel.info' command"),
    (b"UMBEL.PUBLISH none", "no such set 'none'"),
    (b"UMBEL.POLICY none", "no such set 'none'"),
    (b"UMBEL.POLICY none manual", "no such set 'none'"),
    (b"UMBEL.ADD \"\\xff\" k", "the name of a set must be UTF-8"),
    (b"UMBEL.ADDEX s 0 k", "seconds must be a number above 0, at most 1000000000, or 'none'"),
    (b"UMBEL.ADDEX s nan k", "seconds must be a number above 0, at most 1000000000, or 'none'"),
    (b"UMBEL.ADDEX s 1e10 k", "seconds must be a number above 0, at most 1000000000, or 'none'"),
    (b"UMBEL.LOCATE s k TIMEOUT 0", "TIMEOUT takes whole milliseconds, 1 to 3600000"),
    (b"UMBEL.LOCATE s k TIMEOUT", "TIMEOUT is the last word; its value is missing"),
    (b"UMBEL.LOCATE s k SOON 1", "unknown option 'SOON'"),
    (b"UMBEL.ANNOUNCE s", "wrong number of arguments for 'umbel.announce' command"),
    (b"UMBEL.WITHDRAW s", "wrong number of arguments for 'umbel.withdraw' command"),
    (b"UMBEL.WITHDRAW none /a", "no such set 'none'"),
    (b"UMBEL.MATCH s", "wrong number of arguments for 'umbel.match' command"),
    (b"UMBEL.MATCH s /a CONFIRM", "CONFIRM is the last word; its value is missing"),
    (b"UMBEL.MATCH s /a CONFIRM 0", "CONFIRM takes whole milliseconds, 1 to 3600000"),
    (b"UMBEL.MATCH s /a SOON 5", "unknown option 'SOON'"),
    (b"UMBEL.LOCATE s k HOPS 0", "HOPS takes a whole number of hops, 1 to 255"),
    (b"UMBEL.LOCATE s k HOPS 256", "HOPS takes a whole number of hops, 1 to 255"),
    (b"UMBEL.LOCATE s k HOPS far", "HOPS takes a whole number of hops, 1 to 255"),
    (b"UMBEL.LOCATE s k HOPS", "HOPS is the last word; its value is missing"),
    (b"UMBEL.LOCATE s k HOPS 3", "this host is in no overlay: HOPS has no meaning, leave it out"),
    (b"UMBEL.RESERVE s 0 10", "false_positive must lie between 0 and 1"),
    (b"UMBEL.RESERVE s 1 10", "false_positive must lie between 0 and 1"),
    (b"UMBEL.RESERVE s 0.1 0", "capacity must be a whole number of keys, at least 1"),
    (b"UMBEL.RESERVE s 0.1 10 HOSTS 0", "HOSTS takes a whole number, at least 1"),
    (b"UMBEL.RESERVE s 0.1 10 CHAINS 0", "a step must be a whole number of keys, 1 to 1024"),
    (
        b"UMBEL.RESERVE s 0.1 10 LIFETIME -1",
        "seconds must be a number above 0, at most 1000000000, or 'none'",
    ),
    (
        b"UMBEL.RESERVE s 0.1 10 CONFIRM ask",
        "CONFIRM: 'none' is needed, or a URL with {key} or {key64}, such as 'HEAD {advertise}/{key}', of at most 255 bytes",
    ),
    (b"UMBEL.RESERVE s 0.1 10 CONFIRM", "CONFIRM is the last word; its value is missing"),
    (
        b"UMBEL.RESERVE s 0.1 10 CONFIRM {advertise}/{key}",
        "{advertise} in 'confirm' needs this host's own setting 'advertise'",
    ),
    (b"UMBEL.RESERVE s 0.1 10 COLOUR red", "unknown option 'COLOUR'"),
    (b"HELLO x", "Protocol version is not an integer or out of range"),
    (
        b"HELLO 3 AUTH me secret",
        "AUTH is refused: this host knows no passwords; leave user and password out",
    ),
    (b"CLIENT", "wrong number of arguments for 'client' command"),
    (b"CLIENT KILL 1", "unknown subcommand 'KILL'. Try CLIENT HELP."),
    (b"CLIENT SETNAME", "wrong number of arguments for 'client|setname' command"),
    (b"CLIENT SETINFO COLOUR red", "Unrecognized option 'COLOUR'"),
    (b"CONFIG SET a b", "unknown subcommand 'SET'. Try CONFIG HELP."),
    (
        b"COMMAND LIST FILTERBY MODULE x",
        "COMMAND LIST takes nothing, or FILTERBY PATTERN and a pattern",
    ),
    (b"SCAN x", "invalid cursor"),
    (b"SCAN 0 COUNT 0", "COUNT takes a whole number, at least 1"),
    (b"PING a b", "wrong number of arguments for 'ping' command"),
];

#[test]
fn bad_input_gets_a_line_and_changes_nothing() {
    let port = Port::open();
    for (request, expected) in BAD_INPUT {
        let reply = port.ask(&[*request, b"\r\nDBSIZE\r\n"].concat());
        assert_eq!(reply, format!("-ERR {expected}\r\n:0\r\n"));
    }
    assert_eq!(port.ask(b"HELLO 4\r\n"), "-NOPROTO unsupported protocol version\r\n");
    let reply = port.ask(b"UMBEL.POLICY s perhaps\r\nCLIENT SETNAME \"a b\"\r\nDBSIZE\r\n");
    assert_eq!(reply.matches("-ERR ").count(), 2, "{reply}");
    assert!(reply.ends_with(":0\r\n"), "{reply}");
}

#[test]
fn one_bad_command_of_a_batch_fails_alone() {
    let port = Port::open();
    let long = vec![b'k'; 33 << 10];
    let mut pipeline = array(&[b"UMBEL.ADD", b"s", b"a"]);
    pipeline.extend(array(&[b"UMBEL.ADD", b"s", &long]));
    pipeline.extend(array(&[b"UMBEL.ADD", b"s", b"b"]));
    pipeline.extend(array(&[b"UMBEL.WHO", b"s", b"a"]));
    pipeline.extend(array(&[b"UMBEL.WHO", b"s", &long, b"b"]));
    pipeline.extend(array(&[b"UMBEL.WHO", b"none", b"b"]));
    let reply = port.ask(&pipeline);
    let replies: Vec<&str> = reply.split_inclusive("\r\n").collect();
    assert_eq!(replies[..2], ["*1\r\n", ":1\r\n"]);
    assert!(replies[2].starts_with("-ERR "), "{reply}");
    assert_eq!(replies[3..5], ["*1\r\n", ":1\r\n"]);
    // No host can hold such a key: that is an answer.
    assert_eq!(replies[5..9], ["*1\r\n", "*1\r\n", "$4\r\n", "here\r\n"]);
    assert_eq!(replies[9..14], ["*2\r\n", "*0\r\n", "*1\r\n", "$4\r\n", "here\r\n"]);
    assert_eq!(replies[14..], ["*1\r\n", "*0\r\n"]);
}

#[test]
fn replies_keep_the_order_of_requests_when_some_wait_for_other_hosts() {
    let port = Port::open();
    let reply = port.ask(
        b"UMBEL.ADD s slow\r\nUMBEL.LOCATE s slow\r\nUMBEL.LOCATE s quick\r\nUMBEL.MISSING s quick\r\nPING\r\n\
          UMBEL.LOCATE s slow\r\nUMBEL.REM s slow\r\nUMBEL.LOCATE s slow\r\n",
    );
    assert_eq!(
        reply,
        "*1\r\n:1\r\n*1\r\n$4\r\nhere\r\n*0\r\n*1\r\n$5\r\nquick\r\n+PONG\r\n*1\r\n$4\r\nhere\r\n*1\r\n:1\r\n*0\r\n"
    );
    // So do errors of commands that would wait.
    let reply = port.ask(
        b"UMBEL.LOCATE s a\r\nUMBEL.LOCATE s a TIMEOUT 0\r\nUMBEL.MATCH s /a CONFIRM 5\r\nUMBEL.LOCATE s\r\n\
          UMBEL.LOCATE s a\r\nUMBEL.MATCH s /a\r\n",
    );
    let lines: Vec<&str> = reply.lines().map(|line| &line[..line.len().min(12)]).collect();
    assert_eq!(lines, ["*0", "-ERR TIMEOUT", "$-1", "-ERR wrong n", "*0", "$-1"]);
}

#[test]
fn a_hundred_thousand_keys_are_one_command() {
    let port = Port::open();
    let keys: Vec<String> = (0..100_000).map(|i| format!("key-{i}")).collect();
    let command = |name: &'static str| {
        let mut words = vec![name.as_bytes(), b"s"];
        words.extend(keys.iter().map(String::as_bytes));
        array(&words)
    };
    let reply =
        port.ask(&[command("UMBEL.ADD"), command("UMBEL.WHO"), command("UMBEL.MISSING")].concat());
    let added = format!("*100000\r\n{}", ":1\r\n".repeat(100_000));
    let who = format!("*100000\r\n{}", "*1\r\n$4\r\nhere\r\n".repeat(100_000));
    assert!(reply == added + &who + "*0\r\n", "{}", &reply[..100]);
    let held = port.ask(&command("UMBEL.HAS"));
    assert!(held == format!("*100000\r\n{}", ":1\r\n".repeat(100_000)), "{}", &held[..100]);
}

#[test]
fn many_keys_with_a_lifetime_and_many_prefixes_are_one_command() {
    let port = Port::open();
    let keys: Vec<String> = (0..3000).map(|i| format!("/key/{i}")).collect();
    let command = |head: &[&'static str], last: &'static str| {
        let words = head.iter().copied().chain(keys.iter().map(String::as_str)).chain([last]);
        array(&words.map(str::as_bytes).collect::<Vec<_>>())
    };
    let refused = port.ask(&command(&["UMBEL.ADDEX", "s", "60"], ""));
    assert!(refused.starts_with("-ERR a key"), "{refused}");
    let refused = port.ask(&command(&["UMBEL.ANNOUNCE", "s"], "none"));
    assert!(refused.starts_with("-ERR 'none': a name"), "{refused}");
    assert_eq!(port.ask(b"EXISTS s\r\n"), ":0\r\n", "what was refused has changed nothing");
    let one_each = |bit: u8| format!("*3001\r\n{}", format!(":{bit}\r\n").repeat(3001));
    assert!(port.ask(&command(&["UMBEL.ADDEX", "s", "60"], "/last")) == one_each(1));
    assert!(port.ask(&command(&["UMBEL.ANNOUNCE", "s"], "/last")) == one_each(0));
    assert!(port.ask(&command(&["UMBEL.WITHDRAW", "s"], "/last")) == one_each(1));
}

/// A page of a hundred thousand keys of 32 KiB would be 3 GB.
#[test]
fn a_page_of_long_keys_is_bounded_in_bytes() {
    let port = Port::open();
    let keys: Vec<String> = (0..200).map(|i| format!("{i:032000}")).collect();
    let mut words: Vec<&[u8]> = vec![b"UMBEL.ADD", b"s"];
    words.extend(keys.iter().map(String::as_bytes));
    assert!(port.ask(&array(&words)).starts_with("*200\r\n:1\r\n"));
    let (mut cursor, mut pages, mut shown) = ("0".to_owned(), 0, 0);
    while pages == 0 || cursor != "0" {
        let page = port.ask(format!("UMBEL.KEYS s {cursor} COUNT 100000\r\n").as_bytes());
        assert!(page.len() < 4 << 20, "a page of {} bytes", page.len());
        shown += page.matches("$32000\r\n").count();
        cursor = page.lines().nth(2).expect("a cursor").to_owned();
        pages += 1;
    }
    assert!(pages > 1 && shown == 200, "{shown} keys on {pages} pages");
}

/// Each name and each pattern costs far more than its bytes: a request of 64 MiB took gigabytes.
#[test]
fn commands_that_describe_take_few_names() {
    let port = Port::open();
    for head in [["COMMAND", "DOCS"], ["COMMAND", "INFO"], ["CONFIG", "GET"]] {
        let words: Vec<&[u8]> =
            head.iter().map(|word| word.as_bytes()).chain([&b"ping"[..]; 129]).collect();
        let reply = port.ask(&array(&words));
        assert!(reply.starts_with("-ERR wrong number of arguments"), "{head:?}: {reply}");
        let reply = port.ask(&array(&words[..130]));
        assert!(!reply.starts_with('-'), "{head:?}: {reply}");
    }
}

/// News of its first key may be on its way: an error would have to be caught by every caller.
#[test]
fn a_set_that_nobody_is_known_to_have_answers_as_an_empty_one() {
    let port = Port::open();
    let reply = port.ask(
        b"UMBEL.HAS none k\r\nUMBEL.WHO none k j\r\nUMBEL.LOCATE none k\r\nUMBEL.MISSING none k j\r\n\
          UMBEL.MATCH none /a\r\nUMBEL.MATCH none /a CONFIRM 5\r\nEXISTS none\r\n",
    );
    assert_eq!(
        reply,
        "*1\r\n:0\r\n*2\r\n*0\r\n*0\r\n*0\r\n*2\r\n$1\r\nk\r\n$1\r\nj\r\n$-1\r\n$-1\r\n:0\r\n"
    );
    let mut words: Vec<&[u8]> = vec![b"UMBEL.WHO", b"none"];
    words.extend(std::iter::repeat_n(&b"k"[..], 10_000));
    assert_eq!(port.ask(&array(&words)), format!("*10000\r\n{}", "*0\r\n".repeat(10_000)));
    // What no set can be called is an error still.
    let long = vec![b's'; 1000];
    for command in [&b"UMBEL.WHO"[..], b"UMBEL.HAS", b"UMBEL.LOCATE", b"UMBEL.MISSING"] {
        let reply = port.ask(&array(&[command, &long, b"k"]));
        assert!(reply.starts_with("-ERR a set's name has"), "{reply}");
    }
}

#[test]
fn a_broken_protocol_is_told_and_closed_after_what_was_asked_before() {
    let port = Port::open();
    let reply = port.ask(b"UMBEL.ADD s a\r\n*1\r\n+PING\r\nPING\r\n");
    assert_eq!(reply, "*1\r\n:1\r\n-ERR Protocol error: expected '$', got '+'\r\n");
    assert_eq!(port.ask(b"UMBEL.HAS s a\r\n"), "*1\r\n:1\r\n");
}

/// A browser sends such requests to any address, for any page.
#[test]
fn a_web_page_cannot_command_the_port() {
    let port = Port::open();
    for request in [
        "POST / HTTP/1.1\r\nHost: x\r\n\r\nUMBEL.ADD images evil\r\n",
        "PUT /x HTTP/1.1\r\nHost: x\r\n\r\nUMBEL.ADD images evil\r\n",
        "post /x\r\nUMBEL.ADD images evil\r\n",
        "X-Header: y\r\nHost: x\r\nUMBEL.ADD images evil\r\n",
    ] {
        let reply = port.ask(request.as_bytes());
        assert!(!reply.contains(":1") && !reply.contains("*1"), "{request}: {reply}");
        assert_eq!(port.ask(b"UMBEL.SETS\r\n"), "*0\r\n", "{request}");
    }
    assert_eq!(port.ask(b"UMBEL.ADD images post\r\n"), "*1\r\n:1\r\n", "keys are what they are");
    port.stop();
}

#[test]
fn clients_beyond_the_limit_are_refused_and_others_served() {
    let port = Port::with(Limits { connections: 2, ..Limits::default() });
    let mut first = port.connect();
    let mut second = port.connect();
    for socket in [&mut first, &mut second] {
        socket.write_all(b"PING\r\n").expect("in a test");
        exactly(socket, "+PONG\r\n");
    }
    assert_eq!(rest(&mut port.connect()), "-ERR max number of clients reached\r\n");
    first.write_all(b"QUIT\r\n").expect("in a test");
    assert_eq!(rest(&mut first), "+OK\r\n");
    // Its place is free a moment later; until then others are closed, maybe before they have asked.
    let pong = || {
        let mut socket = port.connect();
        socket.write_all(b"PING\r\n").ok()?;
        let mut reply = [0; 7];
        socket.read_exact(&mut reply).ok().map(|()| reply)
    };
    while pong() != Some(*b"+PONG\r\n") {}
}

#[test]
fn large_requests_beyond_the_budget_are_refused() {
    let port = Port::with(Limits { large_requests_bytes: 100 << 10, ..Limits::default() });
    let argument = vec![b'x'; 500_000];
    let mut socket = port.connect();
    // The server closes before all is sent.
    let _ = socket.write_all(&array(&[b"ECHO", &argument]));
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply);
    assert!(
        String::from_utf8(reply)
            .expect("in a test")
            .starts_with("-ERR too many large requests at once")
    );
    let limits = Limits {
        request: RequestLimits { request_bytes: 100, ..RequestLimits::default() },
        ..Limits::default()
    };
    let reply = Port::with(limits).ask(b"*2\r\n$4\r\nECHO\r\n$100\r\n");
    assert_eq!(reply, "-ERR Protocol error: too big a request\r\n");
}

/// What a client sends while it does not read is bounded by what the system buffers, not by what
/// it sends: the server stops reading.
#[test]
fn a_client_that_does_not_read_is_no_longer_served() {
    let port = Port::open();
    let mut socket = port.connect();
    socket.set_nonblocking(true).expect("in a test");
    let request = array(&[b"ECHO", &vec![b'x'; 100_000]]);
    let (mut sent, mut idle) = (0, 0);
    while idle < 20 && sent < 200 << 20 {
        match socket.write(&request[sent % request.len()..]) {
            Ok(bytes) => (sent, idle) = (sent + bytes, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                idle += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(idle, 20, "the server took {sent} bytes");
    assert_eq!(port.ask(b"PING\r\n"), "+PONG\r\n");
}

#[test]
fn stopping_closes_idle_connections_and_lets_nobody_in() {
    let port = Port::open();
    let mut idle = port.connect();
    idle.write_all(b"PING\r\n").expect("in a test");
    exactly(&mut idle, "+PONG\r\n");
    let address = port.address;
    port.stop();
    assert_eq!(rest(&mut idle), "");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn stopping_waits_for_the_running_burst() {
    let port = Port::open();
    let mut busy = port.connect();
    busy.write_all(b"UMBEL.ADD s slow\r\nUMBEL.LOCATE s slow\r\n").expect("in a test");
    exactly(&mut busy, "*1\r\n:1\r\n");
    port.stop();
    assert_eq!(rest(&mut busy), "*1\r\n$4\r\nhere\r\n");
}

#[test]
fn stopping_does_not_wait_for_ever() {
    let port = Port::with(Limits { stop_grace: Duration::from_millis(100), ..Limits::default() });
    let mut deaf = port.connect();
    let request = array(&[b"ECHO", &vec![b'x'; 1_000_000]]);
    deaf.set_write_timeout(Some(Duration::from_millis(200))).expect("in a test");
    while deaf.write_all(&request).is_ok() {}
    port.stop();
}

/// Whether the text is as the example says; `…` in it stands for anything.
fn resembles(text: &str, example: &str) -> bool {
    let mut rest = text;
    for (place, part) in example.split('…').enumerate() {
        let Some(found) = rest.find(part) else { return false };
        if place == 0 && found > 0 {
            return false;
        }
        rest = &rest[found + part.len()..];
    }
    rest.is_empty() || example.ends_with('…')
}

#[test]
fn the_examples_of_the_document_are_true() {
    let document = include_str!("../../../docs/resp.md");
    for protocol in ["2", "3"] {
        let port = Port::named("cache-1", Limits::default());
        let mut request = String::new();
        for line in document.lines() {
            let escaped = line.replace(r"\r", "\r").replace(r"\n", "\n");
            if let Some(command) = line.strip_prefix("> ") {
                request += &format!("{command}\r\n");
            } else if let Some(example) = escaped
                .strip_prefix("both  ")
                .or_else(|| escaped.strip_prefix(&format!("RESP{protocol} ")))
            {
                let reply = port.ask(format!("HELLO {protocol}\r\nPING\r\n{request}").as_bytes());
                let (_, reply) = reply.split_once("+PONG\r\n").expect("in a test");
                assert!(resembles(reply, example), "{request}\n{reply:?}\nis not\n{example:?}");
                request.clear();
            }
        }
    }
}

/// One of the commands that run in batches, or one that ends a batch.
fn commands() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        8 => (r"UMBEL\.(ADD|HAS|WHO|REM)", "[st]", prop::collection::vec("[a-e]", 1..4))
            .prop_map(|(name, set, keys)| format!("{name} {set} {}", keys.join(" "))),
        4 => (r"BF\.(M?ADD|M?EXISTS|INSERT n ITEMS)|CF\.(M?EXISTS|INSERT|ADD|DEL)", "[scn]", prop::collection::vec("[a-e]", 1..4))
            .prop_map(|(name, set, keys)| format!("{name} {set} {}", keys.join(" "))),
        1 => "BF\\.RESERVE n 0\\.1 [1-4] NONSCALING",
        1 => (r"UMBEL\.(ANNOUNCE|WITHDRAW|MATCH)", "[st]", "((/[a-b]){1,3}/?|/)")
            .prop_map(|(name, set, prefix)| format!("{name} {set} {prefix}")),
        1 => r"(PING|DBSIZE|DEL s|UMBEL\.MISSING s a b|UMBEL\.LOCATE t a( TIMEOUT 0)?|UMBEL\.MATCH t /a/b CONFIRM 9)",
    ];
    prop::collection::vec(word, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_pipeline_is_answered_like_its_commands_one_by_one(commands in commands(), cut in any::<prop::sample::Index>()) {
        let pipeline: Vec<u8> = commands
            .iter()
            .flat_map(|command| array(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
            .collect();
        let one_by_one = Port::open();
        let expected: String = commands.iter().map(|command| one_by_one.ask(format!("{command}\r\n").as_bytes())).collect();
        prop_assert_eq!(Port::open().ask(&pipeline), &*expected);
        let port = Port::open();
        let mut socket = port.connect();
        let (before, after) = pipeline.split_at(cut.index(pipeline.len()));
        socket.write_all(before).expect("in a test");
        std::thread::sleep(Duration::from_millis(1));
        socket.write_all(after).expect("in a test");
        socket.shutdown(Shutdown::Write).expect("in a test");
        prop_assert_eq!(rest(&mut socket), expected);
    }
}
