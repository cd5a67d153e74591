//! The task that keeps a host's links: opens links that `links` requests, detects lost ones, and
//! tests hosts that are linked but silent.
//!
//! A link may be open and carry nothing, because a host hangs or because of a fault in a lower
//! layer. So a host from which nothing arrived for half of the silence limit is sent a request. If
//! it does not reply, the link is reopened, after growing pauses, and counted.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use umbel::replica::Name;

use super::channel::{Channel, Sighting};
use super::config::{Purpose, config};
use super::links::Action;
use super::reach::{Path, SessionId};
use super::{Inner, LISTENER, reason};
use crate::network::NetworkEvent;
use crate::peer_request::PeerRequest;
use crate::settings::Endpoint;

/// Interval between two looks at the links, unless an event comes first.
const LOOK: Duration = Duration::from_millis(100);
/// Interval between two checks of every link.
const CHECK: Duration = Duration::from_millis(300);
/// How long a silent host may take to reply.
pub(super) const REPLY: Duration = Duration::from_secs(3);
/// How long the declarations of both ends of a new link may take.
const DECLARED: Duration = Duration::from_millis(200);
/// Maximum number of links that are being opened at the same time.
const AT_ONCE: usize = 16;
/// After this time without a link to a configured address a warning is logged, then less and less
/// often.
const REPORT: Duration = Duration::from_secs(5);

/// Keeps the links until the network is closed.
pub(super) async fn keep_links(inner: Arc<Inner>) {
    let mut closed = inner.is_closed.subscribe();
    let mut keeper = Keeper::new(inner);
    loop {
        tokio::select! {
            _ = closed.changed() => return,
            () = keeper.inner.shared.changed.notified() => {
                // Callbacks come in bursts, one per token.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        keeper.look().await;
    }
}

struct Keeper {
    inner: Arc<Inner>,
    opening: Arc<tokio::sync::Semaphore>,
    /// Hosts that are being tested.
    testing: Arc<Mutex<HashSet<Name>>>,
    next_check: Duration,
    next_report: Duration,
    report_every: Duration,
}

impl Keeper {
    fn new(inner: Arc<Inner>) -> Self {
        let opening = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
        Self {
            inner,
            opening,
            testing: Arc::default(),
            next_check: Duration::ZERO,
            next_report: REPORT,
            report_every: REPORT,
        }
    }

    async fn look(&mut self) {
        self.identify();
        let now = self.inner.now();
        if now >= self.next_check {
            self.next_check = now + CHECK;
            self.check_links().await;
            self.test_silent_hosts();
        }
        let actions = {
            let mut links = self.inner.links.lock();
            links.poll(now, |host| self.direct_paths(host))
        };
        self.perform(actions);
        self.report(now);
    }

    /// Records which host is at the other end of each link. Links to routers are skipped, because
    /// many hosts are behind them.
    fn identify(&self) {
        let sightings = std::mem::take(&mut *self.inner.shared.sightings.lock());
        let now = self.inner.now();
        for (session, sighting) in sightings {
            if session == LISTENER || self.inner.routers.read().contains(&session) {
                continue;
            }
            let closed = {
                let mut links = self.inner.links.lock();
                match sighting {
                    Sighting::Me => links.leads_here(session),
                    Sighting::Host(host) => {
                        links.identify(now, session, &host);
                        None
                    }
                    Sighting::Stranger(cluster) => {
                        links.refuse(now, session, &format!("other cluster '{cluster}'"));
                        None
                    }
                }
            };
            self.perform(closed.into_iter().collect());
        }
    }

    /// The paths to a host that do not go through a router.
    fn direct_paths(&self, host: &Name) -> Vec<Path> {
        let routers = self.inner.routers.read();
        let paths = self.inner.shared.reach.paths(host).into_iter();
        paths.filter(|path| !routers.contains(&path.session)).collect()
    }

    fn perform(&self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Open { key, endpoints } => {
                    let (inner, opening) = (Arc::clone(&self.inner), Arc::clone(&self.opening));
                    tokio::spawn(async move {
                        let _turn = opening.acquire().await;
                        open_link(&inner, &key, &endpoints).await;
                        inner.shared.changed.notify_one();
                    });
                }
                Action::Close(session) => {
                    tokio::spawn(self.inner.take_channel(session));
                }
            }
        }
    }

    /// Reopens links whose connection is lost.
    async fn check_links(&self) {
        let sessions: Vec<SessionId> = self.inner.links.lock().sessions().collect();
        for session in sessions {
            let channel = self.inner.channels.read().get(&session).cloned();
            let is_linked = match channel {
                Some(channel) => channel.is_linked().await,
                None => false,
            };
            if !is_linked {
                self.inner.links.lock().lost(self.inner.now(), session);
                tokio::spawn(self.inner.take_channel(session));
            }
        }
    }

    /// Sends a request to every host that is linked but has been silent for too long.
    fn test_silent_hosts(&self) {
        let limit = self.inner.endpoints.read().silence / 2;
        for (host, session) in self.inner.shared.reach.silent(limit) {
            if !self.testing.lock().insert(host.clone()) {
                continue;
            }
            let (inner, testing) = (Arc::clone(&self.inner), Arc::clone(&self.testing));
            tokio::spawn(async move {
                if !replies(&inner, &host, session).await {
                    reopen(&inner, &host, session);
                }
                testing.lock().remove(&host);
            });
        }
        let now = self.inner.now();
        let mute = self.inner.links.lock().mute(now);
        for session in mute {
            let is_router = self.inner.routers.read().contains(&session);
            if !is_router {
                reopen(&self.inner, &self.inner.shared.me.name, session);
            }
        }
    }

    /// Logs which configured addresses are not reached: soon after the start, then less and less
    /// often.
    fn report(&mut self, now: Duration) {
        if now < self.next_report {
            return;
        }
        let unreached = self.inner.links.lock().unreached();
        if unreached.is_empty() {
            self.report_every = REPORT;
            self.next_report = now + REPORT;
            return;
        }
        let peers: Vec<&str> = unreached.iter().map(|link| link.address.as_str()).collect();
        let error = unreached.iter().find_map(|link| link.error.as_deref()).unwrap_or("no reply");
        tracing::warn!(peers = %peers.join(", "), error, "waiting for peers that cannot be reached");
        self.report_every = (self.report_every * 4).min(Duration::from_secs(600));
        self.next_report = now + self.report_every;
    }
}

/// Opens a link in a session of its own.
async fn open_link(inner: &Arc<Inner>, key: &str, endpoints: &[Endpoint]) {
    let id = SessionId(inner.next_session.fetch_add(1, Ordering::Relaxed));
    let opened = open_session(inner, id, endpoints).await;
    let (leads_to_router, result) = match opened {
        Ok(channel) => {
            let leads_to_router = channel.leads_to_router().await;
            inner.channels.write().insert(id, Arc::new(channel));
            (leads_to_router, Ok(id))
        }
        Err(error) => (false, Err(error)),
    };
    if leads_to_router {
        inner.routers.write().push(id);
    }
    let is_wanted = {
        let mut links = inner.links.lock();
        links.opened(inner.now(), key, result);
        links.wants(id)
    };
    if !is_wanted || *inner.is_closed.borrow() {
        inner.take_channel(id).await;
    } else {
        tokio::spawn(greet(Arc::clone(inner), id));
    }
}

/// Greets the host at the other end of a new link, once zenoh knows what that end subscribes to.
/// Otherwise a host of another cluster would see this one only with the next regular greeting.
async fn greet(inner: Arc<Inner>, session: SessionId) {
    tokio::time::sleep(DECLARED).await;
    let channel = inner.channels.read().get(&session).cloned();
    let greeting = inner.greeting.lock().clone();
    if let Some(channel) = channel.filter(|_| !greeting.is_empty()) {
        channel.publish(&inner.hello, greeting);
    }
}

async fn open_session(
    inner: &Inner,
    id: SessionId,
    endpoints: &[Endpoint],
) -> Result<Channel, String> {
    let config = {
        let current = inner.endpoints.read();
        let purpose = match current.through_routers {
            true => Purpose::Client(endpoints),
            false => Purpose::Link(endpoints),
        };
        config(purpose, &inner.shared.me.cluster, current.guard.as_ref())
    };
    let config = config.map_err(|error| error.to_string())?;
    Channel::open(id, config, &inner.shared).await.map_err(|error| reason(&error))
}

/// Whether a host sends any reply over a session.
async fn replies(inner: &Inner, host: &Name, session: SessionId) -> bool {
    let channel = inner.channels.read().get(&session).cloned();
    let Some(channel) = channel else { return true };
    let me = &inner.shared.me;
    let key = format!("umbel/{}/{host}/requests/{}", me.cluster, me.name);
    let request = PeerRequest::Life { of: me.name.clone() }.encode();
    let replied = !channel.get(&key, request, REPLY).await.is_empty();
    if replied {
        inner.shared.reach.heard(host, session);
    }
    replied
}

/// Reopens the link to a silent host; if that host opened the silent link, opens one from this
/// side.
fn reopen(inner: &Arc<Inner>, host: &Name, session: SessionId) {
    let own = (session != LISTENER).then_some(session);
    let (pause, action) = inner.links.lock().reopen(inner.now(), host, own);
    let Some(pause) = pause else { return };
    let times = inner.reopened.fetch_add(1, Ordering::Relaxed) + 1;
    tracing::warn!(%host, times, ?pause, "a host is linked but does not reply: its link is opened again");
    inner.shared.inbox.put(NetworkEvent::LinkReopened { host: host.clone() });
    if let Some(Action::Close(session)) = action {
        tokio::spawn(inner.take_channel(session));
    }
    inner.shared.changed.notify_one();
}
