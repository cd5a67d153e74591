//! Queries in an overlay.
//!
//! A host of an overlay knows its own keys and the filters of homes within range. A query follows
//! the filters that claim its key; its result comes back through the driver.

use umbel::replica::Name;
use umbel::route::{Located, Search};

use super::keys::show;
use super::sets::Known;
use super::{Host, Missing};
use crate::error::HostError;

/// Maximum number of queries of one request that run at the same time.
const AT_ONCE: usize = 256;

impl Host {
    /// Sends one query and waits for its result.
    pub(super) async fn query(
        &self,
        set: &str,
        key: &[u8],
        limits: impl Fn(Search) -> Search,
    ) -> Result<Located, HostError> {
        let set = Name::new(set).ok_or(HostError::SetName)?;
        let located = self.query_all(&set, &[key], limits).await?.pop();
        located.ok_or(HostError::Stopping)
    }

    /// The keys that neither this host nor any host within range holds. Queries only follow claims
    /// and do not walk at random.
    pub(super) async fn missing_in_range(
        &self,
        set: &Name,
        keys: Vec<Vec<u8>>,
    ) -> Result<Missing, HostError> {
        let mut answer = Missing::default();
        for part in keys.chunks(AT_ONCE) {
            let part: Vec<&[u8]> = part.iter().map(Vec::as_slice).collect();
            let located = self.query_all(set, &part, |search| Search { walk: 0, ..search }).await?;
            let found = part.iter().zip(located);
            for (key, located) in found.filter(|(_, located)| located.holders.is_empty()) {
                let list = match located.is_complete {
                    true => &mut answer.missing,
                    false => &mut answer.unconfirmed,
                };
                list.push(key.to_vec());
            }
        }
        Ok(answer)
    }

    /// Sends a query per key and waits for all results.
    async fn query_all(
        &self,
        set: &Name,
        keys: &[&[u8]],
        limits: impl Fn(Search) -> Search,
    ) -> Result<Vec<Located>, HostError> {
        let under_way: Vec<_> = self.inner.sets.with_keys(set.as_str(), keys, |keys| {
            let mut state = self.inner.sets.lock();
            self.inner.sets.check_open()?;
            let now = self.inner.now();
            let search = |key: &&[u8]| state.search(now, set, key, &limits);
            let searches = keys.iter().map(search).collect::<Result<Vec<_>, _>>()?;
            Ok::<_, HostError>(searches)
        })?;
        self.inner.cluster.wake();
        let mut located = Vec::with_capacity(keys.len());
        for answer in under_way {
            located.push(answer.await.map_err(|_| HostError::Stopping)?);
        }
        Ok(located)
    }

    /// As [`Host::who`], in an overlay.
    pub(super) fn who_in_range(
        &self,
        known: &Known,
        keys: &[&[u8]],
        each: &mut dyn FnMut(&[&str]),
    ) -> Result<(), HostError> {
        let state = self.inner.sets.lock();
        let Some(overlay) = state.protocol.overlay() else { return Ok(()) };
        // All or none: `each` must not be called before it is certain that all keys succeed.
        let homes: Vec<Vec<&Name>> =
            keys.iter().map(|key| overlay.who(&known.name, key)).collect::<Option<_>>().ok_or(
                HostError::InOverlay(
                    "entries of this kind do not keep hosts apart: ask UMBEL.LOCATE",
                ),
            )?;
        let held = known.held();
        for (key, homes) in keys.iter().zip(&homes) {
            let own = held.is_some_and(|own| own.contains(key));
            show(own.then(|| self.name().as_str()), homes, each);
        }
        Ok(())
    }
}
