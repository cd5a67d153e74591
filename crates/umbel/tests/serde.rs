//! Filters in the formats of serde.

use serde_json::{from_str, to_string};
use umbel::codec::AnyFilter;
use umbel::{
    BlockedFilter, CountingFilter, DynamicFilter, HashId, KeyHasher, Scheme, Seed, Shape,
    StandardFilter,
};

macro_rules! comes_back {
    ($filter:expr, $kind:ty) => {{
        let mut filter: $kind = $filter;
        filter.extend((0..100_u32).map(u32::to_le_bytes));
        let text = to_string(&filter).unwrap();
        assert_eq!(from_str::<$kind>(&text).unwrap(), filter);
        assert_eq!(from_str::<AnyFilter>(&text).unwrap(), AnyFilter::from(filter));
        text
    }};
}

#[test]
fn every_kind_comes_back_as_it_was_and_as_no_other_kind() {
    let standard = comes_back!(StandardFilter::for_target(100, 0.01).unwrap(), StandardFilter);
    comes_back!(BlockedFilter::for_target(100, 0.01).unwrap(), BlockedFilter);
    comes_back!(CountingFilter::for_target(100, 0.01).unwrap(), CountingFilter);
    comes_back!(DynamicFilter::for_target(30, 0.01).unwrap(), DynamicFilter);
    let error = from_str::<CountingFilter>(&standard).unwrap_err().to_string();
    assert!(error.contains("a counting filter was expected, not a standard filter"), "{error}");
}

#[test]
fn what_is_no_filter_is_refused() {
    let good = to_string(&StandardFilter::for_target(10, 0.01).unwrap()).unwrap();
    let short = format!("{}\"", &good[..good.len() - 3]);
    let odd = format!("{}\"", &good[..good.len() - 2]);
    for text in ["\"\"", "\"zz\"", "\"ää\"", "7", "null", "{}", &short, &odd] {
        assert!(from_str::<StandardFilter>(text).is_err(), "{text}");
    }
}

#[test]
fn a_filter_with_a_secret_seed_comes_back_locked() {
    let seed = Seed::from_secret(b"only for us");
    let hasher = KeyHasher::secret(HashId::SipHash13, seed);
    let mut filter =
        StandardFilter::new(Scheme::new(Shape::new(1000, 7).unwrap(), hasher)).unwrap();
    filter.insert("apple");
    let mut back: StandardFilter = from_str(&to_string(&filter).unwrap()).unwrap();
    assert!(back.unlock(Seed::from_number(3)).is_err());
    back.unlock(seed).unwrap();
    assert!(back.contains("apple"));
}
