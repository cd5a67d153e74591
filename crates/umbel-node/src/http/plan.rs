//! The planner: sizes, update intervals and traffic of a set before it is created.

use axum::Json;
use axum::extract::Query;
use serde::{Deserialize, Serialize};
use umbel::Rate;
use umbel::design::replica::{ReplicaPlan, Workload, plan};
use umbel::replica::Intervals;
use utoipa::{IntoParams, ToSchema};

use super::problem::{Problem, Problems};

/// The load that every host puts on a set.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PeerRequest {
    /// Keys per host.
    #[param(minimum = 1, maximum = 1_099_511_627_776_u64, example = 100_000)]
    items: u64,
    /// Keys added per host.
    #[param(minimum = 0.0, maximum = 1e12, example = 10.0)]
    adds_per_second: f64,
    /// Keys removed per host.
    #[param(minimum = 0.0, maximum = 1e12, example = 10.0)]
    removes_per_second: f64,
    /// Total number of hosts.
    #[param(minimum = 1, maximum = 1_000_000, example = 32)]
    hosts: u64,
    /// Share of a host's keys that its replicas may deny, at most 0.5.
    #[param(exclusive_minimum = 0.0, maximum = 0.5, example = 0.01)]
    miss: f64,
    /// Chance that one lookup of an absent key names any wrong host.
    #[param(minimum = 1e-15, exclusive_maximum = 1.0, example = 0.01)]
    false_positive: f64,
    /// Maximum time in seconds that an added key may wait for its update; without it, only the
    /// share counts.
    #[param(exclusive_minimum = 0.0, maximum = 1e9, example = 1.0)]
    longest: Option<f64>,
}

/// The expected averages: `umbel plan replica` prints the same.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Planned {
    /// Bits of a replica.
    bits: u64,
    /// Positions per key.
    hashes: u32,
    /// The filter has two to this power bits.
    rung: u32,
    /// Keys that a filter of this size can take.
    takes: u64,
    /// False positive rate of one replica.
    replica_false_positive: f64,
    /// Average number of hosts that one lookup of an absent key names wrongly.
    false_hosts_per_lookup: f64,
    /// Interval between two updates of a host.
    seconds_between_updates: f64,
    /// Bytes of one update.
    bytes_per_update: f64,
    /// Bytes of updates that a host sends to all others.
    sent_bytes_per_second_per_host: f64,
    /// All bytes that a host sends: updates, announcements, keep-alives, headers.
    wire_bytes_per_second_per_host: f64,
    /// Bytes that it would send if updates were whole filters.
    full_broadcast_sent_bytes_per_second_per_host: f64,
    /// Maximum number of bytes that a joining host receives.
    join_bytes_per_host: f64,
    /// Memory of a host, without its catalogue.
    memory_bytes_per_host: f64,
    /// The policy that achieves this.
    policy: String,
}

/// Sizes, update intervals and traffic of a set's replicas, as `umbel plan replica` prints them.
///
/// Every host is home to the same number of keys and has the same policy, in a full mesh. Nothing
/// is changed, and nothing about this host is returned.
#[utoipa::path(
    get, path = "/v1/plan/replica", operation_id = "plan_replica", tag = "sets", params(PeerRequest),
    responses((status = 200, description = "The averages to expect", body = Planned), Problems)
)]
pub(super) async fn replica(Query(question): Query<PeerRequest>) -> Result<Json<Planned>, Problem> {
    question.answer().map(Json)
}

impl PeerRequest {
    fn answer(&self) -> Result<Planned, Problem> {
        let bad = |detail: String| Problem::bad("plan", detail);
        let whole = [("items", self.items, 1 << 40), ("hosts", self.hosts, 1_000_000)];
        for (name, number, max) in whole {
            if !(1..=max).contains(&number) {
                return Err(bad(format!("{name} is a whole number from 1 to {max}")));
            }
        }
        let rates = [
            ("adds_per_second", self.adds_per_second),
            ("removes_per_second", self.removes_per_second),
        ];
        for (name, rate) in rates {
            if !(0.0..=1e12).contains(&rate) {
                return Err(bad(format!("{name} is a number from 0 to 1e12")));
            }
        }
        if self.longest.is_some_and(|longest| !(0.001..=1e9).contains(&longest)) {
            return Err(bad(String::from("longest is a number of seconds from 0.001 to 1e9")));
        }
        let rate = |name: &str, rate: f64| {
            Rate::new(rate).map_err(|error| bad(format!("{name}: {error}")))
        };
        let workload = Workload {
            items: self.items,
            adds_per_second: self.adds_per_second,
            removes_per_second: self.removes_per_second,
            hosts: self.hosts,
            miss: rate("miss", self.miss)?,
            false_positive: rate("false_positive", self.false_positive)?,
            longest: self.longest,
            shortest: Intervals::DEFAULT.shortest.as_secs_f64(),
        };
        let plan = plan(&workload).map_err(|error| bad(error.to_string()))?;
        Ok(self.planned(&plan))
    }

    fn planned(&self, plan: &ReplicaPlan) -> Planned {
        let (rung, takes) = plan.rung();
        Planned {
            bits: plan.shape.bits(),
            hashes: plan.shape.hashes(),
            rung: rung.exponent(),
            takes,
            replica_false_positive: plan.replica_false_positive,
            false_hosts_per_lookup: plan.false_hosts_per_lookup(),
            seconds_between_updates: plan.seconds_between_updates,
            bytes_per_update: plan.bytes_per_update,
            sent_bytes_per_second_per_host: plan.sent_bytes_per_second_per_host(),
            wire_bytes_per_second_per_host: plan.wire_bytes_per_second_per_host(),
            full_broadcast_sent_bytes_per_second_per_host: plan
                .full_broadcast_sent_bytes_per_second_per_host(),
            join_bytes_per_host: plan.join_bytes_per_host(),
            memory_bytes_per_host: plan.memory_bytes_per_host(),
            policy: self.policy(),
        }
    }

    fn policy(&self) -> String {
        use umbel::replica::{Policy, Rule};
        let ghost = umbel::design::replica::GHOST_TARGET;
        let longest = self.longest.map(std::time::Duration::from_secs_f64);
        let policy = Policy::new(Rule::Miss { miss: self.miss, ghost });
        Policy { longest, ..policy }.to_string()
    }
}
