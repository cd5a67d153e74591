//! Compares the command's figures with members and keys that are checked one by one.

use umbel::catalogue::Catalogue as _;

use super::event::Event;
use super::*;
use crate::random::Random;

fn policy(text: &str) -> Policy {
    text.parse().unwrap()
}

fn churn(hosts: usize, items: u64, adds: f64, removes: f64, steps: u64) -> Synthetic {
    Synthetic { hosts, items, adds, removes, lookups: 2.0, steps, seed: 7 }
}

/// A request trace in which a few keys are asked for often, most rarely: the `i`-th most
/// popular one with weight `1/i`.
fn zipf_trace(keys: usize, requests: usize, seed: u64) -> String {
    let mut random = Random::of_trial(seed, "zipf", 0);
    let mut sums = vec![0.0];
    for rank in 1..=keys {
        sums.push(sums[rank - 1] + 1.0 / rank as f64);
    }
    let mut line = || {
        let point = random.next() as f64 / u64::MAX as f64 * sums[keys];
        format!("object {}\n", sums.partition_point(|sum| *sum <= point))
    };
    (0..requests).map(|_| line()).collect()
}

/// Replays a history, and checks every member after every event.
fn denied_at_every_step(history: &History, text: &str, mut look: impl FnMut(u64, u64)) -> Outcome {
    let setting = Setting::default();
    let plan = setting.plan(history, policy(text));
    let mut hosts = Hosts::new(history.hosts(), plan, &setting).unwrap();
    let hasher = *hosts.homes[0].filter().scheme().hasher();
    history.replay(|event| {
        hosts.happen(event);
        let (Event::Added { host, .. } | Event::Removed { host, .. }) = event else { return };
        let home = &hosts.homes[host];
        let (mut members, mut denied) = (0, 0);
        home.catalogue().for_each(&mut |key, _| {
            members += 1;
            denied += u64::from(!home.published_claims(hasher.hash(key)));
        });
        assert_eq!((denied, members), (home.misses(), home.filter().items()));
        look(denied, members);
    });
    hosts.outcome()
}

/// The promise of `miss:X`: no copy ever denies more than `X` of a host's members.
fn never_passes(history: &History, target: f64) {
    let mut worst: f64 = 0.0;
    let outcome = denied_at_every_step(history, &format!("miss:{target}"), |denied, members| {
        assert!(denied as f64 <= target * members as f64, "{denied} of {members}");
        worst = worst.max(denied as f64 / members.max(1) as f64);
    });
    assert_eq!(outcome.max_miss, worst, "the outcome is the one counted member by member");
    assert!(outcome.updates > 10 && outcome.mean_miss <= worst, "{outcome:?}");
}

#[test]
fn misses_never_pass_their_target_under_churn() {
    for (adds, removes) in [(3.0, 3.0), (5.0, 2.0), (2.0, 5.0), (7.5, 0.25)] {
        let history = History::synthetic(churn(2, 400, adds, removes, 60));
        [0.01, 0.05].into_iter().for_each(|target| never_passes(&history, target));
    }
}

#[test]
fn misses_never_pass_their_target_on_a_request_trace() {
    let trace = zipf_trace(3000, 5000, 3);
    let history = History::from_requests(trace.as_bytes(), 3, 300, None).unwrap();
    [0.01, 0.05].into_iter().for_each(|target| never_passes(&history, target));
}

#[test]
fn misses_are_counted_exactly_under_every_policy() {
    let history = History::synthetic(churn(2, 200, 2.0, 2.0, 100));
    for text in ["overall:0.004", "dirty:0.05", "interval:7", "budget:20", "manual"] {
        denied_at_every_step(&history, text, |_, _| {});
    }
}

/// Asked the slow way: every host's copy and every host's catalogue.
#[test]
fn lookups_are_what_asking_every_host_finds() {
    let trace = zipf_trace(300, 3000, 5);
    let history = History::from_requests(trace.as_bytes(), 4, 40, None).unwrap();
    let setting = Setting { false_positive: 0.3, ..Setting::default() };
    let plan = setting.plan(&history, policy("dirty:0.2"));
    let mut hosts = Hosts::new(4, plan, &setting).unwrap();
    let hasher = *hosts.homes[0].filter().scheme().hasher();
    let mut counted = [0; 4];
    history.replay(|event| {
        if let Event::Asked { host: asking, key } = event {
            let others = hosts.homes.iter().enumerate().filter(|(host, _)| *host != asking);
            let others: Vec<_> = others.map(|(_, home)| home).collect();
            let claims: Vec<bool> =
                others.iter().map(|h| h.published_claims(hasher.hash(&ids::bytes(key)))).collect();
            let holds: Vec<bool> = others.iter().map(|h| h.contains(&ids::bytes(key))).collect();
            let found = claims.iter().zip(&holds).any(|(claims, holds)| *claims && *holds);
            counted[0] += 1;
            counted[1] += u64::from(found);
            counted[2] += u64::from(!found && holds.contains(&true));
            counted[3] += claims.iter().zip(&holds).filter(|(c, h)| **c && !**h).count() as u64;
        }
        hosts.happen(event);
    });
    let outcome = hosts.outcome();
    let Outcome { lookups, remote_hits, missed_remote_hits, false_probes, .. } = outcome;
    assert_eq!([lookups, remote_hits, missed_remote_hits, false_probes], counted);
    assert!(counted.iter().all(|count| *count > 20), "{counted:?}: too few to show anything");
}

#[test]
fn outcomes_repeat_to_the_last_digit_and_do_not_see_each_other() {
    let history = History::synthetic(churn(3, 300, 4.0, 4.0, 80));
    let policies = ["miss:0.02", "dirty:0.1", "interval:20", "manual"].map(policy);
    let compared =
        |policies: &[Policy]| compare(&history, &Setting::default(), policies, || {}).unwrap();
    let all = compared(&policies);
    assert_eq!(all, compared(&policies));
    for (policy, outcome) in policies.iter().zip(&all) {
        assert_eq!(compared(&[*policy])[0], *outcome);
        assert_eq!(outcome.lookups, 3 * 2 * 80);
    }
    assert_eq!((all[2].updates, all[3].updates, all[3].bytes), (3 * 4, 0, 0));
    let whole = all[2].full_broadcast_bytes / all[2].updates;
    assert!(all[2].bytes < all[2].full_broadcast_bytes && whole > 300, "{all:?}");
}

#[test]
fn an_object_that_is_held_is_no_lookup_and_a_missed_one_is_told() {
    // Nothing is published: b and c cannot know.
    let text = b"+ a x\n? a x\n? b x\n? c y\n- a x\n? b x\n";
    let history = History::from_lines(text, None).unwrap();
    let outcome = &compare(&history, &Setting::default(), &[policy("manual")], || {}).unwrap()[0];
    assert_eq!((outcome.lookups, outcome.remote_hits, outcome.missed_remote_hits), (3, 0, 1));
    let outcome = &compare(&history, &Setting::default(), &[policy("miss:0")], || {}).unwrap()[0];
    assert_eq!((outcome.lookups, outcome.remote_hits, outcome.missed_remote_hits), (3, 1, 0));
    assert_eq!(outcome.max_miss, 0.0);
}

#[test]
fn coded_updates_take_less_than_whole_filters_at_equal_miss() {
    let history = History::synthetic(churn(1, 2000, 5.0, 5.0, 600));
    let dirty = policy("dirty:0.03,longest=100000s,clears=100000s");
    let rows = at_equal_miss(&history, &Setting::default(), &[dirty], || {}).unwrap();
    let row = &rows[0];
    assert!((row.miss_policy_mean_miss / row.mean_miss - 1.0).abs() < 0.1, "{row:?}");
    // At one host, digests are not shorter than the bits of this many keys; never longer either.
    assert!(row.ratio >= row.ratio_by_bits && row.ratio_by_bits > 1.0, "{row:?}");
}
