//! `umbel demo --offline`: measures whether filters and bank keep their promises, without hosts.
//!
//! Builds a filter of generated keys, and queries it with present and absent ones. Then queries a
//! bank of simulated hosts for the holders of a key, and compares it with a plain loop over their
//! filters. Answers are checked; times are measured on this machine.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use umbel::bank::{Bank, BatchCandidates};
use umbel::{KeyHash, KeyHasher, StandardFilter};

use crate::output::print;

/// Parameters of the offline demo.
pub(super) struct Offline {
    /// Keys in the filter.
    pub(super) keys: u64,
    /// Promised false positive rate.
    pub(super) false_positive: umbel::Rate,
    /// Simulated hosts, each with [`KEYS_A_HOST`] keys.
    pub(super) hosts: u64,
    pub(super) json: bool,
}

impl Offline {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        if self.json {
            let shown = Shown { filter: self.filter()?, bank: self.bank()? };
            print(&format!("{}\n", serde_json::to_string_pretty(&shown)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let (keys, rate) = (self.keys, self.false_positive);
        print(&format!("A filter of {keys} keys, promised false positive rate {rate}\n"))?;
        print(&format!("{}\n", self.filter()?))?;
        let hosts = self.hosts;
        print(&format!(
            "Who holds a key? A bank of {hosts} simulated hosts, {KEYS_A_HOST} keys each\n"
        ))?;
        print(&self.bank()?.to_string())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Measured and promised rates of one filter.
    fn filter(&self) -> anyhow::Result<FilterShown> {
        let mut filter = StandardFilter::for_target(self.keys, self.false_positive.get())?;
        let ((), adding) = timed(|| {
            for key in 0..self.keys {
                filter.insert(present(key));
            }
        });
        let (denied, asking) =
            timed(|| (0..self.keys).filter(|key| !filter.contains(present(*key))).count());
        let wrong = (0..ASKED).filter(|key| filter.contains(absent(*key))).count();
        let shape = filter.scheme().shape();
        Ok(FilterShown {
            bits_per_key: shape.bits() as f64 / self.keys as f64,
            hashes: shape.hashes(),
            false_negatives: denied,
            promised_false_positive: self.false_positive.get(),
            measured_false_positive: wrong as f64 / ASKED as f64,
            nanoseconds_to_add: nanoseconds(adding, self.keys),
            nanoseconds_to_ask: nanoseconds(asking, self.keys),
        })
    }

    /// A lookup over all hosts at once, compared with a loop over their filters.
    fn bank(&self) -> anyhow::Result<BankShown> {
        let empty = StandardFilter::for_target(KEYS_A_HOST, self.false_positive.get())?;
        let filters: Vec<StandardFilter> = (0..self.hosts)
            .map(|host| {
                let mut filter = empty.clone();
                (0..KEYS_A_HOST).for_each(|key| {
                    filter.insert(held(host, key));
                });
                filter
            })
            .collect();
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let columns: Vec<_> = filters.iter().map(StandardFilter::bits).collect();
        let ids = bank.add_many(empty.scheme(), &columns)?;

        let asked: Vec<(u64, KeyHash)> = (0..LOOKUPS)
            .map(|lookup| (lookup % self.hosts, lookup / self.hosts % KEYS_A_HOST))
            .map(|(host, key)| (host, bank.hash(&held(host, key))))
            .collect();
        let hashes: Vec<KeyHash> = asked.iter().map(|(_, hash)| *hash).collect();
        let mut who = BatchCandidates::new();
        let ((), sliced) = timed(|| bank.who_batch(&hashes, &mut who));
        let few = &hashes[..hashes.len().min(1000)];
        let (listed, looping) = timed(|| {
            let claims = |hash: &KeyHash| {
                filters
                    .iter()
                    .filter(|filter| filter.contains_digest(filter.scheme().digest_of(*hash)))
                    .count()
            };
            few.iter().map(claims).collect::<Vec<_>>()
        });
        anyhow::ensure!(
            listed.iter().zip(who.iter()).all(|(count, ids)| *count == ids.len()),
            "the bank and the loop disagree: this is a bug"
        );
        let missed = asked
            .iter()
            .zip(who.iter())
            .filter(|((host, _), found)| !found.contains(&ids[*host as usize]));
        let missed = missed.count();
        let named: usize = who.iter().map(<[_]>::len).sum();
        Ok(BankShown {
            hosts: self.hosts,
            lookups: hashes.len(),
            holders_missed: missed,
            wrong_hosts_per_lookup: (named + missed) as f64 / hashes.len() as f64 - 1.0,
            memory_bytes: bank.memory_bytes(),
            nanoseconds_per_lookup: nanoseconds(sliced, hashes.len() as u64),
            nanoseconds_per_loop: nanoseconds(looping, few.len() as u64),
        })
    }
}

/// Number of absent keys that are queried.
const ASKED: u64 = 1_000_000;
const KEYS_A_HOST: u64 = 20_000;
const LOOKUPS: u64 = 100_000;

fn present(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

fn absent(key: u64) -> [u8; 8] {
    (1 << 63 | key).to_be_bytes()
}

fn held(host: u64, key: u64) -> [u8; 16] {
    (u128::from(host) << 64 | u128::from(key)).to_be_bytes()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn nanoseconds(time: Duration, operations: u64) -> f64 {
    time.as_nanos() as f64 / operations.max(1) as f64
}

#[derive(Serialize)]
struct Shown {
    filter: FilterShown,
    bank: BankShown,
}

#[derive(Serialize)]
struct FilterShown {
    bits_per_key: f64,
    hashes: u32,
    false_negatives: usize,
    promised_false_positive: f64,
    measured_false_positive: f64,
    nanoseconds_to_add: f64,
    nanoseconds_to_ask: f64,
}

impl std::fmt::Display for FilterShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "  {:>12.2} bits a key, {} hashes", self.bits_per_key, self.hashes)?;
        writeln!(f, "  {:>12} present keys denied (promised: none)", self.false_negatives)?;
        writeln!(
            f,
            "  {:>11.4} % of {ASKED} absent keys claimed (promised: {:.4} %)",
            self.measured_false_positive * 100.0,
            self.promised_false_positive * 100.0
        )?;
        writeln!(
            f,
            "  {:>12.1} ns to add a key, {:.1} ns to ask for one",
            self.nanoseconds_to_add, self.nanoseconds_to_ask
        )
    }
}

#[derive(Serialize)]
struct BankShown {
    hosts: u64,
    lookups: usize,
    holders_missed: usize,
    wrong_hosts_per_lookup: f64,
    memory_bytes: u64,
    nanoseconds_per_lookup: f64,
    nanoseconds_per_loop: f64,
}

impl std::fmt::Display for BankShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "  {:>12} lookups, {} holders missed (promised: none)",
            self.lookups, self.holders_missed
        )?;
        writeln!(f, "  {:>12.2} hosts named beside the holder", self.wrong_hosts_per_lookup)?;
        writeln!(f, "  {:>12.1} MiB of memory", self.memory_bytes as f64 / (1 << 20) as f64)?;
        writeln!(f, "  {:>12.1} ns a lookup in the bank", self.nanoseconds_per_lookup)?;
        let times = self.nanoseconds_per_loop / self.nanoseconds_per_lookup;
        writeln!(
            f,
            "  {:>12.1} ns a lookup in a loop over the filters: {times:.0} times as much",
            self.nanoseconds_per_loop
        )
    }
}
