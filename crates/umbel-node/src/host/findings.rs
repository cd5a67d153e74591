//! Reports which promises of a set are not kept, and what to change.
//!
//! A finding states the problem in numbers, and the setting to change. Nothing is reported if too
//! little was measured.

use serde::Serialize;

use super::survey::SetReport;

/// A promise that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The problem.
    pub(crate) what: String,
    /// What to change.
    pub(crate) change: String,
}

/// A rate measured over fewer lookups or members than this is ignored.
const MIN_MEASURED: u64 = 200;
/// A measured rate may exceed its target by this factor before it is reported.
const TOLERANCE: f64 = 1.5;

/// All findings, the worst first.
pub(crate) fn findings(set: &SetReport) -> Vec<Finding> {
    let all = [
        not_accepted(set),
        confined(set),
        too_many_hosts(set),
        measured_false_positives(set),
        misses(set),
        measured_misses(set),
        late(set),
        behind(set),
    ];
    all.into_iter().flatten().collect()
}

fn finding(what: impl Into<String>, change: impl Into<String>) -> Option<Finding> {
    Some(Finding { what: what.into(), change: change.into() })
}

fn percent(rate: f64) -> String {
    let percent = 100.0 * rate;
    match percent {
        percent if percent >= 10.0 => format!("{percent:.0} %"),
        percent if percent >= 0.1 => format!("{percent:.1} %"),
        percent => format!("{percent:.3} %"),
    }
}

fn not_accepted(set: &SetReport) -> Option<Finding> {
    let first = set.info.not_accepted.first()?;
    let others = match set.info.not_accepted.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    finding(
        format!("not accepted: {first}{others}"),
        "Raise the limit that is named, or let the host that is named keep fewer keys. For memory: \
         limits.replica_bytes for others' sets, limits.own_bytes for own ones.",
    )
}

fn confined(set: &SetReport) -> Option<Finding> {
    let is_confined = set.own.as_ref().is_some_and(|own| own.is_confined);
    let full = set.info.full.unwrap_or(0.0);
    if !is_confined {
        return None;
    }
    finding(
        format!("its filter holds {} of the keys that it takes and may not grow", percent(full)),
        "Raise limits.own_bytes, or remove keys: until then it names this host wrongly more often \
         than promised.",
    )
}

fn too_many_hosts(set: &SetReport) -> Option<Finding> {
    let (expected, homes) = (set.info.expected_hosts?, set.info.replicas + 1);
    if homes <= expected {
        return None;
    }
    finding(
        format!("{homes} hosts have this set, and its plan expects {expected}"),
        format!("Set expected hosts to {homes} or more: each filter's share of the rate shrinks."),
    )
}

fn measured_false_positives(set: &SetReport) -> Option<Finding> {
    let (measured, target) = (set.info.measured_false_positive?, set.info.false_positive?);
    if set.info.lookups_confirmed < MIN_MEASURED || measured <= TOLERANCE * target {
        return None;
    }
    finding(
        format!(
            "{} of confirmed lookups named a wrong host, {} are promised",
            percent(measured),
            percent(target)
        ),
        "Lookups of present keys count as well: if hosts remove keys often, lower ghost= in the \
         policy. Otherwise lower the false positive rate, or raise expected hosts.",
    )
}

fn misses(set: &SetReport) -> Option<Finding> {
    let (miss, target) = (set.info.miss?, set.own.as_ref()?.miss_target?);
    // Between two updates a target may be exceeded for a moment. Far beyond it, updates do not
    // arrive.
    if miss <= 2.0 * target || set.info.items < 100 {
        return None;
    }
    finding(
        format!(
            "other hosts miss {} of this host's keys, {} may be",
            percent(miss),
            percent(target)
        ),
        "An update is due and waits for the shortest interval: lower shortest= in the policy, or \
         raise miss= if keys come faster than updates can be sent.",
    )
}

fn measured_misses(set: &SetReport) -> Option<Finding> {
    let (measured, target) = (set.info.measured_miss?, set.own.as_ref()?.miss_target?);
    if set.members_sampled < MIN_MEASURED || measured <= 2.0 * target {
        return None;
    }
    finding(
        format!("replicas here denied {} of the members that others named", percent(measured)),
        "Updates of other hosts arrive late or their policies are looser: see which hosts are \
         behind, and compare their policies.",
    )
}

fn late(set: &SetReport) -> Option<Finding> {
    let share = set.info.late_share?;
    if set.info.late_lookups < MIN_MEASURED || share <= 0.05 {
        return None;
    }
    finding(
        format!(
            "{} of lookups came before the update that would have answered them",
            percent(share)
        ),
        "Lower longest= in the policy of the hosts that add the keys: it bounds how long a new key \
         stays unknown.",
    )
}

fn behind(set: &SetReport) -> Option<Finding> {
    if set.behind == 0 || set.lag_seconds < 10.0 {
        return None;
    }
    finding(
        format!("{} of {} replicas are behind", set.behind, set.info.replicas),
        "Their updates are being fetched. If this lasts, look for a slow network, or a host that \
         has no processor time.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetInfo;

    fn set(change: impl FnOnce(&mut SetInfo)) -> SetReport {
        let mut info = SetInfo { own: true, items: 1000, ..SetInfo::default() };
        change(&mut info);
        SetReport { info, ..SetReport::default() }
    }

    #[test]
    fn a_set_that_keeps_its_promises_has_no_finding() {
        assert_eq!(findings(&set(|_| ())), []);
        let fine = set(|info| {
            (info.false_positive, info.measured_false_positive) = (Some(0.01), Some(0.012));
            info.lookups_confirmed = 100_000;
            (info.expected_hosts, info.replicas) = (Some(8), 7);
            (info.late_share, info.late_lookups) = (Some(0.01), 1000);
        });
        assert_eq!(findings(&fine), []);
    }

    #[test]
    fn what_is_broken_is_named_with_the_setting_that_changes_it() {
        let hosts = set(|info| (info.expected_hosts, info.replicas) = (Some(8), 20));
        let found = findings(&hosts);
        assert_eq!(found[0].what, "21 hosts have this set, and its plan expects 8");
        assert!(found[0].change.contains("21"), "{found:?}");
        let wrong = set(|info| {
            (info.false_positive, info.measured_false_positive) = (Some(0.01), Some(0.05));
            info.lookups_confirmed = 1000;
        });
        let found = findings(&wrong);
        assert!(found[0].what.starts_with("5.0 % of confirmed lookups"), "{found:?}");
        let few = set(|info| {
            (info.false_positive, info.measured_false_positive) = (Some(0.01), Some(1.0));
            info.lookups_confirmed = 3;
        });
        assert_eq!(findings(&few), [], "three lookups say nothing");
        let late = set(|info| (info.late_share, info.late_lookups) = (Some(0.2), 5000));
        assert!(findings(&late)[0].change.contains("longest="));
        let budget = set(|info| info.not_accepted = vec![String::from("b: too long")]);
        assert!(findings(&budget)[0].change.contains("limits.replica_bytes"));
    }
}
