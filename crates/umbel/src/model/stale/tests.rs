//! The papers' tables, the ranges, and how the rates move with staleness.

use proptest::prelude::*;

use super::*;

/// Table 2 of papers 1 and 3: hashes, dirty zeros, dirty ones, Estimated in percent.
const TABLE_2: [(u32, f64, f64, f64); 20] = [
    (6, 0.0100, 0.1705, 46.2259),
    (6, 0.0227, 0.1657, 42.4850),
    (6, 0.0347, 0.1627, 38.7101),
    (6, 0.0458, 0.1582, 34.9268),
    (6, 0.0593, 0.1545, 31.3748),
    (6, 0.0715, 0.1497, 27.8831),
    (6, 0.0837, 0.1445, 24.5657),
    (6, 0.0938, 0.1392, 21.2719),
    (6, 0.1045, 0.1340, 18.2490),
    (6, 0.1165, 0.1300, 15.5103),
    (8, 0.0123, 0.2375, 30.9531),
    (8, 0.0255, 0.2275, 25.7946),
    (8, 0.0413, 0.2180, 21.0943),
    (8, 0.0552, 0.2123, 16.7982),
    (8, 0.0658, 0.2043, 12.9800),
    (8, 0.0772, 0.1965, 9.7307),
    (8, 0.0920, 0.1900, 7.1016),
    (8, 0.1075, 0.1848, 4.9936),
    (8, 0.1237, 0.1788, 3.4031),
    (8, 0.1377, 0.1732, 2.2034),
];

/// Table 1 of papers 1 and 3: hashes, replica items, dirty zeros, dirty ones, Estimated in
/// percent; the rows whose rate is printed with at least three digits.
const TABLE_1: [(u32, f64, f64, f64, f64); 18] = [
    (6, 75.0, 0.0800, 0.1608, 0.0934),
    (6, 75.0, 0.0600, 0.2833, 0.0794),
    (6, 75.0, 0.0483, 0.3758, 0.0799),
    (6, 150.0, 0.0533, 0.1042, 2.2749),
    (6, 150.0, 0.0400, 0.1800, 2.3540),
    (6, 150.0, 0.0325, 0.2508, 2.1872),
    (6, 300.0, 0.0250, 0.0417, 23.6555),
    (6, 300.0, 0.0183, 0.0692, 25.4016),
    (6, 300.0, 0.0117, 0.1000, 24.7241),
    (8, 75.0, 0.0792, 0.1767, 0.0525),
    (8, 75.0, 0.0550, 0.3000, 0.0504),
    (8, 75.0, 0.0425, 0.3917, 0.0506),
    (8, 150.0, 0.0475, 0.1050, 2.5163),
    (8, 150.0, 0.0350, 0.1758, 2.6783),
    (8, 150.0, 0.0283, 0.2367, 2.5384),
    (8, 300.0, 0.0192, 0.0333, 33.2078),
    (8, 300.0, 0.0133, 0.0558, 34.4915),
    (8, 300.0, 0.0083, 0.0817, 32.1779),
];

fn shape(bits: u64, hashes: u32) -> Shape {
    Shape::new(bits, hashes).unwrap()
}

#[test]
fn table_2_holds_the_host_rate_of_five_hosts_in_all_20_rows() {
    for (row, (k, zeros, ones, estimated)) in TABLE_2.into_iter().enumerate() {
        let deleted = 10 * (row as u64 % 10 + 1);
        let n = if k == 6 { 150 } else { 100 } + 100 - deleted;
        let replica = Replica::new(shape(1200, k), n, Dirty { ones, zeros }).unwrap();
        let percent = 100.0 * replica.host(5).overall;
        assert!((percent - estimated).abs() < 0.12, "row {row}: {percent} against {estimated}");
        // What its heading says it holds is far away.
        let overall = 100.0 * replica.overall(Weights::default());
        assert!(overall < 0.4 * estimated, "row {row}: {overall}");
    }
}

#[test]
fn the_reference_rows_have_the_printed_digits() {
    for (k, n, zeros, ones, percent) in [
        (6, 240, 0.01, 0.1705, 46.22),
        (6, 150, 0.1165, 0.13, 15.42),
        (8, 100, 0.1377, 0.1732, 2.2),
    ] {
        let replica = Replica::new(shape(1200, k), n, Dirty { ones, zeros }).unwrap();
        assert!((100.0 * replica.host(5).overall - percent).abs() < 0.005, "k={k} n={n}");
    }
}

/// The experiments keep `n̂` and move the home, so table 1 is the form read backwards: a home
/// of the fill that gives the printed rate must have a replica of about `n̂` items.
#[test]
fn table_1_rates_belong_to_replicas_of_the_stated_items() {
    for (k, replica_items, zeros, ones, percent) in TABLE_1 {
        let replica_fill = (percent / 100.0_f64).powf(1.0 / f64::from(k));
        let shape = shape(1200, k);
        let home_fill = replica_fill + ones - zeros;
        let replica = Replica::of_fill(shape, home_fill, Dirty { ones, zeros }).unwrap();
        assert!((100.0 * replica.false_positive() / percent - 1.0).abs() < 1e-9);
        let items = replica.items().unwrap();
        assert!((items / replica_items - 1.0).abs() < 0.06, "k={k} n̂={replica_items}: {items}");
    }
}

#[test]
fn a_fresh_replica_agrees_with_its_home() {
    let replica = Replica::new(shape(9593, 7), 1000, Dirty::default()).unwrap();
    assert!((replica.items().unwrap() - 1000.0).abs() < 1e-9);
    assert_eq!(replica.disagreement(), 0.0);
    assert_eq!(replica.false_positive(), standard::false_positive(shape(9593, 7), 1000));
    assert_eq!(replica.host(1).overall, replica.false_positive());
}

#[test]
fn an_overfull_home_still_counts_its_items() {
    // kn/m = 100: the fill rounds to 1, the share of zeros does not round to 0.
    let replica = Replica::new(shape(1000, 10), 10_000, Dirty::default()).unwrap();
    assert!((replica.items().unwrap() - 10_000.0).abs() < 1e-6);
}

#[test]
fn shares_outside_their_range_are_refused() {
    let at = |ones, zeros| Replica::of_fill(shape(1000, 7), 0.4, Dirty { ones, zeros });
    assert!(at(0.4, 0.6).is_ok());
    assert!(matches!(at(0.41, 0.0), Err(ModelError::DirtyOnes { .. })));
    assert!(matches!(at(-0.1, 0.0), Err(ModelError::DirtyOnes { .. })));
    assert!(matches!(at(f64::NAN, 0.0), Err(ModelError::DirtyOnes { .. })));
    assert!(matches!(at(0.0, 0.61), Err(ModelError::DirtyZeros { .. })));
    assert!(matches!(at(0.0, f64::NAN), Err(ModelError::DirtyZeros { .. })));
    let fill = |fill| Replica::of_fill(shape(1000, 7), fill, Dirty::default());
    assert!(matches!(fill(1.1), Err(ModelError::Fill(_))));
    assert!(matches!(fill(f64::NAN), Err(ModelError::Fill(_))));
}

#[test]
fn a_replica_of_all_ones_stands_for_no_number_of_items() {
    let dirty = Dirty { ones: 0.0, zeros: 0.5 };
    let replica = Replica::of_fill(shape(1000, 7), 0.5, dirty).unwrap();
    assert_eq!(replica.items(), Err(ModelError::AllOnes));
    assert_eq!(replica.false_positive(), 1.0);
}

#[test]
fn a_host_over_equal_replicas_is_the_host_of_one_of_them() {
    let dirty = Dirty { ones: 0.1705, zeros: 0.01 };
    let replica = Replica::new(shape(1200, 6), 240, dirty).unwrap();
    let own = standard::false_positive(shape(1200, 6), 240);
    let (over, of) = (Host::over(own, &[replica; 4]), replica.host(5));
    assert!((over.overall - of.overall).abs() < 1e-14);
    assert!((over.false_positive - of.false_positive).abs() < 1e-14);
    assert!((over.disagreement - of.disagreement).abs() < 1e-14);
    assert_eq!(Host::over(own, &[]).disagreement, 0.0);
}

#[test]
fn components_add_their_rates() {
    let two = several_components(2, &[0.1, 0.2]);
    assert!((two - (1.0 - 0.99 * 0.96)).abs() < 1e-15);
    assert_eq!(several_components(7, &[]), 0.0);
}

#[test]
fn a_tiny_share_of_dirty_ones_is_not_lost() {
    let replica = |ones| Replica::of_fill(shape(1 << 40, 50), 0.5, Dirty { ones, zeros: 0.0 });
    // f- = k p^(k-1) δ1 for small δ1; here 50 · 2^-49 · 10^-12, far below the spacing of p^k.
    let expected = 50.0 * 0.5_f64.powi(49) * 1e-12;
    assert!((replica(1e-12).unwrap().disagreement() / expected - 1.0).abs() < 1e-9);
}

/// Share of zeros and of ones each lose their digits where they are next to one.
#[test]
fn a_nearly_empty_and_a_nearly_full_replica_keep_their_digits() {
    let long = Shape::new(1 << 40, 1).unwrap();
    let one = Replica::new(long, 1, Dirty::default()).unwrap().items().unwrap();
    assert!((one - 1.0).abs() < 1e-12, "{one}");
    let short = Shape::new(64, 4).unwrap();
    let many = Replica::new(short, 1000, Dirty::default()).unwrap().items().unwrap();
    assert!((many - 1000.0).abs() < 1e-9, "{many}");
}

proptest! {
    #![proptest_config(crate::model::seeded())]

    #[test]
    fn every_rate_is_one_and_moves_the_right_way(
        k in 1_u32..=64, fill in 0.0_f64..=1.0, share in 0.0_f64..=1.0, hosts in 1_u64..1000,
    ) {
        let of = |ones: f64, zeros: f64| {
            let dirty = Dirty { ones: ones * fill, zeros: zeros * (1.0 - fill) };
            Replica::of_fill(shape(1 << 20, k), fill, dirty).unwrap()
        };
        let (less, more) = (of(share * 0.9, share), of(share, share));
        prop_assert!(less.disagreement() <= more.disagreement());
        prop_assert!(less.false_positive() >= more.false_positive());
        prop_assert!(of(share, share * 0.9).false_positive() <= more.false_positive());
        let (host, larger) = (more.host(hosts), more.host(hosts + 1));
        prop_assert!(larger.overall >= host.overall);
        for rate in [host.false_positive, host.disagreement, host.overall] {
            prop_assert!((0.0..=1.0).contains(&rate));
        }
        prop_assert!(host.overall >= host.false_positive.max(host.disagreement) - 1e-15);
    }

    #[test]
    fn the_range_of_dirty_bits_is_exactly_what_the_filter_has(
        k in 1_u32..=64, items in 1_u64..100_000, beyond in 1e-9_f64..1.0,
    ) {
        let shape = shape(1 << 20, k);
        let p = standard::fill(shape, items);
        let ones = |ones| Replica::new(shape, items, Dirty { ones, zeros: 0.0 });
        let zeros = |zeros| Replica::new(shape, items, Dirty { ones: 0.0, zeros });
        prop_assert!(ones(p).is_ok() && ones(p + beyond).is_err() && ones(-beyond).is_err());
        let left = (-standard::load(&shape, items as f64)).exp();
        prop_assert!(zeros(left).is_ok() && zeros(left + beyond).is_err());
        prop_assert_eq!(zeros(left).unwrap().items(), Err(ModelError::AllOnes));
    }
}
