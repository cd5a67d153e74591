//! Traces arrive at a collector, which this test serves itself. Only with the feature `otel`:
//! `cargo xtask otel`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hosts::{Cluster, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A collector that takes whatever is sent to it.
struct Collector {
    address: String,
    requests: Receiver<(String, Value)>,
}

impl Collector {
    /// Serves until the test ends, and replies with this status.
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || serve(&stream, status, &sender));
            }
        });
        Self { address, requests }
    }

    /// All spans that arrive until one of this name does.
    fn spans_until(&self, name: &str) -> Vec<Value> {
        let (mut spans, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(60));
        while !spans.iter().any(|span: &Value| span["name"] == name) {
            let left = deadline.saturating_duration_since(Instant::now());
            let (path, body) = self.requests.recv_timeout(left).expect("spans arrive");
            assert_eq!(path, "POST /v1/traces HTTP/1.1");
            let resource = body["resourceSpans"][0]["resource"]["attributes"].to_string();
            assert!(resource.contains(r#""stringValue":"umbel""#), "{resource}");
            let sent = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.extend(sent.as_array().expect("spans").iter().cloned());
        }
        spans
    }
}

/// Reads requests of one connection.
fn serve(stream: &TcpStream, status: &str, sender: &Sender<(String, Value)>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let length = head.iter().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
        });
        let mut body = vec![0; length?];
        reader.read_exact(&mut body).ok()?;
        write!(&*stream, "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").ok()?;
        sender.send((head.swap_remove(0), serde_json::from_slice(&body).ok()?)).ok()?;
    }
}

/// Sends a request with a `traceparent` header, and waits for the answer.
fn get(at: &str, path: &str, parent: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("the host listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {at}\r\ntraceparent: {parent}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let all = span["attributes"].as_array()?;
    all.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"])
}

#[test]
fn requests_and_their_questions_arrive_as_one_trace() {
    let collector = Collector::start("200 OK");
    let mut cluster = Cluster::new(2);
    let flags = ["--memory", "--traces-endpoint", &collector.address, "--traces-share", "0"];
    (0..2).for_each(|host| cluster.start(host, &flags));
    let _: Vec<u8> = cluster.ask(1, &["UMBEL.ADD", "fruit", "secret-apple"]);
    eventually("the replica arrives", || cluster.who(0, "fruit", "secret-apple").len() == 1);

    // Not recorded by its caller, or by nobody: not exported.
    get(cluster.http(0), "/v1/status", &format!("00-{TRACE}-{CALLER}-00"));
    get(cluster.http(0), "/v1/status", "nonsense");
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let answer = get(cluster.http(0), "/v1/sets/fruit/locate/secret-apple", &parent);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let name = "GET /v1/sets/{set}/locate/{key}";
    let spans = collector.spans_until(name);
    let [asked, request] = ["ask host", name]
        .map(|name| spans.iter().find(|span| span["name"] == name).expect("both are there"));
    assert_eq!((&request["traceId"], &request["parentSpanId"]), (&TRACE.into(), &CALLER.into()));
    assert_eq!((&asked["traceId"], &asked["parentSpanId"]), (&TRACE.into(), &request["spanId"]));
    assert_eq!((&request["kind"], &asked["kind"]), (&2.into(), &3.into()));
    let status = attribute(request, "http.response.status_code").expect("a status");
    assert_eq!(status["intValue"], "200");
    assert_eq!(attribute(asked, "umbel.set").expect("a set")["stringValue"], "fruit");
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert!(!format!("{spans:?}").contains("apple"), "keys are not exported");
}

#[test]
fn a_redis_command_that_asks_other_hosts_is_a_trace_and_one_from_memory_is_not() {
    let collector = Collector::start("200 OK");
    let mut cluster = Cluster::new(2);
    let flags = ["--memory", "--traces-endpoint", &collector.address, "--traces-share", "1"];
    (0..2).for_each(|host| cluster.start(host, &flags));
    let _: Vec<u8> = cluster.ask(1, &["UMBEL.ADD", "fruit", "secret-apple"]);
    eventually("the replica arrives", || cluster.who(0, "fruit", "secret-apple").len() == 1);
    let found: Vec<String> = cluster.ask(0, &["UMBEL.LOCATE", "fruit", "secret-apple"]);
    assert_eq!(found.len(), 1, "{found:?}");

    let spans = collector.spans_until("UMBEL.LOCATE");
    let [asked, command] = ["ask host", "UMBEL.LOCATE"]
        .map(|name| spans.iter().find(|span| span["name"] == name).expect("both are there"));
    assert_eq!(
        (&asked["traceId"], &asked["parentSpanId"]),
        (&command["traceId"], &command["spanId"])
    );
    assert!(command["parentSpanId"].is_null() && command["kind"] == 2, "{command}");
    assert_eq!(attribute(command, "umbel.set").expect("a set")["stringValue"], "fruit");
    let names = spans.iter().map(|span| span["name"].as_str().expect("a name"));
    assert!(names.clone().all(|name| !name.contains("ADD") && !name.contains("WHO")), "{spans:?}");
    assert!(!format!("{spans:?}").contains("apple"), "keys are not exported");
}

#[test]
fn the_last_spans_are_sent_when_a_host_stops() {
    let collector = Collector::start("200 OK");
    let mut cluster = Cluster::new(1);
    let flags = ["--memory", "--traces-endpoint", &collector.address, "--traces-share", "1"];
    cluster.start(0, &flags);
    get(cluster.http(0), "/livez", "nonsense");
    cluster.terminate(0);
    let spans = collector.spans_until("GET /livez");
    assert!(spans.iter().all(|span| span["parentSpanId"].is_null()), "{spans:?}");
}

#[test]
fn a_host_works_without_its_collector_and_says_so() {
    let collector = Collector::start("503 Service Unavailable");
    let mut cluster = Cluster::new(1);
    cluster.start(0, &["--memory", "--traces-endpoint", &collector.address, "--traces-share", "1"]);
    assert!(get(cluster.http(0), "/livez", "").starts_with("HTTP/1.1 200"));
    eventually("the failure is logged", || {
        cluster.log(0).contains("the collector replied 503 Service Unavailable")
    });
    assert!(get(cluster.http(0), "/livez", "").starts_with("HTTP/1.1 200"));
}
