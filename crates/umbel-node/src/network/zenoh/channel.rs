//! One zenoh session: what it declares, sends and receives.
//!
//! ```text
//! umbel/<cluster>/<host>/updates                       updates, announcements       (published)
//! umbel/<cluster>/<from>/link/<to>                 messages of an overlay's link (published)
//! umbel/<cluster>/<host>/requests/<from>                pages, confirmations         (requested)
//! umbel/<cluster>/<host>/alive/<incarnation>/<n>   that life, in its session n  (liveliness)
//! umbel-hello/<host>                               who I am, to any cluster     (published)
//! ```
//!
//! Lessons from measurements: everything uses `CongestionControl::Drop`, since one stopped receiver
//! under `Block` stalls everyone for seconds. Replies have low priority, since a hung requester
//! stalls updates of equal priority. The liveliness token contains the incarnation, since without
//! it a quick restart is invisible. It also contains a number, since a link that was replaced must
//! not remove the token of the new one.
//!
//! Always true: after [`Channel::mute`] nothing from the session reaches the inbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::zenoh::handlers::FifoChannel;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::{CongestionControl, Priority};
use ::zenoh::query::{ConsolidationMode, Query, QueryTarget};
use ::zenoh::sample::{Locality, Sample, SampleKind};
use ::zenoh::{Config, Session, Wait};
use tokio::sync::Notify;
use umbel::replica::{Incarnation, Name};

use super::reach::{Reach, SessionId};
use crate::hello::Hello;
use crate::network::{Inbox, Member, NetworkEvent, Reply};

/// Timeout for closing a session.
const CLOSING: Duration = Duration::from_secs(2);

/// What all sessions of a host share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) me: Member,
    pub(super) inbox: Inbox,
    pub(super) reach: Reach,
    /// Wakes the task that keeps the links after a change.
    pub(super) changed: Notify,
    /// What callbacks found out about the other ends of sessions.
    pub(super) sightings: parking_lot::Mutex<Vec<(SessionId, Sighting)>>,
}

/// The host seen at the other end of a session.
#[derive(Debug)]
pub(super) enum Sighting {
    /// This host itself.
    Me,
    /// A host of the cluster.
    Host(Name),
    /// A host of this other cluster.
    Stranger(String),
}

/// One zenoh session.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: SessionId,
    session: Session,
    is_muted: Arc<AtomicBool>,
}

impl Channel {
    /// Opens a session and makes all of the host's declarations in it.
    pub(super) async fn open(
        id: SessionId,
        config: Config,
        shared: &Arc<Shared>,
    ) -> ::zenoh::Result<Self> {
        let session = ::zenoh::open(config).await?;
        let is_muted = Arc::new(AtomicBool::new(false));
        let heard = Heard { id, shared: Arc::clone(shared), is_muted: Arc::clone(&is_muted) };
        let channel = Self { id, session, is_muted };
        if let Err(error) = channel.declare(&shared.me, &heard).await {
            channel.close().await;
            return Err(error);
        }
        Ok(channel)
    }

    async fn declare(&self, me: &Member, heard: &Heard) -> ::zenoh::Result<()> {
        let Member { cluster, name, incarnation } = me;
        receive(&self.session, format!("umbel/{cluster}/*/updates"), heard.clone()).await?;
        receive(&self.session, format!("umbel/{cluster}/*/link/{name}"), heard.clone()).await?;
        receive_greetings(&self.session, heard.clone()).await?;
        answer(&self.session, me, heard.clone()).await?;
        watch(&self.session, me, heard.clone()).await?;
        let token = format!("umbel/{cluster}/{name}/alive/{}/{}", incarnation.0, self.id.0);
        let token = self.session.liveliness().declare_token(token).await?;
        // The token lives as long as the session.
        std::mem::forget(token);
        Ok(())
    }

    /// Whether another host or a router is linked.
    pub(super) async fn is_linked(&self) -> bool {
        let info = self.session.info();
        info.peers_zid().await.next().is_some() || info.routers_zid().await.next().is_some()
    }

    /// Whether the other end is a router, which carries the messages of many hosts.
    pub(super) async fn leads_to_router(&self) -> bool {
        self.session.info().routers_zid().await.next().is_some()
    }

    /// Publishes to all subscribers of this key. Never waits.
    pub(super) fn publish(&self, key: &KeyExpr<'static>, bytes: Vec<u8>) {
        let sent = self
            .session
            .put(key, bytes)
            .congestion_control(CongestionControl::Drop)
            .allowed_destination(Locality::Remote)
            .wait();
        if let Err(error) = sent {
            tracing::debug!(%error, "nothing was sent");
        }
    }

    /// Sends a request to the hosts that answer for this key; returns the replies, each with its
    /// sender.
    pub(super) async fn get(
        &self,
        key: &str,
        bytes: Vec<u8>,
        timeout: Duration,
    ) -> Vec<(Name, Vec<u8>)> {
        let replies = self
            .session
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
                let Ok(sample) = reply.result() else { continue };
                if let Some(host) = part(sample.key_expr(), 2) {
                    answers.push((host, sample.payload().to_bytes().into_owned()));
                }
            }
        }
        answers
    }

    /// Ignores everything that this session receives from now on.
    pub(super) fn mute(&self) {
        self.is_muted.store(true, Ordering::Release);
    }

    pub(super) async fn close(&self) {
        self.mute();
        match tokio::time::timeout(CLOSING, self.session.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a session did not close well"),
            Err(_) => tracing::debug!("a session did not close in time"),
        }
    }
}

/// Passes on what a session's callbacks receive.
#[derive(Debug, Clone)]
struct Heard {
    id: SessionId,
    shared: Arc<Shared>,
    is_muted: Arc<AtomicBool>,
}

impl Heard {
    /// Passes on an event from a host. Messages of this host itself may come back over another
    /// link, by way of routers: they are ignored. Greetings and requests are not, because another
    /// host of the same name may have sent them.
    fn put(&self, from: Option<&Name>, event: NetworkEvent) {
        let is_own =
            from == Some(&self.shared.me.name) && matches!(event, NetworkEvent::Message { .. });
        if is_own || self.is_muted.load(Ordering::Acquire) {
            return;
        }
        if let Some(from) = from {
            self.shared.reach.heard(from, self.id);
        }
        self.shared.inbox.put(event);
    }

    /// Records which host is at the other end of this session.
    fn sight(&self, sighting: Sighting) {
        self.shared.sightings.lock().push((self.id, sighting));
        self.shared.changed.notify_one();
    }

    fn appeared(&self, host: Name, incarnation: Incarnation, number: u64) {
        if self.is_muted.load(Ordering::Acquire) {
            return;
        }
        let me = &self.shared.me;
        if host == me.name && incarnation == me.incarnation {
            // A session sees its own token; the token of another session arrived over the link.
            if number != self.id.0 {
                self.sight(Sighting::Me);
            }
            return;
        }
        let is_new = self.shared.reach.appeared(&host, self.id, (incarnation, number));
        self.sight(Sighting::Host(host.clone()));
        if is_new {
            self.shared.inbox.put(NetworkEvent::Alive { host, incarnation });
        }
    }

    fn disappeared(&self, host: Name, incarnation: Incarnation, number: u64) {
        if self.is_muted.load(Ordering::Acquire) {
            return;
        }
        if self.shared.reach.disappeared(&host, self.id, (incarnation, number)) {
            self.shared.inbox.put(NetworkEvent::Gone { host, incarnation });
        }
        self.shared.changed.notify_one();
    }
}

/// Subscribes to what hosts publish under their names: to all hosts, or to this one.
async fn receive(session: &Session, key: String, heard: Heard) -> ::zenoh::Result<()> {
    let callback = move |sample: Sample| {
        if let Some(from) = part(sample.key_expr(), 2) {
            let bytes = sample.payload().to_bytes().into_owned();
            heard.put(Some(&from.clone()), NetworkEvent::Message { from, bytes });
        }
    };
    session
        .declare_subscriber(key)
        .callback(callback)
        .allowed_origin(Locality::Remote)
        .background()
        .await
}

async fn receive_greetings(session: &Session, heard: Heard) -> ::zenoh::Result<()> {
    let callback = move |sample: Sample| {
        let bytes = sample.payload().to_bytes().into_owned();
        // A host that may publish under one name must not greet under another.
        let (named, greeting) = (part(sample.key_expr(), 1), Hello::decode(&bytes));
        let is_own = |greeting: &Hello| {
            let me = &heard.shared.me;
            greeting.name == me.name.as_str() && greeting.incarnation == me.incarnation.0
        };
        match (named, greeting) {
            (_, Some(greeting)) if is_own(&greeting) => heard.sight(Sighting::Me),
            (Some(named), Some(greeting)) if named.as_str() == greeting.name => {
                let is_ours = greeting.cluster == heard.shared.me.cluster.as_str();
                heard.sight(match is_ours {
                    true => Sighting::Host(named.clone()),
                    false => Sighting::Stranger(greeting.cluster),
                });
                heard.put(Some(&named), NetworkEvent::Greeting { bytes });
            }
            (_, Some(_)) => {}
            (_, None) => heard.put(None, NetworkEvent::Greeting { bytes }),
        }
    };
    let subscriber = session.declare_subscriber("umbel-hello/*").callback(callback);
    subscriber.allowed_origin(Locality::Remote).background().await
}

async fn answer(session: &Session, me: &Member, heard: Heard) -> ::zenoh::Result<()> {
    let own = format!("umbel/{}/{}/requests", me.cluster, me.name);
    let callback = move |query: Query| {
        let Some(from) = part(query.key_expr(), 4) else { return };
        let bytes = query.payload().map(|bytes| bytes.to_bytes().into_owned());
        // A request to all hosts is answered under this host's own name.
        let key = format!("{own}/{from}");
        let reply = Reply::new(move |bytes| {
            // Has the request's priority and congestion control.
            if let Err(error) = query.reply(key, bytes).wait() {
                tracing::debug!(%error, "a reply was not sent");
            }
        });
        let bytes = bytes.unwrap_or_default();
        heard.put(Some(&from.clone()), NetworkEvent::Request { from, bytes, reply });
    };
    let key = format!("umbel/{}/{}/requests/*", me.cluster, me.name);
    session
        .declare_queryable(key)
        .callback(callback)
        .allowed_origin(Locality::Remote)
        .background()
        .await
}

async fn watch(session: &Session, me: &Member, heard: Heard) -> ::zenoh::Result<()> {
    let callback = move |sample: Sample| {
        let Some((host, incarnation, number)) = token(sample.key_expr()) else { return };
        match sample.kind() {
            SampleKind::Put => heard.appeared(host, incarnation, number),
            SampleKind::Delete => heard.disappeared(host, incarnation, number),
        }
    };
    let key = format!("umbel/{}/*/alive/*/*", me.cluster);
    let tokens = session.liveliness().declare_subscriber(key).history(true);
    tokens.callback(callback).background().await
}

/// The host, incarnation and number in a liveliness token.
fn token(key: &KeyExpr<'_>) -> Option<(Name, Incarnation, u64)> {
    let mut parts = key.as_str().rsplit('/');
    let number = parts.next()?.parse().ok()?;
    let life = parts.next()?.parse().ok()?;
    Some((part(key, 2)?, Incarnation(life), number))
}

/// The name at this position of a key.
fn part(key: &KeyExpr<'_>, place: usize) -> Option<Name> {
    key.as_str().split('/').nth(place).and_then(Name::new)
}
