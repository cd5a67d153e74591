//! What replicating a set costs: size of filters, frequency and size of updates, error rates.
//!
//! A home of `N` keys with steady churn has the policy `miss:X,ghost=0.05,longest=L`, and every
//! other host holds a replica. The plan gives the averages between two updates:
//!
//! * an update is due when the share of members that the replica denies exceeds `X`, or one of them
//!   has waited for `L`, or the removed keys that it still claims (ghosts) exceed 5 %; but not
//!   before the shortest interval since the last update is over, and a tenth of that interval after
//!   the key that made it due. Keys are added at random times, so that a key often waits for the
//!   end of an interval and shares its update with others;
//! * it contains the added keys, as digests or as set bits, whichever is shorter;
//! * it contains cleared bits only if waiting for one more update would break the ghost target
//!   (larger batches are cheaper) or the promised rate: a rung that is nearly full has room for
//!   only a few uncleared keys.
//!
//! Rates are per lookup: with `γ` hosts each replica is designed for `1 - (1-E)^(1/γ)`.
//! Bytes of updates are the limits of [`crate::model::limits`] plus a header; with announcements,
//! keep-alives and what carries them they are
//! [`ReplicaPlan::wire_bytes_per_second_per_host`]. `tests/replica_plan.rs` holds updates against a
//! simulation with exact sets; docs/operations.md has what real hosts send.

use super::PlanError;
use super::ladder::{Ladder, Rung};
use crate::model::churn::{Churn, bits_of_these_only};
use crate::model::limits::{Flips, delta_bytes, digest_list_bytes, snapshot_bytes};
use crate::model::standard::{false_positive_at, fill_at};
use crate::params::{Bits, ParamError, Rate, Shape};

/// Header and checksums of one update.
pub const UPDATE_HEADER_BYTES: f64 = 60.0;

/// Ghosts per member at which clears are due, the default policy's `ghost=`.
pub const GHOST_TARGET: f64 = 0.05;

/// The highest share of misses that can be planned for: above it, updates would no longer be the
/// rule.
const MAX_MISSES: f64 = 0.5;

/// The shape of a home's filter and all its replicas, for `items` keys: that of the lowest rung
/// that has room for them with this many hosts ([`Ladder::takes`]), as hosts build it. Zero hosts
/// count as one.
///
/// # Errors
/// If `items` is zero, or the filter would be longer than [`crate::params::Bits::MAX`].
pub fn replica_shape(items: u64, per_lookup: Rate, hosts: u64) -> Result<Shape, ParamError> {
    let ladder = Ladder::new(per_lookup);
    match ladder.rung_for(items, planned_hosts(hosts)) {
        _ if items == 0 => Err(ParamError::Items(items)),
        Some(rung) => Ok(ladder.shape(rung)),
        None => Err(ParamError::Bits(2 * Bits::MAX)),
    }
}

/// The width of the rows of a bank with this many columns: 8, 16, 32, then whole words in powers of
/// two up to a cache line, then whole lines; 0 for fewer than 8 columns, which have no rows.
///
/// From 8192 columns on widths grow by an eighth to a sixteenth at a time: if rows were rebuilt
/// after every few lines, the work of adding columns would grow with the square of their number.
#[must_use]
pub const fn row_width(columns: usize) -> usize {
    match columns {
        0..=7 => 0,
        8..=512 => columns.next_power_of_two(),
        _ => {
            let eighth = (1 << columns.ilog2()) / 8;
            let step = if eighth < 512 { 512 } else { eighth };
            columns.saturating_add(step - 1) / step * step
        }
    }
}

fn planned_hosts(hosts: u64) -> u32 {
    u32::try_from(hosts.max(1)).unwrap_or(u32::MAX)
}

/// What is known about a set, and the targets for its replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Number of keys per home.
    pub items: u64,
    /// Keys added per second at each home.
    pub adds_per_second: f64,
    /// Keys removed per second at each home.
    pub removes_per_second: f64,
    /// Number of hosts; every one of them is also a home.
    pub hosts: u64,
    /// Target: share of a home's keys that its replicas may deny.
    pub miss: Rate,
    /// Target: probability that one lookup of an absent key returns any wrong host.
    pub false_positive: Rate,
    /// The most seconds until an added key is published; `None` if misses alone decide.
    pub longest: Option<f64>,
    /// The fewest seconds between two updates: the policy's `shortest=`, or the hosts' default.
    pub shortest: f64,
}

/// The averages to expect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicaPlan {
    /// Shape of a home's filter and of its replicas.
    pub shape: Shape,
    /// Rate of one replica, uncleared keys included.
    pub replica_false_positive: f64,
    /// Time between two updates of one home.
    pub seconds_between_updates: f64,
    /// Size of one update.
    pub bytes_per_update: f64,
    /// One in this many updates contains cleared bits as well.
    pub updates_per_clearing: f64,
    hosts: u64,
    rung: Rung,
    takes: u64,
}

/// Plans the replicas of a set.
///
/// ```
/// use umbel::Rate;
/// use umbel::design::replica::{Workload, plan};
///
/// let plan = plan(&Workload {
///     items: 100_000,
///     adds_per_second: 10.0,
///     removes_per_second: 10.0,
///     hosts: 32,
///     miss: Rate::new(0.01)?,
///     false_positive: Rate::new(0.01)?,
///     longest: None,
///     shortest: 1.0,
/// })?;
/// // A thousand keys may be missing, and ten come every second.
/// assert!((plan.seconds_between_updates - 100.0).abs() < 2.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a number is outside its range, or nothing ever changes.
pub fn plan(workload: &Workload) -> Result<ReplicaPlan, PlanError> {
    let churn = checked(workload)?;
    let shape = replica_shape(workload.items, workload.false_positive, workload.hosts)?;
    let ladder = Ladder::new(workload.false_positive);
    let rung = Rung::of(&shape).unwrap_or(Rung::LOWEST);
    let capacity = ladder.capacity(rung, planned_hosts(workload.hosts));
    let room = capacity.saturating_sub(workload.items) as f64;
    let between = Between::updates(workload, &churn, shape, room)?;
    let n = workload.items as f64;
    let with_ghosts = |updates: f64| n + updates * between.ghosts;
    let rounds = between.rounds;
    let adding = mean(rounds - 1.0, |i| between.update_bytes(shape, with_ghosts(i), 0.0));
    let clearing = between.update_bytes(shape, with_ghosts(rounds - 1.0), rounds * between.ghosts);
    Ok(ReplicaPlan {
        shape,
        replica_false_positive: mean(rounds, |i| false_positive_at(&shape, with_ghosts(i))),
        seconds_between_updates: between.seconds,
        bytes_per_update: (adding * (rounds - 1.0) + clearing) / rounds,
        updates_per_clearing: rounds,
        hosts: workload.hosts,
        rung,
        takes: ladder.takes(rung, planned_hosts(workload.hosts)),
    })
}

/// Bytes per second that a host of a quiet mesh sends to each other host, including the headers of
/// all lower layers, as measured by `cargo xtask traffic` (docs/operations.md).
const QUIET_BYTES_PER_SECOND: f64 = 70.0;
/// Overhead of one update: the headers of zenoh, TCP and IP, and an acknowledgement.
const CARRIER_BYTES: f64 = 110.0;
/// The list of one set and the request for it, including headers.
const LIST_BYTES: f64 = 500.0;

/// Announcements that a host of a quiet mesh sends to each other host per second.
const ANNOUNCEMENTS_PER_SECOND: f64 = 1.0 / 3.0;
/// Share of a core that a host without others takes, as measured by `cargo xtask traffic` on two
/// cores of an idle machine at 2.5 GHz (docs/operations.md), as are the next two.
const IDLE_SHARE: f64 = 0.0015;
/// Processor time of sending one announcement to a host and of receiving one from it, with what
/// the link costs meanwhile.
const ANNOUNCEMENT_SECONDS: f64 = 350e-6;
/// Processor time of sending one update to a host and of receiving one from it.
const UPDATE_SECONDS: f64 = 100e-6;
/// Seconds until a host that is started knows another one's small set: 0.3 to 0.7 on that machine.
const MEETING_SECONDS: f64 = 0.7;
/// Bytes of images that a joining host fetches and installs per second, if the network permits: an
/// image of 67 MB took 2 s more than a small one, over the loopback interface.
const FETCHED_BYTES_PER_SECOND: f64 = 30e6;

impl ReplicaPlan {
    fn others(&self) -> f64 {
        (self.hosts - 1) as f64
    }

    /// What one host sends: its updates, to every other host.
    #[must_use]
    pub fn sent_bytes_per_second_per_host(&self) -> f64 {
        self.others() * self.bytes_per_update / self.seconds_between_updates
    }

    /// What one host receives: the updates of every other host.
    #[must_use]
    pub fn received_bytes_per_second_per_host(&self) -> f64 {
        self.sent_bytes_per_second_per_host()
    }

    /// What one host would send if the same updates were whole plain filters.
    #[must_use]
    pub fn full_broadcast_sent_bytes_per_second_per_host(&self) -> f64 {
        self.others() * self.filter_bytes() / self.seconds_between_updates
    }

    /// What one host sends in a mesh in which nothing changes: announcements, greetings and their
    /// headers.
    #[must_use]
    pub fn quiet_bytes_per_second_per_host(&self) -> f64 {
        self.others() * QUIET_BYTES_PER_SECOND
    }

    /// What one host sends in total: updates, announcements, greetings and keep-alives, including
    /// the headers of all lower layers.
    #[must_use]
    pub fn wire_bytes_per_second_per_host(&self) -> f64 {
        let carriers = self.others() * CARRIER_BYTES / self.seconds_between_updates;
        self.sent_bytes_per_second_per_host() + carriers + self.quiet_bytes_per_second_per_host()
    }

    /// The most that a joining host receives: an image of every other host's filter, and the list
    /// of its sets.
    #[must_use]
    pub fn join_bytes_per_host(&self) -> f64 {
        self.others() * (self.filter_bytes() + LIST_BYTES)
    }

    /// Seconds until a joining host knows all others, if the network is no limit. A slower network
    /// adds the time that it takes for [`Self::join_bytes_per_host`]. An order of magnitude.
    #[must_use]
    pub fn join_seconds(&self) -> f64 {
        MEETING_SECONDS + self.join_bytes_per_host() / FETCHED_BYTES_PER_SECOND
    }

    /// The share of a core that one host takes for replication: announcements and updates, sent to
    /// every other host and received from it. Questions and changes of clients are not counted. An
    /// order of magnitude: processors differ.
    #[must_use]
    pub fn processor_share_per_host(&self) -> f64 {
        let announcements = ANNOUNCEMENTS_PER_SECOND * ANNOUNCEMENT_SECONDS;
        let updates = UPDATE_SECONDS / self.seconds_between_updates;
        IDLE_SHARE + self.others() * (announcements + updates)
    }

    /// Copies of every other host's filter.
    #[must_use]
    pub fn copies_bytes_per_host(&self) -> f64 {
        self.others() * self.filter_bytes()
    }

    /// Rows of a bank of every other host's filter; none below 8 of them.
    #[must_use]
    pub fn rows_bytes_per_host(&self) -> f64 {
        let columns = usize::try_from(self.hosts - 1).unwrap_or(usize::MAX);
        row_width(columns) as f64 * self.filter_bytes()
    }

    /// The host's own filter: 4-bit counters, bits, and the copy last published.
    #[must_use]
    pub fn home_bytes_per_host(&self) -> f64 {
        (4.0 + 1.0 + 1.0) * self.filter_bytes()
    }

    /// What one host keeps in memory, not counting its exact catalogue: copies, rows, and its own
    /// filter.
    #[must_use]
    pub fn memory_bytes_per_host(&self) -> f64 {
        self.copies_bytes_per_host() + self.rows_bytes_per_host() + self.home_bytes_per_host()
    }

    /// The rung of every home, and the number of keys that it has room for.
    #[must_use]
    pub const fn rung(&self) -> (Rung, u64) {
        (self.rung, self.takes)
    }

    /// How many wrong hosts one lookup of an absent key returns, on average.
    #[must_use]
    pub fn false_hosts_per_lookup(&self) -> f64 {
        self.others() * self.replica_false_positive
    }

    fn filter_bytes(&self) -> f64 {
        self.shape.bits().div_ceil(8) as f64
    }
}

fn checked(workload: &Workload) -> Result<Churn, PlanError> {
    let per_second = [workload.adds_per_second, workload.removes_per_second];
    let possible = |rate: &f64| *rate == 0.0 || (1e-9..=1e12).contains(rate);
    if let Some(bad) = per_second.into_iter().find(|rate| !possible(rate)) {
        return Err(PlanError::PerSecond(bad));
    }
    if per_second == [0.0, 0.0] {
        return Err(PlanError::NothingChanges);
    }
    if !(1..=1_000_000_000).contains(&workload.hosts) {
        return Err(PlanError::Hosts(workload.hosts));
    }
    Ok(Churn {
        // The key that makes a rate exceed its target is itself a member.
        items: workload.items as f64 + 1.0,
        adds_per_second: workload.adds_per_second,
        removes_per_second: workload.removes_per_second,
    })
}

/// What accumulates between two updates.
struct Between {
    seconds: f64,
    /// Members at the end.
    members: f64,
    /// Of them, not yet published.
    added: f64,
    /// Removed keys that the replica still claims.
    ghosts: f64,
    /// One in this many updates contains clears.
    rounds: f64,
}

impl Between {
    /// `room` is the highest number of ghosts with which the promised rate still holds.
    fn updates(
        workload: &Workload,
        churn: &Churn,
        shape: Shape,
        room: f64,
    ) -> Result<Self, PlanError> {
        let n = workload.items as f64;
        let claimed = false_positive_at(&shape, n);
        let (given, max) = (workload.miss.get(), MAX_MISSES * (1.0 - claimed));
        if given > max {
            return Err(PlanError::Miss { given, max, false_positive: claimed });
        }
        // An added key that the replica happens to claim is no miss. The bound only matters for
        // sets of a few keys.
        let missed = first_above(given * n);
        let missing = missed / churn.items / (1.0 - claimed);
        let by_misses = churn.seconds_until_unpublished(missing.min(0.95));
        let by_misses = by_misses.map(|seconds| seconds_between(workload, missed, seconds));
        let ghosts_due = first_above(GHOST_TARGET * n) / n;
        // Without adds all members may be removed before there are too many ghosts.
        let longest = by_misses.unwrap_or(churn.items / churn.removes_per_second);
        let by_ghosts = churn.seconds_until_ghosts(ghosts_due, longest);
        let seconds = by_ghosts.unwrap_or(longest);
        let ghosts = churn.ghosts_after(seconds);
        let permitted = (GHOST_TARGET * n).min(room);
        let fitting = if ghosts > 0.0 { (permitted / ghosts).floor() } else { 1.0 };
        Ok(Self {
            seconds,
            members: churn.members_after(seconds),
            added: churn.members_after(seconds) - churn.published_after(seconds),
            ghosts,
            rounds: fitting.max(1.0),
        })
    }

    /// Size of an update to a replica of `replica_items` keys: digests or bits for the added keys,
    /// plus the bits that only the `cleared` ghosts hold, or a snapshot, whichever is shortest.
    fn update_bytes(&self, shape: Shape, replica_items: f64, cleared: f64) -> f64 {
        let m = shape.bits() as f64;
        let ones = m * fill_at(&shape, replica_items);
        let set = bits_of_these_only(shape, replica_items, self.added);
        let adds = Flips { zeros: m - ones, set, ..Flips::default() };
        let clears = Flips {
            ones,
            cleared: bits_of_these_only(shape, self.members, cleared),
            ..Flips::default()
        };
        let digests = digest_list_bytes(self.added, shape.digest_bits());
        let delta = delta_bytes(adds).min(digests) + delta_bytes(clears);
        let after = if cleared > 0.0 { self.members } else { replica_items + self.added };
        UPDATE_HEADER_BYTES + delta.min(snapshot_bytes(shape, fill_at(&shape, after)))
    }
}

/// Average seconds between two updates, if an update is due after `missed` keys, which take
/// `seconds` to be added.
///
/// With `G` the time of the last of them, `X` that of the first, `s` the shortest interval and
/// `d = s/10` how long a broken target settles, an update leaves at `max(min(G + d, X + L), s)`.
/// Its mean follows from `E[max(Y, s)] = s + E[Y] - E[min(Y, s)]`, since `X + L` is at least `s`.
fn seconds_between(workload: &Workload, missed: f64, seconds: f64) -> f64 {
    let per_second = missed / seconds;
    let shortest = workload.shortest.min(workload.longest.unwrap_or(f64::INFINITY)).max(0.0);
    let settling = shortest / 10.0;
    let first_within =
        |keys: f64, within: f64| mean_of_lesser(keys, within * per_second) / per_second;
    let due = match workload.longest {
        None => seconds,
        Some(longest) => 1.0 / per_second + first_within(missed - 1.0, longest - settling),
    };
    shortest + due - first_within(missed, shortest - settling)
}

/// The mean of the smaller of a number and a Poisson variable. It is also the mean time until
/// `number` keys were added at random times, one per second on average, or `mean` seconds are over.
fn mean_of_lesser(number: f64, mean: f64) -> f64 {
    if mean > 1e6 {
        return number.min(mean);
    }
    // Weights are relative to that of the most likely value: no factorials, no underflow.
    let middle = mean.floor();
    let (mut all, mut lesser) = (0.0, 0.0);
    let mut take = |value: f64, weight: f64| {
        all += weight;
        lesser += weight * value.min(number);
        weight > 1e-12
    };
    let (mut value, mut weight) = (middle, 1.0);
    while take(value, weight) {
        value += 1.0;
        weight *= mean / value;
    }
    (value, weight) = (middle, 1.0);
    while value > 0.0 {
        weight *= value / mean;
        value -= 1.0;
        if !take(value, weight) {
            break;
        }
    }
    lesser / all
}

/// The smallest integer number of keys above a target, averaged over targets from a tenth smaller
/// to a tenth larger, because the size of a set varies.
fn first_above(target: f64) -> f64 {
    // Integral of floor(x) + 1 from 0.
    let summed = |x: f64| (x.floor() + 1.0) * (x - x.floor() / 2.0);
    let (from, to) = (0.9 * target, 1.1 * target);
    (summed(to) - summed(from)) / (to - from)
}

/// Mean of `value(0.0)`, `value(1.0)`, ... over `count` values, from a sample if there are many.
fn mean(count: f64, value: impl Fn(f64) -> f64) -> f64 {
    const SAMPLE: f64 = 64.0;
    let sampled = count.min(SAMPLE);
    let at = |i: u32| (f64::from(i) + 0.5) / sampled * count - 0.5;
    (0..sampled as u32).map(|i| value(at(i))).sum::<f64>() / sampled.max(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::standard;
    use super::*;
    use crate::model::any_of;
    use crate::model::each_of;
    use crate::model::standard::false_positive;

    fn rate(rate: f64) -> Rate {
        Rate::new(rate).unwrap()
    }

    fn workload() -> Workload {
        Workload {
            items: 100_000,
            adds_per_second: 10.0,
            removes_per_second: 10.0,
            hosts: 32,
            miss: rate(0.01),
            false_positive: rate(0.01),
            longest: None,
            shortest: 0.0,
        }
    }

    #[test]
    fn a_bound_in_time_makes_updates_short_and_frequent() {
        let by_keys = plan(&workload()).unwrap();
        let bounded = plan(&Workload { longest: Some(1.0), ..workload() }).unwrap();
        // Ten keys come every second: the first after a tenth of one.
        assert!((bounded.seconds_between_updates - 1.1).abs() < 0.01);
        assert!(bounded.bytes_per_update < by_keys.bytes_per_update / 10.0);
        assert!(bounded.updates_per_clearing > 10.0 * by_keys.updates_per_clearing);
        let sent = bounded.sent_bytes_per_second_per_host();
        assert!(sent > by_keys.sent_bytes_per_second_per_host());
        let quiet = bounded.quiet_bytes_per_second_per_host();
        assert!(bounded.wire_bytes_per_second_per_host() > sent + quiet);
        // Where a load passes the target first, time does not matter.
        let load = Workload { adds_per_second: 1e5, longest: Some(1.0), ..workload() };
        let seconds = |workload: &Workload| plan(workload).unwrap().seconds_between_updates;
        let without = seconds(&Workload { longest: None, ..load });
        assert!((seconds(&load) / without - 1.0).abs() < 1e-9);
        // No two updates follow each other more closely than the shortest interval.
        assert!((seconds(&Workload { shortest: 1.0, ..load }) - 1.0).abs() < 1e-6);
        let removals = Workload { adds_per_second: 0.0, ..workload() };
        let bounded = plan(&Workload { longest: Some(1.0), ..removals }).unwrap();
        assert_eq!(bounded, plan(&removals).unwrap(), "removals have their own time");
    }

    #[test]
    fn keys_that_come_at_random_share_updates() {
        let small = Workload {
            items: 40,
            adds_per_second: 1.0,
            removes_per_second: 1.0,
            longest: Some(1.0),
            ..workload()
        };
        let seconds = |workload: &Workload| plan(workload).unwrap().seconds_between_updates;
        // Every key makes an update due, and two in three of them come less than a second after the
        // last one: an update leaves after a second and the mean of what a key comes later, e^-0.9.
        assert!((seconds(&small) - 1.0).abs() < 0.03, "{}", seconds(&small));
        let spaced = seconds(&Workload { shortest: 1.0, ..small });
        assert!((spaced - 1.0 - (-0.9_f64).exp()).abs() < 0.03, "{spaced}");
        // A first key waits for a second; of a hundred keys a second one makes the update due.
        let hundred = Workload { items: 100, miss: rate(0.0149), ..small };
        let due = 1.0 + (1.0 - (-1.0_f64).exp());
        assert!((seconds(&hundred) - due).abs() < 0.03, "{}", seconds(&hundred));
    }

    #[test]
    fn the_mean_of_the_lesser_is_that_of_the_poisson_weights() {
        let by_weights = |number: f64, mean: f64| {
            let (mut weight, mut sum) = ((-mean).exp(), 0.0);
            for value in 0..200 {
                sum += weight * f64::from(value).min(number);
                weight *= mean / f64::from(value + 1);
            }
            sum
        };
        for (number, mean) in [(0.0, 1.0), (1.0, 0.5), (2.5, 3.0), (7.0, 40.0), (90.0, 40.0)] {
            let (found, expected) = (mean_of_lesser(number, mean), by_weights(number, mean));
            assert!((found - expected).abs() < 1e-9, "{number}, {mean}: {found}, {expected}");
        }
        assert_eq!(mean_of_lesser(5.0, 0.0), 0.0);
        assert_eq!(mean_of_lesser(5.0, 1e9), 5.0);
    }

    #[test]
    fn small_targets_are_passed_by_whole_keys() {
        assert!((first_above(0.3) - 1.0).abs() < 1e-12);
        assert!((first_above(2.5) - 3.0).abs() < 1e-12);
        assert!((first_above(5.0) - 5.5).abs() < 1e-12);
        assert!((first_above(1e9) / 1e9 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn thirty_two_hosts_cost_about_seven_bits_a_key() {
        let one = standard(100_000, rate(0.01)).unwrap().bits() as f64;
        let each = rate(each_of(0.01, 32.0));
        let many = standard(100_000, each).unwrap().bits() as f64;
        assert!(((many - one) / 1e5 - 7.2).abs() < 0.1, "{}", (many - one) / 1e5);
    }

    #[test]
    fn one_percent_each_is_a_third_over_forty_hosts() {
        assert!((any_of(0.01, 39.0) - 0.32).abs() < 0.005);
    }

    #[test]
    fn a_lookup_over_all_hosts_keeps_the_promised_rate_with_ghosts() {
        let plan = plan(&workload()).unwrap();
        assert!(plan.replica_false_positive < each_of(0.01, 32.0));
        let (rung, takes) = plan.rung();
        assert_eq!((rung.exponent(), takes >= 100_000), (21, true));
        assert!(any_of(false_positive(plan.shape, takes), 32.0) <= 0.01);
        assert!(plan.false_hosts_per_lookup() < 0.01);
    }

    #[test]
    fn traffic_is_far_below_that_of_whole_filters() {
        let plan = plan(&workload()).unwrap();
        let whole = plan.full_broadcast_sent_bytes_per_second_per_host();
        assert!(whole / plan.sent_bytes_per_second_per_host() > 20.0);
    }

    #[test]
    fn removals_alone_are_sent_when_ghosts_are_due() {
        let removals = Workload { adds_per_second: 0.0, ..workload() };
        let plan = plan(&removals).unwrap();
        // 5 % of those who stay, and ten go every second.
        assert!((plan.seconds_between_updates - 1e5 * 0.05 / 1.05 / 10.0).abs() < 1.0);
        assert_eq!(plan.updates_per_clearing, 1.0);
        assert!(plan.bytes_per_update > 1000.0);
    }

    #[test]
    fn a_set_that_only_grows_sends_digests_alone() {
        let grows = Workload { removes_per_second: 0.0, ..workload() };
        let plan = plan(&grows).unwrap();
        assert!((plan.seconds_between_updates - 101.0).abs() < 1.0);
        let digests = digest_list_bytes(1010.0, plan.shape.digest_bits());
        assert!((plan.bytes_per_update / (digests + UPDATE_HEADER_BYTES) - 1.0).abs() < 0.01);
    }

    #[test]
    fn many_removals_are_due_before_the_misses_are() {
        let shrinking = Workload { removes_per_second: 200.0, ..workload() };
        let plan = plan(&shrinking).unwrap();
        assert!((plan.seconds_between_updates - 24.0).abs() < 1.0);
        assert_eq!(plan.updates_per_clearing, 1.0);
    }

    #[test]
    fn a_host_alone_sends_nothing() {
        let plan = plan(&Workload { hosts: 1, ..workload() }).unwrap();
        assert_eq!(plan.sent_bytes_per_second_per_host(), 0.0);
        assert_eq!(plan.false_hosts_per_lookup(), 0.0);
        assert!(plan.memory_bytes_per_host() > 0.0);
    }

    #[test]
    fn numbers_outside_their_range_are_refused() {
        let still = Workload { adds_per_second: 0.0, removes_per_second: 0.0, ..workload() };
        assert_eq!(plan(&still), Err(PlanError::NothingChanges));
        for bad in [f64::NAN, -1.0, 1e-10, f64::INFINITY] {
            let adds = Workload { adds_per_second: bad, ..workload() };
            assert!(matches!(plan(&adds), Err(PlanError::PerSecond(_))));
            let removes = Workload { removes_per_second: bad, ..workload() };
            assert!(matches!(plan(&removes), Err(PlanError::PerSecond(_))));
        }
        let nobody = Workload { hosts: 0, ..workload() };
        assert_eq!(plan(&nobody), Err(PlanError::Hosts(0)));
        let crowd = Workload { hosts: 1_000_000_001, ..workload() };
        assert_eq!(plan(&crowd), Err(PlanError::Hosts(1_000_000_001)));
        let deaf = Workload { miss: rate(0.9), ..workload() };
        assert!(matches!(plan(&deaf), Err(PlanError::Miss { .. })));
        let empty = Workload { items: 0, ..workload() };
        assert!(matches!(plan(&empty), Err(PlanError::Param(ParamError::Items(0)))));
        let huge = Workload { items: 1 << 40, ..workload() };
        assert!(matches!(plan(&huge), Err(PlanError::Param(ParamError::Bits(_)))));
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn every_figure_is_finite_and_the_promise_is_kept(
            items in 1_u64..1 << 26, adds in 0.0_f64..1e6, removes in 0.001_f64..1e6,
            hosts in 1_u64..2000, miss in 1e-9_f64..0.24, exponent in -15.0_f64..-0.31,
        ) {
            let false_positive = rate(10_f64.powf(exponent));
            let workload = Workload {
                items, adds_per_second: adds, removes_per_second: removes, hosts,
                miss: rate(miss), false_positive, longest: (adds > 1.0).then_some(1.0),
                shortest: 1.0,
            };
            let plan = plan(&workload).unwrap();
            for figure in [
                plan.seconds_between_updates, plan.bytes_per_update,
                plan.memory_bytes_per_host(), plan.updates_per_clearing,
            ] {
                prop_assert!(figure.is_finite() && figure > 0.0, "{plan:?}");
            }
            let promised = each_of(false_positive.get(), hosts as f64);
            prop_assert!(plan.replica_false_positive <= promised * (1.0 + 1e-9), "{plan:?}");
            prop_assert!(plan.sent_bytes_per_second_per_host().is_finite());
            let whole = plan.filter_bytes() + UPDATE_HEADER_BYTES;
            prop_assert!(plan.bytes_per_update <= whole, "{plan:?}");
        }

        #[test]
        fn faster_churn_and_tighter_targets_make_updates_more_frequent(
            items in 10_000_u64..1 << 30, adds in 0.1_f64..1000.0, miss in 0.001_f64..0.2,
        ) {
            let base = Workload {
                items, adds_per_second: adds, removes_per_second: adds, miss: rate(miss),
                ..workload()
            };
            let seconds = |workload: &Workload| plan(workload).unwrap().seconds_between_updates;
            let faster = Workload {
                adds_per_second: adds * 2.0, removes_per_second: adds * 2.0, ..base
            };
            prop_assert!((seconds(&faster) * 2.0 / seconds(&base) - 1.0).abs() < 1e-6);
            let tighter = Workload { miss: rate(miss / 2.0), ..base };
            prop_assert!(seconds(&tighter) <= seconds(&base));
        }
    }
}
