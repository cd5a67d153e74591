//! `umbel lab scale`: the cost of a mesh per host, measured with engines and computed by the model.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;
use umbel_lab::scale::{Joined, Mesh, ScalePlan, Traffic};

use crate::output::{Report, bytes, count, number};
use crate::values;

/// Number of seconds measured while nothing changes.
const QUIET_SECONDS: u64 = 12;
/// Total number of keys added while the cost of changes is measured, and the minimum time in
/// seconds. Keys arrive at random, so where few arrive, it takes longer until the average is
/// accurate.
const CHANGED_KEYS: u64 = 2000;
const MIN_CHANGE_SECONDS: u64 = 6;

/// Run a mesh of many hosts in one process, and compare what each pays with the model
///
/// Real engines, and a network that delivers at once. Every host is home to --keys keys of one set;
/// --changes of them come and as many go in a second, at random moments. Bytes are those of the
/// messages, without the headers of a network, which 'umbel plan replica' counts for 'quiet' and
/// 'join'. A host takes about three times the bytes of all filters together: a thousand hosts of 40
/// keys some gigabytes in all.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  umbel lab scale --hosts 100 --keys 1000\n  umbel lab scale --hosts 1000 --keys 40 --json"
)]
pub(super) struct Scale {
    /// Hosts (2 to 10000)
    #[arg(long, value_name = "G", default_value_t = 100, value_parser = |text: &str| values::count_within(text, 2, 10_000))]
    hosts: u64,
    /// Keys of each (1 to 10^7)
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = |text: &str| values::count_within(text, 1, 10_000_000))]
    keys: u64,
    /// Keys added to each host per second; as many are removed (1 to 10^6)
    #[arg(long, value_name = "C", default_value_t = 1, value_parser = |text: &str| values::count_within(text, 1, 1_000_000))]
    changes: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Per host: what was measured and, where the model has a figure, what it computes.
#[derive(Serialize)]
struct Answer {
    hosts: u64,
    keys: u64,
    changes_per_second: u64,
    seconds_to_meet: u64,
    replica_bytes: u64,
    replica_bytes_model: f64,
    charged_bytes: u64,
    resident_bytes: Option<u64>,
    quiet_messages_per_second: f64,
    quiet_messages_per_second_model: f64,
    quiet_bytes_per_second: f64,
    quiet_processor_share: f64,
    received_bytes_per_second: f64,
    received_bytes_per_second_model: f64,
    changes_processor_share: f64,
    join_seconds: u64,
    join_bytes: u64,
    join_bytes_model: f64,
    join_processor_seconds: f64,
}

impl Scale {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let plan = ScalePlan {
            hosts: usize::try_from(self.hosts)?,
            keys: self.keys,
            changes_per_second: self.changes,
        };
        let model = plan.model().map_err(|error| anyhow!("--keys with --hosts: {error}"))?;
        let before = resident_bytes();
        let mut mesh = Mesh::new(plan).map_err(|error| anyhow!("--keys: {error}"))?;
        let seconds_to_meet = mesh.meet().context("the hosts did not meet within a minute")?;
        mesh.pass(9);
        let (quiet, quiet_time) = timed(|| mesh.pass(QUIET_SECONDS));
        let (replica_bytes, charged_bytes) = (mesh.replica_bytes(), mesh.charged_bytes());
        let resident = resident_bytes().zip(before).map(|(now, before)| now.saturating_sub(before));
        mesh.change(4);
        let change_seconds = MIN_CHANGE_SECONDS.max(CHANGED_KEYS / (self.hosts * self.changes));
        let (changed, changed_time) = timed(|| mesh.change(change_seconds));
        let (joined, join_time) = timed(|| mesh.join());
        let joined = joined?.context("one more host did not know the others within a minute")?;

        let quiet = self.per_host(quiet, QUIET_SECONDS);
        let changed = self.per_host(changed, change_seconds);
        let share =
            |time: Duration, seconds: u64| time.as_secs_f64() / (self.hosts * seconds) as f64;
        let Joined { seconds, received } = joined;
        self.print(&Answer {
            hosts: self.hosts,
            keys: self.keys,
            changes_per_second: self.changes,
            seconds_to_meet,
            replica_bytes,
            replica_bytes_model: model.copies_bytes_per_host() + model.rows_bytes_per_host(),
            charged_bytes,
            resident_bytes: resident.map(|bytes| bytes / self.hosts),
            quiet_messages_per_second: quiet.0,
            quiet_messages_per_second_model: (self.hosts - 1) as f64 / 3.0,
            quiet_bytes_per_second: quiet.1,
            quiet_processor_share: share(quiet_time, QUIET_SECONDS),
            // Announcements continue meanwhile; subtract them.
            received_bytes_per_second: changed.1 - quiet.1,
            received_bytes_per_second_model: model.received_bytes_per_second_per_host(),
            changes_processor_share: share(changed_time, change_seconds),
            join_seconds: seconds,
            join_bytes: received.bytes,
            join_bytes_model: plan.join_bytes()?,
            join_processor_seconds: join_time.as_secs_f64(),
        })
    }

    /// Messages and bytes that a host received in a second.
    fn per_host(&self, traffic: Traffic, seconds: u64) -> (f64, f64) {
        let all = (self.hosts * seconds) as f64;
        (traffic.messages as f64 / all, traffic.bytes as f64 / all)
    }

    fn print(&self, answer: &Answer) -> anyhow::Result<ExitCode> {
        let title = format!(
            "{} hosts, each home to {} keys, {} added and as many removed a second",
            count(self.hosts),
            count(self.keys),
            count(self.changes)
        );
        let model = |value: String| format!("a host; by the model {value}");
        let share = |share: f64| format!("{} %", number(share * 100.0));
        let resident = answer.resident_bytes.map_or("unknown".to_owned(), |all| bytes(all as f64));
        Report::new(title, answer)?
            .row(
                "replicas",
                bytes(answer.replica_bytes as f64),
                &model(bytes(answer.replica_bytes_model)),
            )
            .row("charged", bytes(answer.charged_bytes as f64), "for them, before they are decoded")
            .row("resident", resident, "a host in all, its keys included")
            .row(
                "quiet",
                format!("{}/s", number(answer.quiet_messages_per_second)),
                &format!(
                    "messages received; by the model {}",
                    number(answer.quiet_messages_per_second_model)
                ),
            )
            .row("", format!("{}/s", bytes(answer.quiet_bytes_per_second)), "received")
            .row("", share(answer.quiet_processor_share), "of a core a host")
            .row(
                "updates",
                format!("{}/s", bytes(answer.received_bytes_per_second)),
                &format!(
                    "received; by the model {}/s",
                    bytes(answer.received_bytes_per_second_model)
                ),
            )
            .row("", share(answer.changes_processor_share), "of a core a host")
            .row("meet", format!("{} s", answer.seconds_to_meet), "until all hosts know each other")
            .row("join", format!("{} s", answer.join_seconds), "until one more host knows all")
            .row(
                "",
                bytes(answer.join_bytes as f64),
                &format!("received; by the model at most {}", bytes(answer.join_bytes_model)),
            )
            .row(
                "",
                format!("{} s", number(answer.join_processor_seconds)),
                "of a core, all hosts together",
            )
            .print(self.json)
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

/// Memory that this process takes, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}
