//! What clients of a host meet: its addresses, its users and its certificates.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;

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
    /// What the ports for clients show.
    #[cfg(feature = "tls")]
    pub(crate) certificates: Option<Arc<crate::tls::Certificates>>,
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
            addresses: Mutex::new(Addresses { listen, ..Addresses::default() }),
        }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        *self.addresses.lock()
    }

    /// Ports were opened.
    #[cfg(any(feature = "resp", feature = "http"))]
    pub(crate) fn set_addresses(&self, addresses: Addresses) {
        *self.addresses.lock() = addresses;
    }
}
