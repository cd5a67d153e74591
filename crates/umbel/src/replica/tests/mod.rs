//! Homes against their promises, and what tests of protocols share.

mod homes;

pub(crate) use homes::denied;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::catalogue::{Catalogue, MemoryCatalogue};
use crate::{HashId, KeyHasher, Seed};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn hasher() -> KeyHasher {
    KeyHasher::secret(HashId::SipHash13, Seed::from_number(42))
}

pub(crate) const AT_ONCE: Intervals = Intervals { shortest: Duration::ZERO, ..Intervals::DEFAULT };

pub(crate) fn plan(policy: &str, capacity: u64) -> SetPlan {
    SetPlan {
        false_positive: 0.02,
        expected_hosts: Some(1),
        capacity: Some(capacity),
        policy: policy.parse().unwrap(),
        by_digests: true,
        chains: None,
    }
}

pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}
