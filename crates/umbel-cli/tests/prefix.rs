//! `umbel prefix` as it is run.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use tempfile::TempDir;

struct Scratch(TempDir);

const ROUTES: &str = "10.0.0.0/8 lab\n10.1.0.0/16\toffice, third floor\n\n10.1.2.0/24 lab\r\n";
const ROUTES6: &str = "2001:db8::/32 a\n2001:db8:1::/48 b\n::/0 out\n";
const NAMES: &str = "/video h1\n/video/2024 h2\n/ root\n";

impl Scratch {
    fn new() -> Self {
        let scratch = Self(TempDir::new().unwrap());
        for (name, lines) in [("routes", ROUTES), ("routes6", ROUTES6), ("names", NAMES)] {
            scratch.write(name, lines);
        }
        scratch
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), contents).unwrap();
    }

    fn run(&self, args: &[&str], input: &str) -> Output {
        let mut command = cargo_bin_cmd!("umbel");
        command.arg("prefix").args(args).current_dir(self.0.path());
        command.write_stdin(input).output().unwrap()
    }

    fn succeeds(&self, args: &[&str], input: &str) -> String {
        let output = self.run(args, input);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit 2, one line that says `why`, and no file made or changed.
    fn refuses(&self, args: &[&str], input: &str, why: &[&str]) {
        let before = self.files();
        let output = self.run(args, input);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        for words in why {
            assert!(stderr.contains(words), "{args:?}: {stderr:?} does not say {words:?}");
        }
        assert!(self.files() == before, "{args:?} changed a file");
    }

    fn files(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    }
}

#[test]
fn a_table_of_each_kind_is_built_and_asked() {
    let scratch = Scratch::new();
    let stderr = scratch.succeeds(&["build", "-o", "t4", "routes"], "");
    assert!(stderr.starts_with("t4: 3 prefixes"), "{stderr}");
    assert_eq!(
        scratch.succeeds(&["lookup", "t4", "10.1.2.3", "10.1.9.9", "10.9.9.9", "192.0.2.1"], ""),
        "10.1.2.3\t10.1.2.0/24\tlab\n10.1.9.9\t10.1.0.0/16\toffice, third floor\n\
         10.9.9.9\t10.0.0.0/8\tlab\n192.0.2.1\t-\n"
    );
    scratch.succeeds(&["build", "-o", "t6"], ROUTES6);
    assert_eq!(
        scratch.succeeds(&["lookup", "t6"], "2001:db8:1::9\n\n2001:db8:2::\n::1\n"),
        "2001:db8:1::9\t2001:db8:1::/48\tb\n2001:db8:2::\t2001:db8::/32\ta\n::1\t::/0\tout\n"
    );
    scratch.succeeds(&["build", "-o", "tn", "names"], "");
    assert_eq!(
        scratch.succeeds(&["lookup", "tn", "/video/2024/intro", "/videos", "/video"], ""),
        "/video/2024/intro\t/video/2024\th2\n/videos\t/\troot\n/video\t/video\th1\n"
    );
}

#[test]
fn answers_come_as_json_as_well() {
    let scratch = Scratch::new();
    let built = scratch.succeeds(&["build", "-o", "t4", "routes", "--json"], "");
    let built: Value = serde_json::from_str(&built).unwrap();
    assert_eq!((&built["kind"], &built["prefixes"]), (&"ipv4".into(), &3.into()));
    let answers = scratch.succeeds(&["lookup", "t4", "--json", "10.1.2.3", "1.1.1.1"], "");
    let answers: Vec<Value> = answers.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(answers[0]["prefix"], "10.1.2.0/24");
    assert!(answers[1]["prefix"].is_null() && answers[1]["value"].is_null());
    let stat: Value =
        serde_json::from_str(&scratch.succeeds(&["stat", "t4", "--json"], "")).unwrap();
    for key in ["bytes", "bytes_per_prefix", "expected_probes", "measured_probes"] {
        assert!(stat[key].as_f64().unwrap() > 0.0, "{key}: {stat}");
    }
    assert!(stat["filter_bits"].is_u64(), "few prefixes may need no filters: {stat}");
    assert_eq!(stat["prefixes"], 3);
    assert_eq!(stat["per_length"], serde_json::json!({"8": 1, "16": 1, "24": 1}));
    assert!(scratch.succeeds(&["stat", "t4"], "").contains("length 24"));
}

#[test]
fn bad_lines_are_refused_with_their_number_and_nothing_is_written() {
    let scratch = Scratch::new();
    let good = "10.0.0.0/8 a\n";
    for (line, why) in [
        ("10.0.0.0/33 b", "beyond 32"),
        ("10.0.0.1/8 b", "bits are set behind"),
        ("10.0.0/8 b", "no IPv4 prefix"),
        ("10.0.0.0 b", "no IPv4 prefix"),
        ("10.0.0.0/8 b", "is there already, in line 1"),
        ("2001:db8::/32 b", "IPv6"),
        ("/name b", "name"),
        ("11.0.0.0/8", "no value"),
    ] {
        let lines = format!("{good}\n{line}\n12.0.0.0/8 c\n");
        scratch.refuses(&["build", "-o", "out"], &lines, &["line 3", why]);
    }
    for (lines, why) in [
        ("/a/../b c\n", &["line 1", "'.' or '..'"]),
        ("/b c\n/a//b c\n", &["line 2", "empty component"]),
        ("/a b\n/a/ c\n", &["line 2", "is there already, in line 1"]),
    ] {
        scratch.refuses(&["build", "-o", "out"], lines, why);
    }
    scratch.refuses(&["build", "-o", "out"], "junk b\n", &["line 1", "'junk'"]);
    scratch.refuses(&["build", "-o", "out"], "\n\n", &["no prefixes"]);
    scratch.refuses(&["build", "-o", "out", "nosuch"], "", &["nosuch", "No such file"]);
    scratch.refuses(&["build", "-o", "routes", "names"], "", &["routes", "not an umbel file"]);
    scratch.write("binary", b"10.0.0.0/8 \xff\n");
    scratch.refuses(&["build", "-o", "out", "binary"], "", &["line 1", "UTF-8"]);
}

#[test]
fn bad_tables_and_addresses_are_refused() {
    let scratch = Scratch::new();
    scratch.succeeds(&["build", "-o", "t4", "routes"], "");
    scratch.refuses(&["lookup", "t4", "10.0.0.1", "10.0.0"], "", &["'10.0.0'", "IPv4 address"]);
    scratch.refuses(&["lookup", "t4", "::1"], "", &["'::1'", "IPv4 address"]);
    scratch.refuses(&["lookup", "t4"], "10.0.0.1\nx\n", &["line 2", "'x'"]);
    scratch.refuses(&["lookup", "routes", "10.0.0.1"], "", &["routes", "not an umbel file"]);
    scratch.refuses(&["stat", "nosuch"], "", &["nosuch", "No such file"]);
    let whole = fs::read(scratch.0.path().join("t4")).unwrap();
    scratch.write("cut", &whole[..whole.len() - 3]);
    scratch.refuses(&["stat", "cut"], "", &["cut", "cut short"]);
    scratch.refuses(&["stat", "t4", "--max-memory", "1k"], "", &["limit"]);
    let mut filter = cargo_bin_cmd!("umbel");
    filter.args(["filter", "info", "t4"]).current_dir(scratch.0.path());
    filter.assert().code(2);
}
