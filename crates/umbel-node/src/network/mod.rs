//! The network between hosts: what a host needs of it, and which events it reports.
//!
//! There are four kinds of messages: to all hosts (`publish_to_all`: updates and announcements), to
//! one host (`send_to`: messages between neighbours of an overlay), to hosts of any cluster
//! (`greet`: who this host is, so that a mistake in a configuration is noticed), and requests to
//! one host that replies (`ask`: pages, confirmations). Any message may be lost; the protocols
//! recover from that.
//!
//! Promised to a network: its callbacks only put events into a bounded [`Inbox`], so they never
//! block. Promised by a network: the sender of a message is authentic.

mod inbox;
mod local;
#[cfg(feature = "zenoh")]
pub(crate) mod peers;
#[cfg(feature = "zenoh")]
mod zenoh;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use umbel::coverage::Identity;
use umbel::replica::{Incarnation, Name};

pub use inbox::Inbox;
pub(crate) use inbox::NetworkEvents;
pub use local::LocalNetwork;
#[cfg(feature = "zenoh")]
pub use zenoh::{Endpoints, Guard, ZenohNetwork};

/// The addresses of other hosts, from all settings: peers, links, the peers file and the current
/// result of the DNS lookup.
///
/// # Errors
/// One line, if the file of peers cannot be read or understood.
#[cfg(feature = "zenoh")]
pub async fn peers_of(
    settings: &crate::Settings,
) -> Result<Vec<crate::settings::Endpoint>, String> {
    let peers = peers::Peers::gather(settings, &peers::Peers::default()).await?;
    Ok(peers.connect.into_iter().collect())
}

/// A future in a box: what a trait object can return.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Carries a host's messages.
pub trait Network: fmt::Debug + Send + Sync + 'static {
    /// Sends to every host of the cluster. Never waits: what cannot be sent now is lost.
    fn publish_to_all(&self, bytes: Vec<u8>);

    /// Sends to one host of the cluster only. Never waits.
    fn send_to(&self, host: &Name, bytes: Vec<u8>);

    /// Sends to every host in reach, whatever its cluster. Never waits.
    fn greet(&self, bytes: Vec<u8>);

    /// Sends a request to one host; `None` if no reply came in time.
    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>>;

    /// Sends a request to all hosts of one name, and collects the replies that come in time:
    /// several, if several hosts have that name.
    fn ask_lives(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<Vec<u8>>> {
        let answer = self.ask(host, bytes, timeout);
        Box::pin(async move { answer.await.into_iter().collect() })
    }

    /// Sends a request to every host in reach, and collects the replies that come in time, each
    /// with its sender. A host that is reached over several paths may reply several times.
    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<(Name, Vec<u8>)>>;

    /// Tells the network where another host listens, as learnt from other hosts. A network that
    /// opens its links one by one connects to it.
    fn learn(&self, host: &Name, address: SocketAddr) {
        let _ = (host, address);
    }

    /// The state of the links that this host opens.
    fn links(&self) -> LinkReport {
        LinkReport::default()
    }

    /// Which host is at each configured address, as far as known.
    fn identities(&self) -> BTreeMap<String, Identity> {
        BTreeMap::new()
    }

    /// Leaves the network: other hosts see that at once.
    fn close(&self) -> Boxed<'_, ()>;
}

/// A network that hosts can join; see [`crate::Builder::network`].
pub trait Join: fmt::Debug + Send + Sync + 'static {
    /// Joins as this host. Everything that happens from now on goes into the inbox, from any
    /// thread: [`NetworkEvent::Alive`] for every host that is there, and what these send. A host
    /// that learns of a later life of its name closes the network that it joined and joins again.
    fn join(&self, me: Member, inbox: Inbox) -> Arc<dyn Network>;
}

/// The state of the links that a host opens to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkReport {
    /// Links that are open.
    pub opened: u64,
    /// Links that were reopened because nothing arrived over them.
    pub reopened: u64,
    /// Configured addresses that cannot be reached, with the reason.
    pub waiting_for: Vec<String>,
}

/// A host that joins a network.
#[derive(Debug, Clone)]
pub struct Member {
    /// The cluster's name.
    pub cluster: Name,
    /// The host's own name.
    pub name: Name,
    /// Its incarnation.
    pub incarnation: Incarnation,
}

/// An event that a host reacts to.
#[derive(Debug)]
#[non_exhaustive]
pub enum NetworkEvent {
    /// A message from a host of the cluster: to all hosts, to this host, or a reply.
    Message {
        /// The sender.
        from: Name,
        /// The message.
        bytes: Vec<u8>,
    },
    /// A greeting from a host, perhaps of another cluster.
    Greeting {
        /// The encoded greeting.
        bytes: Vec<u8>,
    },
    /// A request from a host of the cluster.
    Request {
        /// The sender.
        from: Name,
        /// The request.
        bytes: Vec<u8>,
        /// Sends the reply.
        reply: Reply,
    },
    /// A host of the cluster was seen, in this incarnation.
    Alive {
        /// The host.
        host: Name,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// An incarnation of a host has ended, or is out of reach.
    Gone {
        /// The host.
        host: Name,
        /// The incarnation that ended.
        incarnation: Incarnation,
    },
    /// A host is no longer admitted: nothing from it is received from now on.
    Excluded {
        /// The host.
        host: Name,
    },
    /// The settings no longer name a host: if it is not connected, it is no longer expected.
    Unexpected {
        /// The host.
        host: Name,
    },
    /// All hosts of one name were asked for their greetings, because an incarnation was seen that
    /// differs from the accepted one.
    Tested {
        /// The name.
        host: Name,
        /// The replies.
        greetings: Vec<Vec<u8>>,
        /// The accepted incarnation, if it has disappeared and its address refuses connections.
        refused: Option<Incarnation>,
    },
    /// A host replied with the hosts that it knows, and where they listen.
    Hosts {
        /// The sender.
        from: Name,
        /// The hosts.
        hosts: Vec<(Name, SocketAddr)>,
    },
    /// A host was linked but did not reply: its link is reopened.
    LinkReopened {
        /// The host.
        host: Name,
    },
    /// The driver was woken: there is something to send, or a timeout has changed.
    Woken,
}

/// Sends the reply to a request; if dropped, the sender of the request receives nothing.
pub struct Reply(Box<dyn FnOnce(Vec<u8>) + Send>);

impl Reply {
    /// A reply that `send` delivers.
    pub fn new(send: impl FnOnce(Vec<u8>) + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Sends the reply.
    pub fn send(self, bytes: Vec<u8>) {
        (self.0)(bytes);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}
