//! Many threads ask while updates arrive: a key that is held all the while is never denied.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use umbel_node::{Host, Lifetime, LocalNetwork, Reserve};

fn keys(prefix: &str, range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    range.map(|key| format!("{prefix}-{key}").into_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_held_all_the_while_is_never_denied() {
    let network = LocalNetwork::new();
    let home = Host::builder().name("home").local(&network).start().await.expect("started");
    let host = Host::builder().name("host").local(&network).start().await.expect("started");
    let policy = "interval:0.05,shortest=0.01".parse().expect("a policy");
    let plan = Reserve {
        false_positive: 0.001,
        capacity: 2000,
        expected_hosts: None,
        policy: Some(policy),
        lifetime: Lifetime::Default,
        confirm: None,
        chains: None,
    };
    home.reserve("set", plan).expect("reserved");
    let stable = keys("stable", 0..500);
    let stable: Vec<&[u8]> = stable.iter().map(Vec::as_slice).collect();
    home.add("set", &stable, Lifetime::Default, &mut Vec::new()).expect("added");
    home.publish("set").expect("published");
    while host.who_has("set", stable[499]).unwrap_or_default() != ["home"] {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let (done, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let updates = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let mut named = Vec::new();
                    host.who("set", &stable, &mut |hosts| named.push(hosts == ["home"]))
                        .expect("the set is known");
                    assert!(named.iter().all(|named| *named), "a member was denied");
                    asked.fetch_add(stable.len() as u64, Ordering::Relaxed);
                }
            });
        }
        // Keys come and go; the filter grows, is built again, shrinks.
        for round in 0..40u32 {
            let fresh = keys("fresh", round * 1000..(round + 1) * 1000);
            let fresh: Vec<&[u8]> = fresh.iter().map(Vec::as_slice).collect();
            home.add("set", &fresh, Lifetime::Default, &mut Vec::new()).expect("added");
            if round % 4 == 3 {
                let old = keys("fresh", (round - 3) * 1000..round * 1000);
                let old: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
                home.remove("set", &old, &mut Vec::new()).expect("removed");
            }
            std::thread::sleep(Duration::from_millis(60));
        }
        done.store(true, Ordering::Relaxed);
        host.set_info("set").expect("known").updates_received
    });
    assert!(updates > 5, "updates arrived meanwhile: {updates}");
    assert!(asked.load(Ordering::Relaxed) > 1000, "and questions were asked");
    home.stop().await;
    host.stop().await;
}

#[tokio::test]
async fn a_runtime_of_one_thread_is_refused_with_the_reason() {
    #[cfg(feature = "zenoh")]
    {
        let listen = "127.0.0.1:0".parse().expect("an address");
        let refused = Host::builder().name("alone").listen(listen).start().await;
        let reason = refused.expect_err("one thread").to_string();
        assert!(reason.contains("multi-thread"), "{reason}");
    }
}
