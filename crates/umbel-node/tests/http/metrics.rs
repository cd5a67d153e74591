//! Metrics: what docs/metrics.md says of them, under load, and of very many sets; and what alerts
//! and dashboards make of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use umbel_node::LocalNetwork;
use umbel_node::http::Limits;

use super::client::Port;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A metric's type and unit, by the name that its samples have.
type Named = BTreeMap<String, (String, String)>;

/// What the document lists.
fn documented() -> Named {
    let document = read("docs/metrics.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut names = Named::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[0].trim_end_matches('`').to_owned();
        let message = (cells[1].to_owned(), cells[2].to_owned());
        assert!(names.insert(name.clone(), message).is_none(), "{name} twice");
    }
    names
}

/// What a host says of its metrics.
fn exposed(text: &str) -> Named {
    let lines = |what: &'static str| text.lines().filter_map(move |line| line.strip_prefix(what));
    let units: BTreeMap<&str, &str> =
        lines("# UNIT ").filter_map(|line| line.split_once(' ')).collect();
    let described = lines("# TYPE ").filter_map(|line| line.split_once(' '));
    described
        .map(|(name, kind)| {
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            let unit = units.get(name).copied().unwrap_or_default();
            (format!("{name}{suffix}"), (kind.to_owned(), unit.to_owned()))
        })
        .collect()
}

fn durable(folder: &Path) -> Port {
    let settings = [("data", folder.to_str().expect("text"))];
    Port::of("here", &LocalNetwork::new(), Limits::default(), &settings)
}

#[test]
fn the_document_lists_every_metric_with_its_type_and_unit() {
    let folder = tempfile::tempdir().unwrap();
    let port = durable(folder.path());
    port.send("POST", "/v1/sets/s/keys", b"a\nb\n");
    port.get("/metrics");
    let text = port.get("/metrics").text();
    let (documented, exposed) = (documented(), exposed(&text));
    let names = |named: &Named| named.keys().cloned().collect::<BTreeSet<String>>();
    assert_eq!(names(&documented), names(&exposed));
    assert_eq!(documented, exposed);
    for (name, (_, unit)) in &exposed {
        let base = name.trim_end_matches("_total");
        assert!(unit.is_empty() || base.ends_with(&format!("_{unit}")), "{name} has unit {unit}");
    }
    // Most of them have a value on a host with one set.
    let valued = exposed.keys().filter(|name| text.contains(&format!("\n{name}"))).count();
    assert!(valued * 10 > exposed.len() * 8, "{valued} of {}", exposed.len());
}

/// Counters, and sums and counts of histograms, by name and labels.
fn counters(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let grows = |name: &str| {
        let name = name.split('{').next().unwrap_or_default();
        ["_total", "_count", "_sum", "_bucket"].iter().any(|suffix| name.ends_with(suffix))
    };
    let samples = samples.filter_map(|line| line.rsplit_once(' '));
    let samples = samples.filter(|(name, _)| grows(name));
    samples.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

#[test]
fn counters_only_grow_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let port = durable(folder.path());
    let (port, done) = (&port, &AtomicBool::new(false));
    let mut before = BTreeMap::new();
    std::thread::scope(|scope| {
        for worker in 0..2 {
            scope.spawn(move || {
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let keys: String =
                        (0..100).map(|key| format!("{worker}-{round}-{key}\n")).collect();
                    let verb = if round % 3 == 2 { "keys:remove" } else { "keys" };
                    port.send("POST", &format!("/v1/sets/s{worker}/{verb}"), keys.as_bytes());
                    port.get(&format!("/v1/sets/s{worker}/who/{round}"));
                }
            });
        }
        // Twelve scrapes, and more until everything has been counted once: an update may be late.
        let mut scrapes = 0;
        while scrapes < 12 || (scrapes < 1000 && !is_all_counted(&before)) {
            let now = counters(&port.get("/metrics").text());
            for (name, value) in &before {
                let later = now.get(name).unwrap_or_else(|| panic!("{name} is gone"));
                assert!(later >= value, "{name} went from {value} to {later}");
            }
            (before, scrapes) = (now, scrapes + 1);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(is_all_counted(&before), "{before:?}");
}

/// Whether each of these has counted something.
fn is_all_counted(counters: &BTreeMap<String, f64>) -> bool {
    let names = [
        "umbel_host_updates_sent_total",
        "umbel_set_keys_added_total{set=\"s0\"}",
        "umbel_catalogue_sync_duration_seconds_count",
        "umbel_http_connections_accepted_total",
    ];
    names.iter().all(|name| counters.get(*name).is_some_and(|value| *value > 0.0))
}

#[test]
fn the_number_of_series_is_bounded() {
    let settings = [("limits.sets", "1000")];
    let port = Port::of("here", &LocalNetwork::new(), Limits::default(), &settings);
    for set in 0..300 {
        port.send("PUT", &format!("/v1/sets/set-{set}/keys/k"), b"");
    }
    port.send("POST", "/v1/sets/largest/keys", b"a\nb\nc\n");
    let text = port.get("/metrics").text();
    let of_sets = text.lines().filter(|line| line.starts_with("umbel_set_items{"));
    assert_eq!(of_sets.count(), 100);
    assert!(text.contains("umbel_set_items{set=\"largest\"} 3.0"));
    assert!(text.contains("\numbel_host_sets 301.0\n"));
    assert!(text.contains("\numbel_sets_items 303.0\n"));
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 5000, "{series}");
}

/// Names of metrics in an expression.
fn used(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word(c));
    let ours = words.filter(|word| word.starts_with("umbel_") || word.starts_with("process_"));
    ours.map(|word| word.trim_end_matches("_bucket").to_owned()).collect()
}

#[test]
fn alerts_and_dashboards_use_metrics_that_exist() {
    let documented = documented();
    let rules = read("contrib/prometheus/umbel.rules.yaml");
    let expressions: String = rules.lines().filter(|line| line.contains("expr:")).collect();
    let grafana: serde_json::Value =
        serde_json::from_str(&read("contrib/grafana/umbel.json")).unwrap();
    for name in used(&expressions).into_iter().chain(used(&grafana.to_string())) {
        assert!(documented.contains_key(&name), "there is no metric {name}");
    }
    let operations = read("docs/operations.md");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(operations.contains(&format!("`{alert}`")), "docs/operations.md: {alert}");
    }
    let panels = grafana["panels"].as_array().unwrap();
    assert!(panels.len() > 20);
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
}

#[test]
fn alert_rules_pass_their_own_tests() {
    let folder = root().join("contrib/prometheus");
    for arguments in [["check", "rules", "umbel.rules.yaml"], ["test", "rules", "umbel.test.yaml"]]
    {
        let run = Command::new("promtool").args(arguments).current_dir(&folder).output();
        let Ok(output) = run else {
            eprintln!("skipped: promtool is not installed (Debian's package prometheus has it)");
            return;
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}{errors}");
    }
}

#[test]
fn a_scrape_is_openmetrics_for_prometheus_too() {
    let port = Port::open();
    port.send("PUT", "/v1/sets/s/keys/k", b"");
    let text = port.get("/metrics").text();
    assert!(text.ends_with("# EOF\n"));
    // A family is described once, before its samples, and no sample stands alone.
    let mut described = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap_or_default();
            assert!(described.insert(name.to_owned()), "{name} is described twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let known = ["", "_total", "_bucket", "_sum", "_count", "_info"].iter().any(|suffix| {
                name.strip_suffix(suffix).is_some_and(|family| described.contains(family))
            });
            assert!(known, "{line}");
        }
    }
}
