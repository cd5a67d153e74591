//! The wire format against friends and enemies: deltas rebuild filters exactly, and no bytes
//! whatsoever make a decoder panic, take more than its limit, or change what it was given.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

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
    CountingFilter, Digest, DigestBits, DynamicFilter, HashId, KeyHasher, Membership, Scheme, Seed,
    Shape, StandardFilter,
};

/// The same cases every time: a failure is the next one's too.
fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(0x0075_6d62_656c),
        failure_persistence: None,
        ..Default::default()
    }
}

// ---- random histories

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
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn deltas_of_every_kind_rebuild_the_new_filter_exactly(
        scheme in schemes(), first in history(), second in history(), other in history(),
    ) {
        deltas_rebuild::<StandardFilter>(scheme, [&first, &second, &other]);
        deltas_rebuild::<CountingFilter>(scheme, [&first, &second, &other]);
        deltas_rebuild::<DynamicFilter>(scheme, [&first, &second, &other]);
        deltas_rebuild::<DynamicFilter<StandardFilter>>(scheme, [&first, &second, &other]);
    }

    #[test]
    fn digests_rebuild_the_new_filter_exactly(
        scheme in schemes(),
        before in prop::collection::vec(0u64..1000, 0..60),
        added in prop::collection::vec(0u64..1000, 0..60),
        cleared in prop::collection::vec(0u64..1000, 0..5),
        lies in prop::collection::vec(any::<u64>(), 0..2),
        strangers in prop::collection::vec(2000u64..3000, 0..2),
        forgotten in 0usize..3,
    ) {
        let mut old = StandardFilter::make(scheme);
        before.iter().for_each(|key| old.put(*key));
        let mut new = old.clone();
        cleared.iter().for_each(|key| new.take(*key));
        added.iter().for_each(|key| new.put(*key));
        // Not all that was added, some that was not, and some that is no digest of this shape:
        // what is said of the keys may be wrong, the new bits must be right.
        let told = added.iter().skip(forgotten).chain(&strangers);
        let mut digests: Vec<Digest> =
            told.map(|key| scheme.digest(&key.to_le_bytes())).collect();
        digests.extend(lies.iter().filter_map(|lie| Digest::from_raw(*lie, DigestBits::FULL)));

        let delta = encode_delta(&old, &new, &digests).unwrap();
        prop_assert!(delta.len() <= encode_delta(&old, &new, &[]).unwrap().len());
        let decoder = Decoder::new().accept_locked();
        prop_assert_eq!(decoder.apply(&old.clone().into(), &delta).unwrap(), new.clone().into());

        let mut change = Vec::new();
        encode_change(&mut change, scheme.shape(), old.bits(), new.bits(), &digests);
        let flips = decode_change(&change, scheme.shape(), old.bits()).unwrap();
        prop_assert_eq!(&flips, &Flips::between(old.bits(), new.bits()));
        let foretold = flips.checksum_after(old.bits(), old.bits().checksum());
        prop_assert_eq!(foretold, new.bits().checksum());
    }

    #[test]
    fn junk_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Decoder::new().filter(&bytes).is_err());
        let base = AnyFilter::from(StandardFilter::for_target(10, 0.1).unwrap());
        prop_assert!(Decoder::new().apply(&base, &bytes).is_err());
        let change = decode_change(&bytes, base.scheme().shape(), plain(&base).bits());
        if let Ok(flips) = change {
            let mut bits = plain(&base).bits().clone();
            flips.apply(&mut bits);
            bits.validate();
        }
    }
}

fn plain(filter: &AnyFilter) -> &StandardFilter {
    match filter {
        AnyFilter::Standard(filter) => filter,
        other => panic!("{other:?} is not a standard filter"),
    }
}

// ---- damaged and crafted frames

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
    ]
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

#[test]
fn truncated_anywhere_a_frame_is_refused() {
    for (old, new) in pairs() {
        let (whole, delta) = (old.encode(), old.delta_to(&new, &[]).unwrap());
        for cut in 0..whole.len() {
            assert!(Decoder::new().filter(&whole[..cut]).is_err(), "{:?} at {cut}", old.kind());
            let resealed = seal(whole[..cut.min(whole.len() - 5)].to_vec());
            assert!(Decoder::new().filter(&resealed).is_err(), "{:?} at {cut}", old.kind());
        }
        for cut in 0..delta.len() {
            assert!(Decoder::new().apply(&old, &delta[..cut]).is_err(), "{:?} {cut}", old.kind());
            let resealed = seal(delta[..cut.min(delta.len() - 5)].to_vec());
            assert!(Decoder::new().apply(&old, &resealed).is_err(), "{:?} {cut}", old.kind());
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for (old, new) in pairs() {
        for extra in [0, 1, 0x80] {
            let mut whole = old.encode();
            whole.insert(whole.len() - 4, extra);
            assert!(Decoder::new().filter(&reseal(&whole)).is_err());
            let mut delta = old.delta_to(&new, &[]).unwrap();
            delta.insert(delta.len() - 4, extra);
            assert!(Decoder::new().apply(&old, &reseal(&delta)).is_err());
        }
    }
}

#[test]
fn any_flipped_bit_is_noticed_and_changes_nothing() {
    for (old, new) in pairs() {
        let (whole, delta) = (old.encode(), old.delta_to(&new, &[]).unwrap());
        let before = old.clone();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Decoder::new().filter(&damaged).is_err(), "{:?}, bit {bit}", old.kind());
        }
        for bit in 0..delta.len() * 8 {
            let mut damaged = delta.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Decoder::new().apply(&old, &damaged).is_err(), "{:?}, bit {bit}", old.kind());
        }
        assert_eq!(old, before);
    }
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

/// A checksum that fits proves nothing about what is inside.
#[test]
fn flipped_bits_under_a_checksum_that_fits_give_an_error_or_a_sound_filter() {
    let decoder = Decoder::new().limit(1 << 20);
    for (old, new) in pairs() {
        let (whole, delta) = (old.encode(), old.delta_to(&new, &[]).unwrap());
        for bit in 0..(whole.len() - 4) * 8 {
            let mut crafted = whole.clone();
            crafted[bit / 8] ^= 1 << (bit % 8);
            if let Ok(filter) = decoder.filter(&reseal(&crafted)) {
                use_up(&filter);
            }
        }
        for bit in 0..(delta.len() - 4) * 8 {
            let mut crafted = delta.clone();
            crafted[bit / 8] ^= 1 << (bit % 8);
            if let Ok(filter) = decoder.apply(&old, &reseal(&crafted)) {
                validate(&filter);
            }
        }
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn nonsense_under_a_checksum_that_fits_gives_an_error_or_a_sound_filter(
        pick in 0usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let (old, new) = pairs().swap_remove(pick);
        let decoder = Decoder::new().limit(1 << 20);
        for (bytes, is_delta) in [(old.encode(), false), (old.delta_to(&new, &[]).unwrap(), true)] {
            let mut body = bytes[..bytes.len() - 4].to_vec();
            // Edits stay behind magic and version, most of them behind the header.
            for (at, byte) in &edits {
                let at = 5 + at.index(body.len() - 5);
                body[at] = *byte;
            }
            if tail.len() > 4 {
                body.truncate(5 + cut.index(body.len() - 5));
                body.extend(&tail);
            }
            let crafted = seal(body);
            let outcome =
                if is_delta { decoder.apply(&old, &crafted) } else { decoder.filter(&crafted) };
            if let Ok(filter) = outcome {
                validate(&filter);
            }
        }
    }
}

#[test]
fn a_delta_is_refused_by_any_other_filter() {
    let decoder = Decoder::new();
    let pairs = pairs();
    for (old, new) in &pairs {
        let delta = old.delta_to(new, &[]).unwrap();
        let refused = decoder.apply(new, &delta).unwrap_err();
        assert!(matches!(refused, DecodeError::WrongBase { .. }), "{refused}");
        for (other, _) in pairs.iter().filter(|(other, _)| other.kind() != old.kind()) {
            let refused = decoder.apply(other, &delta).unwrap_err();
            let expected = DecodeError::Kind { expected: other.kind(), found: old.kind() };
            assert_eq!(refused, expected);
            assert!(old.delta_to(other, &[]).is_err());
        }
        let refused = decoder.filter(&delta).unwrap_err();
        assert_eq!(refused, DecodeError::Kind { expected: old.kind(), found: Kind::Delta });
        let refused = decoder.apply(old, &new.encode()).unwrap_err();
        assert_eq!(refused, DecodeError::Kind { expected: Kind::Delta, found: new.kind() });
    }
}

#[test]
fn a_delta_for_another_shape_hash_or_seed_is_refused() {
    let shape = Shape::new(300, 4).unwrap();
    let own = Scheme::from(shape);
    let others = [
        Scheme::from(Shape::new(301, 4).unwrap()),
        Scheme::from(Shape::new(300, 5).unwrap()),
        Scheme::from(shape.with_digest_bits(DigestBits::new(63).unwrap())),
        Scheme::new(shape, KeyHasher::new(HashId::SipHash13, Seed::default())),
        Scheme::new(shape, KeyHasher::new(HashId::Xxh3, Seed::from_number(1))),
        Scheme::new(shape, KeyHasher::secret(HashId::Xxh3, Seed::from_number(1))),
    ];
    let base = StandardFilter::new(own).unwrap();
    for other in others {
        let old = StandardFilter::new(other).unwrap();
        assert!(encode_delta(&base, &old, &[]).is_err());
        let delta = encode_delta(&old, &old, &[]).unwrap();
        let refused = Decoder::new().apply(&base.clone().into(), &delta).unwrap_err();
        assert!(matches!(refused, DecodeError::Mismatch(_)), "{refused}");
    }
}

#[test]
fn a_delta_that_leads_elsewhere_than_it_says_is_refused() {
    let old = StandardFilter::with_shape(Shape::new(64, 3).unwrap()).unwrap();
    let mut new = old.clone();
    new.insert("a");
    // One key, no bits set, none cleared: it should lead to another checksum.
    let refused = Decoder::new().apply(&old.clone().into(), &delta_of(&old, &new, &[1, 0, 0, 0]));
    assert!(matches!(refused, Err(DecodeError::WrongResult { .. })), "{refused:?}");
}

#[test]
fn other_files_and_newer_versions_are_named() {
    let decoder = Decoder::new();
    assert_eq!(decoder.filter(b""), Err(DecodeError::NotUmbel));
    assert_eq!(decoder.filter(b"PK\x03\x04 and so on"), Err(DecodeError::NotUmbel));
    assert_eq!(decoder.filter(b"UMB"), Err(DecodeError::Truncated));
    assert_eq!(decoder.filter(b"UMBL"), Err(DecodeError::Truncated));
    assert_eq!(decoder.filter(b"UMBL\x02 whatever"), Err(DecodeError::Version(2)));
}

// ---- seeds

#[test]
fn a_secret_seed_never_leaves_and_is_needed_again() {
    let seed = Seed::from_secret(b"only for us");
    let scheme = Scheme::new(Shape::new(500, 5).unwrap(), KeyHasher::secret(HashId::Xxh3, seed));
    let mut filter = DynamicFilter::<StandardFilter>::new(scheme, 5, 8).unwrap();
    (0..20u64).for_each(|key| filter.put(key));
    let bytes = encode(&filter);
    assert!(!bytes.windows(16).any(|window| window == seed.bytes()));

    let fingerprint = seed.fingerprint();
    assert_eq!(Decoder::new().filter(&bytes), Err(DecodeError::Locked(fingerprint)));
    let wrong = Decoder::new().seed(Seed::from_number(1)).filter(&bytes);
    assert!(matches!(wrong, Err(DecodeError::WrongSeed(_))));
    let known = Decoder::new().seed(seed).filter(&bytes).unwrap();
    assert!(known.may_contain(&7u64.to_le_bytes()));
    assert_eq!(known.encode(), bytes);

    let mut locked = Decoder::new().accept_locked().filter(&bytes).unwrap();
    assert!(locked.scheme().hasher().is_locked());
    assert!(locked.contains_digest(scheme.digest(&7u64.to_le_bytes())));
    assert!(locked.unlock(Seed::from_number(1)).is_err());
    locked.unlock(seed).unwrap();
    assert!(locked.may_contain(&7u64.to_le_bytes()));
}

/// A locked base takes deltas; one that knows its seed still knows it afterwards.
#[test]
fn deltas_apply_to_locked_filters() {
    let seed = Seed::from_secret(b"only for us");
    let scheme = Scheme::new(Shape::new(500, 5).unwrap(), KeyHasher::secret(HashId::Xxh3, seed));
    let old = CountingFilter::new(scheme).unwrap();
    let mut new = old.clone();
    new.insert("a");
    let delta = encode_delta(&old, &new, &[]).unwrap();
    let locked = Decoder::new().accept_locked().filter(&encode(&old)).unwrap();
    assert!(Decoder::new().apply(&locked, &delta).unwrap().scheme().hasher().is_locked());
    let known = Decoder::new().apply(&old.into(), &delta).unwrap();
    assert!(known.may_contain(b"a"));
}

/// Whether the seed stands in the file was once taken from the base alone, so that a delta to a
/// file without it led to one with it; then from the delta alone, so that whoever sent one could
/// have a secret seed written down.
#[test]
fn a_seed_is_stored_only_if_neither_base_nor_delta_keeps_it_secret() {
    let (shape, seed) = (Shape::new(500, 5).unwrap(), Seed::from_number(7));
    let public = StandardFilter::new(Scheme::new(shape, KeyHasher::new(HashId::Xxh3, seed)));
    let secret = StandardFilter::new(Scheme::new(shape, KeyHasher::secret(HashId::Xxh3, seed)));
    let (public, secret) = (public.unwrap(), secret.unwrap());
    for (old, new, result) in [
        (&public, &public, &public),
        (&public, &secret, &secret),
        (&secret, &public, &secret),
        (&secret, &secret, &secret),
    ] {
        let delta = encode_delta(old, new, &[]).unwrap();
        let updated = Decoder::new().apply(&old.clone().into(), &delta).unwrap();
        assert_eq!(updated.encode(), encode(result));
        assert!(!updated.scheme().hasher().is_locked(), "the seed is known all the same");
    }
    let locked = Decoder::new().accept_locked().filter(&encode(&secret)).unwrap();
    let delta = encode_delta(&secret, &public, &[]).unwrap();
    let updated = Decoder::new().apply(&locked, &delta).unwrap();
    assert!(updated.scheme().hasher().is_locked());
    assert_eq!(updated.encode(), encode(&secret));
}

// ---- limits

#[test]
fn a_filter_beyond_the_limit_is_refused_before_memory_is_taken() {
    // With memory asked for first, the system would say no, not the decoder.
    let shape = Shape::new(Bits::MAX, 7).unwrap();
    for kind in [1, 2] {
        let refused = Decoder::new().filter(&snapshot(kind, &shape, &[0, 0]));
        assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    }
    for kind in [3, 4] {
        let refused = Decoder::new().filter(&snapshot(kind, &shape, &[1, 1, 1, 0, 1, 0, 0, 0, 0]));
        assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    }
    let beyond = Shape::new(Bits::MAX, 7).unwrap();
    let mut bytes = snapshot(1, &beyond, &[0, 0]);
    // The last byte of the varint 2^40.
    bytes[15] = 0x40;
    let refused = Decoder::new().limit(u64::MAX).filter(&reseal(&bytes));
    assert!(matches!(refused, Err(DecodeError::Param(_))), "{refused:?}");
}

#[test]
fn a_limit_admits_what_fits_and_nothing_more() {
    for (old, new) in pairs() {
        for (bytes, base) in [(old.encode(), None), (old.delta_to(&new, &[]).unwrap(), Some(&old))]
        {
            let decode = |limit| {
                let decoder = Decoder::new().limit(limit);
                base.map_or_else(|| decoder.filter(&bytes), |base| decoder.apply(base, &bytes))
            };
            let needed = (0..).find(|limit| decode(*limit).is_ok()).unwrap();
            let takes = decode(needed).unwrap().memory_bytes() as u64;
            // The struct itself is not on the heap.
            assert!(needed + 256 >= takes, "{:?}: {needed} for {takes}", old.kind());
            assert!(needed <= takes * 2, "{:?}: {needed} for {takes}", old.kind());
            // Counters and their bits, and two levels on the way to them.
            if old.kind() == Kind::Counting {
                assert_eq!(needed, 7 * 300_u64.div_ceil(64) * 8);
            }
        }
    }
}

/// Every eight components share a byte a position in the slices.
#[test]
fn slices_of_many_components_count_against_the_limit() {
    let shape = Shape::new(10_000, 3).unwrap();
    let mut filter = DynamicFilter::<StandardFilter>::with_shape(shape, 1).unwrap();
    (0..17u64).for_each(|key| filter.put(key));
    assert_eq!(filter.components().len(), 17);
    let (bytes, takes) = (encode(&filter), filter.memory_bytes() as u64);
    let refused = Decoder::new().limit(takes - 1000).filter(&bytes);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    assert_eq!(Decoder::new().limit(takes + 2000).filter(&bytes), Ok(filter.into()));
}

/// Components of one bit once cost nothing, so that a frame could make forty times its own
/// length of them, past any limit.
#[test]
fn many_tiny_components_count_against_the_limit() {
    let count = 20_000u64;
    let mut body = [varint(1), varint(8), varint(count), varint(0), varint(count)].concat();
    for id in 0..count {
        body.extend(varint(id));
        body.extend([0, 0, 0]);
    }
    let bytes = snapshot(4, &Shape::new(1, 1).unwrap(), &body);
    let refused = Decoder::new().limit(1 << 20).filter(&bytes);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    let admitted = Decoder::new().limit(1 << 24).filter(&bytes).unwrap();
    assert!(admitted.memory_bytes() <= 1 << 24);
}

/// Aliases were not counted at all.
#[test]
fn many_aliases_count_against_the_limit() {
    let count = 50_000u64;
    let mut body = [varint(1), varint(8), varint(count + 1), varint(count)].concat();
    for id in 1..=count {
        body.extend(varint(id));
        body.push(0);
    }
    body.extend([1, 0, 0, 0, 0]);
    let bytes = snapshot(4, &Shape::new(1, 1).unwrap(), &body);
    let refused = Decoder::new().limit(1 << 20).filter(&bytes);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })), "{refused:?}");
    assert!(Decoder::new().filter(&bytes).is_ok());
}

/// Few bytes may name every bit: they once were set one by one from a list that took 64
/// times the filter's memory, 8 GiB here.
#[test]
fn all_bits_at_once_take_no_list_of_them() {
    let shape = Shape::new(1 << 30, 1).unwrap().with_digest_bits(DigestBits::new(30).unwrap());
    let full = Decoder::new().filter(&snapshot(1, &shape, &[&[0][..], &varint(1 << 30)].concat()));
    let full = full.unwrap();
    assert_eq!(full.ones(), 1 << 30);
    let empty = StandardFilter::with_shape(shape).unwrap();
    let body = [&[0, 0][..], &varint(1 << 30), &[0]].concat();
    let delta = delta_of(&empty, plain(&full), &body);
    let updated = Decoder::new().limit(1 << 27).apply(&empty.into(), &delta).unwrap();
    assert_eq!(updated, full);
}

/// Where nearly all digests are named by the few left out, a frame of some bytes once stood
/// for a list of 2^36 positions.
#[test]
fn more_than_half_of_all_digests_are_refused() {
    let shape = Shape::new(1 << 20, 64).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    for count in [1u64 << 20, (1 << 20) - 1, (1 << 19) + 1] {
        let body = [&[1, 1][..], &varint(count), &[0x81, 0x80, 0x80, 4, 0, 0]].concat();
        let refused = Decoder::new().apply(&old.clone().into(), &delta_of(&old, &old, &body));
        let expected = DecodeError::Malformed("more numbers than there can be");
        assert_eq!(refused, Err(expected), "{count} digests");
    }
}

/// The sender then names bits instead.
#[test]
fn a_sender_of_nearly_all_digests_names_bits() {
    let shape = Shape::new(64, 2).unwrap().with_digest_bits(DigestBits::new(3).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    let digests: Vec<Digest> =
        (0..7).filter_map(|digest| Digest::from_raw(digest, shape.digest_bits())).collect();
    let mut new = old.clone();
    new.insert_digests(&digests);
    let delta = encode_delta(&old, &new, &digests).unwrap();
    assert_eq!(Decoder::new().apply(&old.into(), &delta), Ok(new.into()));
}

/// As many bits as were set, but others.
#[test]
fn digests_of_other_keys_are_not_sent() {
    let shape = Shape::new(1 << 16, 12).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    let (mut new, mut other) = (old.clone(), old.clone());
    new.insert("added");
    other.insert("told");
    assert_eq!(new.bits().ones(), other.bits().ones());
    let told = old.scheme().digest(b"told");
    let delta = encode_delta(&old, &new, &[told]).unwrap();
    assert_eq!(Decoder::new().apply(&old.into(), &delta), Ok(new.into()));
}

/// A digest longer than the shape's has the positions of a shorter one, but no number on the
/// wire: it was sent all the same, and nobody could read the delta.
#[test]
fn digests_of_another_length_are_not_sent() {
    let shape = Shape::new(1 << 16, 12).unwrap().with_digest_bits(DigestBits::new(20).unwrap());
    let old = StandardFilter::with_shape(shape).unwrap();
    let short = Digest::from_raw(12345, shape.digest_bits()).unwrap();
    let long = Digest::from_raw(12345 | 1 << 20, DigestBits::FULL).unwrap();
    let mut new = old.clone();
    new.insert_digest(short);
    let delta = encode_delta(&old, &new, &[long]).unwrap();
    assert_eq!(Decoder::new().apply(&old.into(), &delta), Ok(new.into()));
}

// ---- numbers at their ends

/// The fill of two full filters tells nothing of their intersection, which was said to hold
/// the largest number of keys. Such a filter could not be read again, and the next key
/// overflowed.
#[test]
fn the_intersection_of_full_filters_travels_and_keeps_counting() {
    let shape = Shape::new(1, 1).unwrap();
    let mut full = StandardFilter::with_shape(shape).unwrap();
    full.insert("a");
    let twin = full.clone();
    full.intersect_with(&twin).unwrap();
    assert_eq!(full.items(), 1, "no more than either side");
    assert_eq!(Decoder::new().filter(&encode(&full)), Ok(full.clone().into()));
    full.insert("b");
    assert_eq!(full.items(), 2);
}

#[test]
fn components_with_the_largest_numbers_of_items_do_not_overflow() {
    let most = varint(u64::MAX);
    let component = |id: u8| [&[id, 0][..], &most, &[0]].concat();
    for capacity in [1, u64::MAX] {
        let head = [&varint(capacity)[..], &[8, 2, 0, 2]].concat();
        let body = [head, component(0), component(1)].concat();
        let bytes = snapshot(4, &Shape::new(100, 3).unwrap(), &body);
        let filter = Decoder::new().filter(&bytes).unwrap();
        assert_eq!(filter.items(), u64::MAX);
        use_up(&filter);
    }
}

#[test]
fn stuck_counters_travel() {
    let mut filter = CountingFilter::with_shape(Shape::new(130, 3).unwrap()).unwrap();
    (0..40).for_each(|_| {
        filter.insert("a");
    });
    assert!(filter.stuck_counters() > 0);
    let received = Decoder::new().filter(&encode(&filter)).unwrap();
    assert_eq!(received, filter.clone().into());
    assert_eq!(received.stuck_counters(), filter.stuck_counters());
    let empty = CountingFilter::with_shape(Shape::new(130, 3).unwrap()).unwrap();
    for (old, new) in [(&filter, &empty), (&empty, &filter)] {
        let delta = encode_delta(old, new, &[]).unwrap();
        let updated = Decoder::new().apply(&old.clone().into(), &delta).unwrap();
        assert_eq!(updated, new.clone().into());
        validate(&updated);
    }
}

/// Levels of counters that do not nest, as no honest writer makes them.
#[test]
fn levels_that_do_not_nest_leave_no_counter_outside_its_range() {
    let shape = Shape::new(64, 1).unwrap();
    let mut old = CountingFilter::with_shape(shape).unwrap();
    (0..9).for_each(|_| {
        old.insert("a");
    });
    // Fifteen levels; each sets all of its zeros and clears all of its ones.
    let mut body = vec![0, 15];
    for level in 1..=15u8 {
        let ones = u8::from(level <= 9);
        body.extend([64 - ones, ones]);
    }
    let header = delta_header(2, &shape);
    let mut bytes = header.clone();
    // A first try tells the checksums that it should have had.
    bytes.extend([0; 16]);
    bytes.extend(&body);
    let base = AnyFilter::from(old);
    let Err(DecodeError::WrongBase { have, .. }) = Decoder::new().apply(&base, &seal(bytes)) else {
        panic!("the base has another checksum");
    };
    let with = |result: u64| {
        let sums = [have.to_le_bytes(), result.to_le_bytes()].concat();
        Decoder::new().apply(&base, &seal([&header[..], &sums, &body].concat()))
    };
    let Err(DecodeError::WrongResult { found, .. }) = with(0) else {
        panic!("the result has another checksum");
    };
    let crafted = with(found).unwrap();
    validate(&crafted);
    assert_eq!(crafted.ones(), 64);
}

#[test]
fn a_dynamic_filter_that_contradicts_itself_is_refused() {
    let shape = Shape::new(8, 1).unwrap();
    // Capacity, most components, next id, aliases, components.
    let bodies: [&[u8]; 12] = [
        &[0, 8, 1, 0, 1, 0, 0, 0, 0],             // no capacity
        &[1, 0, 1, 0, 1, 0, 0, 0, 0],             // no components allowed
        &[1, 8, 1, 0, 0],                         // no component
        &[1, 8, 1, 0, 1, 1, 0, 0, 0],             // an id never given
        &[1, 8, 2, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0], // ids descend
        &[1, 8, 2, 0, 2, 1, 0, 0, 0, 1, 0, 0, 0], // an id twice
        &[1, 8, 1, 0, 1, 0, 1, 0, 0, 0, 0],       // a change against nothing
        &[1, 8, 1, 0, 1, 0, 2, 0, 0],             // an unknown kind
        &[1, 8, 2, 1, 1, 1, 1, 0, 0, 0, 0],       // an alias of itself
        &[1, 8, 2, 1, 0, 0, 1, 0, 0, 0, 0],       // an alias that lives
        &[1, 8, 2, 1, 2, 0, 1, 0, 0, 0, 0],       // an alias never given
        &[1, 8, 3, 2, 2, 0, 1, 0, 1, 0, 0, 0, 0], // aliases descend
    ];
    for body in bodies {
        let refused = Decoder::new().filter(&snapshot(4, &shape, body));
        assert!(matches!(refused, Err(DecodeError::Malformed(_))), "{body:?}: {refused:?}");
    }
    // Ids are left for components to come.
    for (next_id, is_sound) in [(1_u64 << 31, true), ((1 << 31) + 1, false), (1 << 32, false)] {
        let body = [&[1, 8][..], &varint(next_id), &[0, 1, 0, 0, 0, 0]].concat();
        assert_eq!(Decoder::new().filter(&snapshot(4, &shape, &body)).is_ok(), is_sound);
    }
    let sound = snapshot(4, &shape, &[1, 8, 2, 1, 1, 0, 1, 0, 0, 0, 0]);
    let AnyFilter::PlainDynamic(filter) = Decoder::new().filter(&sound).unwrap() else {
        panic!("a dynamic filter of plain components");
    };
    assert_eq!(filter.components()[0].0, ComponentId(0));
}

#[test]
fn flips_agree_with_the_bits_they_came_from() {
    let zeros = BitVector::zeros(Bits::new(200).unwrap()).unwrap();
    let mut ones = zeros.clone();
    [0, 63, 64, 199].into_iter().for_each(|position| {
        ones.set(position);
    });
    let flips = Flips::between(&zeros, &ones);
    assert_eq!((flips.sets.len(), flips.clears.len()), (4, 0));
    let mut bits = zeros.clone();
    flips.apply(&mut bits);
    assert_eq!(bits, ones);
    Flips::between(&ones, &zeros).apply(&mut bits);
    assert_eq!(bits, zeros);
}
