//! Questions in an overlay: queries that find their way, and what is known of the neighbourhood.
//!
//! A host of an overlay knows its own keys and the filters that came within range. `who` names
//! homes within range, `locate` and `route` send a query out, `missing` looks within range.

use std::time::Duration;

use umbel::catalogue::Catalogue as _;
use umbel::replica::Name;
use umbel::route::{Located, Search};

use super::cluster::Greetings;
use super::keys::show;
use super::sets::{Known, State};
use super::{Host, HostInfo, Routing, SetInfo};
use crate::error::HostError;
use crate::overlay::Overlay;

/// Queries of one question that are under way at a time.
const AT_ONCE: usize = 256;

impl Host {
    /// The paths to the hosts that hold a key: each begins with this host and ends with a
    /// holder. Without an overlay holders are asked directly, and a path has no host between.
    ///
    /// In an overlay a query follows the filters that claim the key for at most `hops`; without
    /// a number, as far as filters travel. Where none does it walks at random, as far as the
    /// settings permit. A set that nobody within range has is no error: it may be farther away.
    ///
    /// # Errors
    /// If `hops` is given outside an overlay, or nobody has the set there; in an overlay, if
    /// nothing was found and somebody who was asked has not answered in time.
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
        if self.inner.settings.overlay.is_none() {
            if hops.is_some() {
                return Err(HostError::NoOverlay("HOPS has no meaning, leave it out"));
            }
            let me = self.name().as_str();
            let path = |holder: String| match holder == me {
                true => vec![holder],
                false => vec![me.to_owned(), holder],
            };
            let (holders, _) = self.confirmed(set, key, timeout).await?;
            return Ok(holders.into_iter().map(path).collect());
        }
        let limits = |search: Search| Search {
            hops: hops.unwrap_or(search.hops),
            patience: timeout.unwrap_or(search.patience),
            ..search
        };
        let located = self.search(set, key, limits)?.await.map_err(|_| HostError::Stopping)?;
        if located.holders.is_empty() && !located.is_complete {
            return Err(HostError::Unanswered);
        }
        let text = |name: &Name| name.as_str().to_owned();
        let path = |holder: &umbel::route::Holder| holder.path().iter().map(text).collect();
        Ok(located.holders.iter().map(path).collect())
    }

    /// Those of the keys that neither this host nor any within range holds: claims are followed,
    /// nothing is walked for.
    pub(super) async fn missing_in_range(
        &self,
        set: &str,
        keys: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, HostError> {
        let mut missing = Vec::new();
        for part in keys.chunks(AT_ONCE) {
            let within = |search: Search| Search { walk: 0, ..search };
            let asked: Vec<_> =
                part.iter().map(|key| self.search(set, key, within)).collect::<Result<_, _>>()?;
            for (key, answer) in part.iter().zip(asked) {
                let located = answer.await.map_err(|_| HostError::Stopping)?;
                if located.holders.is_empty() {
                    missing.push(key.clone());
                }
            }
        }
        Ok(missing)
    }

    /// Sends a query out.
    fn search(
        &self,
        set: &str,
        key: &[u8],
        limits: impl FnOnce(Search) -> Search,
    ) -> Result<tokio::sync::oneshot::Receiver<Located>, HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let mut state = self.inner.sets.change()?;
        let now = self.inner.now();
        let overlay = state.engine.overlay_mut();
        let overlay = overlay.ok_or(HostError::NoOverlay("queries are not routed"))?;
        let answer = overlay.locate(now, &name, key, limits)?;
        drop(state);
        self.inner.cluster.wake();
        Ok(answer)
    }

    /// As [`Host::who`], in an overlay.
    pub(super) fn who_in_range(
        &self,
        known: &Known,
        keys: &[&[u8]],
        each: &mut dyn FnMut(&[&str]),
    ) -> Result<(), HostError> {
        let state = self.inner.sets.lock();
        let Some(overlay) = state.engine.overlay() else { return Ok(()) };
        // All or none: a reply that has begun cannot be taken back.
        let homes: Vec<Vec<&Name>> =
            keys.iter().map(|key| overlay.who(&known.name, key)).collect::<Result<_, _>>()?;
        for (key, homes) in keys.iter().zip(&homes) {
            let own = known.own.as_ref().is_some_and(|own| own.contains(key));
            show(own.then(|| self.name().as_str()), homes, each);
        }
        Ok(())
    }
}

impl Routing {
    /// Of one set, or of all together.
    pub(super) fn of(overlay: &Overlay, set: Option<&Name>) -> Self {
        let (homes, counters) = match set.and_then(|set| overlay.routing(set)) {
            Some((homes, counters)) => (homes, counters),
            None => {
                let homes = overlay.seen().into_iter().filter(|host| !host.sets.is_empty());
                let homes = homes.map(|host| host.name.as_str().to_owned());
                (homes.collect(), overlay.counters())
            }
        };
        Self {
            overlay: overlay.agreed(set),
            links: overlay.neighbours(false),
            links_up: overlay.neighbours(true),
            homes,
            queries_asked: counters.asked,
            queries_not_found: counters.not_found,
            queries_answered: counters.answered,
            queries_given_up: counters.expired_queries,
            forwards: counters.claimed_forwards,
            wrong_forwards: counters.wrong_forwards,
            walk_forwards: counters.walk_forwards,
            filters_sent: counters.adverts_sent,
            filters_refused: counters.refused_filters,
        }
    }
}

/// The rest of what is told of a set in an overlay.
pub(super) fn in_overlay(mut info: SetInfo, state: &State, set: &Name) -> SetInfo {
    // What a lookup promises over all hosts has no meaning here: the plan's rate is a link's.
    (info.false_positive, info.expected_hosts) = (None, None);
    if let Some(overlay) = state.engine.overlay() {
        let routing = Routing::of(overlay, Some(set));
        info.replicas = routing.homes.len() as u64;
        info.items_everywhere += overlay.items_in_range(set);
        info.replica_bytes = overlay.memory_bytes(set);
        info.routing = Some(routing);
    }
    info
}

/// Adds the other hosts that an overlay knows of.
pub(super) fn others_in_overlay(
    mut hosts: Vec<HostInfo>,
    state: &State,
    greetings: &Greetings,
) -> Vec<HostInfo> {
    let seen = state.engine.overlay().map(Overlay::seen).unwrap_or_default();
    hosts.extend(seen.into_iter().map(|host| {
        let hello = greetings.others.get(host.name);
        HostInfo {
            name: host.name.as_str().to_owned(),
            state: host.state,
            incarnation: host.life.map_or(0, |life| life.0),
            advertise: hello.and_then(|hello| hello.advertise.clone()),
            resp: hello.and_then(|hello| hello.resp.clone()),
            http: hello.and_then(|hello| hello.http.clone()),
            sets: host.sets.iter().map(|(set, _)| set.as_str().to_owned()).collect(),
            epochs: host.sets.iter().map(|(_, epoch)| *epoch).collect(),
            age: None,
            current: host.state != "down",
        }
    }));
    hosts
}
