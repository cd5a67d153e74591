//! What a Redis client made a set as: a Bloom filter or a cuckoo filter.
//!
//! The keys of such a set are in its catalogue like those of any other. What is kept here is what
//! Redis clients ask about and what they set: how many items fit before a filter is full, and how many
//! filters Redis would have stacked by now. All of it follows from these numbers and the items.

use serde::{Deserialize, Serialize};

/// What a Redis client made a set as.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilterKind {
    Bloom(Bloom),
    Cuckoo(Cuckoo),
}

/// A Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bloom {
    /// The chance that an absent item is claimed. `BF.EXISTS` is exact here: the rate is that of other
    /// hosts' lookups.
    pub(crate) error_rate: f64,
    /// Items of the first filter.
    pub(crate) capacity: u64,
    /// How many times as large each further filter is; `None`: there is none, and a full filter
    /// refuses items.
    pub(crate) expansion: Option<u32>,
}

/// A cuckoo filter. Items may be added more than once, and are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cuckoo {
    /// Items of the first filter, as they were asked for.
    pub(crate) capacity: u64,
    pub(crate) bucket_size: u32,
    /// Of no effect: nothing is moved between buckets. It is what `CF.INFO` reports.
    pub(crate) max_iterations: u32,
    /// How many times as large each further filter is; 0: there is none, and a full filter refuses
    /// items.
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
    /// What `TYPE` reports, as RedisBloom names its types.
    pub(crate) const fn type_name(self) -> &'static str {
        match self {
            Self::Bloom(_) => "MBbloom--",
            Self::Cuckoo(_) => "MBbloomCF",
        }
    }

    /// The rate that lookups of other hosts are planned for, and the keys that the filter has room
    /// for from the start. Both are kept within limits: extreme rates make extreme filters, and
    /// whoever may write could take all memory by reserving. A filter grows with its keys anyway.
    pub(crate) fn plan(self) -> (f64, u64) {
        let (rate, capacity) = match self {
            Self::Bloom(bloom) => (bloom.error_rate, bloom.capacity),
            Self::Cuckoo(cuckoo) => (Self::CUCKOO_RATE, cuckoo.capacity),
        };
        (rate.clamp(Self::MIN_RATE, Self::MAX_RATE), capacity.min(Self::MAX_RESERVED))
    }

    /// Cuckoo filters name no rate; RedisBloom's claim about 3 % of absent items.
    const CUCKOO_RATE: f64 = 0.01;
    const MIN_RATE: f64 = 1e-6;
    const MAX_RATE: f64 = 0.5;
    /// Keys that room is made for at once.
    const MAX_RESERVED: u64 = 1_000_000;
}

impl Bloom {
    /// Items that it takes, if it refuses any.
    pub(crate) const fn max_items(self) -> Option<u64> {
        match self.expansion {
            None => Some(self.capacity),
            Some(_) => None,
        }
    }

    /// How many filters Redis would have stacked for so many items, and what they take together.
    pub(crate) fn stack(self, items: u64) -> Stack {
        Stack::of(self.capacity, self.expansion.unwrap_or(0), items)
    }
}

impl Cuckoo {
    /// Filters that are stacked at most, as in RedisBloom.
    const MAX_FILTERS: u64 = 32;

    /// Buckets of the first filter: a power of two.
    pub(crate) fn buckets(self) -> u64 {
        self.capacity.div_ceil(self.bucket_size.max(1).into()).next_power_of_two()
    }

    /// How many filters are stacked for so many items, and what they take together.
    pub(crate) fn stack(self, items: u64) -> Stack {
        let slots = self.buckets().saturating_mul(self.bucket_size.into());
        Stack::of(slots, self.expansion, items)
    }

    /// Why it takes no more than so many items, if so.
    pub(crate) fn refusal(self, items: u64) -> Option<Full> {
        let stack = self.stack(items);
        match items < stack.capacity {
            true => None,
            false if self.expansion == 0 => Some(Full::Full),
            false => (stack.filters >= Self::MAX_FILTERS).then_some(Full::MaxExpansions),
        }
    }
}

/// Why a filter takes no more items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// It may not grow.
    Full,
    /// It has grown as often as it may.
    MaxExpansions,
}

/// Filters that Redis stacks as one of them is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) filters: u64,
    /// Items that they take together.
    pub(crate) capacity: u64,
}

impl Stack {
    /// As many filters as these items need, at least one; each `expansion` times as large as the one
    /// before. With 0 there is one.
    fn of(first: u64, expansion: u32, items: u64) -> Self {
        let mut stack = Self { filters: 1, capacity: first.max(1) };
        match expansion {
            0 => {}
            1 => {
                stack.filters = items.div_ceil(stack.capacity).max(1);
                stack.capacity = stack.capacity.saturating_mul(stack.filters);
            }
            // Each is at least twice as large as the one before: at most 64 rounds.
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
        assert_eq!((cuckoo.refusal(1024), cuckoo.refusal(32 * 1024 - 1)), (None, None));
        assert_eq!(cuckoo.refusal(32 * 1024), Some(Full::MaxExpansions));
        let fixed = Cuckoo { capacity: 4, expansion: 0, ..cuckoo };
        assert_eq!((fixed.refusal(3), fixed.refusal(4)), (None, Some(Full::Full)));
        let odd = Cuckoo { capacity: 7, bucket_size: 3, ..cuckoo };
        assert_eq!((odd.buckets(), odd.stack(0).capacity), (4, 12));
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
