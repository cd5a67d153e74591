//! The description of the API: complete, true, and what the documents say.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use umbel_node::http::Limits;

use super::client::Port;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_document_names_every_route() {
    let document = std::fs::read_to_string(root().join("docs/http.md")).unwrap();
    let api: Value = serde_json::from_str(&umbel_node::http::description()).unwrap();
    let mut names = std::collections::BTreeSet::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let route = format!("`{} {path}`", method.to_uppercase());
            assert!(document.contains(&route), "docs/http.md does not name {route}");
            assert!(names.insert(operation["operationId"].to_string()), "{operation}");
        }
    }
    assert_eq!(names.len(), 32);
}

#[test]
fn the_document_notes_every_routes_worst_case_once() {
    let document = std::fs::read_to_string(root().join("docs/http.md")).unwrap();
    let (_, table) = document.split_once("## Worst cases\n").unwrap();
    let rows: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    let mut named: Vec<&str> = rows.iter().filter_map(|row| row.split('`').next()).collect();
    named.sort_unstable();
    let api: Value = serde_json::from_str(&umbel_node::http::description()).unwrap();
    let paths = api["paths"].as_object().unwrap().iter();
    let mut routes: Vec<String> = paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    routes.sort_unstable();
    assert_eq!(named, routes);
}

#[test]
fn the_description_is_valid() {
    let tool = root().join("target/openapi-spec-validator/bin/openapi-spec-validator");
    if !tool.exists() {
        eprintln!("skipped, since openapi-spec-validator is missing: run `cargo xtask clients`");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, umbel_node::http::description()).expect("written");
    let output = Command::new(tool).arg(file).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Real requests by a tool that knows nothing but the description: whatever it makes up, the
/// answers are as described, and never an error of the server's.
#[test]
fn schemathesis_finds_no_difference() {
    let tool = root().join("target/schemathesis/bin/schemathesis");
    if !tool.exists() {
        let how = "run `cargo xtask clients`, or in the workspace's root `python3 -m venv \
                   target/schemathesis && target/schemathesis/bin/pip install schemathesis==4.32.5`";
        assert!(std::env::var_os("CI").is_none(), "schemathesis is missing: {how}");
        eprintln!("skipped, since schemathesis is missing: {how}");
        return;
    }
    let network = umbel_node::LocalNetwork::new();
    let settings = [("advertise", "http://127.0.0.1:1"), ("limits.sets", "2000")];
    let port = Port::of("here", &network, Limits::default(), &settings);
    port.send("POST", "/v1/sets/images/keys", b"cat.png\n");
    let output = Command::new(tool)
        .current_dir(root().join("target"))
        .args(["run", &format!("http://{}/openapi.json", port.address)])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "15", "--seed", "1"])
        // Without an end.
        .args(["--exclude-path", "/v1/events"])
        // Whether a key fits its encoding, or a plan this machine, is not for a schema to say.
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args(["--max-redirects", "0", "--no-color", "--generation-database", "none"])
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{}", printed.lines().rev().take(12).collect::<Vec<_>>().join("\n"));
}
