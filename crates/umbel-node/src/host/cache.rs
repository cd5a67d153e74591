//! The cache itself, asked whether it holds what the catalogue says.
//!
//! A home asks its own cache, when it or another host confirms one of its keys: so no host
//! opens addresses that another one made up, and whoever finds a disagreement can repair it.
//! Only claims are confirmed: a key that the catalogue does not have is not asked for.
//!
//! Always true: a key leaves the catalogue only if its cache said that it does not hold the
//! object. A cache that does not answer confirms nothing and repairs nothing.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::{ABSENT, HELD, Host, UNKNOWN};
use crate::confirm::{Confirm, Template};
use crate::host::Lifetime;

/// The way to this host's cache.
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

    /// Made when it is needed first: most hosts never ask.
    fn client(&self) -> Option<&reqwest::Client> {
        let make = || {
            // If somebody chose another provider before, that one serves as well.
            let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
            let client = reqwest::Client::builder()
                // An object that is somewhere else is not here.
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(self.at_once)
                .user_agent(concat!("umbel/", env!("CARGO_PKG_VERSION")))
                .build();
            client.inspect_err(|error| tracing::error!(%error, "caches cannot be asked")).ok()
        };
        self.client.get_or_init(make).as_ref()
    }

    /// What the cache says of one object.
    async fn ask(&self, template: &Template, url: Option<String>, until: Instant) -> u8 {
        let (Some(client), Some(url)) = (self.client(), url) else { return UNKNOWN };
        let asked = async {
            let _turn = self.turns.acquire().await.ok()?;
            let request =
                if template.asks_for_the_whole() { client.get(&url) } else { client.head(&url) };
            request.send().await.map(|answer| answer.status()).ok()
        };
        match timeout_at(until, asked).await.ok().flatten() {
            Some(status) if status.is_success() => HELD,
            Some(reqwest::StatusCode::NOT_FOUND | reqwest::StatusCode::GONE) => ABSENT,
            _ => UNKNOWN,
        }
    }
}

impl Host {
    /// Which of these keys this host holds, in the words of `ABSENT`, `HELD` and `UNKNOWN`: what
    /// the catalogue says, confirmed by the cache if the set says how.
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
        // As many as there are turns at most: the others wait without costing anything.
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
            let (host, set, template) = (self.clone(), set.to_owned(), template.clone());
            self.inner
                .lifecycle
                .runtime
                .spawn(async move { host.repair(&set, &template, gone).await });
        }
        answers
    }

    /// Where the cache is asked for a key; `None` if it may not be. A set may have been stored
    /// when the configuration permitted another server.
    fn cache_url(&self, template: &Template, set: &str, key: &[u8]) -> Option<String> {
        let settings = self.inner.live.current();
        if template.origin().is_some_and(|origin| !settings.permits_cache(&origin)) {
            return None;
        }
        template.url(self.inner.settings.advertise.as_deref().unwrap_or_default(), set, key)
    }

    /// Takes keys that the cache does not hold from the catalogue. An object that arrived in
    /// between is stored before its key is added; so a key that the cache knows, asked again
    /// after its removal, was added by somebody else meanwhile, and is put back.
    async fn repair(&self, set: &str, template: &Template, keys: Vec<Vec<u8>>) {
        for key in keys {
            let key = key.as_slice();
            let mut removed = Vec::new();
            if self.remove(set, &[key], &mut removed).is_err() || removed != [true] {
                continue;
            }
            let until = Instant::now() + self.inner.cache.patience;
            let url = self.cache_url(template, set, key);
            if self.inner.cache.ask(template, url, until).await != ABSENT {
                let _ = self.add(set, &[key], Lifetime::Default, &mut removed);
            }
        }
    }
}
