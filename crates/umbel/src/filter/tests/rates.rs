//! Measured false positives against the formulas, on a million absent keys.

use super::*;

const ABSENT: u64 = 1_000_000;

/// Whether `measured` wrong answers of [`ABSENT`] agree with `expected` within three
/// standard errors.
fn agrees(name: &str, measured: u64, expected: f64) {
    let error = (expected * (1.0 - expected) / ABSENT as f64).sqrt();
    let measured = measured as f64 / ABSENT as f64;
    assert!(
        (measured - expected).abs() <= 3.0 * error,
        "{name}: measured {measured:.6}, formula {expected:.6} ± {error:.6}"
    );
}

fn absent_claimed(filter: &impl Membership) -> u64 {
    // Members are 0..n; these never are.
    (1 << 32..(1 << 32) + ABSENT).filter(|key| filter.may_contain(&bytes(*key))).count() as u64
}

#[test]
fn measured_false_positive_of_every_kind_agrees_with_its_formula() {
    // Filters large enough that their fill strays from its mean by less than the sample does.
    for (items, rate, id) in [
        (100_000u64, 0.01, HashId::Xxh3),
        (50_000, 0.001, HashId::SipHash13),
        (200_000, 0.02, HashId::Xxh3),
    ] {
        let shape = design::standard(items, Rate::new(rate).unwrap()).unwrap();
        let scheme = Scheme::new(shape, KeyHasher::new(id, Seed::from_number(1)));
        let (m, k) = (shape.bits() as f64, f64::from(shape.hashes()));
        let full = (-(-k * items as f64 / m).exp_m1()).powf(k);

        let mut standard = StandardFilter::new(scheme).unwrap();
        (0..items).for_each(|key| standard.put(key));
        agrees("standard", absent_claimed(&standard), full);

        // As many keys again, added and removed, leave no trace.
        let mut counting = CountingFilter::new(scheme).unwrap();
        (0..2 * items).for_each(|key| counting.put(key));
        (items..2 * items).for_each(|key| counting.take(key));
        agrees("counting", absent_claimed(&counting), full);

        // Three full components and a half: 1 - (1 - f(c))^3 (1 - f(c/2)).
        let half = (-(-k * (items / 2) as f64 / m).exp_m1()).powf(k);
        let expected = 1.0 - (1.0 - full).powi(3) * (1.0 - half);
        let mut dynamic = DynamicFilter::<CountingFilter>::new(scheme, items, 4).unwrap();
        (0..3 * items + items / 2).for_each(|key| dynamic.put(key));
        agrees("dynamic", absent_claimed(&dynamic), expected);
        let plain = dynamic.to_standard();
        agrees("plain dynamic", absent_claimed(&plain), expected);
    }
}

/// A walk with a constant step claimed six times as many absent keys as promised here: two
/// keys that nearly share start and step share all positions.
#[test]
fn short_filters_keep_tiny_rates() {
    let (mut wrong, mut expected) = (0, 0.0);
    for seed in 0..10 {
        let shape = design::standard(25, Rate::new(1e-4).unwrap()).unwrap();
        let hasher = KeyHasher::new(HashId::Xxh3, Seed::from_number(seed));
        let mut filter = StandardFilter::new(Scheme::new(shape, hasher)).unwrap();
        (0..25).for_each(|key| filter.put(key));
        wrong += absent_claimed(&filter);
        expected += filter.false_positive() * ABSENT as f64;
    }
    let ratio = wrong as f64 / expected;
    assert!((0.8..1.3).contains(&ratio), "{ratio} times what the fill says");
}

#[test]
fn a_planned_dynamic_filter_keeps_its_rate_up_to_the_last_component() {
    let mut filter = DynamicFilter::for_target(2_000, 0.01).unwrap();
    (0..8 * 2_000).for_each(|key| filter.put(key));
    assert_eq!(filter.components().len(), 8);
    assert!(!filter.is_past_plan());
    let measured = absent_claimed(&filter) as f64 / ABSENT as f64;
    assert!(measured <= 0.0105, "{measured}");
    filter.put(u64::MAX);
    assert!(filter.is_past_plan());
}
