//! All sets and hosts as rows of a table, compact enough for a thousand of them.
//!
//! A row is an array of values; the names of the columns are sent once. A reader of the feed gets
//! all rows first, then those that changed. If there are very many sets, only a part of them is
//! sent (those with problems, then those with the most keys), and their total number.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::Host;
use crate::host::{PeerReport, SetReport, Survey, findings};

/// Maximum number of rows of each kind that are sent.
const MAX_ROWS: usize = 1000;

/// Maximum number of refusals that are named.
const MAX_REFUSALS: usize = 5;

/// The columns of a set's row, in order.
const SET_COLUMNS: [&str; 16] = [
    "name",
    "own",
    "items_everywhere",
    "replicas",
    "behind",
    "memory",
    "problem",
    "measured_miss",
    "late_share",
    "items",
    "rung",
    "target",
    "estimated",
    "miss",
    "miss_target",
    "ghost",
];

/// The columns of a host's row, in order.
const HOST_COLUMNS: [&str; 9] =
    ["name", "state", "reason", "sets", "items", "behind", "lag_epochs", "lag", "fresh"];

/// What the dashboard shows of all sets and hosts.
#[derive(Debug, Default)]
pub(super) struct Rows {
    status: Value,
    sets: Table,
    hosts: Table,
}

/// Rows of one kind, each with its name and as JSON.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<(String, Value)>,
    /// Their total number, including those that are not sent.
    total: usize,
}

/// The rows that a reader of the feed has.
#[derive(Debug, Default)]
pub(super) struct Sent {
    status: Value,
    sets: HashMap<String, Value>,
    hosts: HashMap<String, Value>,
}

impl Rows {
    /// The current sets and hosts.
    pub(super) fn of(host: &Host) -> Self {
        let survey = host.survey(0);
        let status = status(host, &survey);
        Self::new(status, &survey)
    }

    fn new(status: Value, survey: &Survey) -> Self {
        let mut sets: Vec<&SetReport> = survey.sets.iter().collect();
        let total = sets.len();
        if total > MAX_ROWS {
            // First sets whose promises are not kept, then the largest.
            sets.sort_by_key(|set| (problem(set).is_empty(), u64::MAX - set.info.items_everywhere));
            sets.truncate(MAX_ROWS);
        }
        let sets = sets.into_iter().map(|set| (set.info.set.clone(), set_row(set))).collect();
        let mut peers: Vec<&PeerReport> = survey.peers.iter().collect();
        let hosts_total = peers.len();
        if hosts_total > MAX_ROWS {
            peers.sort_by_key(|peer| peer.reason.is_empty());
            peers.truncate(MAX_ROWS);
        }
        let hosts = peers.into_iter().map(|peer| (peer.name.clone(), host_row(peer))).collect();
        Self {
            status,
            sets: Table { rows: sets, total },
            hosts: Table { rows: hosts, total: hosts_total },
        }
    }

    /// The complete data, for a new reader.
    pub(super) fn snapshot(&self, sent: &mut Sent) -> Value {
        *sent = Sent::default();
        let mut all = self.changes(sent).unwrap_or_default();
        all["set_columns"] = json!(SET_COLUMNS);
        all["host_columns"] = json!(HOST_COLUMNS);
        all
    }

    /// What has changed since the reader was last sent something, if anything has.
    pub(super) fn changes(&self, sent: &mut Sent) -> Option<Value> {
        let [sets, gone_sets] = self.sets.changes(&mut sent.sets);
        let [hosts, gone_hosts] = self.hosts.changes(&mut sent.hosts);
        let is_same = sent.status == self.status;
        if is_same && [&sets, &gone_sets, &hosts, &gone_hosts].iter().all(|list| list.is_empty()) {
            return None;
        }
        sent.status = self.status.clone();
        Some(json!({
            "status": self.status,
            "sets": sets,
            "hosts": hosts,
            "gone_sets": gone_sets,
            "gone_hosts": gone_hosts,
            "sets_total": self.sets.total,
            "hosts_total": self.hosts.total,
        }))
    }
}

impl Table {
    /// The rows that a reader lacks, and the names of rows that it has but that are gone.
    fn changes(&self, sent: &mut HashMap<String, Value>) -> [Vec<Value>; 2] {
        let changed = self.rows.iter().filter(|(name, row)| sent.get(name) != Some(row));
        let changed: Vec<(String, Value)> = changed.cloned().collect();
        for (name, row) in &changed {
            sent.insert(name.clone(), row.clone());
        }
        let mut gone = Vec::new();
        if sent.len() > self.rows.len() {
            let here: std::collections::HashSet<&str> =
                self.rows.iter().map(|(name, _)| name.as_str()).collect();
            sent.retain(|name, _| {
                let stays = here.contains(name.as_str());
                if !stays {
                    gone.push(Value::from(name.clone()));
                }
                stays
            });
        }
        [changed.into_iter().map(|(_, row)| row).collect(), gone]
    }
}

/// The host's own state, for the head of the page.
fn status(host: &Host, survey: &Survey) -> Value {
    let status = host.status();
    let coverage = host.coverage();
    json!({
        "name": status.name,
        "cluster": status.cluster,
        "version": status.version,
        "build": status.build,
        "overlay": host.is_in_overlay(),
        "ready": status.ready,
        "complete": coverage.complete,
        "hosts_known": coverage.hosts_known,
        "hosts_expected": coverage.hosts_expected,
        "missing": coverage.missing_hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "durable": status.durable,
        "catalogue_failure": status.catalogue_failure,
        "replica_bytes": status.replica_bytes,
        "replica_bytes_limit": status.replica_bytes_limit,
        "own_bytes": status.own_bytes,
        "not_accepted": status.not_accepted,
        "refusals": host.refusal_texts(MAX_REFUSALS),
        "expiring": expiring(&host.certificate_expiries(), SystemTime::now()),
        "replicas": survey.replicas,
        "replicas_behind": survey.replicas_behind,
    })
}

/// Days until a certificate expires at which the dashboard says so, as the first alert does.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 86_400);

/// Certificates that expire soon, with the whole days that are left; -1 for one that has expired.
fn expiring(
    certificates: &[(&'static str, SystemTime)],
    now: SystemTime,
) -> Vec<(&'static str, i64)> {
    let left = |at: SystemTime| at.duration_since(now).ok();
    let days = |left: Option<Duration>| left.map_or(-1, |left| (left.as_secs() / 86_400) as i64);
    let soon = certificates.iter().map(|(which, at)| (*which, left(*at)));
    soon.filter(|(_, left)| left.is_none_or(|left| left < EXPIRES_SOON))
        .map(|(which, left)| (which, days(left)))
        .collect()
}

fn set_row(set: &SetReport) -> Value {
    let (info, own) = (&set.info, set.own.as_ref());
    let memory = info.replica_bytes + own.map_or(0, |own| own.memory_bytes);
    let mut row = vec![
        json!(info.set),
        json!(u8::from(info.own)),
        json!(info.items_everywhere),
        json!(info.replicas),
        json!(set.behind),
        json!(memory),
        json!(problem(set)),
        json!(short(info.measured_miss)),
        json!(short(info.late_share)),
    ];
    // Only own sets have these columns: the rows of other sets end here.
    if let Some(own) = own {
        row.extend([
            json!(info.items),
            json!(info.rung),
            json!(info.false_positive),
            json!(short(info.estimated_false_positive)),
            json!(short(info.miss)),
            json!(own.miss_target),
            json!(short(info.ghost)),
        ]);
    }
    row.into()
}

/// A rate rounded to three digits: further digits change all the time and are not shown.
fn short(rate: Option<f64>) -> Option<f64> {
    let digits = |rate: f64| match rate {
        0.0 => 0.0,
        _ => {
            let scale = 10_f64.powi(2 - rate.abs().log10().floor() as i32);
            (rate * scale).round() / scale
        }
    };
    rate.map(digits)
}

/// The worst problem of a set, in a few words; empty: none.
fn problem(set: &SetReport) -> String {
    findings(set).into_iter().next().map_or_else(String::new, |first| first.what)
}

fn host_row(peer: &PeerReport) -> Value {
    // Ages change all the time: round them as coarsely as they are shown.
    let fresh = peer.age.map(|age| match age {
        age if age < 10.0 => 0,
        age if age < 60.0 => 10 * (age as u64 / 10),
        age => 60 * (age as u64 / 60),
    });
    json!([
        peer.name,
        peer.state,
        peer.reason,
        peer.sets,
        peer.items,
        peer.behind,
        peer.lag_epochs,
        peer.lag_seconds.round(),
        fresh,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetInfo;

    /// As many hosts and sets as the dashboard must handle.
    fn large(items: u64) -> Survey {
        let set = |number: u64| SetReport {
            info: SetInfo {
                set: format!("objects-of-tenant-{number:04}"),
                items_everywhere: items + number,
                replicas: 100,
                measured_miss: Some(0.001_234_5),
                replica_bytes: 1 << 20,
                ..SetInfo::default()
            },
            ..SetReport::default()
        };
        let peer = |number: u64| PeerReport {
            name: format!("cache-{number:03}.example.org"),
            state: "up",
            sets: 1000,
            items: 10_000_000,
            age: Some(1.0),
            current: true,
            ..PeerReport::default()
        };
        Survey {
            sets: (0..1000).map(set).collect(),
            peers: (0..100).map(peer).collect(),
            ..Survey::default()
        }
    }

    #[test]
    fn a_thousand_sets_and_a_hundred_hosts_fit_the_first_view() {
        let rows = Rows::new(json!({}), &large(1_000_000));
        let mut sent = Sent::default();
        let bytes = rows.snapshot(&mut sent).to_string().len();
        // The page itself is below 100 KiB: see `assets`.
        assert!(bytes < 100_000, "{bytes} bytes");
        assert_eq!(rows.changes(&mut sent), None, "nothing changed");
        let mut less = large(1_000_000);
        less.sets.pop();
        less.peers[7].state = "gone";
        let changes = Rows::new(json!({}), &less).changes(&mut sent).unwrap();
        assert_eq!(changes["gone_sets"], json!(["objects-of-tenant-0999"]));
        assert_eq!(changes["sets"], json!([]));
        assert_eq!(changes["hosts"].as_array().unwrap().len(), 1);
        assert_eq!(changes["sets_total"], 999);
    }

    #[test]
    fn certificates_that_expire_soon_are_named_with_the_days_left() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let day = Duration::from_secs(86_400);
        let certificates = [
            ("clients", now + 3 * day),
            ("peers", now - day / 2),
            ("peers_authority", now + 14 * day),
        ];
        assert_eq!(expiring(&certificates, now), [("clients", 3), ("peers", -1)]);
        assert_eq!(expiring(&[("clients", now + day / 2)], now), [("clients", 0)]);
        assert_eq!(expiring(&[], now), []);
    }

    #[test]
    fn of_more_sets_the_largest_are_sent() {
        let mut survey = large(0);
        let more: Vec<SetReport> = large(10_000).sets.into_iter().take(500).collect();
        for (number, mut set) in more.into_iter().enumerate() {
            set.info.set = format!("large-{number}");
            survey.sets.push(set);
        }
        let rows = Rows::new(json!({}), &survey);
        assert_eq!((rows.sets.rows.len(), rows.sets.total), (MAX_ROWS, 1500));
        let large = rows.sets.rows.iter().filter(|(name, _)| name.starts_with("large-")).count();
        assert_eq!(large, 500);
    }
}
