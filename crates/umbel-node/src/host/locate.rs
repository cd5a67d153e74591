//! Which hosts hold a key, and which keys no host holds: confirmed, not from memory.
//!
//! In a mesh the hosts that memory names are asked (`ask`); in an overlay queries search for
//! holders (`query`). This is the only place that chooses between the two.

use std::time::Duration;

use umbel::replica::Name;
use umbel::route::{Located, Search};

use super::Host;
use crate::error::HostError;

/// The result of asking which keys no host holds. Keys that are in neither list are held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// Keys that no host holds, in the order of the request.
    pub missing: Vec<Vec<u8>>,
    /// Keys that no host confirmed, while a host that may hold them has not replied, or could not
    /// tell: ask again.
    pub unconfirmed: Vec<Vec<u8>>,
}

impl Missing {
    /// The keys that no host holds.
    ///
    /// # Errors
    /// If there are keys that could not be confirmed.
    pub fn confirmed(self) -> Result<Vec<Vec<u8>>, HostError> {
        match self.unconfirmed.len() {
            0 => Ok(self.missing),
            unconfirmed => Err(HostError::Unconfirmed(unconfirmed)),
        }
    }
}

impl Host {
    /// The hosts that confirm that they hold a key, this one first. Those that do not answer
    /// within the timeout are left out. In an overlay a query looks for them, and stops at
    /// those it finds: see [`Host::route`].
    ///
    /// # Errors
    /// As [`Host::route`].
    pub async fn locate(
        &self,
        set: &str,
        key: &[u8],
        timeout: Option<Duration>,
    ) -> Result<Vec<String>, HostError> {
        match self.locate_fully(set, key, timeout).await? {
            (holders, false) if holders.is_empty() && !self.is_in_overlay() => {
                Err(HostError::Unanswered)
            }
            (holders, _) => Ok(holders),
        }
    }

    /// As [`Self::locate`]; also returns whether every host that was asked has replied. In an
    /// overlay this is always false: a query ends with the first holder on its way, so that others
    /// may not have been asked.
    ///
    /// # Errors
    /// If the set's name is invalid; in an overlay as [`Host::route`].
    pub(crate) async fn locate_fully(
        &self,
        set: &str,
        key: &[u8],
        timeout: Option<Duration>,
    ) -> Result<(Vec<String>, bool), HostError> {
        if !self.is_in_overlay() {
            return self.confirmed(set, key, timeout).await;
        }
        let located = self.located(set, key, None, timeout).await?;
        Ok((located.holders.iter().map(|holder| text(holder.name())).collect(), false))
    }

    /// The paths to the hosts that hold a key: each begins with this host and ends with a holder.
    /// Outside an overlay holders are asked directly, so that a path has no host in between.
    ///
    /// In an overlay a query follows the filters that claim the key for at most `hops` hops; by
    /// default, as far as filters travel. Where no filter claims the key, the query walks at
    /// random, as far as the settings permit. A set that no host is known to have is no error: its
    /// first update may still be on its way, or in an overlay it may be out of range.
    ///
    /// # Errors
    /// If nothing was found and a host that was asked has not replied in time, if `hops` is
    /// given outside an overlay, or if the set's name is invalid.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use umbel_node::{Host, LocalNetwork};
    ///
    /// let network = LocalNetwork::new();
    /// let host = |name, links: &[&str]| {
    ///     let links = links.iter().copied();
    ///     Host::builder().name(name).set("links", links).local(&network).start()
    /// };
    /// let fern = host("fern", &["oak"]).await?;
    /// let oak = host("oak", &["fern", "lily"]).await?;
    /// let lily = host("lily", &["oak"]).await?;
    ///
    /// fern.add_key("images", b"cat.png").await?;
    /// // Links take a moment to come up.
    /// while lily.route("images", b"cat.png", None, None).await? != [["lily", "oak", "fern"]] {
    ///     tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    /// }
    /// # for host in [fern, oak, lily] { host.stop().await; }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn route(
        &self,
        set: &str,
        key: &[u8],
        hops: Option<u8>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Vec<String>>, HostError> {
        if self.is_in_overlay() {
            let located = self.located(set, key, hops, timeout).await?;
            let path = |holder: &umbel::route::Holder| holder.path().iter().map(text).collect();
            return Ok(located.holders.iter().map(path).collect());
        }
        if hops.is_some() {
            return Err(HostError::NoOverlay("HOPS has no meaning, leave it out"));
        }
        let me = self.name().as_str();
        let path = |holder: String| match holder == me {
            true => vec![holder],
            false => vec![me.to_owned(), holder],
        };
        let holders = self.locate(set, key, timeout).await?;
        Ok(holders.into_iter().map(path).collect())
    }

    /// Which keys no host holds. A claim counts only if its host confirms it, because a false "some
    /// host has it" loses an upload. A key whose claims cannot be confirmed is not reported as
    /// missing. In an overlay only hosts within range are asked.
    ///
    /// # Errors
    /// If the set's name is invalid.
    pub async fn missing(&self, set: &str, keys: Vec<Vec<u8>>) -> Result<Missing, HostError> {
        if self.is_in_overlay() {
            let name = Name::new(set).ok_or(HostError::SetName)?;
            return self.missing_in_range(&name, keys).await;
        }
        match self.inner.sets.look_up(set)? {
            Some(known) => Ok(self.missing_confirmed(&known, &keys).await),
            None => Ok(Missing { missing: keys, unconfirmed: Vec::new() }),
        }
    }

    /// Runs one query in an overlay.
    async fn located(
        &self,
        set: &str,
        key: &[u8],
        hops: Option<u8>,
        timeout: Option<Duration>,
    ) -> Result<Located, HostError> {
        let limits = |search: Search| Search {
            hops: hops.unwrap_or(search.hops),
            patience: timeout.unwrap_or(search.patience),
            ..search
        };
        let located = self.query(set, key, limits).await?;
        if located.holders.is_empty() && !located.is_complete {
            return Err(HostError::Unanswered);
        }
        Ok(located)
    }

    /// Whether the host is in an overlay, where hosts know only their neighbours.
    pub(crate) fn is_in_overlay(&self) -> bool {
        self.inner.settings.overlay.is_some()
    }
}

fn text(name: &Name) -> String {
    name.as_str().to_owned()
}
