//! The ports of a host for its clients: addresses, users and certificates.

use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(feature = "http")]
use std::time::SystemTime;

use parking_lot::Mutex;

#[cfg(feature = "http")]
use super::Host;
use crate::access::Access;

/// Where a host can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Addresses {
    /// Where Redis clients connect.
    pub resp: Option<SocketAddr>,
    /// Where HTTP is served.
    pub http: Option<SocketAddr>,
    /// Where other hosts connect.
    pub listen: Option<SocketAddr>,
}

/// The ports of a host, and who may use them.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) access: Arc<Access>,
    /// The certificates of the client ports.
    #[cfg(feature = "tls")]
    pub(crate) certificates: Option<Arc<crate::tls::Certificates>>,
    /// Counters of the port for Redis clients.
    #[cfg(any(feature = "resp", feature = "http"))]
    pub(crate) redis_clients: Arc<crate::client_counts::ClientCounts>,
    addresses: Mutex<Addresses>,
}

impl Ports {
    /// Ports that are not open yet; other hosts connect to `listen`.
    pub(crate) fn new(
        access: Access,
        #[cfg(feature = "tls")] certificates: Option<Arc<crate::tls::Certificates>>,
        listen: Option<SocketAddr>,
    ) -> Self {
        Self {
            access: Arc::new(access),
            #[cfg(feature = "tls")]
            certificates,
            #[cfg(any(feature = "resp", feature = "http"))]
            redis_clients: Arc::default(),
            addresses: Mutex::new(Addresses { listen, ..Addresses::default() }),
        }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        *self.addresses.lock()
    }

    /// Sets the addresses after the ports were opened.
    #[cfg(any(feature = "resp", feature = "http"))]
    pub(crate) fn set_addresses(&self, addresses: Addresses) {
        *self.addresses.lock() = addresses;
    }
}

#[cfg(feature = "http")]
impl Host {
    /// When this host's certificates expire, read from their files.
    #[cfg(feature = "tls")]
    pub(crate) fn certificate_expiries(&self) -> Vec<(&'static str, SystemTime)> {
        let settings = &self.inner.settings;
        let clients = settings.tls.as_ref().map(|files| ("clients", &files.cert));
        let peers = settings.peer_tls.as_ref().map(|files| ("peers", &files.own.cert));
        let authority = settings.peer_tls.as_ref().map(|files| ("peers_authority", &files.ca));
        let files = [clients, peers, authority].into_iter().flatten();
        files.filter_map(|(which, file)| Some((which, crate::tls::expires(file).ok()?))).collect()
    }

    /// Without TLS there are none.
    #[cfg(not(feature = "tls"))]
    pub(crate) const fn certificate_expiries(&self) -> Vec<(&'static str, SystemTime)> {
        Vec::new()
    }
}
