//! Writes the golden files of the current format version:
//!
//! ```text
//! cargo run -p umbel --example golden_files -- crates/umbel/tests/golden/v1
//! ```
//!
//! Files of a version that was released are never written again: see docs/wire.md, "How the
//! format changes". The test `golden` reads them all, and checks that this program would
//! still write the same.

use std::path::Path;
use std::{env, fs, io};

use umbel::codec::{encode, encode_delta};
use umbel::filter::Removal;
use umbel::prefix::{Ipv4Prefix, Ipv6Prefix, Labelled, Name, Prefix};
use umbel::{
    CountingFilter, Digest, DigestBits, DynamicFilter, HashId, KeyHasher, Rate, Scheme, Seed,
    Shape, StandardFilter,
};

fn main() -> io::Result<()> {
    let Some(directory) = env::args().nth(1) else {
        return Err(io::Error::other("which directory? see the head of this file"));
    };
    fs::create_dir_all(&directory)?;
    for (name, bytes) in files() {
        fs::write(Path::new(&directory).join(name), &bytes)?;
        println!("{name}: {} bytes", bytes.len());
    }
    Ok(())
}

/// Name and contents of every golden file.
pub(crate) fn files() -> Vec<(&'static str, Vec<u8>)> {
    [standard(), seeds(), modes(), counting(), dynamic(), plain_dynamic(), prefixes()].concat()
}

/// `key 0`, `key 1` and so on.
pub(crate) fn keys(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("key {number}")).collect()
}

type Files = Vec<(&'static str, Vec<u8>)>;

/// Key 0 to 19; then also key 20 to 22, told by their digests; then key 0 to 30 without the
/// bits of key 1, told by bits.
fn standard() -> Files {
    let mut old = StandardFilter::for_target(1000, 0.01).expect("in range");
    old.insert_batch(&keys(0..20));
    let mut more = old.clone();
    more.insert_batch(&keys(20..23));
    let digests: Vec<Digest> =
        keys(20..23).iter().map(|key| old.scheme().digest(key.as_bytes())).collect();
    let mut other = StandardFilter::new(*old.scheme()).expect("there is memory");
    other.insert("key 1");
    let mut fewer = more.clone();
    fewer.insert_batch(&keys(23..31));
    fewer.difference_with(&other).expect("one scheme");
    vec![
        ("standard.umbel", encode(&old)),
        ("standard-more.umbel", encode(&more)),
        ("standard-fewer.umbel", encode(&fewer)),
        ("standard-by-digests.delta", encode_delta(&old, &more, &digests).expect("one scheme")),
        ("standard-by-bits.delta", encode_delta(&more, &fewer, &[]).expect("one scheme")),
    ]
}

/// The smallest file there is, which docs/wire.md takes apart; a public and a secret seed.
fn seeds() -> Files {
    let shape = Shape::new(64, 3).expect("in range");
    let mut tiny = StandardFilter::with_shape(shape).expect("there is memory");
    tiny.insert("apple");
    let seeded = |hasher: KeyHasher| {
        let shape = Shape::new(1000, 5).expect("in range");
        let shape = shape.with_digest_bits(DigestBits::new(33).expect("in range"));
        let mut filter = StandardFilter::new(Scheme::new(shape, hasher)).expect("there is memory");
        filter.insert_batch(&keys(0..10));
        encode(&filter)
    };
    let secret = Seed::from_secret(b"only for us");
    vec![
        ("tiny.umbel", encode(&tiny)),
        ("public-seed.umbel", seeded(KeyHasher::new(HashId::SipHash13, Seed::from_number(7)))),
        ("secret-seed.umbel", seeded(KeyHasher::secret(HashId::SipHash13, secret))),
        ("secret-seed-xxh3.umbel", seeded(KeyHasher::secret(HashId::Xxh3, secret))),
    ]
}

/// Every mode of a subset, whole and complement.
fn modes() -> Files {
    let filled = |bits: u64, hashes: u32, count: u32| {
        let shape = Shape::new(bits, hashes).expect("in range");
        let mut filter = StandardFilter::with_shape(shape).expect("there is memory");
        filter.insert_batch(&keys(0..count));
        encode(&filter)
    };
    // One hash and as many digest bits as positions: a digest is its position.
    let shape = Shape::new(1 << 20, 1).expect("in range");
    let shape = shape.with_digest_bits(DigestBits::new(20).expect("in range"));
    let mut crowd = StandardFilter::with_shape(shape).expect("there is memory");
    for position in (0..300).chain([(1 << 20) - 1]) {
        crowd.insert_digest(Digest::from_raw(position, shape.digest_bits()).expect("in range"));
    }
    vec![
        ("empty.umbel", filled(1 << 20, 7, 0)),
        ("full.umbel", filled(70, 7, 200)),
        ("gaps.umbel", filled(9593, 2, 300)),
        ("gaps-with-a-leap.umbel", encode(&crowd)),
        ("gaps-complement.umbel", filled(5000, 5, 3000)),
        ("bits.umbel", filled(5000, 2, 1000)),
        ("bits-complement.umbel", filled(5000, 2, 3500)),
        ("raw.umbel", filled(4500, 1, 3120)),
        ("raw-complement.umbel", filled(100, 1, 90)),
    ]
}

/// Key 0 to 29, key 0 twenty times; then key 10 to 39.
fn counting() -> Files {
    let digest_bits = DigestBits::for_target(50, Rate::new(0.05).expect("a rate"));
    let shape = Shape::new(313, 4).expect("in range").with_digest_bits(digest_bits);
    let mut old = CountingFilter::with_shape(shape).expect("there is memory");
    old.insert_batch(&keys(0..30));
    (1..20).for_each(|_| {
        old.insert("key 0");
    });
    let mut new = old.clone();
    for key in keys(0..10) {
        assert!(new.remove(key), "members can be removed");
    }
    new.insert_batch(&keys(30..40));
    vec![
        ("counting.umbel", encode(&old)),
        ("counting-later.umbel", encode(&new)),
        ("counting.delta", encode_delta(&old, &new, &[]).expect("one scheme")),
    ]
}

/// Key 0 to 34 in four components; then without key 0 to 19, two components merged away, and
/// with key 35 to 49.
fn dynamic() -> Files {
    let shape = Shape::new(200, 5).expect("in range");
    let mut old = DynamicFilter::with_shape(shape, 10).expect("in range");
    let homes: Vec<_> = keys(0..35).iter().map(|key| old.insert(key)).collect();
    let mut new = old.clone();
    for (key, home) in keys(0..20).iter().zip(homes) {
        assert!(new.remove_from(home, key), "members can be removed");
    }
    assert!(matches!(new.remove("never there"), Removal::Absent));
    assert_eq!(new.shrink().len(), 2);
    for key in keys(35..50) {
        new.insert(key);
    }
    vec![
        ("dynamic.umbel", encode(&old)),
        ("dynamic-later.umbel", encode(&new)),
        ("dynamic.delta", encode_delta(&old, &new, &[]).expect("one scheme")),
    ]
}

/// Key 0 to 14 in two components; then joined with key 15 to 18 and shrunk.
fn plain_dynamic() -> Files {
    let shape = Shape::new(200, 5).expect("in range");
    let make = || DynamicFilter::<StandardFilter>::with_shape(shape, 10).expect("in range");
    let (mut old, mut other) = (make(), make());
    for key in keys(0..15) {
        old.insert(key);
    }
    for key in keys(15..19) {
        other.insert(key);
    }
    let mut new = old.clone();
    new.union_with(&other).expect("one scheme");
    assert_eq!(new.shrink().len(), 1);
    vec![
        ("plain-dynamic.umbel", encode(&old)),
        ("plain-dynamic-later.umbel", encode(&new)),
        ("plain-dynamic.delta", encode_delta(&old, &new, &[]).expect("one scheme")),
    ]
}

/// A table of each kind of prefix; the shortest one is taken apart in docs/wire.md.
fn prefixes() -> Files {
    vec![
        ("prefixes-tiny.umbel", table::<Ipv4Prefix>(&[("10.0.0.0/8", "lab")])),
        (
            "prefixes-ipv4.umbel",
            table::<Ipv4Prefix>(&[
                ("0.0.0.0/0", "out"),
                ("10.0.0.0/8", "lab"),
                ("10.1.0.0/16", "office"),
                ("10.1.2.0/24", "lab"),
                ("192.0.2.1/32", "one"),
            ]),
        ),
        (
            "prefixes-ipv6.umbel",
            table::<Ipv6Prefix>(&[
                ("2001:db8::/32", "a"),
                ("2001:db8:1::/48", "b"),
                ("2001:db8:1:2::/64", "a"),
                ("2001:db8::1/128", "c"),
                ("2001:db8::2/128", "c"),
            ]),
        ),
        (
            "prefixes-names.umbel",
            table::<Name>(&[("/", "root"), ("/video", "h1"), ("/video/2024", "h2")]),
        ),
    ]
}

fn table<P: Prefix>(prefixes: &[(&str, &str)]) -> Vec<u8> {
    let mut table = Labelled::<P>::with_room(&[]);
    for (prefix, value) in prefixes {
        assert!(table.insert_new(prefix.parse().expect("a prefix"), value), "{prefix} once");
    }
    table.encode()
}
