//! The wire format against friends and enemies: deltas rebuild filters exactly, and no bytes
//! whatsoever make a decoder panic, take more than its limit, or change what it was given.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod damaged;
mod ends;
mod histories;
mod limits;
mod seeds;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel::bits::BitVector;
use umbel::codec::{
    AnyFilter, DecodeError, Decoder, Encodable, Flips, Kind, decode_change, encode, encode_change,
    encode_delta,
};
use umbel::filter::{ComponentId, Removal};
use umbel::params::Bits;
use umbel::{
    BlockedFilter, CountingFilter, Digest, DigestBits, DynamicFilter, HashId, KeyHasher,
    Membership, Scheme, Seed, Shape, StandardFilter,
};

/// The same cases every time: a failure is the next one's too.
fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(0x0075_6d62_656c),
        failure_persistence: None,
        ..Default::default()
    }
}

/// What a history needs of a filter kind.
trait Filter: Clone + Encodable + Into<AnyFilter> {
    fn make(scheme: Scheme) -> Self;
    fn put(&mut self, key: u64);
    fn take(&mut self, key: u64);
    fn join(&mut self, other: &Self);
    fn tidy(&mut self) {}
}

impl Filter for StandardFilter {
    fn make(scheme: Scheme) -> Self {
        Self::new(scheme).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(key.to_le_bytes());
    }
    /// A plain filter has no removal, but may be made anew: bits are cleared all the same.
    fn take(&mut self, key: u64) {
        let mut taken = Self::new(*self.scheme()).unwrap();
        taken.insert(key.to_le_bytes());
        self.difference_with(&taken).unwrap();
    }
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
}

impl Filter for CountingFilter {
    fn make(scheme: Scheme) -> Self {
        Self::new(scheme).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(key.to_le_bytes());
    }
    fn take(&mut self, key: u64) {
        self.remove(key.to_le_bytes());
    }
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
}

impl Filter for DynamicFilter {
    fn make(scheme: Scheme) -> Self {
        Self::new(scheme, 12, 8).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(key.to_le_bytes());
    }
    fn take(&mut self, key: u64) {
        let _: Removal = self.remove(key.to_le_bytes());
    }
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
    fn tidy(&mut self) {
        self.shrink();
    }
}

impl Filter for DynamicFilter<StandardFilter> {
    fn make(scheme: Scheme) -> Self {
        Self::new(scheme, 12, 8).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(key.to_le_bytes());
    }
    fn take(&mut self, _key: u64) {}
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
    fn tidy(&mut self) {
        self.shrink();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u64),
    Take(u64),
    Join(Vec<u64>),
    Tidy,
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u64..300).prop_map(Step::Put),
        4 => (0u64..300).prop_map(Step::Take),
        1 => prop::collection::vec(0u64..300, 0..20).prop_map(Step::Join),
        1 => Just(Step::Tidy),
    ];
    prop::collection::vec(step, 0..80)
}

fn schemes() -> impl Strategy<Value = Scheme> {
    (1u64..700, 1u32..9, 4u32..=64, any::<[u8; 16]>(), any::<bool>()).prop_map(
        |(bits, hashes, digest_bits, seed, secret)| {
            let shape = Shape::new(bits, hashes).unwrap();
            let shape = shape.with_digest_bits(DigestBits::new(digest_bits).unwrap());
            let hasher = if secret { KeyHasher::secret } else { KeyHasher::new };
            Scheme::new(shape, hasher(HashId::SipHash13, Seed::new(seed)))
        },
    )
}

fn live<F: Filter>(filter: &mut F, scheme: Scheme, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Put(key) => filter.put(*key),
            Step::Take(key) => filter.take(*key),
            Step::Join(keys) => {
                let mut other = F::make(scheme);
                keys.iter().for_each(|key| other.put(*key));
                filter.join(&other);
            }
            Step::Tidy => filter.tidy(),
        }
    }
}

/// From one state to a later one, and to one of another life; the file too is the same.
fn deltas_rebuild<F: Filter>(scheme: Scheme, lives: [&[Step]; 3]) {
    let mut old = F::make(scheme);
    live(&mut old, scheme, lives[0]);
    let mut later = old.clone();
    live(&mut later, scheme, lives[1]);
    let mut stranger = F::make(scheme);
    live(&mut stranger, scheme, lives[2]);

    let decoder = Decoder::new().accept_locked();
    let received = decoder.filter(&encode(&old)).unwrap();
    assert_eq!(received, old.clone().into());
    assert_eq!(received.encode(), encode(&old));
    for new in [&old, &later, &stranger] {
        let delta = encode_delta(&old, new, &[]).unwrap();
        let updated = decoder.apply(&received, &delta).unwrap();
        assert_eq!(updated, new.clone().into());
        assert_eq!(updated.encode(), encode(new));
        validate(&updated);
    }
}

fn validate(filter: &AnyFilter) {
    match filter {
        AnyFilter::Standard(filter) => filter.bits().validate(),
        AnyFilter::Counting(filter) => filter.validate(),
        AnyFilter::Dynamic(filter) => {
            filter.validate();
            filter.components().iter().for_each(|(_, component)| component.validate());
        }
        AnyFilter::PlainDynamic(filter) => {
            filter.validate();
            filter.components().iter().for_each(|(_, component)| component.bits().validate());
        }
        // Any bits are those of a filter.
        AnyFilter::Blocked(_) => {}
    }
}

fn plain(filter: &AnyFilter) -> &StandardFilter {
    match filter {
        AnyFilter::Standard(filter) => filter,
        other => panic!("{other:?} is not a standard filter"),
    }
}

/// An old and a new filter of each kind.
fn pairs() -> Vec<(AnyFilter, AnyFilter)> {
    fn pair<F: Filter>() -> (AnyFilter, AnyFilter) {
        let shape = Shape::new(300, 4).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
        let mut filter = F::make(shape.into());
        (0..30).for_each(|key| filter.put(key));
        filter.put(0);
        filter.put(0);
        let old = filter.clone();
        (0..20).for_each(|key| filter.take(key));
        filter.tidy();
        (40..50).for_each(|key| filter.put(key));
        (old.into(), filter.into())
    }
    vec![
        pair::<StandardFilter>(),
        pair::<CountingFilter>(),
        pair::<DynamicFilter>(),
        pair::<DynamicFilter<StandardFilter>>(),
        blocked_pair(),
    ]
}

/// An old and a new blocked filter, which has a shape of its own.
fn blocked_pair() -> (AnyFilter, AnyFilter) {
    let shape = Shape::new(512, 8).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let mut filter = BlockedFilter::new(shape.into()).unwrap();
    filter.extend((0..30u64).map(u64::to_le_bytes));
    let old = filter.clone();
    filter.extend((40..50u64).map(u64::to_le_bytes));
    (old.into(), filter.into())
}

/// A frame of these bytes with a checksum that fits.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The same frame with its checksum put right.
fn reseal(bytes: &[u8]) -> Vec<u8> {
    seal(bytes[..bytes.len() - 4].to_vec())
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A snapshot of this kind and shape with the zero seed, whatever its body says.
fn snapshot(kind: u8, shape: &Shape, body: &[u8]) -> Vec<u8> {
    let (digest_bits, hashes) = (shape.digest_bits().get() as u8, shape.hashes() as u8);
    let mut bytes = vec![b'U', b'M', b'B', b'L', 1, kind, 1, 1, digest_bits, hashes];
    bytes.extend(varint(shape.bits()));
    bytes.extend([0; 16]);
    bytes.extend(body);
    seal(bytes)
}

/// The header of a delta of this kind and shape with the zero seed, without checksums.
fn delta_header(kind: u8, shape: &Shape) -> Vec<u8> {
    let mut bytes = snapshot(kind | 0x10, shape, &[]);
    bytes.truncate(bytes.len() - 20);
    bytes.extend(Seed::default().fingerprint().get().to_le_bytes());
    bytes
}

/// A delta that leads from the checksum of `old` to that of `new`, whatever its body says.
fn delta_of(old: &StandardFilter, new: &StandardFilter, body: &[u8]) -> Vec<u8> {
    let mut bytes = delta_header(1, old.scheme().shape());
    bytes.extend(old.bits().checksum().to_le_bytes());
    bytes.extend(new.bits().checksum().to_le_bytes());
    bytes.extend(body);
    seal(bytes)
}

/// What a decoder lets through keeps every promise of its type and can be used: asked, added
/// to, joined, merged, written and read again.
fn use_up(filter: &AnyFilter) {
    validate(filter);
    let mut filter = filter.clone();
    let _ = (filter.items(), filter.ones(), filter.false_positive(), filter.stuck_counters());
    let digest = filter.scheme().digest(b"key");
    filter.insert_digest(digest);
    assert!(filter.contains_digest(digest));
    let copy = filter.clone();
    match (&mut filter, &copy) {
        (AnyFilter::Standard(a), AnyFilter::Standard(b)) => {
            a.union_with(b).unwrap();
            a.intersect_with(b).unwrap();
            a.insert("key");
        }
        (AnyFilter::Counting(a), AnyFilter::Counting(b)) => {
            a.union_with(b).unwrap();
            a.remove("key");
            a.insert("key");
        }
        (AnyFilter::Dynamic(a), AnyFilter::Dynamic(b)) => {
            a.union_with(b).unwrap();
            a.shrink();
            let _: Removal = a.remove("key");
            a.insert("key");
        }
        (AnyFilter::Blocked(a), AnyFilter::Blocked(b)) => {
            a.union_with(b).unwrap();
            a.insert("key");
        }
        (AnyFilter::PlainDynamic(a), AnyFilter::PlainDynamic(b)) => {
            a.union_with(b).unwrap();
            a.shrink();
            a.insert("key");
        }
        _ => unreachable!("a copy is of the same kind"),
    }
    assert!(filter.may_contain(b"key"));
    validate(&filter);
    assert_eq!(Decoder::new().accept_locked().filter(&filter.encode()), Ok(filter.clone()));
    let delta = copy.delta_to(&filter, &[]).unwrap();
    assert_eq!(Decoder::new().apply(&copy, &delta), Ok(filter));
}
