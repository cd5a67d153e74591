//! All sets and all hosts at once, for the dashboard and for metrics.
//!
//! One pass over the sets collects data per set, per replica and, summed up, per host. The lock of
//! the state is taken once per set and not for the whole pass, so that the driver never waits for
//! more than one set.
//!
//! Hosts that disappeared stay listed, with the state `gone`, as long as they count as missing
//! (`timing.forget`); so do configured addresses that were never reached (`unreachable`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::Serialize;
use umbel::Shape;
use umbel::catalogue::Catalogue as _;
use umbel::coverage::Gap;
use umbel::mesh::{PeerInfo, ReplicaInfo};
use umbel::replica::{Changed, Home, Name, Rule};

use super::info::seconds;
use super::sets::State;
use super::{Host, SetInfo};
use crate::catalogue::HostCatalogue;
use crate::error::HostError;

/// One set, with what only the dashboard and metrics show.
#[derive(Debug, Clone, Default)]
pub(crate) struct SetReport {
    pub(crate) info: SetInfo,
    /// Members of other hosts' sets that their announcements sampled, and how many of them the
    /// replicas here denied.
    pub(crate) members_sampled: u64,
    pub(crate) members_denied: u64,
    /// Replicas that are older than the newest announced update, the worst of them in updates and
    /// in seconds.
    pub(crate) behind: u64,
    pub(crate) lag_epochs: u64,
    pub(crate) lag_seconds: f64,
    /// This host's own part of the set.
    pub(crate) own: Option<OwnReport>,
}

/// This host's own part of a set.
#[derive(Debug, Clone)]
pub(crate) struct OwnReport {
    /// The policy's bounds on misses and ghosts, if it has such bounds.
    pub(crate) miss_target: Option<f64>,
    pub(crate) ghost_target: Option<f64>,
    pub(crate) changed: Changed,
    /// Shape of the published copy.
    pub(crate) shape: Shape,
    /// Share of one bits in each component of the filter.
    pub(crate) fills: Vec<f64>,
    /// Whether the filter may not grow, because own sets have reached their memory limit.
    pub(crate) is_confined: bool,
    /// Bytes that filter and published copy take.
    pub(crate) memory_bytes: u64,
}

impl OwnReport {
    fn of(home: &Home<HostCatalogue>) -> Self {
        let (miss_target, ghost_target) = match home.policy().rule {
            Rule::Miss { miss, ghost } => (Some(miss), Some(ghost)),
            _ => (None, None),
        };
        Self {
            miss_target,
            ghost_target,
            changed: home.changed(),
            shape: home.kept_shape(),
            fills: home.fills(),
            is_confined: home.is_confined(),
            memory_bytes: home.memory_bytes(),
        }
    }
}

/// One other host's replica of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ReplicaReport {
    pub(crate) set: String,
    pub(crate) host: String,
    /// The update that answers; `None` if this incarnation of the home has sent none yet.
    pub(crate) epoch: Option<u64>,
    pub(crate) items: u64,
    /// By how many updates, and for how long, it has been behind the newest one announced.
    pub(crate) lag_epochs: u64,
    pub(crate) lag_seconds: f64,
    /// Time since the last update arrived.
    pub(crate) age_seconds: f64,
    pub(crate) current: bool,
}

impl ReplicaReport {
    fn of(set: &str, host: &Name, replica: &ReplicaInfo) -> Self {
        Self {
            set: set.to_owned(),
            host: host.to_string(),
            epoch: replica.epoch.map(|epoch| epoch.0),
            items: replica.items,
            lag_epochs: replica.lag_epochs,
            lag_seconds: seconds(replica.lag),
            age_seconds: seconds(replica.age),
            current: replica.is_current,
        }
    }
}

/// One host of the cluster, this one included.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PeerReport {
    pub(crate) name: String,
    /// `self`, `up`, `suspected`, `away`, `gone`, `refused` or `unreachable`; in an overlay also
    /// `down` and `reached`.
    pub(crate) state: &'static str,
    /// What is missing of it, as text and as a label; empty if nothing is.
    pub(crate) reason: String,
    pub(crate) label: &'static str,
    pub(crate) incarnation: u64,
    /// Its sets that are here, and the keys that it claims to have in them.
    pub(crate) sets: u64,
    pub(crate) items: u64,
    /// Its replicas that are older than the newest announced update, and the worst lag.
    pub(crate) behind: u64,
    pub(crate) lag_epochs: u64,
    pub(crate) lag_seconds: f64,
    /// Seconds since the last update of any of its sets arrived.
    pub(crate) age: Option<f64>,
    /// Whether everything that it has announced has arrived.
    pub(crate) current: bool,
}

impl PeerReport {
    fn new(name: &str, state: &'static str) -> Self {
        Self { name: name.to_owned(), state, ..Self::default() }
    }

    fn count(&mut self, replica: &ReplicaInfo) {
        self.sets += 1;
        self.items += replica.items;
        self.behind += u64::from(!replica.is_current);
        self.lag_epochs = self.lag_epochs.max(replica.lag_epochs);
        self.lag_seconds = self.lag_seconds.max(seconds(replica.lag));
        let age = seconds(replica.age);
        self.age = Some(self.age.map_or(age, |min: f64| min.min(age)));
        self.current &= replica.is_current;
    }
}

/// All sets and all hosts.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) sets: Vec<SetReport>,
    /// This host first, then the others by name.
    pub(crate) peers: Vec<PeerReport>,
    /// Replicas here, and how many of them are behind.
    pub(crate) replicas: u64,
    pub(crate) replicas_behind: u64,
    /// The replicas that are farthest behind, the worst first.
    pub(crate) worst_replicas: Vec<ReplicaLag>,
}

/// How far one replica is behind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplicaLag {
    pub(crate) set: String,
    pub(crate) host: String,
    pub(crate) epochs: u64,
    pub(crate) seconds: f64,
}

impl Host {
    /// All sets and all hosts, with at most `max_replicas` replicas that are behind.
    pub(crate) fn survey(&self, max_replicas: usize) -> Survey {
        let mut peers = self.peers();
        let mut survey = Survey::default();
        let mut worst = Worst::new(max_replicas);
        for set in self.sets() {
            let report = self.report_set(&set, &mut |host, replica| {
                survey.replicas += 1;
                survey.replicas_behind += u64::from(!replica.is_current);
                if let Some(peer) = peers.get_mut(host.as_str()) {
                    peer.count(replica);
                }
                worst.offer(&set, host, replica);
            });
            survey.sets.extend(report.ok());
        }
        let mut me = self.own_report();
        let own = survey.sets.iter().filter(|set| set.own.is_some());
        own.for_each(|set| (me.sets, me.items) = (me.sets + 1, me.items + set.info.items));
        survey.peers = std::iter::once(me).chain(peers.into_values()).collect();
        survey.worst_replicas = worst.into_sorted();
        survey
    }

    /// One set; calls `each` with each of its replicas.
    ///
    /// # Errors
    /// If no host has it.
    pub(crate) fn report_set(
        &self,
        set: &str,
        each: &mut dyn FnMut(&Name, &ReplicaInfo),
    ) -> Result<SetReport, HostError> {
        let known = self.inner.sets.find(set)?;
        let terms = known.own.as_ref().map(|own| (own.terms(), own.expiring()));
        let mut report = SetReport::default();
        let state = self.inner.sets.lock();
        let info = self.describe(&state, &known.name, &mut |host, replica| {
            report.members_sampled += replica.sampled.members;
            report.members_denied += replica.sampled.denied;
            report.behind += u64::from(!replica.is_current);
            report.lag_epochs = report.lag_epochs.max(replica.lag_epochs);
            report.lag_seconds = report.lag_seconds.max(seconds(replica.lag));
            each(host, replica);
        });
        report.own = state.protocol.home(&known.name).map(|home| OwnReport::of(&home));
        drop(state);
        report.info = info;
        if let Some((terms, expiring)) = terms.filter(|_| report.info.own) {
            report.info.lifetime = terms.lifetime.map(seconds);
            report.info.confirm = Some(terms.confirm.to_string());
            report.info.expiring = expiring;
        }
        Ok(report)
    }

    /// The chance that an own filter and its published copy differ on a random key; takes a pass
    /// over all bits.
    pub(crate) fn disagreement(&self, set: &str) -> Option<f64> {
        self.inner.sets.own(set)?.disagreement(&self.inner.sets)
    }

    /// The replicas of one set here, in the order of their hosts.
    pub(crate) fn replicas_of(&self, set: &str) -> Vec<ReplicaReport> {
        let mut replicas = Vec::new();
        let each = &mut |host: &Name, replica: &ReplicaInfo| {
            replicas.push(ReplicaReport::of(set, host, replica));
        };
        let _ = self.report_set(set, each);
        replicas
    }

    /// The sets whose history is kept: own sets with the most keys, then any.
    pub(crate) fn notable_sets(&self, count: usize) -> Vec<String> {
        let mut own: Vec<(Reverse<u64>, String)> = {
            let state = self.inner.sets.lock();
            let sized = |(name, own): (&Name, &std::sync::Arc<super::sets::OwnSet>)| {
                (Reverse(own.catalogue.len()), name.to_string())
            };
            state.own.iter().map(sized).collect()
        };
        own.sort_unstable();
        let mut names: Vec<String> = own.into_iter().map(|(_, name)| name).take(count).collect();
        if names.len() < count {
            let others = self.sets().into_iter().filter(|set| !names.contains(set));
            let others: Vec<String> = others.take(count - names.len()).collect();
            names.extend(others);
        }
        names
    }

    fn own_report(&self) -> PeerReport {
        let mut me = PeerReport::new(self.name().as_str(), "self");
        me.current = true;
        me.incarnation = self.inner.cluster.incarnation.0;
        me
    }

    /// The other hosts, without the data of their replicas.
    fn peers(&self) -> BTreeMap<String, PeerReport> {
        let coverage = self.coverage();
        let mut peers = {
            let state = self.inner.sets.lock();
            match state.protocol.mesh() {
                Some(_) => self.peers_of_mesh(&state),
                None => BTreeMap::new(),
            }
        };
        if peers.is_empty() && self.is_in_overlay() {
            let others = self.hosts().into_iter().skip(1);
            peers = others
                .map(|host| {
                    let mut peer = PeerReport::new(&host.name, host.state);
                    peer.incarnation = host.incarnation;
                    (peer.sets, peer.current) = (host.sets.len() as u64, host.current);
                    (host.name, peer)
                })
                .collect();
        }
        for missing in coverage.missing_hosts.iter() {
            // A reason on this host's side is reported with its coverage.
            if missing.host == self.name().as_str() {
                continue;
            }
            let peer = peers
                .entry(missing.host.clone())
                .or_insert_with(|| PeerReport::new(&missing.host, "unreachable"));
            // The protocol's reason for a host that is gone is more specific.
            if peer.state != "gone" {
                peer.reason.clone_from(&missing.reason);
                peer.label = missing.label;
            }
        }
        peers
    }

    fn peers_of_mesh(&self, state: &State) -> BTreeMap<String, PeerReport> {
        let now = self.inner.now();
        let mut peers = BTreeMap::new();
        let Some(engine) = state.protocol.mesh() else { return peers };
        for (name, info) in engine.peers(now) {
            let mut peer = PeerReport::new(name.as_str(), state_of(&info));
            peer.incarnation = info.incarnation.0;
            peer.current = info.gap.is_none();
            peer.label = info.gap.as_ref().map_or("", Gap::label);
            peer.reason = info.gap.as_ref().map(ToString::to_string).unwrap_or_default();
            peers.insert(peer.name.clone(), peer);
        }
        for (name, _) in engine.lost(now) {
            let mut peer = PeerReport::new(name.as_str(), "gone");
            peer.label = "unreachable";
            peer.reason = String::from("disappeared without leaving");
            peers.entry(peer.name.clone()).or_insert(peer);
        }
        for (name, set, refusal) in engine.refusals() {
            if set.is_none() && name != self.name() {
                let mut peer = PeerReport::new(name.as_str(), "refused");
                peer.reason = refusal.reason.to_string();
                peer.label = "refused";
                peers.entry(peer.name.clone()).or_insert(peer);
            }
        }
        peers
    }
}

const fn state_of(info: &PeerInfo) -> &'static str {
    match info {
        PeerInfo { is_away: true, .. } => "away",
        PeerInfo { is_suspected: true, .. } => "suspected",
        _ => "up",
    }
}

/// The replicas that are farthest behind: a heap whose top is the least far of those kept.
struct Worst {
    max: usize,
    heap: BinaryHeap<Reverse<Behind>>,
}

/// The lag in microseconds and in updates comes first: it determines the order.
type Behind = (u64, u64, String, String);

impl Worst {
    const fn new(max: usize) -> Self {
        Self { max, heap: BinaryHeap::new() }
    }

    fn offer(&mut self, set: &str, host: &Name, replica: &ReplicaInfo) {
        if replica.is_current || self.max == 0 {
            return;
        }
        let lag = (u64::try_from(replica.lag.as_micros()).unwrap_or(u64::MAX), replica.lag_epochs);
        let is_full = self.heap.len() >= self.max;
        if is_full && self.heap.peek().is_some_and(|Reverse(min)| (min.0, min.1) >= lag) {
            return;
        }
        self.heap.push(Reverse((lag.0, lag.1, set.to_owned(), host.to_string())));
        if self.heap.len() > self.max {
            self.heap.pop();
        }
    }

    fn into_sorted(self) -> Vec<ReplicaLag> {
        let mut worst: Vec<Behind> = self.heap.into_iter().map(|Reverse(behind)| behind).collect();
        worst.sort_unstable_by(|one, other| other.cmp(one));
        let lag = |(micros, epochs, set, host): Behind| {
            let seconds = micros as f64 / 1e6;
            ReplicaLag { set, host, epochs, seconds }
        };
        worst.into_iter().map(lag).collect()
    }
}
