//! Updates that are encoded while the set goes on: what happens in between.

use super::*;

impl Cluster {
    /// As [`Cluster::pair`], with a home that leaves the encoding of updates to others.
    fn encoding_pair() -> Self {
        let mut config = MeshConfig::new(name("a"), Incarnation(1), hasher());
        config.intervals = AT_ONCE;
        config.work = Work::Deferred;
        config.max_bits_at_once = 0;
        let mut cluster = Self::of(&["a", "b"]);
        cluster.engines[0] = Engine::new(config);
        cluster.create(0, plan("miss:0", 100));
        cluster.add(0, 0..10);
        cluster.encode();
        cluster.agree(0, 1);
        cluster
    }

    /// Lets time pass for the home; the update that it prepares.
    fn prepare(&mut self) -> Option<Encoding> {
        self.now += Duration::from_millis(1);
        self.engines[0].handle_timeout(self.now);
        self.engines[0].poll_encoding()
    }

    /// Lets the home publish what is due, and everybody hear of it.
    fn encode(&mut self) {
        while let Some(encoding) = self.prepare() {
            self.engines[0].handle_encoded(self.now, encoding.encode());
        }
        self.deliver(|_, _, _| true);
    }

    fn updates_sent(&self) -> u64 {
        self.engines[0].counters().updates_sent
    }
}

#[test]
fn keys_that_come_and_go_while_an_update_is_encoded_are_in_the_next() {
    let mut cluster = Cluster::encoding_pair();
    cluster.add(0, 10..20);
    let encoding = cluster.prepare().expect("an update is due");
    cluster.add(0, 20..30);
    cluster.engines[0].remove(cluster.now, &name("set"), &key(10));
    assert!(cluster.prepare().is_none(), "one update of a set at a time");
    cluster.deliver(|_, _, _| true);
    assert!(cluster.who(1, 15).is_empty(), "nothing is sent before it is encoded");
    let sent = cluster.updates_sent();
    cluster.engines[0].handle_encoded(cluster.now, encoding.encode());
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.updates_sent(), sent + 1);
    assert!(!cluster.who(1, 15).is_empty() && !cluster.who(1, 10).is_empty());
    assert!(cluster.who(1, 25).is_empty(), "it came after the image was made");
    assert!(cluster.engines[0].local_set(&name("set")).unwrap().home().misses() > 0);
    cluster.encode();
    cluster.agree(0, 1);
    assert!((11..30).all(|number| !cluster.who(1, number).is_empty()));
}

/// Whoever asks in between gets pages of the new image, of the epoch that these have.
#[test]
fn a_host_that_fetches_while_an_update_is_encoded_has_that_update() {
    let mut cluster = Cluster::encoding_pair();
    cluster.add(0, 10..20);
    let encoding = cluster.prepare().expect("an update is due");
    let mut config = MeshConfig::new(name("c"), Incarnation(1), hasher());
    config.intervals = AT_ONCE;
    cluster.engines.push(Engine::new(config));
    // The home announces itself to the new host, which fetches its set.
    cluster.wait(4);
    assert!(cluster.engines[0].poll_encoding().is_none());
    assert!(!cluster.who(2, 5).is_empty());
    assert!(!cluster.who(2, 15).is_empty(), "its pages are of the new image");
    cluster.engines[0].handle_encoded(cluster.now, encoding.encode());
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    cluster.agree(0, 2);
}

#[test]
fn an_update_of_a_set_that_is_gone_is_not_sent() {
    let mut cluster = Cluster::encoding_pair();
    cluster.add(0, 10..20);
    let encoding = cluster.prepare().expect("an update is due");
    assert!(cluster.engines[0].delete(&name("set")));
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 100..105);
    let next = cluster.prepare().expect("the new set publishes");
    let sent = cluster.updates_sent();
    cluster.engines[0].handle_encoded(cluster.now, encoding.encode());
    assert_eq!(cluster.updates_sent(), sent, "the old one's update is nobody's");
    cluster.engines[0].handle_encoded(cluster.now, next.encode());
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    assert!(cluster.who(1, 15).is_empty() && !cluster.who(1, 102).is_empty());
}

#[test]
fn a_host_that_leaves_for_a_while_sends_what_is_being_encoded() {
    let mut cluster = Cluster::encoding_pair();
    cluster.add(0, 10..20);
    let encoding = cluster.prepare().expect("an update is due");
    cluster.add(0, 20..30);
    cluster.engines[0].leave(cluster.now, Duration::from_secs(60));
    let sent = cluster.updates_sent();
    cluster.engines[0].handle_encoded(cluster.now, encoding.encode());
    assert_eq!(cluster.updates_sent(), sent, "once");
    cluster.deliver(|_, _, _| true);
    assert!((0..30).all(|number| !cluster.who(1, number).is_empty()), "it answers while away");
}

/// Others drop what a home that is back does not list.
#[test]
fn what_a_host_starts_with_is_published_at_once() {
    let mut cluster = Cluster::encoding_pair();
    let mut keys = MemoryCatalogue::new();
    (0..50).for_each(|number| keys.insert(&key(number), crate::filter::ComponentId(0)));
    let now = cluster.now;
    let before = cluster.updates_sent();
    cluster.engines[0].create(now, &name("second"), plan("miss:0", 100), keys).unwrap();
    assert_eq!(cluster.updates_sent(), before + 1);
    assert!(cluster.engines[0].poll_encoding().is_none());
}
