//! How hosts reach each other: what a host needs of a network, and what it hears from one.
//!
//! Four ways of speaking: to everybody (`say`: updates and announcements), to one host alone
//! (`tell`: what neighbours of an overlay have to say), to strangers too (`greet`: who I am, so
//! that a host of another cluster can be told apart), and to one host that answers (`ask`: pages,
//! confirmations). All may be lost; the protocols repair that.
//!
//! Promised to a network: its callbacks only hand over to a bounded [`Inbox`], so it is never
//! kept waiting. Promised by a network: messages come from whom they say they come from.

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
use std::time::Duration;

use umbel::coverage::Identity;
use umbel::replica::{Incarnation, Name};

pub(crate) use inbox::Happenings;
pub use inbox::Inbox;
pub use local::LocalNetwork;
#[cfg(feature = "zenoh")]
pub use zenoh::{Endpoints, Guard, ZenohNetwork};

/// Where other hosts listen, from everything that the settings name: peers, links, the file and
/// what a name means now.
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

/// What carries a host's messages.
pub trait Network: fmt::Debug + Send + Sync + 'static {
    /// Sends to every host of the cluster. Never waits: what cannot be sent now is lost.
    fn say(&self, bytes: Vec<u8>);

    /// Sends to one host of the cluster and nobody else. Never waits.
    fn tell(&self, host: &Name, bytes: Vec<u8>);

    /// Sends to every host in reach, whatever its cluster. Never waits.
    fn greet(&self, bytes: Vec<u8>);

    /// Asks one host; `None` if no answer came in time.
    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>>;

    /// Asks whoever lives under one name, and gathers the answers that come in time: several, if
    /// several hosts have that name.
    fn ask_lives(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<Vec<u8>>> {
        let answer = self.ask(host, bytes, timeout);
        Box::pin(async move { answer.await.into_iter().collect() })
    }

    /// Asks every host in reach, and gathers the answers that come in time, each with whom it comes
    /// from. Whoever is reached in several ways may answer several times.
    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<(Name, Vec<u8>)>>;

    /// Notes where another host listens, as hosts tell each other: a network whose links are
    /// opened one by one links up with it.
    fn learn(&self, host: &Name, address: SocketAddr) {
        let _ = (host, address);
    }

    /// The state of the links that this host opens.
    fn links(&self) -> LinkReport {
        LinkReport::default()
    }

    /// Who is at each configured address, as far as that is known.
    fn identities(&self) -> BTreeMap<String, Identity> {
        BTreeMap::new()
    }

    /// Leaves: others see it at once.
    fn close(&self) -> Boxed<'_, ()>;
}

/// The state of the links that a host opens to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkReport {
    /// Links that are open.
    pub opened: u64,
    /// Links that were opened again because nothing came over them.
    pub reopened: u64,
    /// Configured addresses that are not reached, with the reason.
    pub waiting_for: Vec<String>,
}

/// Who joins a network.
#[derive(Debug, Clone)]
pub struct Member {
    /// The cluster's name.
    pub cluster: Name,
    /// The host's own name.
    pub name: Name,
    /// This life of it.
    pub incarnation: Incarnation,
}

/// Something that a host reacts to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Happening {
    /// A host of the cluster said something to everybody or to this host, or answered.
    Said {
        /// Who.
        from: Name,
        /// What.
        bytes: Vec<u8>,
    },
    /// A host, perhaps of another cluster, said who it is.
    Greeted {
        /// What it said.
        bytes: Vec<u8>,
    },
    /// A host of the cluster asked something.
    Asked {
        /// Who.
        from: Name,
        /// What.
        bytes: Vec<u8>,
        /// Where the answer goes.
        reply: Reply,
    },
    /// A host of the cluster is there, in this life of it.
    Alive {
        /// Who.
        host: Name,
        /// Its life.
        incarnation: Incarnation,
    },
    /// A life of a host is over, or out of reach.
    Gone {
        /// Who.
        host: Name,
        /// The life that ended.
        incarnation: Incarnation,
    },
    /// A host is let in no more: nothing that it says is heard from now on.
    Excluded {
        /// Who.
        host: Name,
    },
    /// The settings name a host no longer: if it is not there, it is not waited for.
    Unexpected {
        /// Who.
        host: Name,
    },
    /// Whoever lives under a name was asked who it is, because another life of it is seen than the
    /// one that is believed.
    Tested {
        /// The name.
        host: Name,
        /// The answers.
        greetings: Vec<Vec<u8>>,
    },
    /// A host answered which hosts it knows, and where they listen.
    Hosts {
        /// Who.
        from: Name,
        /// The hosts.
        hosts: Vec<(Name, SocketAddr)>,
    },
    /// A host was linked but did not reply: its link is opened again.
    LinkReopened {
        /// Who.
        host: Name,
    },
    /// There is something to send, or a timeout has changed.
    Woken,
}

/// Where the answer to a question goes; dropped, the asker hears nothing.
pub struct Reply(Box<dyn FnOnce(Vec<u8>) + Send>);

impl Reply {
    /// An answer that goes where `send` takes it.
    pub fn new(send: impl FnOnce(Vec<u8>) + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Answers.
    pub fn send(self, bytes: Vec<u8>) {
        (self.0)(bytes);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}
