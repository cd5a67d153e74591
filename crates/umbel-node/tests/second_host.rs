//! A second host of a name, on a network that hides hosts from each other for a moment, as one does
//! whose links are reopened.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use umbel::replica::Name;
use umbel_node::Host;
use umbel_node::network::{Boxed, Inbox, Join, Member, Network, NetworkEvent, Reply};

const KEYS: usize = 100;

/// A member of the network, and whether others see it.
#[derive(Debug, Clone)]
struct Place {
    me: Member,
    inbox: Inbox,
    is_hidden: bool,
}

/// The places of all hosts: several of them may have one name.
#[derive(Debug, Clone, Default)]
struct Places(Arc<Mutex<Vec<Place>>>);

#[derive(Debug)]
struct Joined {
    places: Places,
    me: Member,
}

impl Place {
    fn is_of(&self, me: &Member) -> bool {
        self.me.name == me.name && self.me.incarnation == me.incarnation
    }

    fn alive(&self) -> NetworkEvent {
        NetworkEvent::Alive { host: self.me.name.clone(), incarnation: self.me.incarnation }
    }

    fn gone(&self) -> NetworkEvent {
        NetworkEvent::Gone { host: self.me.name.clone(), incarnation: self.me.incarnation }
    }
}

impl Places {
    /// All that see each other but this one; none if it is hidden.
    fn seen_by(&self, me: &Member) -> Vec<Place> {
        let places = self.0.lock().expect("in a test");
        if places.iter().any(|place| place.is_of(me) && place.is_hidden) {
            return Vec::new();
        }
        places.iter().filter(|place| !place.is_of(me) && !place.is_hidden).cloned().collect()
    }

    /// Hides the hosts of a name from all others, or shows them again.
    fn hide(&self, name: &str, is_hidden: bool) {
        let mut places = self.0.lock().expect("in a test");
        let (hidden, others): (Vec<_>, Vec<_>) =
            places.iter_mut().partition(|place| place.me.name.as_str() == name);
        for place in hidden {
            place.is_hidden = is_hidden;
            for other in &others {
                let (one, two) = match is_hidden {
                    true => (place.gone(), other.gone()),
                    false => (place.alive(), other.alive()),
                };
                other.inbox.put(one);
                place.inbox.put(two);
            }
        }
    }
}

impl Join for Places {
    fn join(&self, me: Member, inbox: Inbox) -> Arc<dyn Network> {
        let place = Place { me: me.clone(), inbox, is_hidden: false };
        for other in self.seen_by(&me) {
            other.inbox.put(place.alive());
            place.inbox.put(other.alive());
        }
        self.0.lock().expect("in a test").push(place);
        Arc::new(Joined { places: self.clone(), me })
    }
}

impl Joined {
    fn send(&self, to: Option<&Name>, event: impl Fn() -> NetworkEvent) {
        let others = self.places.seen_by(&self.me).into_iter();
        others
            .filter(|place| to.is_none_or(|name| place.me.name == *name))
            .for_each(|place| place.inbox.put(event()));
    }

    fn message(&self, bytes: &[u8]) -> NetworkEvent {
        NetworkEvent::Message { from: self.me.name.clone(), bytes: bytes.to_vec() }
    }

    /// Asks all hosts of a name, or all hosts.
    fn ask(
        &self,
        to: Option<&Name>,
        bytes: &[u8],
        timeout: Duration,
    ) -> Boxed<'_, Vec<(Name, Vec<u8>)>> {
        let mut asked = Vec::new();
        for place in self.places.seen_by(&self.me) {
            if to.is_none_or(|name| place.me.name == *name) {
                let (sender, answer) = tokio::sync::oneshot::channel();
                let reply = Reply::new(move |bytes| drop(sender.send(bytes)));
                let (from, bytes) = (self.me.name.clone(), bytes.to_vec());
                place.inbox.put(NetworkEvent::Request { from, bytes, reply });
                asked.push((place.me.name, answer));
            }
        }
        Box::pin(async move {
            let mut answers = Vec::new();
            for (name, answer) in asked {
                let answer = tokio::time::timeout(timeout, answer).await;
                answers.extend(answer.ok().and_then(Result::ok).map(|answer| (name, answer)));
            }
            answers
        })
    }
}

impl Network for Joined {
    fn publish_to_all(&self, bytes: Vec<u8>) {
        self.send(None, || self.message(&bytes));
    }

    fn send_to(&self, host: &Name, bytes: Vec<u8>) {
        self.send(Some(host), || self.message(&bytes));
    }

    fn greet(&self, bytes: Vec<u8>) {
        self.send(None, || NetworkEvent::Greeting { bytes: bytes.clone() });
    }

    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>> {
        let answers = self.ask(Some(host), &bytes, timeout);
        Box::pin(async move { answers.await.pop().map(|(_, answer)| answer) })
    }

    fn ask_lives(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<Vec<u8>>> {
        let answers = self.ask(Some(host), &bytes, timeout);
        Box::pin(async move { answers.await.into_iter().map(|(_, answer)| answer).collect() })
    }

    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<(Name, Vec<u8>)>> {
        self.ask(None, &bytes, timeout)
    }

    fn close(&self) -> Boxed<'_, ()> {
        let mut places = self.places.0.lock().expect("in a test");
        let at = places.iter().position(|place| place.is_of(&self.me));
        if let Some(place) = at.map(|at| places.remove(at)) {
            places.iter().for_each(|other| other.inbox.put(place.gone()));
        }
        Box::pin(std::future::ready(()))
    }
}

async fn start(network: &Places, name: &str) -> Host {
    let host = Host::builder().name(name).network(network.clone());
    host.start().await.expect("started")
}

/// How many keys of fern lily denies, and whether it calls that complete.
fn denied(lily: &Host) -> (bool, usize) {
    let before = lily.coverage();
    let is_named = |key: &usize| {
        let hosts = lily.who_has("images", format!("key-{key}").as_bytes()).expect("answered");
        hosts == ["fern"]
    };
    let denied = (0..KEYS).filter(|key| !is_named(key)).count();
    (lily.coverage().and(&before).complete, denied)
}

/// Waits until something is so.
async fn until(what: &str, lily: &Host, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:?}", lily.coverage());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether no key is denied in an answer that is called complete.
fn is_true(lily: &Host) -> bool {
    let (is_complete, denied) = denied(lily);
    !is_complete || denied == 0
}

/// A bug: the second host was accepted, because the first one had disappeared at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_out_of_reach_for_a_moment_keeps_its_name() {
    let network = Places::default();
    let (fern, lily) = (start(&network, "fern").await, start(&network, "lily").await);
    for key in 0..KEYS {
        fern.add_key("images", format!("key-{key}").as_bytes()).await.expect("added");
    }
    fern.publish("images").expect("published");
    until("lily knows fern", &lily, || denied(&lily) == (true, 0)).await;

    network.hide("fern", true);
    until("fern is missing", &lily, || {
        assert!(is_true(&lily));
        !lily.coverage().complete
    })
    .await;
    let second = start(&network, "fern").await;
    let pause = Instant::now() + Duration::from_millis(600);
    until("it is not replaced", &lily, || {
        assert_eq!(denied(&lily), (false, 0), "it may be back at any moment");
        Instant::now() >= pause
    })
    .await;
    network.hide("fern", false);
    until("fern is back", &lily, || {
        assert!(is_true(&lily));
        denied(&lily) == (true, 0)
    })
    .await;
    let failed = tokio::time::timeout(Duration::from_secs(60), second.failed()).await;
    let reason = failed.expect("the second one stops");
    assert!(reason.contains("another host is called 'fern'"), "{reason}");
    assert_eq!(denied(&lily), (true, 0));
    lily.stop().await;
    fern.stop().await;
}
