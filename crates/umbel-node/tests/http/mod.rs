//! The HTTP API from outside: every route, good and bad input.

mod client;
mod confirming;
mod dashboard;
mod description;
mod fetching;
mod hostile;
mod metrics;

use std::io::{Read as _, Write as _};

use client::{Answer, Port, eventually};
use serde_json::json;
use umbel_node::LocalNetwork;
use umbel_node::http::Limits;

fn covered(mut answer: serde_json::Value) -> serde_json::Value {
    answer["complete"] = true.into();
    answer["hosts_known"] = 1.into();
    answer["hosts_expected"] = 1.into();
    answer["set_known"] = true.into();
    answer
}

#[test]
fn keys_are_added_asked_for_and_removed() {
    let port = Port::open();
    eventually("it is ready", || port.get("/readyz").status == 200);
    let key = "/v1/sets/images/keys/cat.png";
    let added = port.send("PUT", key, b"");
    assert_eq!((added.status, added.json()), (201, json!({ "added": true })));
    let again = port.send("PUT", key, b"");
    assert_eq!((again.status, again.json()), (200, json!({ "added": false })));
    assert_eq!(port.get(key).json(), json!({ "held": true }));
    assert_eq!(port.send("HEAD", key, b"").status, 200);
    let who = port.get("/v1/sets/images/who/cat.png");
    assert_eq!(who.json(), covered(json!({ "hosts": ["here"] })));
    let locate = port.get("/v1/sets/images/locate/cat.png?timeout=500");
    assert_eq!(locate.json(), covered(json!({ "hosts": ["here"] })));
    assert_eq!(port.send("DELETE", key, b"").json(), json!({ "removed": true }));
    assert_eq!(port.send("DELETE", key, b"").json(), json!({ "removed": false }));
    port.get(key).is_problem(404, "not_held");
    assert_eq!(port.get("/v1/sets/images/who/cat.png").json(), covered(json!({ "hosts": [] })));
}

#[test]
fn keys_leave_when_their_time_is_over() {
    let port = Port::open();
    let add = port.send("PUT", "/v1/sets/s/keys/short?lifetime=0.05", b"");
    assert_eq!(add.status, 201);
    port.send("POST", "/v1/sets/s/keys?lifetime=0.05", b"a\nb\n");
    port.send("PUT", "/v1/sets/s/keys/long", b"");
    eventually("they expire", || port.get("/v1/sets/s").json()["items"] == 1);
}

#[test]
fn a_lifetime_is_taken_back() {
    let port = Port::open();
    let of_set = |name: &str| port.get("/v1/sets/s").json()[name].clone();
    port.json("PUT", "/v1/sets/s", r#"{"lifetime":1000}"#);
    port.send("POST", "/v1/sets/s/keys", b"a\nb\nc\n");
    assert_eq!((of_set("lifetime"), of_set("expiring")), (json!(1000.0), json!(3)));
    let again = port.send("PUT", "/v1/sets/s/keys/a?lifetime=none", b"");
    assert_eq!((again.status, of_set("expiring")), (200, json!(2)));
    port.send("POST", "/v1/sets/s/keys?lifetime=none", b"b\nd\n");
    assert_eq!(of_set("expiring"), 1);
    port.json("PATCH", "/v1/sets/s", r#"{"lifetime":"none"}"#);
    port.send("PUT", "/v1/sets/s/keys/e", b"");
    assert_eq!(
        (of_set("lifetime"), of_set("expiring"), of_set("items")),
        (json!(null), json!(1), json!(5))
    );
}

#[test]
fn keys_are_any_bytes() {
    let port = Port::open();
    let keys = "/v1/sets/s/keys";
    for path in ["layer/4f53", "%00%FF%0A", "..%2F..", "ü", "a%2Fb%3Fc%23d"] {
        assert_eq!(port.send("PUT", &format!("{keys}/{path}"), b"").status, 201, "{path}");
        assert_eq!(port.get(&format!("{keys}/{path}")).status, 200, "{path}");
    }
    // The same keys in base64: 'layer/4f53' and the bytes 0, 255, newline.
    for path in ["bGF5ZXIvNGY1Mw", "bGF5ZXIvNGY1Mw==", "AP8K"] {
        let held = port.get(&format!("{keys}/{path}?encoding=base64"));
        assert_eq!(held.status, 200, "{path}");
    }
    let who = port.send("POST", "/v1/sets/s/who?encoding=base64", b"AP8K\r\n\nAAAA");
    assert_eq!(
        who.json()["answers"],
        json!([{ "key": "AP8K", "hosts": ["here"] }, { "key": "AAAA", "hosts": [] }])
    );
    let missing = port.send("POST", "/v1/sets/s/missing?encoding=base64", b"AP8K\nAAAA\n");
    assert_eq!(missing.json()["missing"], json!(["AAAA"]));
    // A body of lines holds any bytes but newlines; answers that name keys need text.
    assert_eq!(port.send("POST", keys, b"\xff\xfe\n\xff\n").json()["changed"], 2);
    port.send("POST", "/v1/sets/s/who", b"fine\n\xff\n").is_problem(400, "not_text");
    assert_eq!(port.get(&format!("{keys}/%FF%FE")).status, 200);
}

#[test]
fn a_bulk_load_goes_on_where_a_line_is_wrong() {
    let port = Port::open();
    let long = "x".repeat(40_000);
    let body = format!("a\nb\r\n\n{long}\nc\na\nd");
    let loaded = port.send("POST", "/v1/sets/s/keys", body.as_bytes()).json();
    assert_eq!(
        loaded,
        json!({ "keys": 5, "changed": 4, "refused": 1, "errors": [
            { "line": 4, "error": "a line has at most 32768 bytes, not 40000" }
        ] })
    );
    let loaded = port.send("POST", "/v1/sets/s/keys?encoding=base64", b"YQ\n*\nZQ==\n").json();
    assert_eq!((&loaded["changed"], &loaded["errors"][0]["line"]), (&1.into(), &2.into()));
    let removed = port.send("POST", "/v1/sets/s/keys:remove", b"a\nb\nnone\n").json();
    assert_eq!((&removed["keys"], &removed["changed"]), (&3.into(), &2.into()));
    assert_eq!(port.get("/v1/sets/s").json()["items"], 3);
}

#[test]
fn a_bulk_load_of_any_length_is_streamed() {
    let limits = Limits { question_bytes: 8192, ..Limits::default() };
    let port = Port::with(limits);
    let mut socket = port.connect();
    let head = "POST /v1/sets/s/keys HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                transfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    // Pieces that end in the middle of lines, and too many errors to tell all.
    let body: String =
        (0..60_000).map(|i| format!("key-{i}\n{}\n", if i % 20 == 0 { "?" } else { "" })).collect();
    let body = body.replace('?', &"y".repeat(33_000));
    for piece in body.as_bytes().chunks(1 << 20) {
        socket.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).unwrap();
        socket.write_all(piece).and_then(|()| socket.write_all(b"\r\n")).unwrap();
    }
    socket.write_all(b"0\r\n\r\n").unwrap();
    let loaded = Answer::read(&mut socket).json();
    assert_eq!((&loaded["keys"], &loaded["changed"]), (&60_000.into(), &60_000.into()));
    assert_eq!((&loaded["refused"], &loaded["errors"][1]["line"]), (&3000.into(), &42.into()));
    assert_eq!(loaded["errors"].as_array().unwrap().len(), 1000);
    assert_eq!(port.get("/v1/sets/s").json()["items"], 60_000);
}

#[test]
fn a_load_that_breaks_off_keeps_what_came_before() {
    let port = Port::open();
    let mut socket = port.connect();
    let head =
        "POST /v1/sets/s/keys HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\na\nb\nc";
    socket.write_all(head.as_bytes()).unwrap();
    eventually("the whole lines are there", || {
        let set = port.get("/v1/sets/s");
        set.status == 200 && set.json()["items"] == 2
    });
    drop(socket);
    assert_eq!(port.get("/v1/sets/s").json()["items"], 2);
}

#[test]
fn many_keys_are_asked_for_at_once() {
    let port = Port::open();
    let body: String = (0..2000).map(|i| format!("key-{i}\n")).collect();
    port.send("POST", "/v1/sets/s/keys", body.as_bytes());
    let asked: String = (0..2000).map(|i| format!("key-{}\n", i * 2)).collect();
    let answers = port.send("POST", "/v1/sets/s/who", asked.as_bytes()).json();
    let answers = answers["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 2000);
    for (i, answer) in answers.iter().enumerate() {
        let hosts = if i < 1000 { json!(["here"]) } else { json!([]) };
        assert_eq!(*answer, json!({ "key": format!("key-{}", i * 2), "hosts": hosts }));
    }
    let missing = port.send("POST", "/v1/sets/s/missing", asked.as_bytes()).json();
    assert_eq!(missing["missing"].as_array().unwrap().len(), 1000);
    assert_eq!(missing["complete"], true);
    assert_eq!(port.send("POST", "/v1/sets/s/who", b"").json()["answers"], json!([]));
}

/// For the first moments after somebody's first key, and after the last holder left, everybody who
/// asked had to catch an error.
#[test]
fn a_set_that_nobody_is_known_to_have_answers_as_an_empty_one() {
    let port = Port::open();
    let empty = |answer: Answer, field: &str, expected: serde_json::Value| {
        assert_eq!(answer.status, 200);
        let answer = answer.json();
        assert_eq!((&answer[field], &answer["set_known"]), (&expected, &json!(false)));
        assert_eq!(answer["complete"], true);
    };
    empty(port.get("/v1/sets/none/who/k"), "hosts", json!([]));
    empty(port.get("/v1/sets/none/locate/k"), "hosts", json!([]));
    let nobody = json!([{ "key": "k", "hosts": [] }, { "key": "j", "hosts": [] }]);
    empty(port.send("POST", "/v1/sets/none/who", b"k\nj\n"), "answers", nobody);
    empty(port.send("POST", "/v1/sets/none/missing", b"k\nj\n"), "missing", json!(["k", "j"]));
    port.send("PUT", "/v1/sets/none/keys/k", b"");
    let answer = port.get("/v1/sets/none/who/j").json();
    assert_eq!((&answer["hosts"], &answer["set_known"]), (&json!([]), &json!(true)));
}

#[test]
fn sets_are_made_changed_listed_and_deleted() {
    let port = Port::open();
    let made = port.json("PUT", "/v1/sets/layers", r#"{"false_positive":0.001,"capacity":5000}"#);
    assert_eq!(made.status, 201);
    let info = made.json();
    assert_eq!((&info["false_positive"], &info["capacity"]), (&json!(0.001), &json!(5000)));
    let bits = info["bits"].clone();
    let patch = r#"{"policy":"interval:60","lifetime":3600}"#;
    let patched = port.json("PATCH", "/v1/sets/layers", patch).json();
    assert_eq!(
        (&patched["policy"], &patched["lifetime"]),
        (&"interval:60s".into(), &json!(3600.0))
    );
    assert_eq!((&patched["bits"], &patched["rebuilds"]), (&bits, &0.into()), "the same filter");
    let larger = port.json("PUT", "/v1/sets/layers", r#"{"capacity":50000}"#);
    assert_eq!(larger.status, 200);
    let larger = larger.json();
    assert_eq!((&larger["false_positive"], &larger["rebuilds"]), (&json!(0.001), &1.into()));
    assert_eq!(larger["policy"], "interval:60s", "what is left out stays");
    port.json("PUT", "/v1/sets/images", "{}");
    let sets = port.get("/v1/sets").json();
    let names: Vec<_> = sets["sets"].as_array().unwrap().iter().map(|set| &set["set"]).collect();
    assert_eq!(names, ["images", "layers"]);
    assert_eq!(port.send("POST", "/v1/sets/layers/publish", b"").json()["published"], true);
    assert_eq!(port.send("DELETE", "/v1/sets/layers", b"").json(), json!({ "deleted": true }));
    port.send("DELETE", "/v1/sets/layers", b"").is_problem(404, "not_own");
    port.get("/v1/sets/layers").is_problem(404, "no_such_set");
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let port = Port::open();
    port.send("POST", "/v1/sets/s/keys", b"a\nb\n");
    // What the host sends meanwhile, it sends by the clock.
    assert_eq!(port.send("POST", "/v1/sets/s/publish", b"").json()["published"], true);
    eventually("the set is published", || {
        port.get("/v1/sets").json()["sets"][0]["updates_sent"].as_u64() > Some(0)
    });
    let sets = || {
        let mut answer = port.get("/v1/sets").json();
        let set = answer["sets"][0].as_object_mut().expect("a set");
        // A question is counted, whatever comes of it.
        for field in ["bytes_sent", "late_share"] {
            set.remove(field);
        }
        answer
    };
    let before = sets();
    let long_name = format!("/v1/sets/{}/keys/a", "n".repeat(256));
    let long_key = format!("/v1/sets/s/keys/{}", "k".repeat(32769));
    for (method, path, status, code) in [
        ("GET", "/none", 404, "no_such_path"),
        ("GET", "/v1/sets/s/keys/", 404, "no_such_path"),
        ("GET", "/v3/sets", 404, "no_such_path"),
        ("POST", "/v1/hosts", 405, "method"),
        ("PUT", "/v1/sets/s/who/a", 405, "method"),
        ("PUT", "/v1/sets/a%20b/keys/k", 400, "set_name"),
        ("PUT", "/v1/sets/%FF/keys/k", 400, "set_name"),
        ("PUT", &long_name, 400, "set_name"),
        ("PUT", &long_key, 400, "key_length"),
        ("PUT", "/v1/sets/s/keys/k?lifetime=0", 400, "lifetime"),
        ("PUT", "/v1/sets/s/keys/k?lifetime=NaN", 400, "lifetime"),
        ("PUT", "/v1/sets/s/keys/k?lifetime=soon", 400, "lifetime"),
        ("PUT", "/v1/sets/s/keys/k?encodin=base64", 400, "request"),
        ("PUT", "/v1/sets/s/keys/k?encoding=hex", 400, "request"),
        ("PUT", "/v1/sets/s/keys/!?encoding=base64", 400, "base64"),
        ("GET", "/v1/sets/none/keys/k", 404, "not_held"),
        ("DELETE", "/v1/sets/none/keys/k", 404, "no_such_set"),
        ("GET", "/v1/sets/a%20b/who/k", 400, "set_name"),
        ("POST", "/v1/sets/a%20b/who", 400, "set_name"),
        ("GET", "/v1/sets/a%20b/locate/k", 400, "set_name"),
        ("POST", "/v1/sets/a%20b/missing", 400, "set_name"),
        ("GET", "/v1/sets/s/locate/a?timeout=0", 400, "timeout"),
        ("GET", "/v1/sets/s/locate/a?timeout=60001", 400, "timeout"),
        ("GET", "/v1/sets/none/fetch/k", 404, "no_holder"),
        ("GET", "/v1/sets/s/fetch/none", 404, "no_holder"),
        ("GET", "/v1/sets/s/fetch/a", 404, "no_holder"),
        ("POST", "/v1/sets/none/keys:remove", 404, "no_such_set"),
        ("POST", "/v1/sets/a%20b/keys", 400, "set_name"),
        ("POST", "/v1/sets/none/publish", 404, "no_such_set"),
        ("DELETE", "/v1/sets/none", 404, "not_own"),
        ("PUT", "/v1/sets/t", 415, "media_type"),
        ("GET", "/v1/sets/none/keys", 404, "no_such_set"),
        ("GET", "/v1/sets/s/keys?count=0", 400, "count"),
        ("GET", "/v1/sets/s/keys?count=100001", 400, "count"),
        ("GET", "/v1/sets/s/keys?cursor=", 400, "cursor"),
        ("GET", "/v1/sets/s/keys?cursor=xy", 400, "cursor"),
        ("GET", "/v1/sets/s/keys?cursor=abc", 400, "cursor"),
        ("POST", "/v1/sets/s/announce", 400, "prefix_name"),
        ("POST", "/v1/sets/s/withdraw", 400, "prefix_name"),
        ("POST", "/v1/sets/s/announce?encoding=base64", 400, "request"),
        ("GET", "/v1/sets/s/match/a//b", 400, "prefix_name"),
        ("GET", "/v1/sets/s/match/%FF", 400, "prefix_name"),
        ("GET", "/v1/sets/s/match/a?confirm=0", 400, "timeout"),
    ] {
        eprintln!("{method} {path:.40}");
        port.send(method, path, b"k\n").is_problem(status, code);
    }
    for (plan, status, code) in [
        ("", 400, "request"),
        ("{", 400, "request"),
        ("[]", 422, "request"),
        (r#"{"capcity":5}"#, 422, "request"),
        (r#"{"capacity":0}"#, 400, "plan"),
        (r#"{"capacity":100000000000}"#, 400, "plan"),
        (r#"{"capacity":-1}"#, 422, "request"),
        (r#"{"capacity":1e300}"#, 422, "request"),
        (r#"{"expected_hosts":0}"#, 400, "plan"),
        (r#"{"expected_hosts":4294967295}"#, 400, "plan"),
        (r#"{"false_positive":2}"#, 400, "plan"),
        (r#"{"false_positive":0}"#, 400, "plan"),
        (r#"{"policy":"miss:2"}"#, 400, "policy"),
        (r#"{"policy":"often"}"#, 400, "policy"),
        (r#"{"lifetime":-1}"#, 400, "lifetime"),
        (r#"{"lifetime":"60"}"#, 422, "request"),
        (r#"{"lifetime":"never"}"#, 422, "request"),
        (r#"{"confirm":"ask"}"#, 400, "confirm"),
        (r#"{"confirm":"HEAD {advertise}/{key}"}"#, 400, "confirm"),
    ] {
        eprintln!("{plan}");
        port.json("PUT", "/v1/sets/t", plan).is_problem(status, code);
        port.json("PATCH", "/v1/sets/s", plan).is_problem(status, code);
    }
    port.json("PATCH", "/v1/sets/t", "{}").is_problem(404, "no_such_set");
    assert_eq!(sets(), before);
}

/// Before, an object of JSON was stored as one key.
#[test]
fn keys_may_be_an_array_of_json() {
    let port = Port::open();
    let added = port.json("POST", "/v1/sets/s/keys", r#"{"keys":["a","b\nc","a"]}"#).json();
    assert_eq!((&added["keys"], &added["changed"]), (&3.into(), &2.into()));
    assert_eq!(port.get("/v1/sets/s/keys/b%0Ac").status, 200);
    let who = port.json("POST", "/v1/sets/s/who", r#"["a","x"]"#).json();
    assert_eq!(who["answers"][0], json!({ "key": "a", "hosts": ["here"] }));
    let missing = port.json("POST", "/v1/sets/s/missing", r#"["a","x"]"#).json();
    assert_eq!(missing["missing"], json!(["x"]));
    let removed = port.json("POST", "/v1/sets/s/keys:remove", r#"["a","x"]"#).json();
    assert_eq!((&removed["keys"], &removed["changed"]), (&2.into(), &1.into()));
    let numbers = port.json("POST", "/v1/sets/n/keys?encoding=number", "[1,-1,\"2\"]").json();
    assert_eq!(numbers["changed"], 3);
    // One that is no key is told by its place, as a line is.
    let long = "x".repeat(40_000);
    let refused = port.json("POST", "/v1/sets/s/keys", &json!(["c", "", long]).to_string()).json();
    assert_eq!((&refused["changed"], &refused["refused"]), (&1.into(), &2.into()));
    assert_eq!(refused["errors"][0]["line"], 2);
    for body in ["", "{", "null", "\"a\"", "{}", "[1]", r#"{"keys":"a"}"#, r#"{"key":["a"]}"#] {
        for path in ["keys", "keys:remove", "who", "missing", "chain", "announce"] {
            port.json("POST", &format!("/v1/sets/s/{path}"), body).is_problem(400, "body");
        }
    }
    assert_eq!(port.get("/v1/sets/s").json()["items"], 2);
    let limits = Limits { question_bytes: 8192, ..Limits::default() };
    let small = Port::with(limits);
    let many = json!(vec!["x".repeat(1000); 20]).to_string();
    small.json("POST", "/v1/sets/s/keys", &many).is_problem(413, "too_large");
}

#[test]
fn keys_are_listed_page_by_page() {
    let port = Port::open();
    let body: String = (0..2500).map(|n| format!("{n}\n")).collect();
    port.send("POST", "/v1/sets/s/keys", body.as_bytes());
    let (mut keys, mut path) = (Vec::new(), String::from("/v1/sets/s/keys?count=999"));
    loop {
        let page = port.get(&path).json();
        let some = page["keys"].as_array().expect("an array").iter();
        keys.extend(
            some.map(|key| key.as_str().expect("a text").parse::<u32>().expect("a number")),
        );
        let Some(cursor) = page["cursor"].as_str() else { break };
        path = format!("/v1/sets/s/keys?count=999&cursor={cursor}");
    }
    keys.sort_unstable();
    assert_eq!(keys, (0..2500).collect::<Vec<_>>());
    port.send("PUT", "/v1/sets/b/keys/%FF", b"");
    port.get("/v1/sets/b/keys").is_problem(400, "not_text");
    assert_eq!(
        port.get("/v1/sets/b/keys?encoding=base64").json(),
        json!({"keys": ["_w"], "cursor": null})
    );
}

#[test]
fn prefixes_are_announced_matched_and_withdrawn() {
    let port = Port::open();
    let announced = port.send("POST", "/v1/sets/n/announce", b"/a\n/a/b/\n/a\n").json();
    assert_eq!(announced, json!({ "prefixes": 3, "changed": 2 }));
    let found = port.get("/v1/sets/n/match/a/b/c").json();
    assert_eq!((&found["prefix"], &found["hosts"]), (&"/a/b".into(), &json!(["here"])));
    let withdrawn = port.json("POST", "/v1/sets/n/withdraw", r#"["/a/b"]"#).json();
    assert_eq!(withdrawn, json!({ "prefixes": 1, "changed": 1 }));
    assert_eq!(port.get("/v1/sets/n/match/a/b?confirm=500").json()["prefix"], "/a");
    let none = port.get("/v1/sets/n/match/z").json();
    assert_eq!((&none["prefix"], &none["hosts"]), (&json!(null), &json!([])));
    // All or none.
    port.send("POST", "/v1/sets/n/announce", b"/x\nnone\n").is_problem(400, "prefix_name");
    assert_eq!(port.get("/v1/sets/n/match/x").json()["prefix"], json!(null));
}

#[test]
fn errors_have_no_inner_words_of_the_framework() {
    let port = Port::open();
    let detail = |answer: &Answer| answer.json()["detail"].as_str().expect("a text").to_owned();
    assert_eq!(
        detail(&port.get("/v1/sets/s/locate/k?timeot=1")),
        "query: timeot: unknown field 'timeot', expected 'encoding' or 'timeout'"
    );
    assert_eq!(
        detail(&port.get("/v1/sets/s/locate/k?timeout=soon")),
        "query: timeout: a whole number is needed"
    );
    let media = detail(&port.send("PUT", "/v1/sets/t", b"{}"));
    assert_eq!(media, "this route reads JSON: send it with content-type: application/json");
    let capacity = detail(&port.json("PUT", "/v1/sets/t", r#"{"capacity":"many"}"#));
    assert!(capacity.starts_with("body: "), "{capacity}");
    for inner in ["deserialize", "u64", "target type", "`"] {
        assert!(!capacity.contains(inner), "{capacity}");
    }
}

#[test]
fn objects_are_fetched_where_they_are() {
    let network = LocalNetwork::new();
    let limits = Limits::default();
    let fern = Port::of("fern", &network, limits, &[("advertise", "http://fern:8080/")]);
    let lily = Port::of("lily", &network, limits, &[("advertise", "http://lily:8080")]);
    let moss = Port::of("moss", &network, limits, &[]);
    fern.send("POST", "/v1/sets/s/keys", b"on fern\nboth\n");
    lily.send("POST", "/v1/sets/s/keys", b"both\nonly/lily\n");
    moss.send("POST", "/v1/sets/s/keys", b"on moss\n");
    for port in [&fern, &lily, &moss] {
        port.send("POST", "/v1/sets/s/publish", b"");
    }
    let who = |key: &str| fern.get(&format!("/v1/sets/s/who/{key}")).json()["hosts"].clone();
    eventually("fern has heard of lily's keys", || who("only/lily") == json!(["lily"]));
    eventually("fern has heard of moss's keys", || who("on%20moss") == json!(["moss"]));
    eventually("fern knows where lily's objects are", || {
        fern.get("/v1/hosts").json()["hosts"][1]["advertise"] == "http://lily:8080"
    });
    let fetch = |key: &str| {
        let answer = fern.get(&format!("/v1/sets/s/fetch/{key}"));
        assert_eq!(answer.status, 307, "{answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answer.header("location").map(str::to_owned)
    };
    assert_eq!(fetch("on%20fern").as_deref(), Some("http://fern:8080/on%20fern"));
    assert_eq!(fetch("both").as_deref(), Some("http://fern:8080/both"), "the nearest");
    assert_eq!(fetch("only/lily").as_deref(), Some("http://lily:8080/only/lily"));
    fern.get("/v1/sets/s/fetch/on%20moss").is_problem(404, "no_holder");
    let located = fern.get("/v1/sets/s/locate/both").json();
    assert_eq!(located["hosts"], json!(["fern", "lily"]));
    assert_eq!((&located["hosts_known"], &located["complete"]), (&3.into(), &true.into()));
    let missing = fern.send("POST", "/v1/sets/s/missing", b"only/lily\nnowhere\non moss\n").json();
    assert_eq!(missing["missing"], json!(["nowhere"]));
}

#[test]
fn what_happens_is_told_as_it_happens() {
    let network = LocalNetwork::new();
    let fern = Port::of("fern", &network, Limits::default(), &[("set.capacity", "100")]);
    let mut events = fern.connect();
    events.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let (mut heard, mut piece) = (String::new(), [0; 4096]);
    let mut until = |what: &str| {
        while !heard.contains(what) {
            let read = events.read(&mut piece).unwrap();
            assert!(read > 0, "it ended: {heard}");
            heard.push_str(str::from_utf8(&piece[..read]).unwrap());
        }
    };
    until("content-type: text/event-stream");
    let lily = Port::of("lily", &network, Limits::default(), &[]);
    until("event: host_up\ndata: {\"host\":\"lily\"}\n\n");
    let body: String = (0..150).map(|i| format!("{i}\n")).collect();
    fern.send("POST", "/v1/sets/s/keys", body.as_bytes());
    until("event: target_broken\ndata: {\"set\":\"s\"}\n\n");
    until("event: update_sent\ndata: {\"set\":\"s\",\"epoch\":1,\"bytes\":");
    lily.send("PUT", "/v1/sets/s/keys/k", b"");
    lily.send("POST", "/v1/sets/s/publish", b"");
    until("event: update_received\ndata: {\"set\":\"s\",\"host\":\"lily\",\"epoch\":");
    fern.json("PUT", "/v1/sets/s", r#"{"capacity":1000}"#);
    until("event: rebuilt\ndata: {\"set\":\"s\"}\n\n");
    network.disconnect("fern", "lily");
    until("event: host_suspected\ndata: {\"host\":\"lily\"}\n\n");
    network.reconnect("fern", "lily");
    lily.runtime.block_on(lily.host.stop());
    until("event: host_down\ndata: {\"host\":\"lily\"}\n\n");
    fern.stop();
    assert_eq!(events.read(&mut piece).map(|_| ()).ok(), Some(()), "it ends in good order");
}

#[test]
fn metrics_are_what_monitors_read() {
    let port = Port::open();
    port.send("PUT", "/v1/sets/s%22\\q/keys/k", b"");
    port.get("/v1/sets/none/who/k");
    port.get("/made/up/by/a/client");
    let metrics = port.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = metrics.text();
    for line in [
        "umbel_http_requests_total{method=\"PUT\",route=\"/v1/sets/{set}/keys/{key}\",status=\"201\"} 1",
        "umbel_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1",
        "umbel_http_request_duration_seconds_count{method=\"GET\",route=\"/v1/sets/{set}/who/{key}\"} 1",
        "umbel_set_items{set=\"s\\\"\\\\q\"} 1.0",
        "umbel_host_hosts_known 1.0",
        "umbel_peer_current{peer=\"here\"} 1.0",
        "# TYPE umbel_set_updates_sent counter",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        let is_ours = name.starts_with("umbel_") || name.starts_with("process_");
        assert!(is_ours && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_request_that_is_under_way_is_finished_at_the_end() {
    let port = Port::open();
    let mut socket = port.connect();
    let head = "POST /v1/sets/s/keys HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\na\n";
    socket.write_all(head.as_bytes()).unwrap();
    eventually("its beginning is there", || port.get("/v1/sets/s").status == 200);
    let ending = std::thread::spawn(move || port.stop());
    socket.write_all(b"b\n").unwrap();
    let answer = Answer::read(&mut socket);
    assert_eq!((answer.status, &answer.json()["changed"]), (200, &2.into()));
    ending.join().unwrap();
}
