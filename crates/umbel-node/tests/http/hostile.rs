//! Clients that mean ill or know no better harm nobody else.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use umbel_node::http::Limits;

use super::client::{Answer, Port, eventually, rest};

/// A client that is in the middle of something for as long as it lives.
fn listening(port: &Port) -> TcpStream {
    let mut socket = port.connect();
    socket.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("in a test");
    let mut first = [0; 12];
    std::io::Read::read_exact(&mut socket, &mut first).expect("in a test");
    assert_eq!(&first, b"HTTP/1.1 200");
    socket
}

#[test]
fn half_sent_requests_keep_nobody_out() {
    let limits =
        Limits { connections: 16, header_time: Duration::from_millis(500), ..Limits::default() };
    let port = Port::with(limits);
    port.send("PUT", "/v1/sets/s/keys/k", b"");
    let mut half: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut socket = port.connect();
            socket.write_all(b"GET /v1/sets/s/who/k HTTP/1.1\r\nhost: ").expect("in a test");
            socket
        })
        .collect();
    for round in 0..20 {
        let answer = port.get("/v1/sets/s/who/k");
        assert_eq!(answer.status, 200, "in round {round}");
        // A byte now and then does not help them.
        half.iter_mut().for_each(|socket| drop(socket.write(b"x")));
    }
    for socket in &mut half {
        assert_eq!(rest(socket), b"", "closed when their time is over, or to make room");
    }
    let text = port.get("/metrics").text();
    assert!(text.contains("umbel_http_connections_refused_total 0.0"), "{text}");
}

#[test]
fn somebody_who_says_nothing_is_let_go() {
    let limits = Limits { idle_time: Duration::from_millis(200), ..Limits::default() };
    let port = Port::with(limits);
    // After an answer, and in the middle of a body.
    for request in [
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "POST /v1/sets/s/keys HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\na\nb\n",
    ] {
        let mut socket = port.connect();
        socket.write_all(request.as_bytes()).unwrap();
        rest(&mut socket);
    }
    assert_eq!(port.get("/v1/sets/s").json()["items"], 2);
}

#[test]
fn a_body_that_trickles_is_not_waited_for_and_a_long_one_is() {
    let limits = Limits { idle_time: Duration::from_secs(1), body_rate: 100, ..Limits::default() };
    let port = Port::with(limits);
    let begin = |set: &str, length: usize| {
        let mut socket = port.connect();
        let head = format!(
            "POST /v1/sets/{set}/keys HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}"
        );
        socket.write_all(format!("{head}\r\n\r\n").as_bytes()).expect("in a test");
        socket
    };
    let (mut slow, mut steady) = (begin("slow", 100_000), begin("steady", 40 * 40));
    let slowly = std::thread::spawn(move || {
        // A byte now and then is less than a hundred a second.
        for _ in 0..2000 {
            if slow.write_all(b"x").is_err() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    });
    for _ in 0..40 {
        steady.write_all("0123456789012345678\n".repeat(2).as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(Answer::read(&mut steady).json()["keys"], 80);
    assert!(slowly.join().unwrap(), "it was closed");
}

#[test]
fn one_client_too_many_is_told_so() {
    let port = Port::with(Limits { connections: 3, ..Limits::default() });
    let busy = [listening(&port), listening(&port), listening(&port)];
    let full = Answer::read(&mut port.connect());
    full.is_problem(503, "too_many_connections");
    assert_eq!(full.header("retry-after"), Some("1"));
    drop(busy);
    eventually("there is room again", || {
        let mut socket = port.connect();
        let _ = socket
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        Answer::read(&mut socket).status == 200
    });
}

#[test]
fn what_is_too_large_is_refused() {
    let limits = Limits { header_bytes: 8192, question_bytes: 10_000, ..Limits::default() };
    let port = Port::with(limits);
    port.send("PUT", "/v1/sets/s/keys/k", b"");
    let large = "x".repeat(9000);
    assert_eq!(port.get(&format!("/v1/sets/s/who/{large}")).status, 431);
    let mut socket = port.connect();
    let many: String = (0..1000).map(|i| format!("h{i}: x\r\n")).collect();
    socket.write_all(format!("GET /healthz HTTP/1.1\r\n{many}\r\n").as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut socket).status, 431);
    port.send("POST", "/v1/sets/s/who", &[b'x'; 10_001]).is_problem(413, "too_large");
    port.send("POST", "/v1/sets/s/missing", &[b'x'; 10_001]).is_problem(413, "too_large");
    port.json("PUT", "/v1/sets/t", &format!("{{}}{}", " ".repeat(10_000)))
        .is_problem(413, "too_large");
    port.send("POST", "/v1/sets/s/who", &[b'x'; 9000]);
    assert_eq!(port.get("/v1/sets").json()["sets"].as_array().unwrap().len(), 1);
}

#[test]
fn a_web_page_of_elsewhere_changes_nothing() {
    let port = Port::open();
    let ask = |request: &str| {
        let mut socket = port.connect();
        let rest = "host: localhost:7441\r\nconnection: close\r\ncontent-length: 2\r\n\r\nk\n";
        socket.write_all(format!("{request}{rest}").as_bytes()).unwrap();
        Answer::read(&mut socket)
    };
    let post = "POST /v1/sets/s/keys HTTP/1.1\r\n";
    ask(&format!("{post}origin: https://evil.example\r\n")).is_problem(403, "origin");
    port.get("/v1/sets/s").is_problem(404, "no_such_set");
    assert_eq!(ask(&format!("{post}origin: http://localhost:7441\r\n")).status, 200);
}

#[test]
fn a_page_that_lets_its_name_resolve_to_this_machine_learns_nothing() {
    let port = Port::open();
    let get = |target: &str, host: &str| {
        let mut socket = port.connect();
        let head = format!("GET {target} HTTP/1.1\r\n{host}connection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        Answer::read(&mut socket)
    };
    for host in ["evil.example", "evil.example:7441", "127.0.0.1.evil.example", ""] {
        get("/v1/sets", &format!("host: {host}\r\n")).is_problem(421, "host");
    }
    get("http://evil.example/v1/sets", "host: localhost\r\n").is_problem(421, "host");
    get("/v1/sets", "host: localhost\r\nhost: evil.example\r\n").is_problem(421, "host");
    for host in
        ["", "host: LOCALHOST:7441\r\n", "host: [::1]\r\n", "host: 10.0.0.1\r\n", "host: here\r\n"]
    {
        assert_eq!(get("/v1/sets", host).status, 200, "{host}");
    }
}

#[test]
fn what_is_no_http_is_closed() {
    let port = Port::open();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"*1\r\n$4\r\nPING\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/sets/s/keys HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut socket = port.connect();
        socket.write_all(bytes).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let answer = rest(&mut socket);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
    }
    port.get("/v1/sets/s").is_problem(404, "no_such_set");
}
