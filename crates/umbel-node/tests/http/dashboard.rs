//! The dashboard without a browser: its files, its feed, its login.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};
use umbel_node::LocalNetwork;
use umbel_node::access::{Permissions, Users};
use umbel_node::http::Limits;

use super::client::{Answer, Port, eventually};

const OWN: (&str, &str) = ("x-umbel-dashboard", "1");

#[test]
fn the_dashboard_serves_a_page_that_loads_nothing_else() {
    let port = Port::open();
    let page = port.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("a policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let text = page.text();
    let mut files: Vec<String> = text.split("/dashboard/assets/").skip(1).map(name).collect();
    let (mut bytes, mut place) = (text.len(), 0);
    while place < files.len() {
        let answer = port.get(&format!("/dashboard/assets/{}", files[place]));
        assert_eq!(answer.status, 200, "{}", files[place]);
        let text = answer.text();
        bytes += text.len();
        for import in text.split("from \"./").skip(1).map(name) {
            if !files.contains(&import) {
                files.push(import);
            }
        }
        place += 1;
    }
    assert!(files.len() >= 14, "{files:?}");
    assert!(bytes < 100 << 10, "{bytes}");
    let tag = page.header("etag").expect("a tag").to_owned();
    let again = port.send_with("GET", "/", &[("if-none-match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    port.get("/dashboard/assets/none.js").is_problem(404, "no_such_path");
    port.get("/dashboard/assets/..%2Fmod.rs").is_problem(404, "no_such_path");
}

/// A file's name, up to what follows it.
fn name(text: &str) -> String {
    text.split('"').next().unwrap_or_default().to_owned()
}

/// The next event of a stream: its name and its facts.
fn event(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut name = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(message) = line.strip_prefix("event: ") {
            message.trim().clone_into(&mut name);
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return Some((name, serde_json::from_str(data).expect("JSON")));
        }
    }
}

/// Reads until an event is so.
fn until(stream: &mut BufReader<TcpStream>, is_so: impl Fn(&str, &Value) -> bool) -> Value {
    loop {
        let (name, facts) = event(stream).expect("the stream goes on");
        if is_so(&name, &facts) {
            return facts;
        }
    }
}

#[test]
fn the_feed_begins_with_everything_and_goes_on_with_changes() {
    let network = LocalNetwork::new();
    let port = Port::of("here", &network, Limits::default(), &[]);
    port.send("POST", "/v1/sets/images/keys", b"a\nb\nc\n");
    let mut feed = BufReader::new(port.begin("GET", "/dashboard/feed", &[], b""));
    let first = until(&mut feed, |name, _| name == "snapshot");
    let columns = first["set_columns"].as_array().unwrap();
    let place = |column: &str| columns.iter().position(|name| name == column).unwrap();
    let row = &first["sets"][0];
    assert_eq!(
        (&row[0], &row[place("items")], &row[place("own")]),
        (&json!("images"), &json!(3), &json!(1))
    );
    assert_eq!(first["status"]["name"], "here");
    assert_eq!(first["hosts"][0][1], "self");
    port.send("PUT", "/v1/sets/images/keys/d", b"");
    let tick = until(&mut feed, |name, facts| {
        name == "tick" && facts["changes"]["sets"][0][place("items")] == 4
    });
    assert_eq!(tick["changes"]["sets"].as_array().unwrap().len(), 1);
    let points = first["point_columns"].as_array().unwrap().len();
    let tick = until(&mut feed, |_, facts| facts["points"]["images"].is_array());
    assert_eq!(tick["points"]["images"].as_array().unwrap().len(), points);
    let other = Port::of("other", &network, Limits::default(), &[]);
    until(&mut feed, |name, facts| name == "happened" && facts["event"] == "host_up");
    let hosts = until(&mut feed, |_, facts| facts["changes"]["hosts"][0][0] == "other");
    assert_eq!(hosts["changes"]["hosts"][0][1], "up");
    let detail = port.get("/dashboard/sets/images").json();
    assert_eq!(detail["info"]["items"], 4);
    assert_eq!(detail["fills"].as_array().unwrap().len(), 1);
    assert!(!detail["history"]["points"].as_array().unwrap().is_empty());
    assert_eq!(detail["findings"], json!([]));
    port.get("/dashboard/sets/none").is_problem(404, "no_such_set");
    other.stop();
    port.stop();
}

#[test]
fn the_planner_answers_over_http() {
    let port = Port::open();
    let path = "/v1/plan/replica?items=100000&adds_per_second=10&removes_per_second=10&hosts=32&miss=0.01&false_positive=0.01";
    let plan = port.get(path).json();
    // A thousand keys may be missing, and ten come every second.
    let seconds = plan["seconds_between_updates"].as_f64().unwrap();
    assert!((seconds - 100.0).abs() < 2.0, "{plan}");
    assert_eq!(plan["policy"], "miss:0.01,ghost=0.05");
    let bounded = port.get(&format!("{path}&longest=1")).json();
    assert_eq!(bounded["policy"], "miss:0.01,ghost=0.05,longest=1s");
    port.get(&path.replace("miss=0.01", "miss=0.9")).is_problem(400, "plan");
    port.get(&path.replace("items=100000", "items=0")).is_problem(400, "plan");
    port.get(&path.replace("hosts=32", "hosts=many")).is_problem(400, "request");
}

/// A port of a host with users: `alice` may do everything, `bob` may read.
fn guarded(folder: &Path) -> Port {
    let mut users = Users::default();
    users.add("alice", Permissions::ALL, Some(b"secret")).expect("in a test");
    users.add("bob", "read".parse().expect("in a test"), Some(b"word")).expect("in a test");
    let path = folder.join("users.toml");
    std::fs::write(&path, users.to_toml()).expect("in a test");
    let settings = [("users", path.to_str().expect("in a test"))];
    Port::of("here", &LocalNetwork::new(), Limits::default(), &settings)
}

fn log_in(port: &Port, user: &str, password: &str) -> Answer {
    let body = json!({ "user": user, "password": password }).to_string();
    let headers = [OWN, ("content-type", "application/json")];
    port.send_with("POST", "/dashboard/login", &headers, body.as_bytes())
}

fn cookie(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").expect("a cookie");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

#[test]
fn without_a_login_nothing_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let port = guarded(folder.path());
    let session = port.get("/dashboard/session").json();
    assert_eq!(session, json!({ "login_needed": true, "user": null, "permissions": [] }));
    for path in ["/dashboard/feed", "/dashboard/sets/s", "/v1/status", "/metrics"] {
        assert_eq!(port.get(path).status, 401, "{path}");
    }
    assert!(!port.get("/").text().contains("here"), "the page knows nothing");
    for (user, password) in [("alice", "wrong"), ("nobody", "secret"), ("", "")] {
        let refused = log_in(&port, user, password);
        refused.is_problem(401, "login");
        assert_eq!(refused.header("set-cookie"), None);
    }
    let logged_in = log_in(&port, "bob", "word");
    assert_eq!(
        logged_in.json(),
        json!({ "login_needed": false, "user": "bob", "permissions": ["read"] })
    );
    let whole = logged_in.header("set-cookie").unwrap();
    for flag in ["httponly", "samesite=strict", "path=/"] {
        assert!(whole.contains(flag), "{whole}");
    }
    let bob = cookie(&logged_in);
    let session = port.send_with("GET", "/dashboard/session", &[("cookie", &bob)], b"");
    assert_eq!(session.json()["user"], "bob");
    let status = port.send_with("GET", "/v1/status", &[("cookie", &bob)], b"");
    assert_eq!(status.json()["name"], "here");
    let publish = port.send_with("POST", "/v1/sets/s/publish", &[("cookie", &bob), OWN], b"");
    publish.is_problem(403, "permission");
    let out = port.send_with("POST", "/dashboard/logout", &[("cookie", &bob), OWN], b"");
    assert!(out.header("set-cookie").unwrap().contains("max-age=0"));
    assert_eq!(port.send_with("GET", "/v1/status", &[("cookie", &bob)], b"").status, 401);
}

#[test]
fn sessions_are_protected_from_other_pages() {
    let folder = tempfile::tempdir().unwrap();
    let port = guarded(folder.path());
    let alice = cookie(&log_in(&port, "alice", "secret"));
    let with = ("cookie", alice.as_str());
    let json = ("content-type", "application/json");
    let patch = |headers: &[(&str, &str)]| {
        port.send_with("PUT", "/v1/sets/s", headers, br#"{"policy":"manual"}"#)
    };
    patch(&[with, json]).is_problem(403, "origin");
    patch(&[with, json, OWN, ("sec-fetch-site", "same-site")]).is_problem(403, "origin");
    patch(&[with, json, OWN, ("origin", "http://localhost:1")]).is_problem(403, "origin");
    let site = ("sec-fetch-site", "cross-site");
    port.send_with("GET", "/v1/status", &[with, site], b"").is_problem(403, "origin");
    let asked = port.send_with("GET", "/dashboard/session", &[with, site], b"");
    assert_eq!(asked.json()["user"], Value::Null);
    assert_eq!(patch(&[with, json, OWN]).status, 201);
    let body = br#"{"user":"alice","password":"secret"}"#;
    port.send_with("POST", "/dashboard/login", &[json], body).is_problem(403, "origin");
    let odd = port.send_with("POST", "/dashboard/login", &[json, OWN], b"[]");
    odd.is_problem(400, "request");
    let made_up = format!("umbel_session_{}={}", port.address.port(), "0".repeat(64));
    assert_eq!(port.send_with("GET", "/v1/status", &[("cookie", &made_up)], b"").status, 401);
}

#[test]
fn a_feed_ends_when_its_user_is_removed_or_logs_out() {
    let folder = tempfile::tempdir().unwrap();
    let port = guarded(folder.path());
    let open = |cookie: &str| {
        let mut feed =
            BufReader::new(port.begin("GET", "/dashboard/feed", &[("cookie", cookie)], b""));
        until(&mut feed, |name, _| name == "snapshot");
        feed
    };
    let (alice, bob) =
        (cookie(&log_in(&port, "alice", "secret")), cookie(&log_in(&port, "bob", "word")));
    let (mut of_alice, mut of_bob) = (open(&alice), open(&bob));
    port.send_with("POST", "/dashboard/logout", &[("cookie", &alice), OWN], b"");
    while event(&mut of_alice).is_some() {}
    until(&mut of_bob, |name, _| name == "tick");
    std::fs::write(folder.path().join("users.toml"), Users::default().to_toml()).unwrap();
    port.host.access().reload().unwrap();
    while event(&mut of_bob).is_some() {}
    eventually("the session is over", || {
        port.send_with("GET", "/v1/status", &[("cookie", &bob)], b"").status == 401
    });
}
