//! Keys past their lifetime are not held, whether or not they have been removed yet.

use std::time::Duration;

use umbel_node::{Host, Lifetime, LocalNetwork};

/// A hundred thousand keys that expire at the same moment were held until the last of them had been
/// removed, a few thousand at a time.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_expire_together_are_all_gone_at_once() {
    let network = LocalNetwork::new();
    let host = Host::builder().name("host").local(&network).start().await.expect("started");
    let other = Host::builder().name("other").local(&network).start().await.expect("started");
    let keys: Vec<Vec<u8>> = (0..100_000).map(|key| format!("key-{key}").into_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let stays: [&[u8]; 2] = [b"stays", b"stays longer"];
    let last = &keys[99_000..];
    let lifetime = Lifetime::For(Duration::from_millis(1));
    host.add("set", &stays[..1], Lifetime::Default, &mut Vec::new()).expect("added");
    let hour = Lifetime::For(Duration::from_secs(3600));
    host.add("set", &stays[1..], hour, &mut Vec::new()).expect("added");
    host.add("set", &keys, lifetime, &mut Vec::new()).expect("added");
    tokio::time::sleep(Duration::from_millis(2)).await;

    let (mut held, mut named) = (Vec::new(), Vec::new());
    host.has("set", last, &mut held).expect("answered");
    host.who("set", last, &mut |hosts| named.push(!hosts.is_empty())).expect("answered");
    assert!(!held.contains(&true), "an expired key is held");
    assert!(!named.contains(&true), "an expired key is named");
    let confirmed = host.locate("set", last[0], None).await.expect("answered");
    assert_eq!(confirmed, Vec::<String>::new());
    let missing = other.missing("set", vec![last[1].to_vec()]).await.expect("answered");
    assert_eq!(missing.missing, [last[1].to_vec()]);

    let mut was_held = Vec::new();
    host.remove("set", &last[2..3], &mut was_held).expect("removed");
    assert_eq!(was_held, [false], "there was nothing to remove");
    let mut is_new = Vec::new();
    host.add("set", &last[3..4], Lifetime::Default, &mut is_new).expect("added");
    assert_eq!(is_new, [true], "what has expired is added anew");
    host.has("set", &[last[3], stays[0], stays[1]], &mut held).expect("answered");
    assert_eq!(held[last.len()..], [true, true, true]);

    let (mut listed, mut cursor) = (Vec::new(), Some(Vec::new()));
    while let Some(place) = cursor {
        let (page, next) = host.keys("set", &place, 10_000).expect("listed");
        listed.extend(page);
        cursor = next;
    }
    listed.sort_unstable();
    assert_eq!(listed, [last[3], stays[0], stays[1]]);
    host.stop().await;
    other.stop().await;
}

/// Queries that other hosts send found them, as long as they had not been removed.
#[tokio::test(flavor = "multi_thread")]
async fn queries_in_an_overlay_find_no_expired_keys() {
    let network = LocalNetwork::new();
    let start = |name: &'static str, link: &'static str| {
        Host::builder().name(name).set("links", [link]).local(&network).start()
    };
    let holder = start("holder", "other").await.expect("started");
    let other = start("other", "holder").await.expect("started");
    let keys: Vec<Vec<u8>> = (0..100_000).map(|key| format!("key-{key}").into_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    holder.add_key("set", b"stays").await.expect("added");
    while other.locate("set", b"stays", None).await.ok() != Some(vec!["holder".to_owned()]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lifetime = Lifetime::For(Duration::from_millis(1));
    holder.add("set", &keys, lifetime, &mut Vec::new()).expect("added");
    tokio::time::sleep(Duration::from_millis(2)).await;
    for key in &keys[99_990..] {
        for host in [&holder, &other] {
            let found = host.locate("set", key, None).await.expect("answered");
            assert_eq!(found, Vec::<String>::new(), "an expired key is found");
        }
    }
    let found = other.locate("set", b"stays", None).await.expect("answered");
    assert_eq!(found, ["holder"]);
    holder.stop().await;
    other.stop().await;
}
