//! Transactions: commands between MULTI and EXEC, as Redis clients send them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio::runtime::Runtime;
use umbel_node::resp::request::RequestLimits;
use umbel_node::resp::{Limits, Server};
use umbel_node::{Host, LocalNetwork};

/// A host with a port, for as long as the runtime lives.
struct Port {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Port {
    fn open(limits: Limits) -> Self {
        let runtime = Runtime::new().expect("in a test");
        let start = Host::builder().name("here").local(&LocalNetwork::new()).start();
        let host = runtime.block_on(start).expect("in a test");
        let guard = runtime.enter();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), host, limits).expect("in a test");
        let address = server.local_addr();
        runtime.spawn(server.run(std::future::pending()));
        drop(guard);
        Self { address, _runtime: runtime }
    }

    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).expect("in a test");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("in a test");
        socket
    }

    /// What is replied to these lines until the connection is closed.
    fn ask(&self, lines: &str) -> String {
        let mut socket = self.connect();
        socket.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).expect("in a test");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).expect("in a test");
        reply.strip_suffix("+OK\r\n").expect("the reply to QUIT").to_owned()
    }
}

#[test]
fn queued_commands_are_executed_at_exec_and_answered_in_one_array() {
    let port = Port::open(Limits::default());
    let queued = "+QUEUED\r\n";
    assert_eq!(
        port.ask("UMBEL.ADD s a\r\nmulti\r\nUMBEL.ADD s a b\r\nUMBEL.HAS s b\r\nexec\r\nDBSIZE"),
        format!("*1\r\n:1\r\n+OK\r\n{queued}{queued}*2\r\n*2\r\n:0\r\n:1\r\n*1\r\n:1\r\n:1\r\n")
    );
    assert_eq!(port.ask("MULTI\r\nEXEC"), "+OK\r\n*0\r\n");
    // Nothing is executed before EXEC.
    assert_eq!(port.ask("MULTI\r\nUMBEL.ADD s c"), format!("+OK\r\n{queued}"));
    assert_eq!(port.ask("UMBEL.HAS s c"), "*1\r\n:0\r\n");
    // What asks other hosts, and what has children, in the order in which it was sent.
    assert_eq!(
        port.ask(
            "MULTI\r\nUMBEL.LOCATE s a\r\nCLIENT GETNAME\r\nUMBEL.MISSING s a z\r\nUNWATCH\r\nEXEC"
        ),
        format!(
            "+OK\r\n{}*4\r\n*1\r\n$4\r\nhere\r\n$-1\r\n*1\r\n$1\r\nz\r\n+OK\r\n",
            queued.repeat(4)
        )
    );
}

#[test]
fn an_error_while_commands_are_executed_is_the_reply_of_its_command() {
    let port = Port::open(Limits::default());
    let reply = port.ask("MULTI\r\nUMBEL.INFO none\r\nUMBEL.ADD s a\r\nEXEC\r\nUMBEL.HAS s a");
    let queued = "+QUEUED\r\n+QUEUED\r\n";
    assert!(reply.starts_with(&format!("+OK\r\n{queued}*2\r\n-ERR no such set")), "{reply}");
    assert!(reply.ends_with("\r\n*1\r\n:1\r\n*1\r\n:1\r\n"), "{reply}");
}

#[test]
fn a_command_that_is_refused_when_it_is_queued_discards_all() {
    let port = Port::open(Limits::default());
    let abort = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for (wrong, message) in [
        ("NONSENSE", "-ERR unknown command 'NONSENSE'"),
        ("UMBEL.ADD s", "-ERR wrong number of arguments for 'umbel.add' command"),
        ("CLIENT NONSENSE", "-ERR unknown subcommand 'NONSENSE'"),
        ("CLIENT", "-ERR wrong number of arguments for 'client' command"),
        ("EXEC now", "-ERR wrong number of arguments for 'exec' command"),
        ("DISCARD it", "-ERR wrong number of arguments for 'discard' command"),
        ("AUTH a b", "-ERR Command not allowed inside a transaction"),
        ("HELLO 3", "-ERR Command not allowed inside a transaction"),
    ] {
        let sent = format!("MULTI\r\nUMBEL.ADD s a\r\n{wrong}\r\nUMBEL.ADD s b\r\nEXEC\r\nDBSIZE");
        let reply = port.ask(&sent);
        let queued = "+QUEUED\r\n";
        assert!(reply.starts_with(&format!("+OK\r\n{queued}{message}")), "{wrong}: {reply}");
        assert!(reply.ends_with(&format!("{queued}{abort}:0\r\n")), "{wrong}: {reply}");
    }
}

#[test]
fn a_transaction_is_discarded_reset_or_left_with_the_connection() {
    let port = Port::open(Limits::default());
    let begun = "+OK\r\n+QUEUED\r\n";
    let begin = "MULTI\r\nUMBEL.ADD s a\r\n";
    assert_eq!(port.ask(&format!("{begin}DISCARD\r\nDBSIZE")), format!("{begun}+OK\r\n:0\r\n"));
    assert_eq!(port.ask(&format!("{begin}RESET\r\nDBSIZE")), format!("{begun}+RESET\r\n:0\r\n"));
    assert_eq!(port.ask(begin.trim_end()), begun);
    assert_eq!(port.ask("DBSIZE"), ":0\r\n", "another connection is not concerned");
    // Two mistakes that leave the transaction as it is, as in Redis.
    let nested = "-ERR MULTI calls can not be nested\r\n";
    let watched = "-ERR WATCH inside MULTI is not allowed\r\n";
    assert_eq!(
        port.ask(&format!("{begin}MULTI\r\nWATCH s\r\nEXEC\r\nEXEC")),
        format!("{begun}{nested}{watched}*1\r\n*1\r\n:1\r\n-ERR EXEC without MULTI\r\n")
    );
}

#[test]
fn ten_thousand_commands_and_no_more_than_a_requests_bytes() {
    let port = Port::open(Limits::default());
    let many: String = (0..10_000).map(|key| format!("UMBEL.ADD s {key}\r\n")).collect();
    let reply = port.ask(&format!("MULTI\r\n{many}EXEC"));
    let expected = format!(
        "+OK\r\n{}*10000\r\n{}",
        "+QUEUED\r\n".repeat(10_000),
        "*1\r\n:1\r\n".repeat(10_000)
    );
    assert!(reply == expected);

    let request = RequestLimits { request_bytes: 1024, ..RequestLimits::default() };
    let port = Port::open(Limits { request, ..Limits::default() });
    let some: String = (0..30).map(|key| format!("UMBEL.ADD s {key:010}\r\n")).collect();
    let reply = port.ask(&format!("MULTI\r\n{some}EXEC\r\nDBSIZE"));
    let message = "-ERR a transaction may have at most 1024 bytes and 1048576 commands\r\n";
    assert!(reply.contains(message), "{reply}");
    assert!(reply.ends_with("previous errors.\r\n:0\r\n"), "{reply}");
}

#[test]
fn misspelt_commands_get_a_suggestion() {
    let port = Port::open(Limits::default());
    for (typed, meant) in [
        ("UMBEL.WH", Some("UMBEL.WHO")),
        ("umbel.locat s k", Some("UMBEL.LOCATE")),
        ("WHO s k", Some("UMBEL.WHO")),
        ("ADDEX s 1 k", Some("UMBEL.ADDEX")),
        ("BF.EXIST s k", Some("BF.EXISTS")),
        ("DSCARD", Some("DISCARD")),
        ("LPUSH l a", None),
        ("SOMETHING.ELSE", None),
    ] {
        let reply = port.ask(typed);
        assert!(reply.starts_with("-ERR unknown command '"), "{reply}");
        let message = reply.trim_end().split_once("; did you mean ").map(|(_, end)| end);
        assert_eq!(message, meant.map(|meant| format!("{meant}?")).as_deref(), "{typed}");
    }
    let help = port.ask("UMBEL.HELP");
    assert!(help.contains("+UMBEL.WHO set key [key ...]\r\n+    For each key the hosts"), "{help}");
    let one = port.ask("UMBEL.HELP who");
    assert!(one.starts_with("*3\r\n+UMBEL.WHO set key [key ...]\r\n"), "{one}");
    assert!(port.ask("UMBEL.HELP 'client list'").contains("+CLIENT LIST\r\n"));
    assert_eq!(
        port.ask("UMBEL.HELP whoo"),
        "-ERR unknown command 'whoo'; did you mean UMBEL.WHO?\r\n"
    );
}

#[test]
fn habits_of_redis_clients_are_answered() {
    let port = Port::open(Limits::default());
    port.ask("UMBEL.ADD images a\r\nUMBEL.ADD layers a\r\nSET note x");
    assert_eq!(port.ask("KEYS i*"), "*1\r\n$6\r\nimages\r\n");
    assert_eq!(port.ask("KEYS none*"), "*0\r\n");
    assert_eq!(port.ask("SELECT 1\r\nKEYS *"), "+OK\r\n*0\r\n");
    assert_eq!(
        port.ask("TTL images\r\nPTTL note\r\nTTL none\r\nPERSIST images"),
        ":-1\r\n:-1\r\n:-2\r\n:0\r\n"
    );
    let time = port.ask("TIME");
    let words: Vec<&str> = time.split("\r\n").collect();
    assert!(words[0] == "*2" && words[2].parse::<u64>().is_ok(), "{time}");
    assert!(words[4].parse::<u32>().is_ok_and(|micros| micros < 1_000_000), "{time}");
}
