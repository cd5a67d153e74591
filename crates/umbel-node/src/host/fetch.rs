//! Where to fetch the object of a key: from a host that confirms that it holds it, or from the
//! origin in the configuration.
//!
//! Always true: an address is built from the set's template and from what a host advertises or the
//! configuration contains, never from anything else in a request.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use umbel::replica::Name;

use super::ask::PATIENCE;
use super::sets::Known;
use super::{HELD, Host};
use crate::confirm::object_address;
use crate::error::HostError;
use crate::peer_request::PeerRequest;

/// Which hosts are asked for an object, and for how long.
///
/// ```
/// use umbel_node::Fetch;
///
/// // A cache that has just missed asks everybody else.
/// let how = Fetch { except_self: true, ..Fetch::default() };
/// assert!(how.timeout.is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetch {
    /// Whether to leave out the host that fetches, and its cache.
    pub except_self: bool,
    /// Hosts to leave out.
    pub except: Vec<Name>,
    /// How long hosts may take to confirm; `None`: 2 seconds.
    pub timeout: Option<Duration>,
}

impl Fetch {
    pub(super) fn includes(&self, host: &Name) -> bool {
        !self.except.contains(host)
    }
}

impl Host {
    /// The address from which to fetch the object of a key: that of the first host that confirms
    /// that it holds the key, among the hosts that advertise an address. This host is asked first,
    /// then all others at the same time, so that the nearest one replies first.
    ///
    /// # Errors
    /// If the set's name is invalid.
    pub async fn fetch(
        &self,
        set: &str,
        key: &[u8],
        how: &Fetch,
    ) -> Result<Option<String>, HostError> {
        let Some(known) = self.inner.sets.look_up(set)? else { return Ok(None) };
        let address = |advertise: &str| object_address(&known.confirm, advertise, set, key);
        if let Some(advertise) = &self.inner.settings.advertise
            && self.may_fetch_from_self(how)
            && self.holds(set, &[key]).await == [HELD]
        {
            return Ok(address(advertise));
        }
        let mut holders = self.holders(&known, key, how, |host| self.advertised(host).is_some());
        while let Some(holder) = holders.next().await {
            if let Some(address) = self.advertised(&holder).and_then(|at| address(&at)) {
                return Ok(Some(address));
            }
        }
        Ok(None)
    }

    /// The address from which to fetch the object of a key that no host holds: the origin that the
    /// configuration names for the set (`origins`).
    #[must_use]
    pub fn origin_address(&self, set: &str, key: &[u8]) -> Option<String> {
        let settings = self.inner.live.current();
        let template = settings.origin_of(set)?;
        template.url("", set, key)
    }

    /// The set whose keys are the digests of container blobs, if this host is a mirror.
    #[cfg(feature = "http")]
    pub(crate) fn oci_set(&self) -> Option<String> {
        self.inner.settings.oci.set.as_ref().map(|set| set.as_str().to_owned())
    }

    /// The registry that a mirror redirects to for what no host holds.
    #[cfg(feature = "http")]
    pub(crate) fn oci_origin(&self) -> Option<&str> {
        self.inner.settings.oci.origin.as_deref()
    }

    /// Whether the object may be fetched from this host itself.
    pub(super) fn may_fetch_from_self(&self, how: &Fetch) -> bool {
        !how.except_self && how.includes(self.name())
    }

    /// The other hosts that confirm that they hold a key; only hosts for which `wanted` returns
    /// true are asked.
    pub(super) fn holders(
        &self,
        known: &Known,
        key: &[u8],
        how: &Fetch,
        wanted: impl Fn(&Name) -> bool,
    ) -> Holders {
        let mut asked = JoinSet::new();
        let timeout = how.timeout.unwrap_or(PATIENCE);
        let set = known.name.as_str();
        for (host, _) in self.candidates(known, &[key]) {
            if !how.includes(&host) || !wanted(&host) {
                continue;
            }
            let bytes = PeerRequest::Holds { set, keys: vec![key] }.encode();
            let network = Arc::clone(&self.inner.cluster.network);
            asked.spawn(async move {
                let answer = network.ask(&host, bytes, timeout).await;
                (answer.as_deref() == Some(&[HELD])).then_some(host)
            });
        }
        Holders(asked)
    }

    /// The address that another host advertises for its objects, if any.
    fn advertised(&self, host: &Name) -> Option<String> {
        self.inner.cluster.greetings().of(host)?.advertise.clone()
    }
}

/// Hosts that confirm a key, in the order of their replies.
#[derive(Debug)]
pub(super) struct Holders(JoinSet<Option<Name>>);

impl Holders {
    pub(super) async fn next(&mut self) -> Option<Name> {
        while let Some(answer) = self.0.join_next().await {
            if let Ok(Some(holder)) = answer {
                return Some(holder);
            }
        }
        None
    }
}

impl Drop for Holders {
    /// Slower replies are received and dropped. The network logs an error for every reply to a
    /// request that was given up.
    fn drop(&mut self) {
        self.0.detach_all();
    }
}
