//! Filters that are asked where their bytes lie.

use proptest::prelude::*;
use umbel::codec::{DecodeError, MappedFilter, write_mapped};
use umbel::{HashId, KeyHasher, Scheme, Seed, Shape, StandardFilter};

/// Bytes that begin at a multiple of 8, as those of a mapped file do.
struct Mapped {
    words: Vec<u64>,
    len: usize,
}

impl Mapped {
    fn new(bytes: &[u8]) -> Self {
        let mut words = vec![0_u64; bytes.len().div_ceil(8) + 1];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { words, len: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

fn file_of(filter: &StandardFilter) -> Vec<u8> {
    let mut file = Vec::new();
    write_mapped(filter, &mut file).expect("in a test");
    file
}

fn filter_of(keys: u32, bits: u64) -> StandardFilter {
    let mut filter =
        StandardFilter::with_shape(Shape::new(bits, 5).expect("in a test")).expect("in a test");
    filter.extend((0..keys).map(u32::to_le_bytes));
    filter
}

fn is_refused(bytes: &[u8]) -> bool {
    let mapped = Mapped::new(bytes);
    MappedFilter::new(mapped.bytes()).is_err_and(|error| !error.to_string().is_empty())
}

#[test]
fn a_mapped_filter_claims_what_its_original_claims() {
    for (keys, bits) in [(0, 1), (3, 63), (100, 64), (5, 65), (1000, 10_007), (70_000, 1 << 20)] {
        let filter = filter_of(keys, bits);
        let file = Mapped::new(&file_of(&filter));
        let mapped = MappedFilter::new(file.bytes()).unwrap();
        assert_eq!((mapped.items(), mapped.ones()), (filter.items(), filter.bits().ones()));
        assert_eq!(mapped.scheme(), filter.scheme());
        for key in 0..keys + 2000 {
            let key = key.to_le_bytes();
            assert_eq!(mapped.contains(key), filter.contains(key), "{keys} keys in {bits} bits");
        }
        mapped.verify().unwrap();
        assert_eq!(mapped.to_standard().unwrap(), filter);
    }
}

#[test]
fn a_damaged_head_is_refused_and_a_damaged_body_is_found() {
    let file = file_of(&filter_of(50, 1000));
    for bit in 0..64 * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(is_refused(&damaged), "bit {bit} of the head");
    }
    for bit in 64 * 8..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let damaged = Mapped::new(&damaged);
        let mapped = MappedFilter::new(damaged.bytes()).unwrap();
        assert!(matches!(mapped.verify(), Err(DecodeError::Checksum { .. })), "bit {bit}");
        assert!(mapped.to_standard().is_err());
    }
}

#[test]
fn other_lengths_and_places_are_refused() {
    let file = file_of(&filter_of(50, 1000));
    for len in 0..file.len() {
        assert!(is_refused(&file[..len]), "{len} bytes");
    }
    assert!(is_refused(&[&file[..], &[0]].concat()));
    assert!(is_refused(&umbel::codec::encode(&filter_of(50, 1000))), "another format");
    let shifted = Mapped::new(&[&[0], &file[..]].concat());
    let error = MappedFilter::new(&shifted.bytes()[1..]).unwrap_err();
    assert!(error.to_string().contains("multiple of 8"), "{error}");
}

#[test]
fn a_secret_seed_is_not_written() {
    let seed = Seed::from_secret(b"only for us");
    let hasher = KeyHasher::secret(HashId::SipHash13, seed);
    let scheme = Scheme::new(Shape::new(1 << 12, 7).unwrap(), hasher);
    let mut filter = StandardFilter::new(scheme).unwrap();
    filter.insert("apple");
    let file = Mapped::new(&file_of(&filter));
    assert!(!file.bytes().windows(16).any(|part| part == seed.bytes()));
    let mut mapped = MappedFilter::new(file.bytes()).unwrap();
    assert!(mapped.unlock(Seed::from_number(1)).is_err());
    mapped.unlock(seed).unwrap();
    assert!(mapped.contains("apple") && !mapped.contains("pear"));
}

proptest! {
    #[test]
    fn any_bytes_are_a_filter_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(is_refused(&bytes));
    }
}
