//! Users at both ports for clients: every command and every route tried with every set of
//! permissions.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use umbel_node::access::{Permission, Permissions, Users};
use umbel_node::{Host, LocalNetwork};

const READ: Option<Permission> = Some(Permission::Read);
const WRITE: Option<Permission> = Some(Permission::Write);
const ADMIN: Option<Permission> = Some(Permission::Admin);

/// Every command as it might be sent, and the permission that it needs. `RESET` and `QUIT`,
/// which end what is tried here, are tried elsewhere.
const COMMANDS: &[(&str, Option<Permission>)] = &[
    ("AUTH nobody nothing", None),
    ("BF.ADD b a", WRITE),
    ("BF.CARD b", READ),
    ("BF.DEBUG s", READ),
    ("BF.EXISTS b a", READ),
    ("BF.INFO s", READ),
    ("BF.INSERT b ITEMS a", WRITE),
    ("BF.LOADCHUNK none 2 x", WRITE),
    ("BF.MADD b a", WRITE),
    ("BF.MEXISTS b a", READ),
    ("BF.RESERVE b x 10", WRITE),
    ("BF.SCANDUMP s 2", READ),
    ("CF.ADD c a", WRITE),
    ("CF.ADDNX c a", WRITE),
    ("CF.COMPACT none", WRITE),
    ("CF.COUNT c a", READ),
    ("CF.DEBUG none", READ),
    ("CF.DEL none a", WRITE),
    ("CF.EXISTS c a", READ),
    ("CF.INFO none", READ),
    ("CF.INSERT c ITEMS a", WRITE),
    ("CF.INSERTNX c ITEMS a", WRITE),
    ("CF.LOADCHUNK none 2 x", WRITE),
    ("CF.MEXISTS c a", READ),
    ("CF.RESERVE c x", WRITE),
    ("CF.SCANDUMP none 0", READ),
    ("CLIENT GETNAME", None),
    ("CLIENT ID", None),
    ("CLIENT INFO", None),
    ("CLIENT LIST", ADMIN),
    ("CLIENT SETINFO lib-name x", None),
    ("CLIENT SETNAME x", None),
    ("COMMAND", None),
    ("COMMAND COUNT", None),
    ("COMMAND DOCS ping", None),
    ("COMMAND INFO ping", None),
    ("COMMAND LIST", None),
    ("CONFIG GET save", ADMIN),
    ("DBSIZE", READ),
    ("DEBUG RELOAD", ADMIN),
    ("DEL none", ADMIN),
    ("DISCARD", None),
    ("ECHO x", None),
    ("EXEC", None),
    ("EXISTS s", READ),
    ("FLUSHALL never", ADMIN),
    ("FLUSHDB never", ADMIN),
    ("GET text", READ),
    ("HELLO 2", None),
    ("INFO", READ),
    ("KEYS *", READ),
    ("MULTI", None),
    ("PERSIST s", WRITE),
    ("PING", None),
    ("PTTL s", READ),
    ("SAVE", ADMIN),
    ("SCAN 0", READ),
    ("SELECT 0", None),
    ("SET text x", WRITE),
    ("TIME", None),
    ("TTL s", READ),
    ("TYPE s", READ),
    ("UMBEL.ADD s a", WRITE),
    ("UMBEL.ADDEX s 60 a", WRITE),
    ("UMBEL.ANNOUNCE s /a", WRITE),
    ("UMBEL.BACKUP", ADMIN),
    ("UMBEL.CHAIN s a", READ),
    ("UMBEL.HAS s a", READ),
    ("UMBEL.HELP", None),
    ("UMBEL.HOSTS", READ),
    ("UMBEL.INFO s", READ),
    ("UMBEL.KEYS s 0", READ),
    ("UMBEL.LEAVE 60s", ADMIN),
    ("UMBEL.LOCATE s a", READ),
    ("UMBEL.MATCH s /a", READ),
    ("UMBEL.MISSING s a", READ),
    ("UMBEL.MISSINGPARTIAL s a", READ),
    ("UMBEL.POLICY s", ADMIN),
    ("UMBEL.PUBLISH s", WRITE),
    ("UMBEL.REM s a", WRITE),
    ("UMBEL.RESERVE t 0.01 100", ADMIN),
    ("UMBEL.SETS", READ),
    ("UMBEL.WHO s a", READ),
    ("UMBEL.WITHDRAW s /a", WRITE),
    ("UNWATCH", None),
    ("WATCH s", None),
];

/// Those that are refused whoever sends them: what they name is not there, they would delete what others need,
/// or the host keeps its keys in memory.
const IS_REFUSED: &[&str] = &[
    "BF.LOADCHUNK none 2 x",
    "BF.RESERVE b x 10",
    "CF.COMPACT none",
    "CF.DEBUG none",
    "CF.DEL none a",
    "CF.INFO none",
    "CF.LOADCHUNK none 2 x",
    "CF.RESERVE c x",
    "CF.SCANDUMP none 0",
    "DISCARD",
    "EXEC",
    "FLUSHALL never",
    "FLUSHDB never",
    "SAVE",
    "UMBEL.BACKUP",
    "UMBEL.LEAVE 60s",
    "WATCH s",
];

/// All sets of permissions but the empty one, each a user's of that name.
fn roles() -> Vec<Permissions> {
    let pick = |bits: usize| {
        let all = Permission::ALL.into_iter().enumerate();
        all.filter(|(place, _)| bits >> place & 1 == 1).map(|(_, one)| one).collect()
    };
    (1..8).map(pick).collect()
}

fn user_of(role: Permissions) -> String {
    role.to_string().replace(',', "-")
}

/// A host whose users are the roles, each with its own name as password.
fn host(runtime: &Runtime, folder: &Path) -> Host {
    let mut users = Users::default();
    for role in roles() {
        let name = user_of(role);
        users.add(&name, role, Some(name.as_bytes())).expect("in a test");
        let token = users.add_token(&name).expect("in a test");
        std::fs::write(folder.join(&name), token).expect("in a test");
    }
    let path = folder.join("users.toml");
    std::fs::write(&path, users.to_toml()).expect("in a test");
    let host = Host::builder()
        .name("here")
        .local(&LocalNetwork::new())
        .set("users", [path.to_str().expect("in a test")])
        .set("resp", ["127.0.0.1:0"])
        .set("http", ["127.0.0.1:0"])
        .with_ports();
    let host = runtime.block_on(host.start()).expect("in a test");
    runtime.block_on(host.add_key("s", b"a")).expect("in a test");
    host
}

/// The replies to these lines, one after the other.
fn ask(address: SocketAddr, lines: &[&str]) -> String {
    let mut socket = TcpStream::connect(address).expect("in a test");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("in a test");
    let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    socket.write_all(text.as_bytes()).expect("in a test");
    socket.shutdown(Shutdown::Write).expect("in a test");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("in a test");
    reply
}

#[test]
fn every_command_is_tried_with_every_role() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = host(&runtime, folder.path());
    let address = host.addresses().resp.unwrap();
    let mut tried = 0;
    for role in roles() {
        let login = format!("AUTH {0} {0}", user_of(role));
        assert!(ask(address, &[&login]).starts_with("+OK"), "{role}");
        for (command, needed) in COMMANDS.iter().filter(|(command, _)| !command.starts_with("AUTH"))
        {
            let reply = ask(address, &[&login, command]);
            let reply = reply.strip_prefix("+OK\r\n").unwrap();
            let allowed = needed.is_none_or(|needed| role.has(needed));
            assert_eq!(!reply.starts_with("-NOPERM"), allowed, "{role}: {command}: {reply}");
            let has_failed = reply.starts_with('-') && !IS_REFUSED.contains(command);
            assert!(!allowed || !has_failed, "{role}: {command}: {reply}");
            tried += 1;
        }
    }
    assert_eq!(tried, 7 * (COMMANDS.len() - 1));
    for (command, _) in COMMANDS {
        let reply = ask(address, &[command]);
        let login = command.starts_with("AUTH");
        assert!(
            reply.starts_with(if login { "-WRONGPASS" } else { "-NOAUTH" }),
            "{command}: {reply}"
        );
    }
    runtime.block_on(host.stop());
}

#[test]
fn permissions_count_in_a_transaction() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = host(&runtime, folder.path());
    let address = host.addresses().resp.unwrap();
    let sent =
        ["AUTH read read", "MULTI", "UMBEL.HAS s a", "UMBEL.ADD s b", "EXEC", "UMBEL.HAS s b"];
    let reply = ask(address, &sent);
    assert!(reply.starts_with("+OK\r\n+OK\r\n+QUEUED\r\n-NOPERM "), "{reply}");
    assert!(reply.ends_with("previous errors.\r\n*1\r\n:0\r\n"), "{reply}");
    runtime.block_on(host.stop());
}

#[test]
fn the_list_that_is_tried_has_every_command() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = host(&runtime, folder.path());
    let address = host.addresses().resp.unwrap();
    let reply = ask(address, &["AUTH read read", "COMMAND LIST"]);
    let mut listed: Vec<String> = reply
        .split("\r\n")
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .map(str::to_uppercase)
        .filter(|name| !["QUIT", "RESET"].contains(&&**name))
        .collect();
    listed.sort();
    let mut tried: Vec<&str> =
        COMMANDS.iter().map(|(line, _)| line.split(' ').next().unwrap()).collect();
    tried.dedup();
    assert_eq!(listed, tried);
    runtime.block_on(host.stop());
}

#[test]
fn a_pipeline_changes_who_it_is_on_the_way() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = host(&runtime, folder.path());
    let address = host.addresses().resp.unwrap();
    let reply = ask(
        address,
        &[
            "UMBEL.HAS s a",
            "HELLO 2 AUTH read read SETNAME me",
            "CLIENT GETNAME",
            "UMBEL.HAS s a",
            "UMBEL.HAS s a",
            "AUTH write write",
            "UMBEL.HAS s a",
            "UMBEL.REM s a",
            "AUTH read wrong",
            "UMBEL.REM s a",
            "RESET",
            "UMBEL.HAS s a",
            "PING",
            "QUIT",
        ],
    );
    let noauth = "-NOAUTH Authentication required.\r\n";
    let noperm =
        "-NOPERM User write has no permissions to run the 'umbel.has' command: it needs 'read'\r\n";
    let rest = reply.split_once("*0\r\n").unwrap();
    assert!(rest.0.starts_with(&format!("{noauth}*14\r\n")), "{reply}");
    assert_eq!(
        rest.1,
        format!(
            "$2\r\nme\r\n*1\r\n:1\r\n*1\r\n:1\r\n+OK\r\n{noperm}*1\r\n:1\r\n\
             -WRONGPASS invalid username-password pair or user is disabled.\r\n\
             *1\r\n:0\r\n+RESET\r\n{noauth}{noauth}+OK\r\n"
        )
    );
    let hello =
        ask(address, &["HELLO 3 AUTH read read", "INFO umbel", "AUTH a b c", "HELLO 3 AUTH a"]);
    assert!(hello.starts_with("%7\r\n"), "{hello}");
    assert!(hello.contains("failed_logins:1\r\n"), "{hello}");
    assert!(hello.contains("-ERR wrong number of arguments for 'auth' command"), "{hello}");
    assert!(hello.contains("-ERR AUTH is the last word"), "{hello}");
    runtime.block_on(host.stop());
}

#[test]
fn a_silent_client_is_let_go() {
    let (runtime, network) = (Runtime::new().unwrap(), LocalNetwork::new());
    let host = Host::builder()
        .name("here")
        .local(&network)
        .set("resp", ["127.0.0.1:0"])
        .set("http", ["off"])
        .set("limits.idle", ["0.2"])
        .with_ports();
    let host = runtime.block_on(host.start()).unwrap();
    let mut socket = TcpStream::connect(host.addresses().resp.unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.write_all(b"PING\r\n*2\r\n$4\r\n").unwrap();
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply);
    assert_eq!(reply, b"+PONG\r\n");
    runtime.block_on(host.stop());
}

/// Every route and method, and the permission that it needs.
const ROUTES: &[(&str, &str, Option<Permission>)] = &[
    ("get", "/healthz", None),
    ("get", "/livez", None),
    ("get", "/metrics", READ),
    ("get", "/openapi.json", None),
    ("get", "/readyz", None),
    ("get", "/v1/events", READ),
    ("get", "/v1/hosts", READ),
    ("get", "/v1/plan/replica", READ),
    ("get", "/v1/sets", READ),
    ("delete", "/v1/sets/{set}", ADMIN),
    ("get", "/v1/sets/{set}", READ),
    ("patch", "/v1/sets/{set}", ADMIN),
    ("put", "/v1/sets/{set}", ADMIN),
    ("post", "/v1/sets/{set}/announce", WRITE),
    ("get", "/v1/sets/{set}/fetch/{key}", READ),
    ("get", "/v1/sets/{set}/keys", READ),
    ("post", "/v1/sets/{set}/keys", WRITE),
    ("delete", "/v1/sets/{set}/keys/{key}", WRITE),
    ("get", "/v1/sets/{set}/keys/{key}", READ),
    ("put", "/v1/sets/{set}/keys/{key}", WRITE),
    ("post", "/v1/sets/{set}/keys:remove", WRITE),
    ("get", "/v1/sets/{set}/locate/{key}", READ),
    ("get", "/v1/sets/{set}/match/{name}", READ),
    ("post", "/v1/sets/{set}/missing", READ),
    ("get", "/v1/sets/{set}/objects/{key}", READ),
    ("post", "/v1/sets/{set}/publish", WRITE),
    ("get", "/v1/sets/{set}/who/{key}", READ),
    ("post", "/v1/sets/{set}/who", READ),
    ("post", "/v1/sets/{set}/chain", READ),
    ("get", "/v1/status", READ),
    ("get", "/v2/{path}", READ),
    ("post", "/v1/sets/{set}/withdraw", WRITE),
];

/// The status of an answer; some never end, so no more is read.
fn status(address: SocketAddr, method: &str, path: &str, token: Option<&str>) -> (u16, String) {
    let mut socket = TcpStream::connect(address).expect("in a test");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("in a test");
    let path = path.replace("{set}", "s").replace("{key}", "a");
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let method = method.to_uppercase();
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n{token}\r\n");
    socket.write_all(request.as_bytes()).expect("in a test");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).expect("in a test");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("in a test");
    (head[9..12].parse().expect("in a test"), head)
}

#[test]
fn every_route_is_tried_with_every_role() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = host(&runtime, folder.path());
    let address = host.addresses().http.unwrap();
    for role in roles() {
        let token = std::fs::read_to_string(folder.path().join(user_of(role))).unwrap();
        for (method, path, needed) in ROUTES {
            let (status, _) = status(address, method, path, Some(&token));
            let allowed = needed.is_none_or(|needed| role.has(needed));
            assert_eq!(status != 403, allowed, "{role}: {method} {path}: {status}");
            assert_ne!(status, 401, "{role}: {method} {path}");
        }
    }
    for (method, path, needed) in ROUTES {
        let (status, head) = status(address, method, path, None);
        assert_eq!(status == 401, needed.is_some(), "{method} {path}: {status}");
        let message = head.to_lowercase().contains("www-authenticate: bearer");
        assert_eq!(message, needed.is_some(), "{head}");
    }
    for wrong in ["", "read", "read.0123", "nobody.0123"] {
        let (status, _) = status(address, "get", "/v1/hosts", Some(wrong));
        assert!([401, 429].contains(&status), "{wrong}: {status}");
    }
    runtime.block_on(host.stop());
}

#[test]
fn the_routes_that_are_tried_are_all_there_are() {
    let description: serde_json::Value =
        serde_json::from_str(&umbel_node::http::description()).unwrap();
    let mut described = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        described.extend(methods.map(|method| (method.clone(), path.clone())));
    }
    let mut tried: Vec<(String, String)> =
        ROUTES.iter().map(|(method, path, _)| (method.to_string(), path.to_string())).collect();
    described.sort();
    tried.sort();
    assert_eq!(described, tried);
}

/// A host with one user, whose ports are as these settings say.
fn guarded_host(runtime: &Runtime, folder: &Path, settings: &[(&str, &str)]) -> Host {
    let mut users = Users::default();
    users.add("alice", Permissions::ALL, Some(b"secret")).expect("in a test");
    let path = folder.join("users.toml");
    std::fs::write(&path, users.to_toml()).expect("in a test");
    let mut host = Host::builder()
        .name("here")
        .local(&LocalNetwork::new())
        .set("users", [path.to_str().expect("in a test")])
        .set("resp", ["127.0.0.1:0"])
        .set("http", ["127.0.0.1:0"])
        .with_ports();
    for (key, value) in settings {
        host = host.set(key, [*value]);
    }
    runtime.block_on(host.start()).expect("in a test")
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("in a test");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("in a test");
    socket
}

/// Sends a line and expects this reply.
fn expect(socket: &mut TcpStream, line: &str, reply: &str) {
    socket.write_all(format!("{line}\r\n").as_bytes()).expect("in a test");
    let mut bytes = vec![0; reply.len()];
    socket.read_exact(&mut bytes).expect("in a test");
    assert_eq!(String::from_utf8_lossy(&bytes), reply, "{line}");
}

#[test]
fn connections_before_login_keep_no_user_out() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = guarded_host(&runtime, folder.path(), &[("limits.connections", "4")]);
    let address = host.addresses().resp.unwrap();
    let mut first = connect(address);
    expect(&mut first, "AUTH alice secret", "+OK\r\n");
    let mut strangers: Vec<TcpStream> = (0..10).map(|_| connect(address)).collect();
    let mut last = connect(address);
    expect(&mut last, "AUTH alice secret", "+OK\r\n");
    expect(&mut first, "UMBEL.ADD s a", "*1\r\n:1\r\n");
    assert_eq!(strangers[0].read(&mut [0]).unwrap(), 0, "it made room");
    runtime.block_on(host.stop());
}

#[test]
fn whoever_does_not_log_in_is_closed() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = guarded_host(&runtime, folder.path(), &[("timing.login", "0.5")]);
    let address = host.addresses().resp.unwrap();
    let mut user = connect(address);
    expect(&mut user, "AUTH alice secret", "+OK\r\n");
    let mut silent = connect(address);
    let mut refused = connect(address);
    expect(&mut refused, "UMBEL.SETS", "-NOAUTH Authentication required.\r\n");
    for stranger in [&mut silent, &mut refused] {
        assert_eq!(stranger.read(&mut [0]).unwrap(), 0);
    }
    expect(&mut user, "RESET", "+RESET\r\n");
    assert_eq!(user.read(&mut [0]).unwrap(), 0, "a stranger again");
    runtime.block_on(host.stop());
}

/// Before, its replies were written for as long as an idle user is kept, which is for ever by
/// default.
#[test]
fn a_stranger_that_reads_no_replies_is_closed_in_time_or_to_make_room() {
    for (login, others) in [("0.5", 0), ("3600", 4)] {
        let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
        let settings = [("timing.login", login), ("limits.connections", "2")];
        let host = guarded_host(&runtime, folder.path(), &settings);
        let address = host.addresses().resp.unwrap();
        let mut stranger = connect(address);
        stranger.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let commands = b"UMBEL.SETS\r\n".repeat(1000);
        while stranger.write_all(&commands).is_ok() {}
        let _others: Vec<TcpStream> = (0..others).map(|_| connect(address)).collect();
        let is_open = |stranger: &mut TcpStream| match stranger.write(b"\r\n") {
            Ok(_) => true,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        let start = Instant::now();
        while is_open(&mut stranger) {
            assert!(start.elapsed() < Duration::from_secs(30), "it is still served");
        }
        runtime.block_on(host.stop());
    }
}

/// Before, 18 strangers with requests of 32 MiB used up the memory for large requests, and an
/// admin's was refused.
#[test]
fn strangers_take_none_of_the_memory_for_large_requests() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = guarded_host(&runtime, folder.path(), &[]);
    let address = host.addresses().resp.unwrap();
    for request in ["*17\r\n", "*2\r\n$4097\r\n", "*5\r\n$4096\r\n"] {
        let mut stranger = connect(address);
        stranger.write_all(request.as_bytes()).unwrap();
        let argument = [&[b'x'; 4096][..], b"\r\n$4096\r\n"].concat();
        for _ in 0..4 {
            let _ = stranger.write_all(&argument);
        }
        let mut reply = Vec::new();
        let _ = stranger.read_to_end(&mut reply);
        assert!(reply.starts_with(b"-ERR Protocol error"), "{request}");
    }
    // The same pipeline logs in and sends more.
    let keys: String = (0..1000).map(|i| format!("$4\r\n{i:04}\r\n")).collect();
    let mut user = connect(address);
    let add = format!("AUTH alice secret\r\n*1002\r\n$9\r\nUMBEL.ADD\r\n$1\r\ns\r\n{keys}PING");
    expect(&mut user, &add, &format!("+OK\r\n*1000\r\n{}+PONG\r\n", ":1\r\n".repeat(1000)));
    runtime.block_on(host.stop());
}

#[test]
fn a_user_removed_during_a_bulk_load_adds_no_more() {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let host = guarded_host(&runtime, folder.path(), &[]);
    let path = folder.path().join("users.toml");
    let mut users = Users::read(&path).unwrap();
    let token = users.add_token("alice").unwrap();
    std::fs::write(&path, users.to_toml()).unwrap();
    host.access().reload().unwrap();
    let begin = |request: &str| {
        let mut socket = connect(host.addresses().http.unwrap());
        let head =
            format!("{request} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        socket
    };
    let mut load = begin("POST /v1/sets/s/keys");
    load.write_all(b"transfer-encoding: chunked\r\n\r\n8\r\nfirst\nse\r\n").unwrap();
    let mut events = begin("GET /v1/events");
    events.write_all(b"\r\n").unwrap();
    let mut redis = connect(host.addresses().resp.unwrap());
    expect(&mut redis, "AUTH alice secret", "+OK\r\n");
    expect(&mut redis, "UMBEL.ADD u a", "*1\r\n:1\r\n");
    let items = || host.set_info("s").map_or(0, |info| info.items);
    for _ in 0..1000 {
        if items() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(items(), 1, "the first line was taken");
    users.remove("alice").unwrap();
    users.add("bob", Permissions::ALL, Some(b"secret")).unwrap();
    std::fs::write(&path, users.to_toml()).unwrap();
    assert!(host.access().reload().unwrap());
    load.write_all(b"6\r\ncond\nt\r\n0\r\n\r\n").unwrap();
    let mut reply = vec![0; 4096];
    let read = load.read(&mut reply).unwrap();
    let reply = String::from_utf8_lossy(&reply[..read]).into_owned();
    assert!(reply.starts_with("HTTP/1.1 400") && reply.contains("user was removed"), "{reply}");
    assert_eq!(items(), 1, "and no other");
    expect(&mut redis, "UMBEL.ADD u b", "-NOAUTH Authentication required.\r\n");
    // The next event ends the stream of events.
    runtime.block_on(host.add_key("t", b"x")).unwrap();
    host.publish("t").unwrap();
    let mut rest = Vec::new();
    let _ = events.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("\"t\""));
    runtime.block_on(host.stop());
}
