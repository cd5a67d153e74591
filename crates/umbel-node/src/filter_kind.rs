//! The filter that a Redis client created a set as: a Bloom filter or a cuckoo filter.
//!
//! The keys of such a set are in its catalogue like those of any other. Here are the parameters
//! that Redis clients set and query: how many items fit before a filter is full, and how many
//! filters Redis would have stacked by now. All of it is computed from these numbers and the number
//! of items.

use serde::{Deserialize, Serialize};

/// The filter that a Redis client created a set as.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilterKind {
    Bloom(Bloom),
    Cuckoo(Cuckoo),
}

/// A Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bloom {
    /// The chance that an absent item is claimed. `BF.EXISTS` is exact here: the rate applies to
    /// lookups at other hosts.
    pub(crate) error_rate: f64,
    /// Capacity of the first filter, in items.
    pub(crate) capacity: u64,
    /// The growth factor of each further filter; `None`: the filter does not scale, and refuses
    /// items when it is full.
    pub(crate) expansion: Option<u32>,
}

/// A cuckoo filter. Items may be added several times, and are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cuckoo {
    /// Capacity of the first filter in items, as requested.
    pub(crate) capacity: u64,
    pub(crate) bucket_size: u32,
    /// Has no effect, because nothing is moved between buckets. `CF.INFO` reports it.
    pub(crate) max_iterations: u32,
    /// The growth factor of each further filter; 0: the filter does not scale, and refuses items
    /// when it is full.
    pub(crate) expansion: u32,
}

impl Default for Bloom {
    fn default() -> Self {
        Self { error_rate: 0.01, capacity: 100, expansion: Some(2) }
    }
}

impl Default for Cuckoo {
    fn default() -> Self {
        Self { capacity: 1024, bucket_size: 2, max_iterations: 20, expansion: 1 }
    }
}

impl FilterKind {
    /// The reply to `TYPE`: RedisBloom's name of the type.
    pub(crate) const fn type_name(self) -> &'static str {
        match self {
            Self::Bloom(_) => "MBbloom--",
            Self::Cuckoo(_) => "MBbloomCF",
        }
    }

    /// The rate for which lookups at other hosts are planned, and the number of keys for which the
    /// filter has room from the start. Both are limited: extreme rates lead to extreme filters, and
    /// a client with write permission could take all memory by reserving. A filter grows with its
    /// keys anyway.
    pub(crate) fn plan(self) -> (f64, u64) {
        let (rate, capacity) = match self {
            Self::Bloom(bloom) => (bloom.error_rate, bloom.capacity),
            Self::Cuckoo(cuckoo) => (Self::CUCKOO_RATE, cuckoo.capacity),
        };
        (rate.clamp(Self::MIN_RATE, Self::MAX_RATE), capacity.min(Self::MAX_RESERVED))
    }

    /// Cuckoo filters have no configured rate; RedisBloom's claim about 3 % of absent items.
    const CUCKOO_RATE: f64 = 0.01;
    const MIN_RATE: f64 = 1e-6;
    const MAX_RATE: f64 = 0.5;
    /// Maximum number of keys for which room is reserved.
    const MAX_RESERVED: u64 = 1_000_000;
}

impl Bloom {
    /// Maximum number of items, if it is limited.
    pub(crate) const fn max_items(self) -> Option<u64> {
        match self.expansion {
            None => Some(self.capacity),
            Some(_) => None,
        }
    }

    /// The filters that Redis would have stacked for this many items, and their total capacity.
    pub(crate) fn stack(self, items: u64) -> Stack {
        Stack::of(self.capacity, self.expansion.unwrap_or(0), items)
    }
}

impl Cuckoo {
    /// Maximum number of stacked filters, as in RedisBloom.
    const MAX_FILTERS: u64 = 32;

    /// Number of buckets of the first filter: a power of two, as RedisBloom computes it.
    pub(crate) fn buckets(self) -> u64 {
        (self.capacity / u64::from(self.bucket_size.max(1))).next_power_of_two()
    }

    /// The same filter with an expansion that is 0 or a power of two, as RedisBloom rounds it.
    pub(crate) fn with_expansion(self, expansion: u32) -> Self {
        let expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        Self { expansion, ..self }
    }

    /// The filters that are stacked for this many items, and their total capacity.
    pub(crate) fn stack(self, items: u64) -> Stack {
        let slots = self.buckets().saturating_mul(self.bucket_size.into());
        Stack::of(slots, self.expansion, items)
    }

    /// Whether commands that add are refused because it holds `items`: RedisBloom refuses them once
    /// there are 32 filters, and checks that at the beginning of a command only.
    pub(crate) fn is_expanded(self, items: u64) -> bool {
        self.stack(items).filters >= Self::MAX_FILTERS
    }

    /// Whether there is no room for another item when it holds `items`.
    pub(crate) fn is_full(self, items: u64) -> bool {
        self.expansion == 0 && items >= self.stack(items).capacity
    }
}

/// A stack of filters: Redis adds one whenever the last is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) filters: u64,
    /// Their total capacity in items.
    pub(crate) capacity: u64,
}

impl Stack {
    /// The stack that these items need: at least one filter, each `expansion` times as large as the
    /// previous one. With 0 there is only one.
    fn of(first: u64, expansion: u32, items: u64) -> Self {
        let mut stack = Self { filters: 1, capacity: first.max(1) };
        match expansion {
            0 => {}
            1 => {
                stack.filters = items.div_ceil(stack.capacity).max(1);
                stack.capacity = stack.capacity.saturating_mul(stack.filters);
            }
            // Each is at least twice as large as the previous one: at most 64 rounds.
            _ => {
                let mut next = stack.capacity;
                while stack.capacity < items {
                    next = next.saturating_mul(expansion.into());
                    stack.capacity = stack.capacity.saturating_add(next);
                    stack.filters += 1;
                }
            }
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_stacked_as_items_come() {
        let bloom = |expansion| Bloom { capacity: 100, expansion, ..Bloom::default() };
        let stack = |expansion, items| {
            let Stack { filters, capacity } = bloom(expansion).stack(items);
            (filters, capacity)
        };
        assert_eq!([stack(Some(2), 0), stack(Some(2), 100)], [(1, 100); 2]);
        assert_eq!([stack(Some(2), 101), stack(Some(2), 300)], [(2, 300); 2]);
        assert_eq!(stack(Some(2), 301), (3, 700));
        assert_eq!([stack(Some(1), 101), stack(Some(1), 1000)], [(2, 200), (10, 1000)]);
        assert_eq!([stack(None, 0), stack(None, 100)], [(1, 100); 2]);
        assert_eq!(stack(Some(32_768), u64::MAX).1, u64::MAX, "without an overflow");
        assert_eq!((bloom(None).max_items(), bloom(Some(1)).max_items()), (Some(100), None));
    }

    #[test]
    fn a_cuckoo_filter_takes_what_its_buckets_take() {
        let cuckoo = Cuckoo { capacity: 1000, ..Cuckoo::default() };
        assert_eq!((cuckoo.buckets(), cuckoo.stack(1024).filters), (512, 1));
        assert_eq!(cuckoo.stack(1025), Stack { filters: 2, capacity: 2048 });
        assert!(!cuckoo.is_full(1024) && !cuckoo.is_expanded(31 * 1024));
        assert!(!cuckoo.is_full(31 * 1024 + 1) && cuckoo.is_expanded(31 * 1024 + 1));
        let fixed = Cuckoo { capacity: 4, ..cuckoo }.with_expansion(0);
        assert!(!fixed.is_full(3) && fixed.is_full(4) && !fixed.is_expanded(4));
        let odd = Cuckoo { capacity: 7, bucket_size: 3, ..cuckoo };
        assert_eq!((odd.buckets(), odd.stack(0).capacity), (2, 6));
        assert_eq!([1, 3, 32_767].map(|it| cuckoo.with_expansion(it).expansion), [1, 4, 32_768]);
    }

    #[test]
    fn what_a_set_is_planned_for_is_bounded() {
        let huge = Bloom { error_rate: 1e-300, capacity: 1 << 30, expansion: None };
        assert_eq!(FilterKind::Bloom(huge).plan(), (1e-6, 1_000_000));
        let loose = Bloom { error_rate: 0.999, capacity: 1, expansion: None };
        assert_eq!(FilterKind::Bloom(loose).plan(), (0.5, 1));
        assert_eq!(FilterKind::Cuckoo(Cuckoo::default()).plan(), (0.01, 1024));
    }

    #[test]
    fn it_is_written_and_read_as_the_same() {
        let kinds = [
            FilterKind::Bloom(Bloom { error_rate: 0.1, capacity: 7, expansion: None }),
            FilterKind::Cuckoo(Cuckoo::default()),
        ];
        for kind in kinds {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<FilterKind>(&text).unwrap(), kind, "{text}");
        }
    }
}
