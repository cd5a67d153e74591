//! Compares the answers of every host with the truth.
//!
//! A miss is an object that a host has, but that another host does not attribute to it. A false
//! positive is a lookup of an object that no host has, but that names some host. Both are counted
//! from answers of real hosts, over RESP, starting when all hosts had received all filters.

use std::time::Duration;

use anyhow::Context as _;
use redis::Value;
use serde::Serialize;
use umbel::Rate;

use super::churn::Objects;
use super::cluster::Cluster;
use super::{MISS_TARGET, SET, at};
use crate::client::{At, Client, Fields, texts, wrong_answer};

/// Objects of each other host that a host is asked for, per round.
const SAMPLE: u64 = 50;

/// Objects that no host has, per round.
const ABSENT: u64 = 500;

/// What happened while a host was gone.
#[derive(Serialize, Clone)]
pub(super) struct Outage {
    /// The host that was killed.
    pub(super) host: String,
    /// Objects of the other hosts that were asked for meanwhile, and those that were missed.
    pub(super) members_asked: u64,
    pub(super) missed: u64,
    /// Seconds for which others went on naming the host.
    pub(super) named_seconds: f64,
    /// Seconds from its restart until all others named it again.
    pub(super) back_seconds: f64,
}

/// Results so far.
#[derive(Serialize, Clone)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) members_asked: u64,
    pub(super) missed: u64,
    pub(super) miss_rate: f64,
    pub(super) miss_target: f64,
    pub(super) absent_asked: u64,
    pub(super) falsely_named: u64,
    pub(super) false_positive_rate: f64,
    pub(super) false_positive_promised: f64,
    pub(super) bytes_sent: f64,
    pub(super) full_broadcast_bytes: f64,
    pub(super) hosts: Vec<HostMeasured>,
    /// What happened when a host was killed; `None` if it has not been yet.
    pub(super) outage: Option<Outage>,
}

/// What one host reports about its own set.
#[derive(Serialize, Clone, Default)]
pub(super) struct HostMeasured {
    pub(super) name: String,
    pub(super) at: String,
    pub(super) items: f64,
    pub(super) updates: f64,
    /// Share of its members that its replicas currently miss, as counted by the host itself.
    pub(super) miss: f64,
    #[serde(skip)]
    bytes_sent: f64,
    #[serde(skip)]
    full_broadcast_bytes: f64,
}

/// Queries the hosts and counts the results.
pub(super) struct Measuring<'a> {
    objects: &'a [Objects],
    clients: Vec<Client>,
    promised: Rate,
    random: u64,
    members_asked: u64,
    missed: u64,
    absent_asked: u64,
    falsely_named: u64,
    hosts: Vec<HostMeasured>,
    /// The host that is not asked, because it was killed.
    left_out: Option<usize>,
    /// Counters of the process before, for a host that was started again.
    carried: Vec<HostMeasured>,
    pub(super) outage: Option<Outage>,
    /// Counters after the initial load, to be subtracted: only churn is measured.
    before: Vec<HostMeasured>,
}

impl<'a> Measuring<'a> {
    pub(super) fn new(
        cluster: &Cluster,
        objects: &'a [Objects],
        promised: Rate,
    ) -> anyhow::Result<Self> {
        let clients: Vec<Client> =
            objects.iter().map(Objects::connect).collect::<Result<_, _>>()?;
        let mut measuring = Self {
            objects,
            clients,
            promised,
            random: 0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()),
            members_asked: 0,
            missed: 0,
            absent_asked: 0,
            falsely_named: 0,
            hosts: vec![HostMeasured::default(); cluster.hosts().len()],
            left_out: None,
            carried: vec![HostMeasured::default(); cluster.hosts().len()],
            outage: None,
            before: Vec::new(),
        };
        measuring.ask_hosts()?;
        measuring.before = measuring.hosts.clone();
        Ok(measuring)
    }

    /// Asks every host about the objects of every other.
    pub(super) fn round(&mut self) -> anyhow::Result<()> {
        let left_out = self.left_out;
        for asked in (0..self.objects.len()).filter(|asked| Some(*asked) != left_out) {
            self.ask_members(asked)?;
            self.absent(asked)?;
        }
        self.ask_hosts()
    }

    /// Objects of others that hosts were asked for so far, and those that were missed.
    pub(super) const fn members(&self) -> (u64, u64) {
        (self.members_asked, self.missed)
    }

    /// Neither asks a host nor asks for its objects until this is called with `None`. Then it is a
    /// new process, whose counters begin at zero.
    pub(super) fn leave_out(&mut self, place: Option<usize>) -> anyhow::Result<()> {
        if let (None, Some(back)) = (place, self.left_out) {
            self.clients[back] = self.objects[back].connect()?;
            self.carried[back] = self.hosts[back].clone();
        }
        self.left_out = place;
        Ok(())
    }

    fn ask_members(&mut self, asked: usize) -> anyhow::Result<()> {
        let mut sample = Vec::new();
        let left_out = self.left_out;
        let is_asked_for = |home: &usize| *home != asked && Some(*home) != left_out;
        for home in (0..self.objects.len()).filter(is_asked_for) {
            let range = self.objects[home].range();
            for _ in 0..SAMPLE.min(range.end - range.start) {
                sample.push((home, range.start + self.next() % (range.end - range.start)));
            }
        }
        let objects = self.objects;
        let keys: Vec<String> =
            sample.iter().map(|(home, number)| objects[*home].key(*number)).collect();
        let named = who(&mut self.clients[asked], &keys)?;
        for ((home, number), named) in sample.into_iter().zip(named) {
            let home = &self.objects[home];
            if home.still_has(number) {
                self.members_asked += 1;
                self.missed += u64::from(!named.contains(&home.host));
            }
        }
        Ok(())
    }

    fn absent(&mut self, asked: usize) -> anyhow::Result<()> {
        let keys: Vec<String> =
            (0..ABSENT).map(|_| format!("nobody/object-{:016x}", self.next())).collect();
        let named = who(&mut self.clients[asked], &keys)?;
        self.absent_asked += ABSENT;
        self.falsely_named += named.iter().filter(|named| !named.is_empty()).count() as u64;
        Ok(())
    }

    fn ask_hosts(&mut self) -> anyhow::Result<()> {
        for (place, objects) in self.objects.iter().enumerate() {
            if Some(place) == self.left_out {
                continue;
            }
            let (client, carried) = (&mut self.clients[place], &self.carried[place]);
            let answer = at(client.ask(&[b"UMBEL.INFO", SET.as_bytes()]), &objects.host)?;
            let fields = Fields::of(&answer).ok_or_else(|| wrong_answer(&objects.at, &answer))?;
            let number = |name: &str| fields.number(name).unwrap_or(0.0);
            self.hosts[place] = HostMeasured {
                name: objects.host.clone(),
                at: objects.at.to_string(),
                items: number("items"),
                updates: number("updates_sent") + carried.updates,
                miss: number("miss"),
                bytes_sent: number("bytes_sent") + carried.bytes_sent,
                full_broadcast_bytes: number("full_broadcast_bytes") + carried.full_broadcast_bytes,
            };
        }
        Ok(())
    }

    pub(super) fn measured(&self, elapsed: Duration) -> Measured {
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        let churn = |bytes: fn(&HostMeasured) -> f64| {
            let sum = |hosts: &[HostMeasured]| hosts.iter().map(bytes).sum::<f64>();
            sum(&self.hosts) - sum(&self.before)
        };
        Measured {
            seconds: elapsed.as_secs_f64(),
            members_asked: self.members_asked,
            missed: self.missed,
            miss_rate: share(self.missed, self.members_asked),
            miss_target: MISS_TARGET,
            absent_asked: self.absent_asked,
            falsely_named: self.falsely_named,
            false_positive_rate: share(self.falsely_named, self.absent_asked),
            false_positive_promised: self.promised.get(),
            bytes_sent: churn(|host| host.bytes_sent),
            full_broadcast_bytes: churn(|host| host.full_broadcast_bytes),
            hosts: self.hosts.clone(),
            outage: self.outage.clone(),
        }
    }

    /// A xorshift generator, good enough for sampling.
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// Whether every host attributes the last object of every other host to it.
pub(super) fn converged(cluster: &Cluster, objects: &[Objects]) -> anyhow::Result<bool> {
    let last: Vec<(String, &str)> = objects
        .iter()
        .filter(|home| !home.range().is_empty())
        .map(|home| (home.key(home.range().end - 1), home.host.as_str()))
        .collect();
    let keys: Vec<String> = last.iter().map(|(key, _)| key.clone()).collect();
    for host in cluster.hosts() {
        let named = who(&mut at(At::open(&host.at).connect(), &host.name)?, &keys)?;
        if !named.iter().zip(&last).all(|(named, (_, home))| named.iter().any(|name| name == home))
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many times a host is named for a key by another one: 0 or 1.
pub(super) fn names(at: &At, key: &str, named: &str) -> anyhow::Result<usize> {
    let hosts = who(&mut at.connect()?, &[key.to_owned()])?;
    Ok(hosts.iter().flatten().filter(|host| *host == named).count())
}

/// The hosts that are named for each key.
fn who(client: &mut Client, keys: &[String]) -> anyhow::Result<Vec<Vec<String>>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut words: Vec<&[u8]> = vec![b"UMBEL.WHO", SET.as_bytes()];
    words.extend(keys.iter().map(String::as_bytes));
    let answer = client.ask(&words)?;
    let names = |names: &Value| -> Option<Vec<String>> {
        let names = texts(names)?.into_iter();
        Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    };
    let named: Option<Vec<_>> = match &answer {
        Value::Array(all) if all.len() == keys.len() => all.iter().map(names).collect(),
        _ => None,
    };
    named.ok_or_else(|| wrong_answer(client.address(), &answer)).context("UMBEL.WHO")
}
