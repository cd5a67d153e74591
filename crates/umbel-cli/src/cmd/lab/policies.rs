//! `umbel lab policies`: compares update policies on the same history.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use umbel::Rate;
use umbel::replica::Policy;
use umbel_lab::policies::{
    EqualMiss, History, Outcome, Setting, Synthetic, at_equal_miss, compare,
};

use crate::cmd::filter::print::warn;
use crate::output::{bytes, count, number, percent, print};
use crate::values;

/// Compare update policies on one and the same history
///
/// Hosts hold keys, add and remove some, and ask each other's published copies. By default the
/// history is steady churn: every host starts with --items keys, and each second --adds keys are
/// added to it and --removes random ones are removed. A history or a request trace of your own is
/// read from a file. Updates arrive the moment they are sent; unless a policy says otherwise, there
/// is no shortest interval between two, and adds and removals wait for at most 600 s.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Policies {
    /// Hosts [default: 8]
    #[arg(long, value_name = "G", value_parser = values::some, allow_hyphen_values = true)]
    hosts: Option<u64>,
    /// Keys of each host at the start
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true, default_value = "10000")]
    items: u64,
    /// Keys added to each host per second
    #[arg(long, value_name = "A", value_parser = values::per_second, allow_hyphen_values = true, default_value = "10")]
    adds: f64,
    /// Random keys removed from each host per second
    #[arg(long, value_name = "R", value_parser = values::per_second, allow_hyphen_values = true, default_value = "10")]
    removes: f64,
    /// Lookups per second of each host, for keys that another host holds
    #[arg(long, value_name = "L", value_parser = values::per_second, allow_hyphen_values = true, default_value = "1")]
    lookups: f64,
    /// Seconds
    #[arg(long, value_name = "T", value_parser = values::items, allow_hyphen_values = true, default_value = "1000")]
    steps: u64,
    /// Replay this history: lines '+ host key' (add), '- host key' (remove), '? host key' (ask)
    #[arg(long, value_name = "FILE", conflicts_with_all = CHURN,
          conflicts_with_all = ["hosts", "requests", "cache_items"])]
    history: Option<PathBuf>,
    /// Deal these requests, one key a line, to the hosts in turn: each is a cache that asks
    /// the others for what it lacks, and keeps it
    #[arg(long, value_name = "FILE", conflicts_with_all = CHURN, requires = "cache_items")]
    requests: Option<PathBuf>,
    /// Objects that each cache holds; the least recently used one is evicted
    #[arg(long, value_name = "C", value_parser = values::items, allow_hyphen_values = true, requires = "requests")]
    cache_items: Option<u64>,
    /// Lines or requests of the file per second, of all hosts together [default: one per host]
    #[arg(long, value_name = "L", value_parser = values::line_rate, allow_hyphen_values = true, conflicts_with_all = CHURN)]
    rate: Option<f64>,
    /// A policy to try, such as miss:0.01,ghost=0.05, overall:0.1,weights=1/5, dirty:0.1,
    /// interval:60s, budget:10000 or manual, each with shortest=, longest= and clears=, durations
    /// such as 500ms or 10m; repeatable [default: miss:0.01,longest=1s miss:0.01 overall:0.1
    /// dirty:0.1 interval:60s]
    #[arg(long = "policy", value_name = "P", value_parser = given)]
    policies: Vec<Given>,
    /// Chance that one lookup of an absent key names any wrong host, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true, default_value = "0.01")]
    false_positive: Rate,
    /// Keys that each host is planned for; filters grow past it [default: --items,
    /// --cache-items, or the most that any host of the history holds]
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    capacity: Option<u64>,
    /// Send added keys as changed bits only, never as digests
    #[arg(long)]
    bits_only: bool,
    /// Compare each policy, sending whole filters, with the miss policy of the same mean miss,
    /// sending coded updates: how many times fewer bytes
    #[arg(long)]
    equal_miss: bool,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The options of synthetic churn, which cannot be combined with a file.
const CHURN: [&str; 5] = ["items", "adds", "removes", "lookups", "steps"];

const EXAMPLES: &str = "\
Examples:
  umbel lab policies
  umbel lab policies --hosts 4 --items 1e5 --adds 5 --removes 5 --steps 2000 --policy miss:0.01
  umbel lab policies --requests trace.txt --hosts 16 --cache-items 5000 --rate 200
  umbel lab policies --history changes.txt --policy miss:0.01 --policy budget:1000 --json
  umbel lab policies --hosts 2 --items 1e5 --policy dirty:0.1,longest=1e9,clears=1e9 --steps 1e4 --equal-miss";

/// Maximum number of keys of all hosts together: fits into the memory of most machines.
const MAX_KEYS: u64 = 100_000_000;

/// A policy, and its text on the command line.
#[derive(Debug, Clone)]
struct Given {
    text: String,
    policy: Policy,
}

fn given(text: &str) -> Result<Given, String> {
    let policy = text.parse().map_err(|error: umbel::replica::PolicyError| error.to_string())?;
    Ok(Given { text: text.to_owned(), policy })
}

#[derive(Serialize)]
struct Compared {
    policies: Vec<Outcome>,
}

#[derive(Serialize)]
struct ComparedAtEqualMiss {
    equal_miss: Vec<EqualMiss>,
}

impl Policies {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let given = if self.policies.is_empty() { usual()? } else { self.policies.clone() };
        let history = self.read()?;
        let setting = Setting {
            false_positive: self.false_positive.get(),
            capacity: self.capacity,
            by_digests: !self.bits_only,
            seed: self.seed,
            ..Setting::default()
        };
        let each = setting.capacity.unwrap_or(0).max(history.items());
        ensure!(
            each.saturating_mul(history.hosts() as u64) <= MAX_KEYS,
            "{} hosts of {} keys are too many: {} keys in all are the most",
            count(history.hosts() as u64),
            count(each),
            count(MAX_KEYS)
        );
        let policies: Vec<Policy> = given.iter().map(|given| given.policy).collect();
        let replays = if self.equal_miss { EqualMiss::REPLAYS } else { 1 };
        let work = self.work(history.hosts() as f64, history.seconds() as f64, each as f64);
        if let Some(warning) = work.warning(policies.len() as u64 * replays) {
            warn(warning);
        }
        let bar = bar(history.seconds() * policies.len() as u64 * replays);
        let second = || bar.inc(1);
        let text = if self.equal_miss {
            let mut rows = at_equal_miss(&history, &setting, &policies, second)?;
            rows.iter_mut().zip(&given).for_each(|(row, given)| row.policy.clone_from(&given.text));
            self.shown(&ComparedAtEqualMiss { equal_miss: rows }, |c| equal_misses(&c.equal_miss))?
        } else {
            let mut rows = compare(&history, &setting, &policies, second)?;
            rows.iter_mut().zip(&given).for_each(|(row, given)| row.policy.clone_from(&given.text));
            self.shown(&Compared { policies: rows }, |compared| outcomes(&compared.policies))?
        };
        bar.finish_and_clear();
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The work of one replay.
    fn work(&self, hosts: f64, seconds: f64, items: f64) -> Work {
        let is_synthetic = self.history.is_none() && self.requests.is_none();
        // A line of a file is a change or a lookup; assume the more expensive of the two.
        let (changes, lookups) = match is_synthetic {
            true => (hosts * (self.adds + self.removes), hosts * self.lookups),
            false => (0.0, self.rate.unwrap_or(hosts)),
        };
        Work {
            changes: hosts * items + seconds * changes,
            questions: seconds * lookups * (hosts - 1.0),
            looks: seconds * hosts,
        }
    }

    fn shown<T: Serialize>(&self, rows: &T, table: fn(&T) -> String) -> anyhow::Result<String> {
        Ok(if self.json {
            format!("{}\n", serde_json::to_string_pretty(rows)?)
        } else {
            table(rows)
        })
    }

    fn read(&self) -> anyhow::Result<History> {
        let hosts = self.hosts.unwrap_or(8) as usize;
        if let Some(path) = &self.history {
            return History::from_lines(&contents(path)?, self.rate)
                .map_err(|error| anyhow!("{}: {error}", path.display()));
        }
        if let (Some(path), Some(items)) = (&self.requests, self.cache_items) {
            return History::from_requests(&contents(path)?, hosts, items, self.rate)
                .map_err(|error| anyhow!("{}: {error}", path.display()));
        }
        Ok(History::synthetic(Synthetic {
            hosts,
            items: self.items,
            adds: self.adds,
            removes: self.removes,
            lookups: self.lookups,
            steps: self.steps,
            seed: self.seed,
        }))
    }
}

/// Number of the operations that take time.
struct Work {
    /// A key is added or removed.
    changes: f64,
    /// A replica is queried for a key: each lookup queries those of all other hosts.
    questions: f64,
    /// A host processes one simulated second.
    looks: f64,
}

impl Work {
    /// Seconds per operation, about, on one core of a server of 2023.
    const CHANGE: f64 = 1e-6;
    const QUESTION: f64 = 1e-8;
    const LOOK: f64 = 1e-7;
    /// Below this estimate, in seconds, no warning is printed.
    const PATIENCE: f64 = 20.0;

    fn seconds(&self) -> f64 {
        self.changes * Self::CHANGE + self.questions * Self::QUESTION + self.looks * Self::LOOK
    }

    /// A warning to print before this many replays, if they will take long.
    fn warning(&self, replays: u64) -> Option<String> {
        let seconds = self.seconds() * replays as f64;
        let time = match seconds {
            s if s < Self::PATIENCE => return None,
            s if s < 120.0 => format!("{} seconds", number(s.round())),
            s if s < 7200.0 => format!("{} minutes", number((s / 60.0).round())),
            s if s < 172_800.0 => format!("{} hours", number((s / 3600.0).round())),
            s => format!("{} days", number((s / 86_400.0).round())),
        };
        let questions = number(self.questions * replays as f64);
        Some(format!(
            "this takes about {time}: lookups ask other hosts' copies {questions} times in all; \
             fewer hosts, lookups or steps take less"
        ))
    }
}

fn usual() -> anyhow::Result<Vec<Given>> {
    let texts = ["miss:0.01,longest=1s", "miss:0.01", "overall:0.1", "dirty:0.1", "interval:60s"];
    texts.into_iter().map(|text| given(text).map_err(|error| anyhow!(error))).collect()
}

fn contents(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// A bar on standard error, if that is a terminal.
fn bar(seconds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("simulating {wide_bar} {percent} %, {eta} left");
    ProgressBar::new(seconds).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn outcomes(rows: &[Outcome]) -> String {
    let header = [
        "policy",
        "updates",
        "bytes",
        "broadcast",
        "mean miss",
        "max miss",
        "mean f+",
        "lookups",
        "remote hits",
        "missed",
        "lookups missed",
        "false probes",
    ];
    let cells = rows.iter().map(|row| {
        [
            row.policy.clone(),
            count(row.updates),
            bytes(row.bytes as f64),
            bytes(row.full_broadcast_bytes as f64),
            percent(row.mean_miss),
            percent(row.max_miss),
            percent(row.mean_false_positive),
            count(row.lookups),
            count(row.remote_hits),
            count(row.missed_remote_hits),
            row.lookups_missed.map_or_else(|| "-".to_owned(), percent),
            count(row.false_probes),
        ]
    });
    let table = aligned(header, &cells.collect::<Vec<_>>());
    format!(
        "{table}\nbytes: of all updates, each counted once; broadcast: of the same updates as whole \
         filters.\nmiss: share of a host's keys that its published copy denies; f+: share of \
         absent keys that a copy claims.\nremote hits and missed: lookups of keys that some \
         host holds; lookups missed: share of these. It is above the miss rate where fresh keys \
         are asked for most.\nfalse probes: hosts named in vain.\n"
    )
}

fn equal_misses(rows: &[EqualMiss]) -> String {
    let header = [
        "policy",
        "mean miss",
        "whole filters",
        "beside it",
        "mean miss",
        "coded",
        "times less",
        "bits only",
        "times less",
    ];
    let cells = rows.iter().map(|row| {
        [
            row.policy.clone(),
            percent(row.mean_miss),
            bytes(row.full_broadcast_bytes as f64),
            row.miss_policy.clone(),
            percent(row.miss_policy_mean_miss),
            bytes(row.bytes as f64),
            number(row.ratio),
            bytes(row.bytes_by_bits as f64),
            number(row.ratio_by_bits),
        ]
    });
    aligned(header, &cells.collect::<Vec<_>>())
}

/// Rows under a header; the first column is left-aligned, numbers are right-aligned.
fn aligned<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(header[column].chars().count())
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let (first, rest) =
            (format!("{:<1$}", cells[0], widths[0]), cells.iter().zip(widths).skip(1));
        let rest = rest.map(|(cell, width)| format!("  {cell:>width$}")).collect::<String>();
        format!("{first}{rest}\n")
    };
    let body = rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str())));
    line(header) + &body.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(hosts: f64) -> Work {
        let churn = 1000.0 * hosts;
        Work { changes: 100.0 * hosts + churn, questions: churn * (hosts - 1.0), looks: churn }
    }

    #[test]
    fn a_million_hosts_are_warned_of_and_eight_are_not() {
        assert_eq!(work(8.0).warning(5), None);
        let warning = work(1e6).warning(5).expect("a warning");
        assert!(
            warning.contains("about 579 days") || warning.contains("about 580 days"),
            "{warning}"
        );
        assert!(warning.contains("5.000e15") || warning.contains("4,999"), "{warning}");
        let minutes = work(10_000.0).warning(1).expect("a warning");
        assert!(minutes.contains("minutes"), "{minutes}");
    }

    /// Twice the hosts ask twice as many others each.
    #[test]
    fn the_estimate_grows_with_the_square_of_the_hosts() {
        let ratio = work(2e5).seconds() / work(1e5).seconds();
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
    }
}
