//! Compares homes, with their real filters and encodings, with the closed forms about them: the
//! estimate of the policy `overall`, and the planner.

use umbel::catalogue::MemoryCatalogue;
use umbel::design::dynamic_component;
use umbel::design::replica::{UPDATE_HEADER_BYTES, Workload, plan};
use umbel::mesh::{Engine, MeshConfig};
use umbel::protocol::Protocol as _;
use umbel::replica::{Home, Incarnation, Name};
use umbel::{HashId, KeyHasher, Rate, Seed};

use super::*;
use crate::random::Random;

/// What random keys see, over what the policy estimates, whenever an update fires.
struct Ratios(Vec<f64>);

impl Ratios {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn standard_error(&self) -> f64 {
        let squares: f64 = self.0.iter().map(|ratio| (ratio - self.mean()).powi(2)).sum();
        (squares / (self.0.len() as f64 - 1.0) / self.0.len() as f64).sqrt()
    }
}

const ASKED: u64 = 100_000;

/// Equal churn of a home that keeps `overall:target,weights=w+/w-`.
fn ratios(items: u64, components: u32, (target, plus, minus): (f64, f64, f64)) -> Ratios {
    let text = format!("overall:{target},weights={plus}/{minus}");
    let policy: Policy = text.parse().unwrap();
    let capacity = items.div_ceil(components.into());
    let shape = dynamic_component(capacity + capacity / 10, rate(0.02), components).unwrap();
    let hasher = KeyHasher::new(HashId::Xxh3, Seed::from_number(5));
    let setting = Setting::default();
    let (shape, intervals) = ((shape, capacity), setting.intervals);
    let mut home =
        Home::of_shape(hasher, shape, policy, intervals, MemoryCatalogue::new()).unwrap();
    let mut random = Random::of_trial(1, "overall", items);
    let mut members: Vec<u64> = (0..items).map(|_| random.next()).collect();
    members.iter().for_each(|key| assert!(home.add(Duration::ZERO, &key.to_be_bytes())));
    home.set_policy("miss:0".parse().unwrap());
    assert!(home.publish_if_due(Duration::ZERO));
    home.set_policy(policy);
    let mut ratios = Vec::new();
    while ratios.len() < 8 {
        let gone = members.swap_remove(random.below(members.len()));
        assert!(home.remove(Duration::ZERO, &gone.to_be_bytes()));
        members.push(random.next());
        home.add(Duration::ZERO, &members[members.len() - 1].to_be_bytes());
        let fresh = home.freshness();
        let estimate = plus * fresh.false_positive + minus * fresh.disagreement;
        let due = estimate > target && plus * home.filter().false_positive() < 0.9 * estimate;
        if due {
            let (mut claimed, mut differ) = (0, 0);
            for _ in 0..ASKED {
                let hash = hasher.hash(&random.next().to_be_bytes());
                let copy = home.published_claims(hash);
                let here = home.filter().contains_digest(home.filter().scheme().digest_of(hash));
                claimed += u64::from(copy);
                differ += u64::from(here && !copy);
            }
            let measured = (plus * claimed as f64 + minus * differ as f64) / ASKED as f64;
            ratios.push(measured / estimate);
        }
        assert_eq!(home.publish_if_due(Duration::ZERO), due, "{text}: the policy sees the same");
    }
    Ratios(ratios)
}

#[test]
fn overall_is_what_random_keys_see_when_an_update_fires() {
    for (items, components, policy) in
        [(2000, 1, (0.02, 1.0, 1.0)), (2000, 1, (0.05, 1.0, 5.0)), (6000, 4, (0.018, 1.0, 1.0))]
    {
        let ratios = ratios(items, components, policy);
        let (mean, error) = (ratios.mean(), ratios.standard_error());
        println!("{items} keys, {components} components: {mean:.4} ± {error:.4} of the estimate");
        assert!((mean - 1.0).abs() < 0.1, "{mean} ± {error}");
        // Not by luck: three standard errors stay within the tenth, too.
        assert!((mean - 1.0).abs() + 3.0 * error < 0.1, "{mean} ± {error}");
    }
}

fn workload(items: u64, per_second: f64, hosts: u64) -> Workload {
    Workload {
        items,
        adds_per_second: per_second,
        removes_per_second: per_second,
        hosts,
        miss: rate(0.01),
        false_positive: rate(0.01),
        longest: None,
        shortest: 0.0,
    }
}

fn rate(rate: f64) -> Rate {
    Rate::new(rate).unwrap()
}

/// The planner's averages against one home in equal churn for about `updates` updates.
fn planned_agrees(name: &str, workload: Workload, updates: f64) {
    let plan = plan(&workload).unwrap();
    let history = History::synthetic(Synthetic {
        hosts: 1,
        items: workload.items,
        adds: workload.adds_per_second,
        removes: workload.removes_per_second,
        lookups: 0.0,
        steps: (updates * plan.seconds_between_updates).ceil() as u64,
        seed: 11,
    });
    let setting = Setting {
        false_positive: workload.false_positive.get(),
        intervals: Intervals {
            shortest: Duration::ZERO,
            longest: Duration::from_secs(1 << 40),
            clears: Duration::from_secs(1 << 40),
        },
        ..Setting::default()
    };
    let policy = format!("miss:{}", workload.miss.get()).parse().unwrap();
    let set =
        SetPlan { expected_hosts: Some(workload.hosts as u32), ..setting.plan(&history, policy) };
    let mut hosts = Hosts::new(1, set, &setting).unwrap();
    history.replay(|event| hosts.happen(event));
    assert_eq!(hosts.homes[0].rebuilds(), 0, "{name}: the plan is for one shape");
    let shape = *hosts.homes[0].filter().scheme().shape();
    assert_eq!((shape.bits(), shape.hashes()), (plan.shape.bits(), plan.shape.hashes()));
    let outcome = hosts.outcome();
    let sent = outcome.updates as f64;
    for (figure, planned, measured) in [
        ("seconds", plan.seconds_between_updates, history.seconds() as f64 / sent),
        ("bytes", plan.bytes_per_update, outcome.bytes as f64 / sent),
        ("rate", plan.replica_false_positive, outcome.mean_false_positive),
    ] {
        let ratio = planned / measured;
        println!("{name}: {figure} planned {planned:.6}, measured {measured:.6}, {ratio:.3}");
        assert!((ratio - 1.0).abs() < 0.1, "{name}: {figure} {planned} against {measured}");
    }
}

#[test]
fn the_plan_agrees_with_homes_of_ten_thousand_keys() {
    planned_agrees("10^4, 32 hosts", workload(10_000, 10.0, 32), 60.0);
    planned_agrees("10^4, 2 hosts", workload(10_000, 2.0, 2), 60.0);
    planned_agrees("10^4, 1000 hosts", workload(10_000, 10.0, 1000), 60.0);
}

#[test]
fn the_plan_agrees_with_homes_of_other_targets() {
    let tight = Workload { miss: rate(0.001), ..workload(20_000, 10.0, 32) };
    planned_agrees("tight", tight, 200.0);
    let loose = Workload { miss: rate(0.1), ..workload(10_000, 10.0, 32) };
    planned_agrees("loose", loose, 20.0);
    let strict = Workload { false_positive: rate(1e-4), ..workload(10_000, 10.0, 8) };
    planned_agrees("strict", strict, 60.0);
}

#[test]
fn the_plan_agrees_with_homes_of_a_hundred_thousand_keys() {
    planned_agrees("10^5, 32 hosts", workload(100_000, 20.0, 32), 30.0);
}

/// The header of a message is as long as the planner assumes.
#[test]
fn headers_of_updates_are_as_long_as_planned() {
    let name = |text: &str| Name::new(text).unwrap();
    let hasher = KeyHasher::secret(HashId::SipHash13, Seed::from_number(1));
    // A life is named by the time at which it began, in microseconds.
    let mut config =
        MeshConfig::new(name("host-17.example.net"), Incarnation(1_700_000_000_000_000), hasher);
    config.intervals = Setting::default().intervals;
    let mut engine = Engine::new(config);
    let plan = SetPlan { policy: "miss:0".parse().unwrap(), ..SetPlan::default() };
    engine.create(Duration::ZERO, &name("objects"), plan, MemoryCatalogue::new()).unwrap();
    let (mut bytes, mut updates) = (0, 0);
    for number in 0..200_u64 {
        engine.add(Duration::ZERO, &name("objects"), &number.to_be_bytes());
        while let Some(transmit) = engine.poll_transmit() {
            bytes += transmit.bytes.len() as u64;
            updates += 1;
        }
    }
    let sent = engine.home(&name("objects")).unwrap().sent();
    assert_eq!(sent.updates, updates);
    let header = (bytes - sent.bytes) as f64 / updates as f64;
    assert!((header - UPDATE_HEADER_BYTES).abs() < 15.0, "{header}");
}
