//! One filter that several threads fill and ask.

use umbel::{ConcurrentFilter, Membership, StandardFilter};

#[test]
fn threads_together_build_what_one_builds_alone() {
    let filter = ConcurrentFilter::for_target(8000, 0.01).unwrap();
    std::thread::scope(|scope| {
        for part in 0..8_u32 {
            let mut filter = &filter;
            scope.spawn(move || {
                for key in part * 1000..(part + 1) * 1000 {
                    filter.insert(key.to_le_bytes());
                    assert!(filter.contains(key.to_le_bytes()), "what this thread added");
                }
                // All threads add some keys in common.
                filter.extend((0..100_u32).map(u32::to_le_bytes));
            });
        }
    });
    assert!((0..8000_u32).all(|key| filter.may_contain(&key.to_le_bytes())));
    let mut alone = StandardFilter::new(*filter.scheme()).unwrap();
    alone.extend((0..8000_u32).map(u32::to_le_bytes));
    (0..8).for_each(|_| alone.extend((0..100_u32).map(u32::to_le_bytes)));
    assert_eq!(filter.to_standard(), alone);
    assert_eq!(filter.into_standard(), alone);
}

#[test]
fn it_goes_on_where_a_standard_filter_stopped() {
    let mut standard = StandardFilter::for_target(100, 0.001).unwrap();
    standard.insert("apple");
    let filter = ConcurrentFilter::from(standard);
    assert!(filter.contains("apple") && !filter.contains("pear"));
    assert!(filter.insert("pear") && !filter.insert("pear"));
    assert_eq!(filter.items(), 3);
    assert!(ConcurrentFilter::for_target(0, 0.5).is_err());
    assert!(ConcurrentFilter::for_target(10, 1.5).is_err());
}
