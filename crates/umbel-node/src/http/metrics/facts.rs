//! Metrics of the host, its sets and the other hosts, collected when they are scraped.
//!
//! Totals are reported over all sets, and single series only for the [`MAX_SETS`] sets that matter
//! most; likewise for replicas that are behind, for hosts, and for what is not accepted.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::super::clients::Clients;
use crate::host::{Distribution, PeerReport, SetReport, Survey, findings};
use crate::latency::LatencyReport;
use crate::{Fields, Host, Value};

/// Maximum number of sets with their own series.
const MAX_SETS: usize = 100;
/// Maximum number of replicas behind with their own series.
const MAX_REPLICAS: usize = 100;
/// Maximum number of hosts with their own series.
const MAX_PEERS: usize = 1000;
/// Maximum number of refusals with their own series.
const MAX_REFUSALS: usize = 100;
/// Reasons of refusals: always reported, so that alerts find the series.
const REASONS: [&str; 5] = ["budget", "too_long", "sets", "peers", "own_sets"];

/// Collects the metrics when they are scraped.
#[derive(Debug)]
pub(super) struct Facts {
    host: Host,
    clients: Arc<Clients>,
}

impl Facts {
    pub(super) const fn new(host: Host, clients: Arc<Clients>) -> Self {
        Self { host, clients }
    }
}

impl Collector for Facts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        let survey = self.host.survey(MAX_REPLICAS);
        let mut host = self.host.status().fields();
        let access = self.host.access().counts();
        host.push(("logins", access.1.into()));
        host.push(("watches_failing", self.host.inner.watches.failing().into()));
        host.push(("late_lookups", self.host.inner.sets.late_lookups().into()));
        one_of_each(out, HOST, &host)?;
        ports(out, &self.clients, &self.host)?;
        catalogue(out, &self.host)?;
        one_of_each(out, TOTALS, &totals(&survey))?;
        let sets = sets(out, &survey)?;
        chains(out, &self.host, &sets)?;
        peers(out, &survey.peers)?;
        replicas(out, &survey)?;
        refusals(out, self.host.refusals())?;
        certificates(out, &self.host)
    }
}

/// The field, the metric's name without its unit, the unit, the type (gauge or counter), and the
/// help text.
type Fact = (&'static str, &'static str, U, Kind, &'static str);

/// A unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum U {
    None,
    Bytes,
    Seconds,
    Ratio,
}

impl U {
    fn unit(self) -> Option<Unit> {
        match self {
            Self::None => None,
            Self::Bytes => Some(Unit::Bytes),
            Self::Seconds => Some(Unit::Seconds),
            Self::Ratio => Some(Unit::Other(String::from("ratio"))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

use Kind::{Counter as C, Gauge as G};

/// The host itself, by the fields of `UMBEL.INFO` and some more.
#[rustfmt::skip]
const HOST: &[Fact] = &[
    ("incarnation", "host_incarnation", U::None, G, "Incarnation of the host: grows with each start"),
    ("uptime", "host_uptime", U::Seconds, G, "Time since the host started"),
    ("ready", "host_ready", U::None, G, "Whether answers have been complete since the start, or timing.ready has passed"),
    ("complete", "host_complete", U::None, G, "Whether answers are complete now"),
    ("hosts_known", "host_hosts_known", U::None, G, "Hosts whose sets are known, this one included"),
    ("hosts_expected", "host_hosts_expected", U::None, G, "Hosts that should be known, this one included"),
    ("sets", "host_sets", U::None, G, "Sets that are known"),
    ("durable", "host_durable", U::None, G, "Whether a folder keeps the catalogue"),
    ("writable", "host_writable", U::None, G, "Whether changes are accepted: the catalogue can be written"),
    ("messages", "host_messages_received", U::None, C, "Messages of other hosts that arrived"),
    ("refused", "host_messages_refused", U::None, C, "Messages, hosts and replicas that were refused"),
    ("replica_bytes", "host_replica", U::Bytes, G, "Memory that replicas are charged"),
    ("replica_bytes_limit", "host_replica_limit", U::Bytes, G, "Memory that replicas may take (limits.replica_bytes)"),
    ("own_bytes", "host_own_filter", U::Bytes, G, "Memory of the filters of own sets"),
    ("gaps", "host_update_gaps", U::None, C, "Updates that did not follow on what was here"),
    ("mismatches", "host_image_mismatches", U::None, C, "Images that were not what their home announced"),
    ("updates_sent", "host_updates_sent", U::None, C, "Updates published"),
    ("update_bytes_sent", "host_update_sent", U::Bytes, C, "Size of updates published, each counted once"),
    ("page_bytes_sent", "host_page_sent", U::Bytes, C, "Size of pages sent to hosts that requested them"),
    ("dropped", "host_events_dropped", U::None, C, "Messages and events dropped because a queue was full"),
    ("name_taken", "host_name_taken", U::None, C, "How often another host had this host's name"),
    ("links_opened", "host_links", U::None, G, "Links to other hosts that this host has opened"),
    ("links_reopened", "host_links_reopened", U::None, C, "How often a link was opened again because its host did not reply"),
    ("watches", "host_watches", U::None, G, "Directories that own sets follow"),
    ("watches_failing", "host_watches_failing", U::None, G, "Sets that do not follow their directories"),
    ("failed_logins", "host_logins_failed", U::None, C, "Logins that failed, at both ports"),
    ("logins", "host_logins", U::None, C, "Logins that succeeded, at both ports"),
    ("late_lookups", "host_late_lookups", U::None, C, "Lookups that named nobody although a host may have held the key: an upper bound"),
];

/// Connections to the HTTP port, in the order of `Clients::counts`.
#[rustfmt::skip]
const HTTP: &[Fact] = &[
    ("open", "http_connections", U::None, G, "HTTP connections that are open"),
    ("accepted", "http_connections_accepted", U::None, C, "HTTP connections accepted"),
    ("refused", "http_connections_refused", U::None, C, "HTTP connections refused because all others were busy"),
    ("evicted", "http_connections_evicted", U::None, C, "HTTP connections without a request that were closed to make room"),
];

/// The port for Redis clients, in the order of `ClientCounts::all`.
#[rustfmt::skip]
const RESP: &[Fact] = &[
    ("open", "resp_connections", U::None, G, "RESP connections that are open"),
    ("accepted", "resp_connections_accepted", U::None, C, "RESP connections accepted"),
    ("refused", "resp_connections_refused", U::None, C, "RESP connections refused because all others had logged in"),
    ("evicted", "resp_connections_evicted", U::None, C, "RESP connections without a login that were closed to make room"),
    ("commands", "resp_commands", U::None, C, "RESP commands executed"),
    ("errors", "resp_errors", U::None, C, "RESP replies that were errors"),
];

/// The catalogue on disk.
#[rustfmt::skip]
const CATALOGUE: &[Fact] = &[
    ("disk_bytes", "catalogue_disk", U::Bytes, G, "Size of the catalogue's files"),
    ("failures", "catalogue_write_failures", U::None, C, "Writes of the catalogue that failed"),
];

/// All sets and replicas together.
#[rustfmt::skip]
const TOTALS: &[Fact] = &[
    ("own", "sets_own", U::None, G, "Sets in which this host has keys of its own"),
    ("items", "sets_items", U::None, G, "Keys that this host holds, in all sets"),
    ("items_everywhere", "sets_items_everywhere", U::None, G, "Keys that all hosts together report, in all sets"),
    ("over_target", "sets_over_miss_target", U::None, G, "Own sets of which other hosts miss more keys now than the policy permits"),
    ("problems", "sets_with_problems", U::None, G, "Sets with a promise that is not kept; the dashboard says which and what to change"),
    ("replicas", "replicas", U::None, G, "Replicas of other hosts' sets"),
    ("behind", "replicas_behind", U::None, G, "Replicas that are older than the newest announced update"),
    ("lag_epochs", "replicas_lag_epochs_max", U::None, G, "Updates by which the replica that is furthest behind is behind"),
    ("lag_seconds", "replicas_lag_max", U::Seconds, G, "How long the replica that has been behind for longest has been so"),
];

/// Each set, by the fields of `UMBEL.INFO set` and some more.
#[rustfmt::skip]
const SET: &[Fact] = &[
    ("own", "set_own", U::None, G, "Whether this host has keys of its own in it"),
    ("items", "set_items", U::None, G, "Keys that this host holds"),
    ("items_everywhere", "set_items_everywhere", U::None, G, "Keys that all hosts together report"),
    ("replicas", "set_replicas", U::None, G, "Hosts whose replicas are here"),
    ("behind", "set_replicas_behind", U::None, G, "Replicas that are older than the newest announced update"),
    ("lag_epochs", "set_lag_epochs_max", U::None, G, "Updates by which the replica that is furthest behind is behind"),
    ("lag_seconds", "set_lag_max", U::Seconds, G, "How long the replica that has been behind for longest has been so"),
    ("problems", "set_problems", U::None, G, "Promises that are not kept"),
    ("capacity", "set_capacity", U::None, G, "Keys that the own filter is reserved for"),
    ("takes", "set_takes", U::None, G, "Keys that the own filter takes before it is built longer"),
    ("full", "set_full", U::Ratio, G, "Keys held, per key that the own filter takes"),
    ("rung", "set_rung", U::None, G, "Two to this power is the number of bits of the own filter"),
    ("published_rung", "set_published_rung", U::None, G, "Two to this power is the number of bits of the published copy"),
    ("components", "set_components", U::None, G, "Components of the own filter, in an overlay"),
    ("bits", "set_bits", U::None, G, "Bits of the own filter"),
    ("hashes", "set_hashes", U::None, G, "Positions per key"),
    ("false_positive", "set_false_positive_target", U::Ratio, G, "Promised chance that one lookup of an absent key names any wrong host"),
    ("loose", "set_loose", U::None, G, "Whether it is a set of chains: lookups of single keys name wrong hosts"),
    ("chain_step", "set_chain_step", U::None, G, "Step of an own set of chains, in keys"),
    ("expected_hosts", "set_expected_hosts", U::None, G, "Hosts that the promise is shared among"),
    ("lifetime", "set_lifetime", U::Seconds, G, "How long keys live unless they are added with another lifetime"),
    ("expiring", "set_expiring", U::None, G, "Keys that will expire"),
    ("estimated_false_positive", "set_estimated_false_positive", U::Ratio, G, "False positive rate of the published copy, from its fill"),
    ("miss", "set_miss", U::Ratio, G, "Share of the own keys that the published copy denies"),
    ("miss_target", "set_miss_target", U::Ratio, G, "Share of the own keys that it may deny by the policy"),
    ("ghost", "set_ghost", U::Ratio, G, "Removed keys that the published copy still claims, per own key"),
    ("measured_miss", "set_measured_miss", U::Ratio, G, "Share of other hosts' sampled members that their replicas here denied"),
    ("measured_false_positive", "set_measured_false_positive", U::Ratio, G, "Share of confirmed lookups that named a wrong host"),
    ("late_lookups", "set_late_lookups", U::None, C, "Lookups that named nobody although a host may have held the key: an upper bound"),
    ("late_share", "set_late_lookup", U::Ratio, G, "Late lookups, per late lookup or lookup that named somebody"),
    ("chain_lookups", "set_chain_lookups", U::None, C, "Chains that were asked for"),
    ("lookups_confirmed", "set_lookups_confirmed", U::None, C, "Lookups that were confirmed by asking"),
    ("cache_asked", "set_cache_requests", U::None, C, "Own claims that this host's cache was asked about"),
    ("cache_disagreements", "set_cache_disagreements", U::None, C, "Own claims that the cache denied; the catalogue was repaired"),
    ("cache_unanswered", "set_cache_unanswered", U::None, C, "Own claims that the cache could not be asked about"),
    ("keys_added", "set_keys_added", U::None, C, "Keys added to the own set"),
    ("keys_removed", "set_keys_removed", U::None, C, "Keys removed from the own set"),
    ("updates_sent", "set_updates_sent", U::None, C, "Updates published"),
    ("bytes_sent", "set_update_sent", U::Bytes, C, "Size of updates published, each counted once"),
    ("full_broadcast_bytes", "set_full_broadcast", U::Bytes, C, "Size of the same updates as whole filters"),
    ("updates_received", "set_updates_received", U::None, G, "Updates that arrived of the replicas that are here now"),
    ("bytes_received", "set_received", U::Bytes, G, "Size of messages that arrived about the replicas that are here now"),
    ("rebuilds", "set_rebuilds", U::None, C, "How often the own filter was built again from the keys"),
    ("replica_bytes", "set_replica", U::Bytes, G, "Memory of the replicas here"),
];

/// Each host of the cluster.
#[rustfmt::skip]
const PEER: &[Fact] = &[
    ("up", "peer_up", U::None, G, "Whether the host is up, as far as this one knows"),
    ("incarnation", "peer_incarnation", U::None, G, "Incarnation of the host"),
    ("sets", "peer_sets", U::None, G, "Its sets that are known here"),
    ("items", "peer_items", U::None, G, "Keys that it reports in them"),
    ("age", "peer_update_age", U::Seconds, G, "Time since the last update of any of its sets arrived"),
    ("current", "peer_current", U::None, G, "Whether everything that it has announced has arrived"),
    ("behind", "peer_replicas_behind", U::None, G, "Its replicas that are older than the newest announced update"),
    ("lag_epochs", "peer_lag_epochs_max", U::None, G, "Updates by which its replica that is furthest behind is behind"),
    ("lag_seconds", "peer_lag_max", U::Seconds, G, "How long its replica that has been behind for longest has been so"),
];

fn ports(out: &mut DescriptorEncoder<'_>, clients: &Clients, host: &Host) -> fmt::Result {
    let named = |facts: &[Fact], counts: &[u64]| -> Fields {
        facts.iter().map(|fact| fact.0).zip(counts.iter().map(|count| (*count).into())).collect()
    };
    one_of_each(out, HTTP, &named(HTTP, &clients.counts()))?;
    let resp = &host.inner.ports.redis_clients;
    one_of_each(out, RESP, &named(RESP, &resp.all()))?;
    let help = "From RESP commands that were read together to their replies, writes synced";
    histogram(out, "resp_burst_duration", help, &resp.bursts.report())
}

fn catalogue(out: &mut DescriptorEncoder<'_>, host: &Host) -> fmt::Result {
    let Some(report) = host.inner.sets.journal_report() else { return Ok(()) };
    let fields =
        vec![("disk_bytes", report.disk_bytes.into()), ("failures", report.failures.into())];
    one_of_each(out, CATALOGUE, &fields)?;
    let help = "Time to write and sync all changes that had gathered";
    histogram(out, "catalogue_sync_duration", help, &report.syncs)
}

fn histogram(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    report: &LatencyReport,
) -> fmt::Result {
    let unit = Some(&Unit::Seconds);
    let mut metric = out.encode_descriptor(name, help, unit, MetricType::Histogram)?;
    metric.encode_histogram::<NoLabelSet>(report.seconds, report.count, &report.buckets, None)
}

fn totals(survey: &Survey) -> Fields {
    let sum = |of: fn(&SetReport) -> u64| survey.sets.iter().map(of).sum::<u64>();
    let epochs = survey.sets.iter().map(|set| set.lag_epochs).max().unwrap_or(0);
    let seconds = survey.sets.iter().map(|set| set.lag_seconds).fold(0.0, f64::max);
    vec![
        ("own", sum(|set| set.own.is_some().into()).into()),
        ("items", sum(|set| set.info.items).into()),
        ("items_everywhere", sum(|set| set.info.items_everywhere).into()),
        ("over_target", sum(|set| is_over_target(set).into()).into()),
        ("problems", sum(|set| (!findings(set).is_empty()).into()).into()),
        ("replicas", survey.replicas.into()),
        ("behind", survey.replicas_behind.into()),
        ("lag_epochs", epochs.into()),
        ("lag_seconds", seconds.into()),
    ]
}

fn is_over_target(set: &SetReport) -> bool {
    let target = set.own.as_ref().and_then(|own| own.miss_target);
    set.info.miss.zip(target).is_some_and(|(miss, target)| miss > target)
}

/// The sets that matter most: first those whose promises are not kept, then own ones, then the
/// largest. Returns their names.
fn sets(out: &mut DescriptorEncoder<'_>, survey: &Survey) -> Result<Vec<String>, fmt::Error> {
    let mut sets: Vec<&SetReport> = survey.sets.iter().collect();
    if sets.len() > MAX_SETS {
        sets.sort_by_key(|set| {
            (findings(set).is_empty(), set.own.is_none(), u64::MAX - set.info.items_everywhere)
        });
        sets.truncate(MAX_SETS);
    }
    let things: Vec<_> = sets.iter().map(|set| (set.info.set.clone(), set_fields(set))).collect();
    table(out, SET, "set", &things)?;
    Ok(things.into_iter().map(|(set, _)| set).collect())
}

/// The depths of the deepest hosts of chains, and how long the queries took.
fn chains<'a>(out: &mut DescriptorEncoder<'_>, host: &Host, sets: &'a [String]) -> fmt::Result {
    let asked = |set: &'a String| Some((set.as_str(), host.chain_distributions(set)?));
    let asked: Vec<_> = sets.iter().filter_map(asked).collect();
    let metrics = [
        ("set_chain_depth", None, "Leading keys of a chain that the deepest host holds"),
        (
            "set_chain_duration",
            Some(&Unit::Seconds),
            "Time to answer a chain, without the time of the port",
        ),
    ];
    for (place, (name, unit, help)) in metrics.into_iter().enumerate() {
        let mut metric = out.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for (set, distributions) in &asked {
            let Distribution { sum, count, ranges } = &distributions[place];
            let labels = [("set", *set)];
            let mut metric = metric.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(*sum, *count, ranges, None)?;
        }
    }
    Ok(())
}

fn set_fields(set: &SetReport) -> Fields {
    let mut fields = set.info.fields();
    fields.push(("behind", set.behind.into()));
    fields.push(("lag_epochs", set.lag_epochs.into()));
    fields.push(("lag_seconds", set.lag_seconds.into()));
    fields.push(("problems", (findings(set).len() as u64).into()));
    if let Some(own) = &set.own {
        fields.push(("miss_target", own.miss_target.map_or(Value::Nothing, Value::Real)));
        fields.push(("keys_added", own.changed.added.into()));
        fields.push(("keys_removed", own.changed.removed.into()));
    }
    fields
}

/// The hosts of the cluster; hosts that are gone keep their series as long as they count as
/// missing.
fn peers(out: &mut DescriptorEncoder<'_>, peers: &[PeerReport]) -> fmt::Result {
    let mut peers: Vec<&PeerReport> = peers.iter().collect();
    if peers.len() > MAX_PEERS {
        peers.sort_by_key(|peer| peer.label.is_empty());
        peers.truncate(MAX_PEERS);
    }
    let things: Vec<_> = peers.iter().map(|peer| (peer.name.clone(), peer_fields(peer))).collect();
    table(out, PEER, "peer", &things)?;
    let help = "1 for the state that the host is in, with a word for what is missing of it";
    let mut metric = out.encode_descriptor("peer_state", help, None, MetricType::Gauge)?;
    for peer in peers {
        let labels = [("peer", peer.name.as_str()), ("state", peer.state), ("reason", peer.label)];
        one(metric.encode_family(&labels)?, G, 1.0)?;
    }
    Ok(())
}

fn peer_fields(peer: &PeerReport) -> Fields {
    vec![
        ("up", matches!(peer.state, "self" | "up" | "reached").into()),
        ("incarnation", peer.incarnation.into()),
        ("sets", peer.sets.into()),
        ("items", peer.items.into()),
        ("age", peer.age.map_or(Value::Nothing, Value::Real)),
        ("current", peer.current.into()),
        ("behind", peer.behind.into()),
        ("lag_epochs", peer.lag_epochs.into()),
        ("lag_seconds", peer.lag_seconds.into()),
    ]
}

/// The replicas that are farthest behind.
fn replicas(out: &mut DescriptorEncoder<'_>, survey: &Survey) -> fmt::Result {
    let help = "Updates by which a replica is behind; of those that are, the worst 100";
    let mut metric = out.encode_descriptor("replica_lag_epochs", help, None, MetricType::Gauge)?;
    for lag in &survey.worst_replicas {
        let labels = [("set", lag.set.as_str()), ("peer", lag.host.as_str())];
        one(metric.encode_family(&labels)?, G, lag.epochs as f64)?;
    }
    let help = "How long a replica has been behind; of those that are, the worst 100";
    let unit = Some(&Unit::Seconds);
    let mut metric = out.encode_descriptor("replica_lag", help, unit, MetricType::Gauge)?;
    for lag in &survey.worst_replicas {
        let labels = [("set", lag.set.as_str()), ("peer", lag.host.as_str())];
        one(metric.encode_family(&labels)?, G, lag.seconds)?;
    }
    Ok(())
}

/// What is not accepted because of a limit: totals per reason, and the most frequent refusals.
fn refusals(out: &mut DescriptorEncoder<'_>, mut refusals: Vec<([String; 3], u64)>) -> fmt::Result {
    let help = "Hosts and sets that are not accepted at present because of a limit";
    let mut metric = out.encode_descriptor("host_not_accepted", help, None, MetricType::Gauge)?;
    for reason in REASONS {
        let count = refusals.iter().filter(|([.., other], _)| other == reason).count();
        one(metric.encode_family(&[("reason", reason)])?, G, count as f64)?;
    }
    refusals.sort_by_key(|(_, count)| u64::MAX - count);
    refusals.truncate(MAX_REFUSALS);
    let help =
        "How often something was refused that is not accepted at present; the most frequent 100";
    let mut metric = out.encode_descriptor("refusals", help, None, MetricType::Gauge)?;
    for ([peer, set, reason], count) in &refusals {
        let labels = [("peer", peer.as_str()), ("set", set.as_str()), ("reason", reason.as_str())];
        one(metric.encode_family(&labels)?, G, *count as f64)?;
    }
    Ok(())
}

/// When this host's certificates expire.
fn certificates(out: &mut DescriptorEncoder<'_>, host: &Host) -> fmt::Result {
    let help = "When a certificate of this host expires, since 1970";
    let unit = Some(&Unit::Seconds);
    let mut metric =
        out.encode_descriptor("certificate_expiry_timestamp", help, unit, MetricType::Gauge)?;
    for (which, at) in host.certificate_expiries() {
        let seconds =
            at.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        one(metric.encode_family(&[("certificate", which)])?, G, seconds)?;
    }
    Ok(())
}

/// Writes the metrics of one thing.
fn one_of_each(out: &mut DescriptorEncoder<'_>, facts: &[Fact], fields: &Fields) -> fmt::Result {
    for (field, name, unit, kind, help) in facts {
        let unit = unit.unit();
        let metric = out.encode_descriptor(name, help, unit.as_ref(), metric_type(*kind))?;
        if let Some(number) = number_of(fields, field) {
            one(metric, *kind, number)?;
        }
    }
    Ok(())
}

/// Writes the metrics of several things of a kind, each labelled with its name.
fn table(
    out: &mut DescriptorEncoder<'_>,
    facts: &[Fact],
    label: &'static str,
    things: &[(String, Fields)],
) -> fmt::Result {
    for (field, name, unit, kind, help) in facts {
        let unit = unit.unit();
        let mut metric = out.encode_descriptor(name, help, unit.as_ref(), metric_type(*kind))?;
        for (thing, fields) in things {
            if let Some(number) = number_of(fields, field) {
                one(metric.encode_family(&[(label, thing.as_str())])?, *kind, number)?;
            }
        }
    }
    Ok(())
}

const fn metric_type(kind: Kind) -> MetricType {
    match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    }
}

fn one(encoder: MetricEncoder<'_>, kind: Kind, number: f64) -> fmt::Result {
    match kind {
        Kind::Counter => ConstCounter::new(number).encode(encoder),
        Kind::Gauge => ConstGauge::new(number).encode(encoder),
    }
}

/// A field as a number, if it is one.
fn number_of(fields: &Fields, name: &str) -> Option<f64> {
    let (_, value) = fields.iter().find(|(field, _)| *field == name)?;
    match value {
        Value::Whole(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Flag(flag) => Some(f64::from(u8::from(*flag))),
        Value::Text(_) | Value::Nothing | Value::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetInfo;

    #[test]
    fn every_number_of_a_set_is_reported() {
        // Fields that are text, or need a pass over all bits.
        let others = ["set", "policy", "confirm", "not_accepted", "disagreement"];
        let fields = SetInfo::default().fields();
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        for name in names.iter().filter(|name| !others.contains(name)) {
            assert!(SET.iter().any(|fact| fact.0 == *name), "{name}");
        }
    }

    #[test]
    fn names_follow_the_conventions() {
        let all = [HOST, HTTP, RESP, TOTALS, SET, PEER].concat();
        let mut names = std::collections::BTreeSet::new();
        for (_, name, unit, kind, help) in all {
            assert!(names.insert((name, unit == U::None)), "{name} twice");
            for suffix in ["_total", "_bytes", "_seconds", "_ratio", "_count", "_sum"] {
                assert!(!name.ends_with(suffix), "{name}: the suffix is made from unit and type");
            }
            assert!(kind == G || unit != U::Ratio, "{name}: a ratio does not only grow");
            assert!(!help.ends_with('.') && help.len() > 6, "{name}");
        }
    }
}
