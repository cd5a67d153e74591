//! Bytes from outside.

use proptest::prelude::*;

use super::super::message::*;
use super::*;
use crate::replica::Epoch;
use crate::scheme::Scheme;

fn version(life: u64, epoch: u64) -> Version {
    Version { incarnation: Incarnation(life), epoch: Epoch(epoch) }
}

fn messages() -> Vec<Message> {
    let plan = plan(EntryKind::Attenuated, 3, 30, 7);
    let scheme = Scheme::new(plan.shape().unwrap(), KeyHasher::default());
    let id = QueryId { host: name("host"), incarnation: Incarnation(9), number: 300 };
    let known = |home: &str| KnownHome { home: name(home), version: version(1, 2), hops: 3 };
    vec![
        Message::Advert(Advert {
            home: name("home"),
            version: version(3, 4),
            base: Some(Epoch(3)),
            hops: 2,
            scheme,
            checksum: 77,
            facts: Facts { items: 1, links: 2, filters: 300 },
            part: 1,
            parts: 2,
            bytes: vec![1, 2, 3],
        }),
        Message::Reach(Reach { home: name("home"), version: version(1, 1), hops: None }),
        Message::Reach(Reach { home: name("home"), version: version(1, 1), hops: Some(255) }),
        Message::Hello(Hello {
            incarnation: Incarnation(5),
            sum: u64::MAX,
            plan: Numbered { number: 6, by: name("by"), plan },
        }),
        Message::Have(vec![known("a"), known("b")]),
        Message::Have(Vec::new()),
        Message::Query(Query {
            id: id.clone(),
            hops: 3,
            limit: 4,
            walk: 128,
            patience_ms: 10_000,
            key: b"key".to_vec(),
        }),
        Message::Reply(Reply {
            id,
            done: true,
            is_complete: false,
            walk: 5,
            holders: vec![Holder { path: vec![name("host"), name("holder")] }],
        }),
    ]
}

#[test]
fn messages_come_back_and_no_part_of_one_is_a_message() {
    for message in messages() {
        let bytes = message.encode(&name("set"));
        assert_eq!(Message::decode(&bytes), Ok((name("set"), message.clone())));
        for cut in 0..bytes.len() {
            assert!(Message::decode(&bytes[..cut]).is_err());
        }
    }
    assert!(Message::decode(b"").is_err());
    let other = crate::codec::seal(vec![1, 1, 3, b's', b'e', b't']);
    assert!(Message::decode(&other).is_err(), "a message of the replica protocol");
}

/// The bytes that docs/wire.md shows.
#[test]
fn a_reach_message_is_the_documented_bytes() {
    let reach = Reach { home: name("A"), version: version(1, 5), hops: Some(2) };
    let bytes = Message::Reach(reach).encode(&name("s"));
    assert_eq!(bytes[..9], [0x01, 0x11, 0x01, 0x73, 0x01, 0x41, 0x01, 0x05, 0x02]);
    assert_eq!(bytes[9..], crc32c::crc32c(&bytes[..9]).to_le_bytes());
    let shown: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let wire = include_str!("../../../../../docs/wire.md");
    assert!(wire.contains(&shown.join(" ")), "{}", shown.join(" "));
}

#[test]
fn sizes_that_simulations_count_are_those_of_messages() {
    let mut net = Net::new(plan(EntryKind::Abf, 1, 3, 3), &[("a", "b")]);
    net.stock();
    net.settle();
    let image = crate::StandardFilter::new(Scheme::new(
        net.at("a").plan().shape().unwrap(),
        KeyHasher::default(),
    ));
    let mut filter = image.unwrap();
    filter.insert("of a");
    let counted = advert_bytes(
        &name("set"),
        &name("a"),
        &Filters { scheme: filter.scheme(), components: vec![filter.bits()] },
    );
    let now = net.now;
    let mut fresh = Router::new(now, net.at("a").config().clone(), MemoryCatalogue::new()).unwrap();
    fresh.add(now, b"of a");
    fresh.publish(now);
    fresh.handle_link_up(now, &name("b"));
    let sent = std::iter::from_fn(|| fresh.poll_transmit()).find(|sent| sent.bytes[1] == 16);
    assert_eq!(sent.unwrap().bytes.len(), counted);
}

proptest! {
    #[test]
    fn damaged_messages_are_refused_and_change_nothing(
        which in 0usize..8, at in any::<prop::sample::Index>(), with in any::<u8>(), seal in any::<bool>(),
    ) {
        let mut bytes = messages()[which].encode(&name("set"));
        let at = at.index(bytes.len() - 4);
        bytes[at] ^= with;
        if seal {
            let end = bytes.len() - 4;
            let checksum = crc32c::crc32c(&bytes[..end]);
            bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        }
        let mut net = Net::new(plan(EntryKind::Cubf, 3, 3, 7), &[("a", "b"), ("b", "c")]);
        net.stock();
        net.settle();
        let now = net.now;
        net.at("b").handle_message(now, &name("a"), &bytes);
        net.at("b").validate();
        if with != 0 && !seal {
            prop_assert_eq!(net.at("b").counters().refused, 1);
        }
    }
}

#[test]
fn only_what_concerns_a_stranger_to_the_set_opens_it() {
    let opening = messages().iter().filter(|m| m.opens_set()).count();
    assert_eq!(opening, 3, "the advert, the hello of a sum, the query");
    let plan = plan(EntryKind::Cubf, 3, 30, 7);
    let plan = Numbered { number: 0, by: name("by"), plan };
    let hello = Message::Hello(Hello { incarnation: Incarnation(5), sum: 0, plan });
    assert!(!hello.opens_set(), "it tells of nobody");
}

#[test]
fn a_path_that_does_not_begin_with_its_sender_is_refused() {
    let mut net = Net::new(plan(EntryKind::Cubf, 3, 3, 7), &[("a", "b")]);
    let now = net.now;
    let id = net.at("a").locate(now, b"key", None);
    for (path, refused) in [(vec![name("c")], 1), (vec![name("b")], 1)] {
        let holders = vec![Holder { path }];
        let reply = Reply { id: id.clone(), done: true, is_complete: true, walk: 0, holders };
        net.at("a").handle_message(now, &name("b"), &Message::Reply(reply).encode(&name("set")));
        assert_eq!(net.at("a").counters().refused, refused);
    }
}
