//! Targets of `umbel`: filters, changes of filters, tables of prefixes, messages between hosts.
//!
//! Each function takes any bytes and panics if a promise is broken. Checksums are corrected on the way:
//! otherwise a fuzzer would test little else.

use std::sync::LazyLock;
use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::codec::{AnyFilter, DecodeError, Decoder, decode_change};
use umbel::filter::Removal;
use umbel::mesh::{Engine, MeshConfig};
use umbel::prefix::AnyTable;
use umbel::protocol::Protocol as _;
use umbel::replica::{Incarnation, Name, SetPlan};
use umbel::route::{self, EntryKind, Plan, Router};
use umbel::{Digest, HashId, KeyHasher, Seed};

/// What a target does with some bytes.
pub type Target = fn(&[u8]);

/// All targets of this file, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("apply_delta", apply_delta),
    ("decode_filter", decode_filter),
    ("decode_prefixes", decode_prefixes),
    ("message", message),
    ("route_message", route_message),
];

/// What stands between two messages of one input: two bytes that are rare in messages.
pub const BETWEEN: &[u8] = &[0xFE, 0xED];

/// Memory that a decoder may take: a thousand times the longest input.
const LIMIT: u64 = 1 << 22;

/// The bytes with their last four replaced by the checksum of the others.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let body = &bytes[..bytes.len().saturating_sub(4)];
    [body, &crc32c::crc32c(body).to_le_bytes()].concat()
}

/// A file of a filter: what decodes keeps its promises, stays within the limit, and can be used:
/// asked, added to, joined with itself, written, read again, and sent as a delta.
pub fn decode_filter(bytes: &[u8]) {
    let decoder = Decoder::new().limit(LIMIT).accept_locked();
    let _ = decoder.filter(bytes);
    if let Ok(filter) = decoder.filter(&sealed(bytes)) {
        assert!(filter.memory_bytes() as u64 <= LIMIT + 512, "the limit holds");
        use_filter(filter);
    }
}

fn use_filter(mut filter: AnyFilter) {
    validate(&filter);
    let old = filter.clone();
    let _ = (filter.items(), filter.ones(), filter.false_positive(), filter.stuck_counters());
    let digest_bits = filter.scheme().shape().digest_bits();
    let digest = Digest::from_raw(1, digest_bits).expect("a digest has at least one bit");
    filter.insert_digest(digest);
    assert!(filter.contains_digest(digest));
    match (&mut filter, &old) {
        (AnyFilter::Standard(a), AnyFilter::Standard(b)) => {
            a.union_with(b).expect("one scheme");
            a.intersect_with(&a.clone()).expect("one scheme");
        }
        (AnyFilter::Counting(a), AnyFilter::Counting(b)) => {
            a.union_with(b).expect("one scheme");
            a.remove_digest(digest);
        }
        (AnyFilter::Dynamic(a), AnyFilter::Dynamic(b)) => {
            a.union_with(b).expect("one scheme");
            a.shrink();
            let _: Removal = a.remove_digest(digest);
        }
        (AnyFilter::Blocked(a), AnyFilter::Blocked(b)) => a.union_with(b).expect("one scheme"),
        (AnyFilter::PlainDynamic(a), AnyFilter::PlainDynamic(b)) => {
            a.union_with(b).expect("one scheme");
            a.shrink();
        }
        _ => unreachable!("a copy is of the same kind"),
    }
    validate(&filter);
    let decoder = Decoder::new().accept_locked();
    assert_eq!(decoder.filter(&filter.encode()).as_ref(), Ok(&filter));
    let delta = old.delta_to(&filter, &[digest]).expect("one scheme");
    assert_eq!(decoder.apply(&old, &delta), Ok(filter));
}

fn validate(filter: &AnyFilter) {
    match filter {
        AnyFilter::Standard(filter) => filter.bits().validate(),
        AnyFilter::Counting(filter) => filter.validate(),
        AnyFilter::Dynamic(filter) => {
            filter.validate();
            filter.components().iter().for_each(|(_, component)| component.validate());
        }
        AnyFilter::PlainDynamic(filter) => filter.validate(),
        // Any bits are those of a filter.
        AnyFilter::Blocked(_) => {}
    }
}

static BASES: LazyLock<[AnyFilter; 4]> = LazyLock::new(|| {
    let files: [&[u8]; 4] = [
        include_bytes!("../../crates/umbel/tests/golden/v1/standard.umbel"),
        include_bytes!("../../crates/umbel/tests/golden/v1/counting.umbel"),
        include_bytes!("../../crates/umbel/tests/golden/v1/dynamic.umbel"),
        include_bytes!("../../crates/umbel/tests/golden/v1/plain-dynamic.umbel"),
    ];
    files.map(|bytes| Decoder::new().filter(bytes).expect("a golden file"))
});

/// Where the kind stands, and the varint of the length.
const KIND: usize = 5;
const LENGTH: usize = 10;

/// A change of a filter: a sound filter or an error, and the base stays as it was. The base is a golden
/// file of the kind that the bytes name; the checksums of base and result are corrected, too. What a
/// decoder accepts as a change must also be one for `decode_change`.
pub fn apply_delta(bytes: &[u8]) {
    let kind = bytes.get(KIND).map_or(0, |kind| usize::from(kind & 0x0F));
    let base = &BASES[kind.saturating_sub(1) % 4];
    let before = base.clone();
    let mut frame = bytes.to_vec();
    for _ in 0..3 {
        frame = sealed(&frame);
        match Decoder::new().limit(LIMIT).apply(base, &frame) {
            Ok(filter) => validate(&filter),
            Err(DecodeError::WrongBase { have, .. }) => put(&mut frame, 8, have),
            Err(DecodeError::WrongResult { found, .. }) => put(&mut frame, 16, found),
            Err(_) => break,
        }
    }
    assert_eq!(*base, before);
    if let AnyFilter::Standard(base) = base {
        let shape = base.scheme().shape();
        if let Ok(flips) = decode_change(bytes, shape, base.bits()) {
            let mut bits = base.bits().clone();
            flips.apply(&mut bits);
            bits.validate();
        }
    }
}

/// Puts a number behind the length; 8 bytes of fingerprint stand there first.
fn put(frame: &mut [u8], offset: usize, number: u64) {
    let Some(tail) = frame.get_mut(LENGTH..) else { return };
    let Some(last) = tail.iter().position(|byte| byte & 0x80 == 0) else { return };
    if let Some(bytes) = tail.get_mut(last + 1 + offset..last + 9 + offset) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

/// A file of prefixes: refused, or a sound table that is written and read again.
pub fn decode_prefixes(bytes: &[u8]) {
    let _ = AnyTable::decode(bytes, LIMIT);
    let Ok(table) = AnyTable::decode(&sealed(bytes), LIMIT) else { return };
    match &table {
        AnyTable::Ipv4(table) => table.table().validate(),
        AnyTable::Ipv6(table) => table.table().validate(),
        AnyTable::Names(table) => table.table().validate(),
    }
    let written = table.encode();
    let again = AnyTable::decode(&written, LIMIT).expect("what was written is read");
    assert_eq!(again.encode(), written);
}

/// The messages of an input, each with its checksum.
fn messages(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let all = rest?;
        let end = all.windows(BETWEEN.len()).position(|window| window == BETWEEN);
        rest = end.map(|end| &all[end + BETWEEN.len()..]);
        let body = &all[..end.unwrap_or(all.len())];
        Some([body, &crc32c::crc32c(body).to_le_bytes()].concat())
    })
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn hasher() -> KeyHasher {
    KeyHasher::new(HashId::Xxh3, Seed::default())
}

/// A host of a mesh that accepts filters of a few hundred bytes.
fn mesh_host(host: &str) -> Engine<MemoryCatalogue> {
    let mut config = MeshConfig::new(name(host), Incarnation(1), hasher());
    config.max_bits = 1 << 20;
    config.replica_bytes = 1 << 22;
    Engine::new(config)
}

/// Sends what each of two hosts has for the other, a few times: who is asked may ask back.
fn converse(now: Duration, home: &mut Engine<MemoryCatalogue>, host: &mut Engine<MemoryCatalogue>) {
    for _ in 0..4 {
        while let Some(transmit) = home.poll_transmit() {
            host.handle_message(now, &name("home"), &transmit.bytes);
        }
        while let Some(transmit) = host.poll_transmit() {
            home.handle_message(now, &name("host"), &transmit.bytes);
        }
    }
}

/// A home with three keys, and a host that has learnt them.
pub fn mesh_pair() -> (Engine<MemoryCatalogue>, Engine<MemoryCatalogue>) {
    let (mut home, mut host) = (mesh_host("home"), mesh_host("host"));
    let plan = SetPlan { capacity: Some(16), ..SetPlan::default() };
    home.handle_alive(Duration::ZERO, &name("host"), Incarnation(1));
    host.handle_alive(Duration::ZERO, &name("home"), Incarnation(1));
    home.create(Duration::ZERO, &name("set"), plan, MemoryCatalogue::new()).expect("a set");
    home.add_many(Duration::ZERO, &name("set"), &[b"one", b"two"], &mut |_| ());
    home.publish(Duration::ZERO, &name("set"));
    converse(Duration::ZERO, &mut home, &mut host);
    (home, host)
}

/// Messages to hosts of a mesh: refused or taken, never a panic; what answers is always a whole image.
pub fn message(bytes: &[u8]) {
    let (mut home, mut host) = mesh_pair();
    let now = Duration::from_secs(1);
    for message in messages(bytes) {
        host.handle_message(now, &name("home"), &message);
        home.handle_message(now, &name("host"), &message);
    }
    converse(now, &mut home, &mut host);
    host.handle_timeout(Duration::from_secs(2));
    home.handle_timeout(Duration::from_secs(2));
    host.validate();
    home.validate();
}

/// A host of an overlay that holds one key.
fn overlay_host(host: &str, kind: EntryKind) -> Router<MemoryCatalogue> {
    let plan = Plan { kind, depth: 3, items: 4, filters: 4, false_positive: 0.01 };
    let mut config =
        route::RouterConfig::new(name(host), Incarnation(1), name("s"), hasher(), plan);
    config.max_bits = 1 << 20;
    let catalogue = MemoryCatalogue::new();
    let mut router = Router::new(Duration::ZERO, config, catalogue).expect("a router");
    router.add(Duration::ZERO, b"held");
    router.publish(Duration::ZERO);
    router
}

/// Two linked hosts of an overlay; the second one is linked with a third host as well.
pub fn overlay_pair(kind: EntryKind) -> (Router<MemoryCatalogue>, Router<MemoryCatalogue>) {
    let (mut home, mut router) = (overlay_host("a", kind), overlay_host("b", kind));
    home.handle_link_up(Duration::ZERO, &name("b"));
    router.handle_link_up(Duration::ZERO, &name("a"));
    router.handle_link_up(Duration::ZERO, &name("c"));
    (home, router)
}

/// Messages to a host of an overlay: refused or taken, never a panic; its table keeps its promises. The
/// first byte chooses the kind of entries.
pub fn route_message(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let (mut home, mut router) = overlay_pair(EntryKind::ALL[usize::from(*kind) % 3]);
    while let Some(transmit) = home.poll_transmit() {
        router.handle_message(Duration::ZERO, &name("a"), &transmit.bytes);
    }
    router.locate(Duration::ZERO, b"sought", None);
    for (number, message) in messages(bytes).enumerate() {
        let from = name(if number % 2 == 0 { "a" } else { "c" });
        router.handle_message(Duration::from_millis(number as u64), &from, &message);
    }
    router.handle_timeout(Duration::from_secs(2));
    router.validate();
    router.handle_timeout(Duration::from_secs(60));
    router.validate();
    // Given up by then, and forgotten a little later.
    router.handle_timeout(Duration::from_secs(120));
    assert_eq!(router.queries(), 0);
}
