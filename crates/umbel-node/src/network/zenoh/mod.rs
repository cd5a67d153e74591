//! Carries messages between hosts over zenoh, with direct links or through routers.
//!
//! ```text
//! listener  one session for the links that others open
//! link      one session for each link that this host opens
//!             opened by `keeper`, when `links` says so; closed when the link is lost or redundant
//! ```
//!
//! A session carries one link, once: a link is reopened in a new session, under a new zenoh
//! identity, so that nothing left of the old link can interfere. A message to all hosts goes out
//! over all sessions; a message to one host goes over the session on which something last arrived
//! from it (`reach`). Hosts do not forward for each other, routers do.
//!
//! With certificates ([`Guard`]) links use mutual TLS, and every host drops what another one may
//! not send (`acl`). The admitted hosts are fixed when a session is opened, so a change reopens all
//! sessions. A change of addresses alone opens and closes only the links concerned.

mod acl;
mod channel;
mod config;
mod keeper;
mod links;
mod reach;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::zenoh::key_expr::KeyExpr;
use futures_util::future::join_all;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use umbel::coverage::Identity;
use umbel::replica::Name;

use super::{Boxed, Inbox, LinkReport, Member, Network, NetworkEvent};
use crate::settings::{Endpoint, PeerFiles};
use channel::{Channel, Shared};
use config::Purpose;
use links::Links;
use reach::{Reach, SessionId};

/// At the start, how long to wait for links to hosts that are running.
const FIRST_LINKS: Duration = Duration::from_millis(300);

/// Where a host listens, where others listen, and which hosts are admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Where this host listens; with port 0 the system chooses one.
    pub listen: SocketAddr,
    /// Where others listen.
    pub connect: Vec<Endpoint>,
    /// Whether to connect to hosts that were learnt from others too: not in an overlay, which has
    /// only its configured links.
    pub learns: bool,
    /// Whether other hosts are reached only through routers, and none connects to this host.
    pub through_routers: bool,
    /// Certificates; `None`: plain TCP, and every host that reaches the port is trusted.
    pub guard: Option<Guard>,
    /// How long a host may be silent before its link is tested.
    pub silence: Duration,
}

/// How hosts authenticate each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// This host's certificate, and the authority that signs those of others.
    pub files: PeerFiles,
    /// The admitted hosts, by the common names of their certificates.
    pub hosts: Vec<Name>,
}

/// A host's place in a zenoh network.
#[derive(Debug, Clone)]
pub struct ZenohNetwork {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// The open sessions.
    channels: RwLock<BTreeMap<SessionId, Arc<Channel>>>,
    /// The sessions that lead to routers.
    routers: RwLock<Vec<SessionId>>,
    links: Mutex<Links>,
    endpoints: RwLock<Endpoints>,
    next_session: AtomicU64,
    /// Links that were reopened because they were silent.
    reopened: AtomicU64,
    started: Instant,
    listen: SocketAddr,
    updates: KeyExpr<'static>,
    hello: KeyExpr<'static>,
    /// The last greeting, for links that are opened after it.
    greeting: Mutex<Vec<u8>>,
    is_closed: tokio::sync::watch::Sender<bool>,
}

/// Why a zenoh network could not be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The runtime has only one thread.
    #[error("zenoh needs tokio's multi-thread runtime: start the host in one")]
    Runtime,
    /// The port could not be opened.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// zenoh reported an error.
    #[error("cannot join the network: {0}")]
    Zenoh(String),
}

impl From<::zenoh::Error> for JoinError {
    fn from(error: ::zenoh::Error) -> Self {
        Self::Zenoh(reason(&error))
    }
}

/// zenoh's message without the locations in its source.
fn reason(error: &::zenoh::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at /").unwrap_or(text.len());
    text[..end].trim().trim_end_matches('.').to_owned()
}

impl ZenohNetwork {
    /// Listens, opens the links in the background, and puts all events into the inbox from then on.
    /// Returns as soon as every peer has been tried, or after a moment.
    ///
    /// # Errors
    /// If the runtime has one thread only, or the address cannot be listened on.
    pub async fn join(endpoints: &Endpoints, me: Member, inbox: &Inbox) -> Result<Self, JoinError> {
        let flavor = tokio::runtime::Handle::current().runtime_flavor();
        if flavor == tokio::runtime::RuntimeFlavor::CurrentThread {
            return Err(JoinError::Runtime);
        }
        let updates = KeyExpr::try_from(format!("umbel/{}/{}/updates", me.cluster, me.name))?;
        let hello = KeyExpr::try_from(format!("umbel-hello/{}", me.name))?;
        let seed = me.incarnation.0 ^ u64::from(std::process::id());
        let name = me.name.clone();
        let shared = Arc::new(Shared {
            me,
            inbox: inbox.clone(),
            reach: Reach::default(),
            changed: Notify::new(),
            sightings: Mutex::default(),
        });
        let (listen, listener) = listen(endpoints, &shared).await?;
        let listens = (!endpoints.through_routers).then_some(listen);
        // By then a silent host has been sent a request and has had time to reply.
        let silence = endpoints.silence / 2 + keeper::REPLY * 2;
        let inner = Arc::new(Inner {
            shared,
            channels: RwLock::default(),
            routers: RwLock::default(),
            links: Mutex::new(Links::new(name, listens, silence, seed)),
            endpoints: RwLock::new(endpoints.clone()),
            next_session: AtomicU64::new(1),
            reopened: AtomicU64::new(0),
            started: Instant::now(),
            listen,
            updates,
            hello,
            greeting: Mutex::default(),
            is_closed: tokio::sync::watch::channel(false).0,
        });
        inner.channels.write().extend(listener.map(|channel| (channel.id, Arc::new(channel))));
        inner.configure_links();
        tokio::spawn(keeper::keep_links(Arc::clone(&inner)));
        inner.first_links().await;
        Ok(Self { inner })
    }

    /// Applies other peers or certificates. Links to addresses that stay are kept, unless the
    /// certificates change: then all sessions are reopened, and other hosts see this incarnation
    /// disappear and come back, well within any grace time.
    ///
    /// # Errors
    /// If the address cannot be listened on; then nobody can connect, and the caller must retry.
    pub async fn reconfigure(&self, endpoints: &Endpoints, renew: bool) -> Result<(), JoinError> {
        let inner = &self.inner;
        let listen_at = inner.listen;
        let endpoints = Endpoints { listen: listen_at, ..endpoints.clone() };
        let renew = renew || endpoints.guard != inner.endpoints.read().guard;
        *inner.endpoints.write() = endpoints.clone();
        if renew {
            inner.close_all().await;
            inner.links.lock().configure(inner.now(), Vec::new());
            let (_, listener) = listen(&endpoints, &inner.shared).await?;
            inner.channels.write().extend(listener.map(|channel| (channel.id, Arc::new(channel))));
        }
        inner.configure_links();
        inner.shared.changed.notify_one();
        Ok(())
    }

    /// Where this host listens, if it does.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        Some(self.inner.listen).filter(|address| address.port() != 0)
    }
}

impl Inner {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn channels(&self) -> Vec<Arc<Channel>> {
        self.channels.read().values().cloned().collect()
    }

    /// The session over which something last arrived from a host.
    fn channel_of(&self, host: &Name) -> Option<Arc<Channel>> {
        let session = self.shared.reach.best(host)?;
        self.channels.read().get(&session).cloned()
    }

    /// Passes the configured addresses to the table of links.
    fn configure_links(&self) {
        let endpoints = self.endpoints.read();
        let wanted = match endpoints.through_routers {
            // A client has one link, to any of the routers.
            true if endpoints.connect.is_empty() => Vec::new(),
            true => vec![endpoints.connect.clone()],
            false => endpoints.connect.iter().map(|peer| vec![peer.clone()]).collect(),
        };
        drop(endpoints);
        let actions = self.links.lock().configure(self.now(), wanted);
        for action in actions {
            if let links::Action::Close(session) = action {
                tokio::spawn(self.take_channel(session));
            }
        }
    }

    /// Waits for links to hosts that are running, so that the first requests reach them. Does not
    /// wait for hosts that are not running.
    async fn first_links(&self) {
        let deadline = Instant::now() + FIRST_LINKS;
        while Instant::now() < deadline && !self.links.lock().is_settled() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Removes a session; the returned future closes it.
    fn take_channel(&self, session: SessionId) -> impl Future<Output = ()> + Send + use<> {
        let channel = self.channels.write().remove(&session);
        self.routers.write().retain(|router| *router != session);
        if let Some(channel) = &channel {
            channel.mute();
        }
        for (host, incarnation) in self.shared.reach.closed(session) {
            self.shared.inbox.put(NetworkEvent::Gone { host, incarnation });
        }
        async move {
            if let Some(channel) = channel {
                channel.close().await;
            }
        }
    }

    async fn close_all(&self) {
        let sessions: Vec<SessionId> = self.channels.read().keys().copied().collect();
        let closing: Vec<_> = sessions.into_iter().map(|id| self.take_channel(id)).collect();
        join_all(closing).await;
    }

    fn publish_everywhere(&self, key: &KeyExpr<'static>, bytes: &[u8]) {
        for channel in self.channels() {
            channel.publish(key, bytes.to_vec());
        }
    }
}

/// Opens the session that other hosts connect to; none if all hosts are reached through routers. A
/// port that the system chooses is chosen here, because zenoh does not report it. Another process
/// may take it in between, so this is tried a few times.
async fn listen(
    endpoints: &Endpoints,
    shared: &Arc<Shared>,
) -> Result<(SocketAddr, Option<Channel>), JoinError> {
    if endpoints.through_routers {
        return Ok((SocketAddr::new(endpoints.listen.ip(), 0), None));
    }
    let mut tries = if endpoints.listen.port() == 0 { 5 } else { 1 };
    loop {
        let at = free_port(endpoints.listen)?;
        let guard = endpoints.guard.as_ref();
        let config = config::config(Purpose::Listen(at), &shared.me.cluster, guard)?;
        match Channel::open(LISTENER, config, shared).await {
            Ok(channel) => return Ok((at, Some(channel))),
            Err(error) if tries == 1 => return Err(error.into()),
            Err(_) => tries -= 1,
        }
    }
}

/// The session that listens for links of other hosts.
const LISTENER: SessionId = SessionId(0);

fn free_port(listen: SocketAddr) -> Result<SocketAddr, JoinError> {
    let probe = TcpListener::bind(listen).and_then(|probe| probe.local_addr());
    probe.map_err(|error| JoinError::Listen(listen, error))
}

impl Network for ZenohNetwork {
    fn publish_to_all(&self, bytes: Vec<u8>) {
        self.inner.publish_everywhere(&self.inner.updates, &bytes);
    }

    fn send_to(&self, host: &Name, bytes: Vec<u8>) {
        let me = &self.inner.shared.me;
        let key = format!("umbel/{}/{}/link/{host}", me.cluster, me.name);
        let (Some(channel), Ok(key)) = (self.inner.channel_of(host), KeyExpr::try_from(key)) else {
            return tracing::debug!(%host, "not reached: nothing was sent");
        };
        channel.publish(&key, bytes);
    }

    fn greet(&self, bytes: Vec<u8>) {
        self.inner.publish_everywhere(&self.inner.hello, &bytes);
        *self.inner.greeting.lock() = bytes;
    }

    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>> {
        let me = &self.inner.shared.me;
        let key = format!("umbel/{}/{host}/requests/{}", me.cluster, me.name);
        let channel = self.inner.channel_of(host);
        let host = host.clone();
        Box::pin(async move {
            let channel = channel?;
            let answer = channel.get(&key, bytes, timeout).await.pop().map(|(_, answer)| answer);
            if answer.is_some() {
                self.inner.shared.reach.heard(&host, channel.id);
            }
            answer
        })
    }

    fn ask_lives(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<Vec<u8>>> {
        let me = &self.inner.shared.me;
        let key = format!("umbel/{}/{host}/requests/{}", me.cluster, me.name);
        let paths = self.inner.shared.reach.paths(host);
        let channels = self.inner.channels.read();
        let channels: Vec<Arc<Channel>> =
            paths.iter().filter_map(|path| channels.get(&path.session).cloned()).collect();
        Box::pin(async move {
            let asked = channels.iter().map(|channel| channel.get(&key, bytes.clone(), timeout));
            join_all(asked).await.into_iter().flatten().map(|(_, answer)| answer).collect()
        })
    }

    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<(Name, Vec<u8>)>> {
        let me = &self.inner.shared.me;
        let key = format!("umbel/{}/*/requests/{}", me.cluster, me.name);
        let channels = self.inner.channels();
        Box::pin(async move {
            let asked = channels.iter().map(|channel| channel.get(&key, bytes.clone(), timeout));
            join_all(asked).await.into_iter().flatten().collect()
        })
    }

    fn learn(&self, host: &Name, address: SocketAddr) {
        let inner = &self.inner;
        let endpoints = inner.endpoints.read();
        let is_let_in = endpoints.guard.as_ref().is_none_or(|guard| guard.hosts.contains(host));
        let may_link = endpoints.learns && !endpoints.through_routers && is_let_in;
        drop(endpoints);
        // A host that is reached through a router is not linked directly.
        let is_routed = inner
            .shared
            .reach
            .paths(host)
            .iter()
            .any(|path| inner.routers.read().contains(&path.session));
        if may_link && !is_routed && inner.links.lock().learn(inner.now(), host, address) {
            tracing::debug!(%host, %address, "learnt where a host listens");
            inner.shared.changed.notify_one();
        }
    }

    fn links(&self) -> LinkReport {
        let (unreached, open) = {
            let links = self.inner.links.lock();
            (links.unreached(), links.sessions().count() as u64)
        };
        let waiting_for = unreached.into_iter().map(|link| match link.error {
            Some(error) => format!("{} ({error})", link.address),
            None => link.address,
        });
        LinkReport {
            opened: open,
            reopened: self.inner.reopened.load(Ordering::Relaxed),
            waiting_for: waiting_for.collect(),
        }
    }

    fn identities(&self) -> BTreeMap<String, Identity> {
        let routers = self.inner.routers.read().clone();
        self.inner.links.lock().identities(&routers)
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.inner.is_closed.send_replace(true);
            self.inner.close_all().await;
        })
    }
}
