//! zenoh carries messages between hosts: peers that are linked directly, or through routers.
//!
//! ```text
//! umbel/<cluster>/<host>/say                 updates, announcements     (published)
//! umbel/<cluster>/<from>/tell/<to>           what an overlay's link has to say (published)
//! umbel/<cluster>/<host>/ask/<from>          pages, confirmations       (asked)
//! umbel/<cluster>/<host>/alive/<incarnation> that life of the host      (liveliness)
//! umbel-hello/<host>                         who I am, to any cluster   (published)
//! ```
//!
//! Learnt by measuring: everything under `CongestionControl::Drop`, since one stopped receiver
//! under `Block` stalls everyone for seconds; answers at low priority, since a hung asker
//! stalls updates at an equal one; all known endpoints configured, since links learnt by
//! gossip are not repaired after a cut; the incarnation in the liveliness token, since without
//! it a quick restart is invisible; addresses tried for ever, since with a limit a host that is
//! not there yet is not tried again.
//!
//! With certificates ([`Guard`]) links are TLS on which both ends show theirs, and every host
//! drops what another may not say (`acl`). Who is let in, and where others listen, is fixed
//! when a session is opened, so a change opens another ([`ZenohNetwork::reopen`]): what is
//! known of the cluster lives elsewhere and stays. Always true: only the newest session is
//! heard.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

use umbel::replica::{Incarnation, Name};
use zenoh::handlers::FifoChannel;
use zenoh::key_expr::KeyExpr;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::query::{ConsolidationMode, Query, QueryTarget};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Config, Session, Wait};

use super::{Boxed, Happening, Inbox, Member, Network, Reply, acl};
use crate::hello::Hello;
use crate::settings::{Endpoint, PeerFiles};

/// How long links to hosts that are there may take.
const FIRST_LINKS: Duration = Duration::from_millis(300);

/// Where a host listens, where others do, and who is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Where this host listens; with port 0 the system chooses one.
    pub listen: SocketAddr,
    /// Where others listen.
    pub connect: Vec<Endpoint>,
    /// Whether hosts tell each other of further ones and link up with them: not in an overlay,
    /// whose links are those that are configured.
    pub gossip: bool,
    /// Whether others are reached through routers alone, and nobody links up with this host.
    pub through_routers: bool,
    /// Certificates; `None`: plain TCP, and whoever reaches the port is believed.
    pub guard: Option<Guard>,
}

/// How hosts show each other who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// What this host shows, and who signs what others show.
    pub files: PeerFiles,
    /// Who is let in, by the common name of its certificate.
    pub hosts: Vec<Name>,
}

/// A host's place in a zenoh network.
#[derive(Debug)]
pub struct ZenohNetwork {
    session: RwLock<Session>,
    /// Which session is the newest; callbacks of older ones say nothing.
    newest: Arc<AtomicU64>,
    inbox: Inbox,
    me: Member,
    listen: SocketAddr,
    say: KeyExpr<'static>,
    hello: KeyExpr<'static>,
}

/// Why a zenoh network could not be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The runtime has one thread only.
    #[error("zenoh needs tokio's multi-thread runtime: start the host in one")]
    Runtime,
    /// No port could be had.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// zenoh refused.
    #[error("cannot join the network: {0}")]
    Zenoh(String),
}

impl From<zenoh::Error> for JoinError {
    fn from(error: zenoh::Error) -> Self {
        Self::Zenoh(error.to_string())
    }
}

impl ZenohNetwork {
    /// Opens the links, and from then on hands over what happens.
    ///
    /// # Errors
    /// If the runtime has one thread only, or the address cannot be listened on.
    pub async fn join(endpoints: &Endpoints, me: Member, inbox: &Inbox) -> Result<Self, JoinError> {
        let flavor = tokio::runtime::Handle::current().runtime_flavor();
        if flavor == tokio::runtime::RuntimeFlavor::CurrentThread {
            return Err(JoinError::Runtime);
        }
        let say = KeyExpr::try_from(format!("umbel/{}/{}/say", me.cluster, me.name))?;
        let hello = KeyExpr::try_from(format!("umbel-hello/{}", me.name))?;
        let (session, listen) = open(endpoints, &me).await?;
        first_links(&session, endpoints.connect.len()).await;
        let newest = Arc::new(AtomicU64::new(0));
        let heard = Heard { inbox: inbox.clone(), session: 0, newest: Arc::clone(&newest) };
        take_part(&session, &me, &heard).await?;
        let session = RwLock::new(session);
        Ok(Self { session, newest, inbox: inbox.clone(), me, listen, say, hello })
    }

    /// Opens the links anew, at the same port, with other peers or certificates. Others see
    /// this life of the host disappear and come back, well within any grace time.
    ///
    /// # Errors
    /// If no session can be opened; then there is none, and it is to be tried again.
    pub async fn reopen(&self, endpoints: &Endpoints) -> Result<(), JoinError> {
        let number = self.newest.fetch_add(1, Ordering::AcqRel) + 1;
        let old = self.session.read().clone();
        close(&old).await;
        let endpoints = Endpoints { listen: self.listen, ..endpoints.clone() };
        let (session, _) = open(&endpoints, &self.me).await?;
        let heard =
            Heard { inbox: self.inbox.clone(), session: number, newest: Arc::clone(&self.newest) };
        take_part(&session, &self.me, &heard).await?;
        *self.session.write() = session;
        Ok(())
    }

    /// Where this host listens, if it does.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        Some(self.listen).filter(|address| address.port() != 0)
    }

    fn publish(&self, key: &KeyExpr<'static>, bytes: Vec<u8>) {
        let session = self.session.read().clone();
        let sent = session
            .put(key, bytes)
            .congestion_control(CongestionControl::Drop)
            .allowed_destination(Locality::Remote)
            .wait();
        if let Err(error) = sent {
            tracing::debug!(%error, "nothing was sent");
        }
    }

    async fn get(&self, key: String, bytes: Vec<u8>, timeout: Duration) -> Vec<Vec<u8>> {
        let session = self.session.read().clone();
        let replies = session
            .get(key)
            .payload(bytes)
            .timeout(timeout)
            .target(QueryTarget::All)
            .consolidation(ConsolidationMode::None)
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::DataLow)
            .allowed_destination(Locality::Remote)
            .with(FifoChannel::new(1024))
            .await;
        let mut answers = Vec::new();
        if let Ok(replies) = replies {
            while let Ok(reply) = replies.recv_async().await {
                if let Ok(sample) = reply.result() {
                    answers.push(sample.payload().to_bytes().into_owned());
                }
            }
        }
        answers
    }
}

/// Where a session's callbacks hand over what they hear, while it is the newest.
#[derive(Debug, Clone)]
struct Heard {
    inbox: Inbox,
    session: u64,
    newest: Arc<AtomicU64>,
}

impl Heard {
    fn put(&self, happening: Happening) {
        if self.newest.load(Ordering::Acquire) == self.session {
            self.inbox.put(happening);
        }
    }
}

/// Declares everything that a host hears, answers and is.
async fn take_part(session: &Session, me: &Member, heard: &Heard) -> zenoh::Result<()> {
    let Member { cluster, name, incarnation } = me;
    hear(session, format!("umbel/{cluster}/*/say"), heard.clone()).await?;
    hear(session, format!("umbel/{cluster}/*/tell/{name}"), heard.clone()).await?;
    hear_greetings(session, heard.clone()).await?;
    answer(session, me, heard.clone()).await?;
    watch(session, me, heard.clone()).await?;
    let token = format!("umbel/{cluster}/{name}/alive/{}", incarnation.0);
    let token = session.liveliness().declare_token(token).await?;
    // It lives as long as the session.
    std::mem::forget(token);
    Ok(())
}

async fn close(session: &Session) {
    match tokio::time::timeout(CLOSING, session.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the network did not close well"),
        Err(_) => tracing::debug!("the network did not close in time"),
    }
}

/// How long closing a session may take.
const CLOSING: Duration = Duration::from_secs(2);

/// Opens a session. Where the system chooses the port it is chosen here, because zenoh does
/// not tell; somebody else may take it in between, so it is tried a few times.
async fn open(endpoints: &Endpoints, me: &Member) -> Result<(Session, SocketAddr), JoinError> {
    let mut tries = if endpoints.listen.port() == 0 { 5 } else { 1 };
    loop {
        let listen = match endpoints.through_routers {
            true => SocketAddr::new(endpoints.listen.ip(), 0),
            false => free_port(endpoints.listen)?,
        };
        match zenoh::open(config(listen, endpoints, me)?).await {
            Ok(session) => return Ok((session, listen)),
            Err(error) if tries == 1 => return Err(error.into()),
            Err(_) => tries -= 1,
        }
    }
}

/// Waits for the links that come at once, so that what is asked first finds somebody to answer;
/// not for hosts that are not there.
async fn first_links(session: &Session, wanted: usize) {
    let deadline = tokio::time::Instant::now() + FIRST_LINKS;
    while tokio::time::Instant::now() < deadline {
        let info = session.info();
        let linked = info.peers_zid().await.count() + info.routers_zid().await.count();
        if linked >= wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn free_port(listen: SocketAddr) -> Result<SocketAddr, JoinError> {
    let probe = TcpListener::bind(listen).and_then(|probe| probe.local_addr());
    probe.map_err(|error| JoinError::Listen(listen, error))
}

fn config(listen: SocketAddr, endpoints: &Endpoints, me: &Member) -> Result<Config, JoinError> {
    let protocol = if endpoints.guard.is_some() { "tls" } else { "tcp" };
    let locators = endpoints.connect.iter().map(|endpoint| endpoint.locator(protocol));
    let quoted: Vec<String> = locators.map(|locator| format!("{locator:?}")).collect();
    let (mode, listens) = match endpoints.through_routers {
        true => ("client", String::from("[]")),
        false => ("peer", format!("[\"{protocol}/{listen}\"]")),
    };
    let mut config = Config::default();
    for (key, value) in [
        ("mode", format!("{mode:?}")),
        ("listen/endpoints", listens),
        ("connect/endpoints", format!("[{}]", quoted.join(","))),
        // Without an end: 0 would be a single try, and who starts later is never linked.
        ("connect/timeout_ms", String::from("-1")),
        ("connect/exit_on_failure", String::from("false")),
        ("connect/retry", String::from("{period_init_ms: 100, period_max_ms: 2000}")),
        ("scouting/multicast/enabled", String::from("false")),
        ("scouting/gossip/enabled", endpoints.gossip.to_string()),
        ("scouting/delay", String::from("50")),
        ("transport/link/tx/lease", String::from("3000")),
    ] {
        config.insert_json5(key, &value)?;
    }
    if let Some(Guard { files, hosts }) = &endpoints.guard {
        config.insert_json5("transport/link/tls", &tls(files).to_string())?;
        let rules = acl::rules(&me.cluster, hosts.iter());
        config.insert_json5("access_control", &rules.to_string())?;
    }
    Ok(config)
}

/// Both ends show a certificate. The name in it is compared with what a host says, not with
/// where it was found: the latter may be an address that changes.
fn tls(files: &PeerFiles) -> serde_json::Value {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (cert, key) = (text(&files.own.cert), text(&files.own.key));
    serde_json::json!({
        "root_ca_certificate": text(&files.ca),
        "listen_certificate": cert,
        "listen_private_key": key,
        "connect_certificate": cert,
        "connect_private_key": key,
        "enable_mtls": true,
        "verify_name_on_connect": false,
        "close_link_on_expiration": true,
    })
}

/// What hosts publish under their names: to everybody, or to this host.
async fn hear(session: &Session, key: String, inbox: Heard) -> zenoh::Result<()> {
    let callback = move |sample: Sample| {
        if let Some(from) = part(sample.key_expr(), 2) {
            let bytes = sample.payload().to_bytes().into_owned();
            inbox.put(Happening::Said { from, bytes });
        }
    };
    session
        .declare_subscriber(key)
        .callback(callback)
        .allowed_origin(Locality::Remote)
        .background()
        .await
}

async fn hear_greetings(session: &Session, inbox: Heard) -> zenoh::Result<()> {
    let callback = move |sample: Sample| {
        let bytes = sample.payload().to_bytes().into_owned();
        // Whoever may publish under one name does not greet under another.
        let (named, said) = (part(sample.key_expr(), 1), Hello::decode(&bytes));
        if said.is_none_or(|said| named.is_some_and(|named| named.as_str() == said.name)) {
            inbox.put(Happening::Greeted { bytes });
        }
    };
    let subscriber = session.declare_subscriber("umbel-hello/*").callback(callback);
    subscriber.allowed_origin(Locality::Remote).background().await
}

async fn answer(session: &Session, me: &Member, inbox: Heard) -> zenoh::Result<()> {
    let own = format!("umbel/{}/{}/ask", me.cluster, me.name);
    let callback = move |query: Query| {
        let Some(from) = part(query.key_expr(), 4) else { return };
        let bytes = query.payload().map(|bytes| bytes.to_bytes().into_owned());
        // A question to everybody is answered under one's own name.
        let key = format!("{own}/{from}");
        let reply = Reply::new(move |bytes| {
            // Under the question's priority and congestion control.
            if let Err(error) = query.reply(key, bytes).wait() {
                tracing::debug!(%error, "an answer was not sent");
            }
        });
        inbox.put(Happening::Asked { from, bytes: bytes.unwrap_or_default(), reply });
    };
    let key = format!("umbel/{}/{}/ask/*", me.cluster, me.name);
    session
        .declare_queryable(key)
        .callback(callback)
        .allowed_origin(Locality::Remote)
        .background()
        .await
}

async fn watch(session: &Session, me: &Member, inbox: Heard) -> zenoh::Result<()> {
    let me_too = me.clone();
    let callback = move |sample: Sample| {
        let key = sample.key_expr();
        let life = key.as_str().rsplit('/').next().and_then(|life| life.parse().ok());
        let (Some(host), Some(life)) = (part(key, 2), life) else { return };
        let incarnation = Incarnation(life);
        if (&host, incarnation) == (&me_too.name, me_too.incarnation) {
            return;
        }
        inbox.put(match sample.kind() {
            SampleKind::Put => Happening::Alive { host, incarnation },
            SampleKind::Delete => Happening::Gone { host, incarnation },
        });
    };
    let key = format!("umbel/{}/*/alive/*", me.cluster);
    let tokens = session.liveliness().declare_subscriber(key).history(true);
    tokens.callback(callback).background().await
}

/// The name at this place of a key.
fn part(key: &KeyExpr<'_>, place: usize) -> Option<Name> {
    key.as_str().split('/').nth(place).and_then(Name::new)
}

impl Network for ZenohNetwork {
    fn say(&self, bytes: Vec<u8>) {
        self.publish(&self.say, bytes);
    }

    fn tell(&self, host: &Name, bytes: Vec<u8>) {
        let key = format!("umbel/{}/{}/tell/{host}", self.me.cluster, self.me.name);
        match KeyExpr::try_from(key) {
            Ok(key) => self.publish(&key, bytes),
            Err(error) => tracing::debug!(%error, "no name of a host"),
        }
    }

    fn greet(&self, bytes: Vec<u8>) {
        self.publish(&self.hello, bytes);
    }

    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>> {
        let key = format!("umbel/{}/{host}/ask/{}", self.me.cluster, self.me.name);
        Box::pin(async move { self.get(key, bytes, timeout).await.pop() })
    }

    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<Vec<u8>>> {
        let key = format!("umbel/{}/*/ask/{}", self.me.cluster, self.me.name);
        Box::pin(self.get(key, bytes, timeout))
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.newest.fetch_add(1, Ordering::AcqRel);
            let session = self.session.read().clone();
            close(&session).await;
        })
    }
}
