//! `umbel plan replica`: size of replicas, frequency and bytes of updates, and error rates.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use umbel::Rate;
use umbel::design::PlanError;
use umbel::design::replica::{GHOST_TARGET, ReplicaPlan, Workload, plan};
use umbel::replica::{Intervals, Policy, Rule};

use crate::output::{Report, bits, bytes, count, number, percent, whole};
use crate::values;

/// Plan replicas of every host at every other: size, updates, traffic and error rates
///
/// Every host is home to N keys and keeps the policy miss:X,ghost=0.05,longest=T in a full mesh.
/// 'sent' and 'received' are updates alone; 'on the wire' is all that a host sends, with
/// announcements, keep-alives and the headers of TCP and IP. What joining hosts fetch is 'join'.
#[derive(Args)]
#[command(after_help = "Example, caches of 100,000 objects on 32 hosts:\n  \
    umbel plan replica --items 100000 --adds-per-second 10 --removes-per-second 10 --hosts 32 --miss 1% --false-positive 1%")]
pub(super) struct Replica {
    /// Keys of each home
    #[arg(long, value_name = "N", value_parser = values::items, allow_hyphen_values = true)]
    items: u64,
    /// Keys added to each home
    #[arg(long, value_name = "A", value_parser = values::per_second, allow_hyphen_values = true)]
    adds_per_second: f64,
    /// Keys removed from each home
    #[arg(long, value_name = "R", value_parser = values::per_second, allow_hyphen_values = true)]
    removes_per_second: f64,
    /// Hosts in all
    #[arg(long, value_name = "G", value_parser = values::some, allow_hyphen_values = true)]
    hosts: u64,
    /// Share of a home's keys that its replicas may deny, above 0 and at most 0.5, or as 1%
    #[arg(long, value_name = "X", value_parser = values::miss, allow_hyphen_values = true)]
    miss: Rate,
    /// Chance that one lookup of an absent key names any wrong host, 1e-15 to below 1
    #[arg(long, value_name = "E", value_parser = values::rate, allow_hyphen_values = true)]
    false_positive: Rate,
    /// How long an added key may wait for its update; 'none': until the share is passed
    #[arg(long, value_name = "T", value_parser = values::duration_or_none, allow_hyphen_values = true, default_value = "1s")]
    longest: Longest,
    /// Lookups of each host
    #[arg(long, value_name = "L", default_value = "0", value_parser = values::per_second, allow_hyphen_values = true)]
    lookups_per_second: f64,
}

/// An upper limit in time, if there is one. It is a type alias because clap treats a field of type
/// `Option` as an optional argument.
type Longest = Option<Duration>;

#[derive(Serialize)]
struct Answer {
    bits: u64,
    hashes: u32,
    rung: u32,
    takes: u64,
    replica_false_positive: f64,
    seconds_between_updates: f64,
    bytes_per_update: f64,
    sent_bytes_per_second_per_host: f64,
    received_bytes_per_second_per_host: f64,
    full_broadcast_sent_bytes_per_second_per_host: f64,
    wire_bytes_per_second_per_host: f64,
    quiet_bytes_per_second_per_host: f64,
    join_bytes_per_host: f64,
    join_seconds: f64,
    processor_share_per_host: f64,
    memory_bytes_per_host: Value,
    copies_bytes_per_host: Value,
    rows_bytes_per_host: Value,
    home_bytes_per_host: Value,
    false_hosts_per_lookup: f64,
    vain_probes_per_second: f64,
    reserve: String,
}

impl Replica {
    fn plan(&self) -> anyhow::Result<ReplicaPlan> {
        let workload = Workload {
            items: self.items,
            adds_per_second: self.adds_per_second,
            removes_per_second: self.removes_per_second,
            hosts: self.hosts,
            miss: self.miss,
            false_positive: self.false_positive,
            longest: self.longest.map(|longest| longest.as_secs_f64()),
            shortest: Intervals::DEFAULT.shortest.as_secs_f64(),
        };
        plan(&workload).map_err(named)
    }

    pub(super) fn report(&self) -> anyhow::Result<Report> {
        let plan = self.plan()?;
        let answer = Answer {
            bits: plan.shape.bits(),
            hashes: plan.shape.hashes(),
            rung: plan.rung().0.exponent(),
            takes: plan.rung().1,
            replica_false_positive: plan.replica_false_positive,
            seconds_between_updates: plan.seconds_between_updates,
            bytes_per_update: plan.bytes_per_update,
            sent_bytes_per_second_per_host: plan.sent_bytes_per_second_per_host(),
            received_bytes_per_second_per_host: plan.received_bytes_per_second_per_host(),
            full_broadcast_sent_bytes_per_second_per_host: plan
                .full_broadcast_sent_bytes_per_second_per_host(),
            wire_bytes_per_second_per_host: plan.wire_bytes_per_second_per_host(),
            quiet_bytes_per_second_per_host: plan.quiet_bytes_per_second_per_host(),
            join_bytes_per_host: plan.join_bytes_per_host(),
            join_seconds: plan.join_seconds(),
            processor_share_per_host: plan.processor_share_per_host(),
            memory_bytes_per_host: whole(plan.memory_bytes_per_host()),
            copies_bytes_per_host: whole(plan.copies_bytes_per_host()),
            rows_bytes_per_host: whole(plan.rows_bytes_per_host()),
            home_bytes_per_host: whole(plan.home_bytes_per_host()),
            false_hosts_per_lookup: plan.false_hosts_per_lookup(),
            vain_probes_per_second: self.lookups_per_second * plan.false_hosts_per_lookup(),
            reserve: self.reserve(),
        };
        self.table(&plan, &answer)
    }

    /// The command that reserves such a set at every host.
    fn reserve(&self) -> String {
        let rule = Rule::Miss { miss: self.miss.get(), ghost: GHOST_TARGET };
        let policy = Policy { longest: self.longest, ..Policy::new(rule) };
        format!(
            "umbel reserve SET --false-positive {} --capacity {} --hosts {} --policy {policy} --all-hosts",
            self.false_positive, self.items, self.hosts
        )
    }

    fn table(&self, plan: &ReplicaPlan, answer: &Answer) -> anyhow::Result<Report> {
        let title = format!(
            "{} hosts, each home to {} keys, {} added and {} removed a second",
            count(self.hosts),
            count(self.items),
            number(self.adds_per_second),
            number(self.removes_per_second)
        );
        let per_key = number(answer.bits as f64 / self.items as f64);
        let others = format!("to {} others", count(self.hosts - 1));
        let clears = match plan.updates_per_clearing {
            _ if self.removes_per_second == 0.0 => "nothing is ever cleared".to_owned(),
            1.0 => "each carries cleared bits".to_owned(),
            rounds => format!("one in {} carries cleared bits", number(rounds)),
        };
        let sent = bytes(answer.sent_bytes_per_second_per_host);
        let received = bytes(answer.received_bytes_per_second_per_host);
        let full = bytes(answer.full_broadcast_sent_bytes_per_second_per_host);
        Ok(Report::new(title, answer)?
            .row("bits", bits(answer.bits), &format!("a replica, {per_key} a key"))
            .row(
                "rung",
                format!("2^{}", answer.rung),
                &format!("takes {} keys", count(answer.takes)),
            )
            .row("hashes", answer.hashes.to_string(), "positions per key")
            .row("memory", bytes(plan.memory_bytes_per_host()), "a host, its catalogue aside:")
            .row("  copies", bytes(plan.copies_bytes_per_host()), "of the other hosts' filters")
            .row("  rows", bytes(plan.rows_bytes_per_host()), "that answer for all of them at once")
            .row(
                "  own filter",
                bytes(plan.home_bytes_per_host()),
                "counters, bits, published copy",
            )
            .row("update every", format!("{} s", number(answer.seconds_between_updates)), &clears)
            .row("update", bytes(answer.bytes_per_update), "on average")
            .row("sent", format!("{sent}/s"), &format!("updates of a host, {others}"))
            .row("received", format!("{received}/s"), "updates, by a host")
            .row(
                "on the wire",
                format!("{}/s", bytes(answer.wire_bytes_per_second_per_host)),
                "sent a host in all: updates, announcements, keep-alives, headers",
            )
            .row(
                "full broadcast",
                format!("{full}/s"),
                "sent a host, if updates were whole filters",
            )
            .row(
                "quiet",
                format!("{}/s", bytes(answer.quiet_bytes_per_second_per_host)),
                "sent a host in a mesh when nothing changes, headers included",
            )
            .row(
                "join",
                bytes(answer.join_bytes_per_host),
                &format!(
                    "received by a host that joins, at most; about {:.1} s, or as long as its network takes",
                    answer.join_seconds
                ),
            )
            .row(
                "processor",
                format!("{:.1} %", answer.processor_share_per_host * 100.0),
                "of a core a host, about: announcements and updates, without clients",
            )
            .row("false positive", percent(answer.replica_false_positive), "of one replica")
            .row(
                "false hosts",
                number(answer.false_hosts_per_lookup),
                "named by one lookup of an absent key",
            )
            .row("vain probes", number(answer.vain_probes_per_second), "a second of each host")
            .row("reserve", "", &answer.reserve))
    }
}

/// The error, with the name of the option that causes it.
fn named(error: PlanError) -> anyhow::Error {
    match error {
        PlanError::NothingChanges => anyhow!(
            "--adds-per-second, --removes-per-second: one of them must be from 1e-9 to 1e12: {error}"
        ),
        PlanError::Miss { .. } => anyhow!("--miss: {error}"),
        other => anyhow!("--items with --hosts and --false-positive: {other}"),
    }
}
