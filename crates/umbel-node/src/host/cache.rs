//! Asks the cache itself whether it holds an object that the catalogue lists.
//!
//! A home asks its own cache when it, or another host, confirms one of its keys. So no host opens
//! an address that another host made up, and the host that finds a disagreement can repair it. Only
//! claims are confirmed: the cache is not asked about a key that is not in the catalogue.
//!
//! Always true: a key is removed from the catalogue only if the cache replied that it does not hold
//! the object. A cache that does not reply confirms nothing and repairs nothing.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
#[cfg(feature = "otel")]
use tracing::Instrument as _;

use super::{ABSENT, HELD, Host, UNKNOWN};
use crate::confirm::{Confirm, Template};
use crate::host::Lifetime;

/// The HTTP client for this host's cache.
#[derive(Debug)]
pub(crate) struct Cache {
    client: OnceLock<Option<reqwest::Client>>,
    turns: Semaphore,
    at_once: usize,
    patience: Duration,
}

impl Cache {
    pub(crate) const fn new(at_once: usize, patience: Duration) -> Self {
        let turns = Semaphore::const_new(at_once);
        Self { client: OnceLock::new(), turns, at_once, patience }
    }

    /// Created at first use: most hosts never ask a cache.
    fn client(&self) -> Option<&reqwest::Client> {
        let make = || {
            // Fails if another provider is installed already; that one serves as well.
            let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
            let client = reqwest::Client::builder()
                // A redirect means that the object is not in this cache.
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(self.at_once)
                .user_agent(concat!("umbel/", env!("CARGO_PKG_VERSION")))
                .build();
            client.inspect_err(|error| tracing::error!(%error, "caches cannot be asked")).ok()
        };
        self.client.get_or_init(make).as_ref()
    }

    /// Asks the cache about one object.
    async fn ask(&self, template: &Template, url: Option<String>, until: Instant) -> u8 {
        let (Some(client), Some(url)) = (self.client(), url) else { return UNKNOWN };
        let asked = async {
            let _turn = self.turns.acquire().await.ok()?;
            let request =
                if template.asks_for_the_whole() { client.get(&url) } else { client.head(&url) };
            request.send().await.map(|answer| answer.status()).ok()
        };
        #[cfg(feature = "otel")]
        let asked = asked.instrument(crate::traces::cache_request());
        match timeout_at(until, asked).await.ok().flatten() {
            Some(status) if status.is_success() => HELD,
            Some(reqwest::StatusCode::NOT_FOUND | reqwest::StatusCode::GONE) => ABSENT,
            _ => UNKNOWN,
        }
    }
}

impl Cache {
    /// Begins to read an object; `ABSENT` if the cache does not hold it, `UNKNOWN` if it cannot be
    /// read by then.
    pub(super) async fn open(
        &self,
        url: Option<String>,
        until: Instant,
    ) -> Result<reqwest::Response, u8> {
        let (Some(client), Some(url)) = (self.client(), url) else { return Err(UNKNOWN) };
        let until = until.min(Instant::now() + self.patience);
        let opened = timeout_at(until, client.get(&url).send()).await;
        let response = opened.map_err(|_| UNKNOWN)?.map_err(|_| UNKNOWN)?;
        match response.status() {
            reqwest::StatusCode::OK => Ok(response),
            reqwest::StatusCode::NOT_FOUND | reqwest::StatusCode::GONE => Err(ABSENT),
            _ => Err(UNKNOWN),
        }
    }
}

impl Host {
    /// For each key `HELD`, `ABSENT` or `UNKNOWN`: whether this host holds it according to the
    /// catalogue, confirmed by the cache if the set is configured so.
    pub(crate) async fn holds(&self, set: &str, keys: &[&[u8]]) -> Vec<u8> {
        let mut answers = self.inner.sets.holds(set, keys);
        let Some(known) = self.inner.sets.known(set) else { return answers };
        let Confirm::Cache(template) = &known.confirm else { return answers };
        let cache = &self.inner.cache;
        let until = Instant::now() + cache.patience;
        let claimed: Vec<usize> = (0..keys.len()).filter(|at| answers[*at] == HELD).collect();
        let asked = claimed.into_iter().map(|at| {
            let url = self.cache_url(template, set, keys[at]);
            async move { (at, cache.ask(template, url, until).await) }
        });
        // At most as many futures at once as there are permits: the others are not started yet.
        let asked: Vec<_> =
            futures_util::stream::iter(asked).buffer_unordered(cache.at_once).collect().await;
        let mut gone = Vec::new();
        for (at, answer) in asked {
            known.confirmed.count_cache(answer);
            answers[at] = answer;
            if answer == ABSENT {
                gone.push(keys[at].to_vec());
            }
        }
        if !gone.is_empty() {
            self.spawn_repair(set, template, gone);
        }
        answers
    }

    /// Removes keys that the cache does not hold from the catalogue, in a task of its own.
    pub(super) fn spawn_repair(&self, set: &str, template: &Template, gone: Vec<Vec<u8>>) {
        let (host, set, template) = (self.clone(), set.to_owned(), template.clone());
        let repair = async move { host.repair(&set, &template, gone).await };
        self.inner.lifecycle.runtime.spawn(repair);
    }

    /// The URL at which the cache is asked for a key; `None` if this server is not permitted. The
    /// set may have been stored when the configuration permitted another server.
    pub(super) fn cache_url(&self, template: &Template, set: &str, key: &[u8]) -> Option<String> {
        let settings = self.inner.live.current();
        if template.origin().is_some_and(|origin| !settings.permits_cache(&origin)) {
            return None;
        }
        template.url(self.inner.settings.advertise.as_deref().unwrap_or_default(), set, key)
    }

    /// Removes keys that the cache does not hold from the catalogue. A client stores an object
    /// before it adds the key. So the cache is asked once more after the removal: if it holds the
    /// object now, somebody added it meanwhile, and the key is put back.
    async fn repair(&self, set: &str, template: &Template, names: Vec<Vec<u8>>) {
        let sets = &self.inner.sets;
        for name in names {
            let (name, mut removed) = (name.as_slice(), Vec::new());
            let outcome = sets.with_keys(set, &[name], |key| self.remove(set, key, &mut removed));
            if outcome.is_err() || removed != [true] {
                continue;
            }
            let until = Instant::now() + self.inner.cache.patience;
            let url = self.cache_url(template, set, name);
            if self.inner.cache.ask(template, url, until).await != ABSENT {
                let add = |key: &[&[u8]]| self.add(set, key, Lifetime::Default, &mut removed);
                let _ = sets.with_keys(set, &[name], add);
            }
        }
    }
}
