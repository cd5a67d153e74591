//! The eight hosts of paper 5, figure 1, as processes with links of zenoh: `d = 3`, `s = 7`.

use std::collections::BTreeMap;

use super::cable::Cable;
use super::hosts::{Cluster, eventually};

const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
const FIGURE_1: [(&str, &str); 7] =
    [("A", "B"), ("B", "C"), ("B", "D"), ("C", "E"), ("C", "F"), ("D", "G"), ("D", "H")];

const SETTINGS: &[&str] = &[
    "--overlay-depth=3",
    "--overlay-items=3",
    "--overlay-filters=7",
    "--overlay-false-positive=0.0001",
    "--timing-announce=0.3",
    "--timing-silence=5",
    "--timing-ready=1",
];

fn place(name: &str) -> usize {
    NAMES.iter().position(|other| *other == name).expect("one of the eight")
}

struct Eight {
    cluster: Cluster,
    /// Links that go through a cable: the first of the pair listens, the second connects.
    cables: BTreeMap<(&'static str, &'static str), Cable>,
}

impl Eight {
    /// Figure 1, with a cable between B and C, and one between C and D that is not plugged in.
    fn start() -> Self {
        let cluster = Cluster::named(&NAMES);
        let cable = |pair: (&'static str, &'static str), is_plugged| {
            (pair, Cable::new(cluster.listen(place(pair.0)), is_plugged))
        };
        let cables = BTreeMap::from([cable(("B", "C"), true), cable(("C", "D"), false)]);
        let mut eight = Self { cluster, cables };
        for name in NAMES {
            eight.start_one(name);
            let key = format!("of-{name}");
            let new: Vec<u8> = eight.ask(name, &["UMBEL.ADD", "items", &key]);
            assert_eq!(new, [1]);
            let _: () = eight.ask(name, &["UMBEL.PUBLISH", "items"]);
        }
        eight
    }

    fn start_one(&mut self, name: &str) {
        let mut links = Vec::new();
        for (one, other) in FIGURE_1.into_iter().chain([("C", "D")]) {
            if name == one {
                links.push(other.to_owned());
            } else if name == other {
                let at = self.cables.get(&(one, other)).map(|cable| cable.at.as_str());
                let at = at.unwrap_or_else(|| self.cluster.listen(place(one)));
                links.push(format!("{one}@{at}"));
            }
        }
        self.cluster.start_linked(place(name), &links, SETTINGS);
    }

    fn ask<T: redis::FromRedisValue>(&self, at: &str, words: &[&str]) -> T {
        self.cluster.ask(place(at), words)
    }

    /// The path from a host to the holder of a key, as `E-C-B-A`; empty if it is not found,
    /// nothing if somebody did not answer.
    fn path(&self, at: &str, key: &str) -> Option<String> {
        let words = ["UMBEL.LOCATE", "items", key, "TIMEOUT", "3000", "WITHPATH"];
        let paths: Vec<Vec<String>> = self.cluster.try_ask(place(at), &words).ok()?;
        assert!(paths.len() <= 1, "{paths:?}");
        Some(paths.first().map(|path| path.join("-")).unwrap_or_default())
    }

    fn becomes(&self, at: &str, key: &str, path: &str) {
        let what = format!("the path from {at} to {key} is '{path}'");
        eventually(&what, || self.path(at, key).as_deref() == Some(path));
    }

    fn info(&self, at: &str) -> BTreeMap<String, redis::Value> {
        self.ask(at, &["UMBEL.INFO", "items"])
    }

    fn count(&self, at: &str, field: &str) -> u64 {
        redis::from_redis_value(self.info(at)[field].clone()).expect("a number")
    }

    fn list(&self, at: &str, field: &str) -> Vec<String> {
        redis::from_redis_value(self.info(at)[field].clone()).expect("a list")
    }

    /// Forwards over links that claimed a key, and those of them that were wrong, of E, C, B.
    fn forwards(&self) -> [(u64, u64); 3] {
        ["E", "C", "B"].map(|at| (self.count(at, "forwards"), self.count(at, "wrong_forwards")))
    }
}

#[test]
fn a_query_at_e_for_an_item_at_a_arrives_along_e_c_b_a() {
    let mut eight = Eight::start();
    eventually("everybody knows the homes within three hops", || {
        let homes = NAMES.map(|name| eight.list(name, "homes").len());
        homes == [7, 7, 7, 7, 5, 5, 5, 5]
    });
    assert_eq!(eight.list("E", "homes"), ["A", "B", "C", "D", "F"]);
    assert_eq!(eight.list("E", "links_up"), ["C"], "nobody but its neighbour");
    assert_eq!(eight.list("C", "links_up"), ["B", "E", "F"]);

    let words = ["UMBEL.LOCATE", "items", "of-A", "HOPS", "3", "WITHPATH"];
    let paths: Vec<Vec<String>> = eight.ask("E", &words);
    assert_eq!(paths, [["E", "C", "B", "A"]]);
    assert_eq!(eight.forwards(), [(1, 0); 3], "every forward was right");
    assert_eq!(eight.count("A", "queries_answered"), 1);
    let walked: u64 = NAMES.iter().map(|name| eight.count(name, "walk_forwards")).sum();
    assert_eq!(walked, 0, "the filters led all the way");

    // By the command, as people ask; and a hop short.
    let at = eight.cluster.resp(place("E"));
    let locate = |more: &[&str]| {
        let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("the binary is built");
        umbel.args(["locate", "items", "of-A", "--at", at]).args(more);
        let output = umbel.output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(locate(&["--hops", "3", "--path"]), (Some(0), "of-A\tE > C > B > A\n".into()));
    assert_eq!(locate(&["--hops", "2"]), (Some(1), "of-A\t\n".into()));
    let (_, printed) = locate(&["--path", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let key = serde_json::json!({"key": "of-A", "hosts": ["A"], "paths": [["E", "C", "B", "A"]]});
    assert_eq!(printed, serde_json::json!({"keys": [key], "asked": 1, "count": 1}));

    // Within range from memory; beyond it by a walk, or not at all.
    let who: Vec<Vec<String>> = eight.ask("E", &["UMBEL.WHO", "items", "of-A", "of-G"]);
    assert_eq!(who, [vec!["A".to_owned()], vec![]]);
    let missing: Vec<String> = eight.ask("E", &["UMBEL.MISSING", "items", "of-A", "of-G", "none"]);
    assert_eq!(missing, ["of-G", "none"]);
    assert_eq!(eight.path("E", "of-G").as_deref(), Some("E-C-B-D-G"));
    assert_eq!(eight.path("E", "none").as_deref(), Some(""), "not found within the limits");

    // What A holds no more and nobody was told of: the filters lead astray, and that is counted.
    let before = eight.forwards();
    let _: () = eight.ask("A", &["UMBEL.POLICY", "items", "manual"]);
    let _: Vec<u8> = eight.ask("A", &["UMBEL.REM", "items", "of-A"]);
    assert_eq!(eight.path("E", "of-A").as_deref(), Some(""));
    assert_eq!(eight.forwards(), before.map(|(all, wrong)| (all + 1, wrong + 1)));
    let _: Vec<u8> = eight.ask("A", &["UMBEL.ADD", "items", "of-A"]);
    let _: () = eight.ask("A", &["UMBEL.PUBLISH", "items"]);
    eight.becomes("E", "of-A", "E-C-B-A");

    // A cut link is routed round where there is a way, and used again when it heals.
    eight.cables[&("B", "C")].pull();
    eight.becomes("E", "of-A", "");
    eight.cables[&("C", "D")].plug();
    eight.becomes("E", "of-A", "E-C-D-B-A");
    eight.cables[&("B", "C")].plug();
    eventually("the link between B and C is back", || {
        eight.list("C", "links_up") == ["B", "D", "E", "F"]
    });
    eight.cables[&("C", "D")].pull();
    eight.becomes("E", "of-A", "E-C-B-A");

    // A host on the way dies, and comes back.
    eight.cluster.kill(place("B"));
    eight.becomes("E", "of-A", "");
    eight.start_one("B");
    eight.becomes("E", "of-A", "E-C-B-A");
    eight.becomes("E", "of-B", "E-C-B");
    let refused: redis::RedisResult<Vec<String>> =
        eight.cluster.try_ask(place("E"), &["UMBEL.LOCATE", "items", "of-A", "HOPS", "many"]);
    assert!(refused.expect_err("no number").to_string().contains("HOPS takes a whole number"));
    NAMES.iter().for_each(|name| eight.cluster.terminate(place(name)));
}
