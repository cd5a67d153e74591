//! Names such as `/a/b/c`: hosts announce prefixes, and a lookup finds the longest announced prefix
//! of a name.
//!
//! An announced prefix is stored as a key of its set: the text of the name. So it gets everything
//! that keys get: the catalogue, expiry, the filter, replicas. A match looks up all prefixes of the
//! name in memory at once and takes the longest that any host claims.
//!
//! Always true: no announced prefix that has reached this host is longer than the answer. The
//! answer itself may be a false claim: a name of `n` components looks up `n + 1` keys, each wrong
//! at most at the set's rate, so an answer from memory is wrong at most `n + 1` times as often. A
//! confirmed answer is not.

use std::time::{Duration, Instant};

use umbel::prefix::{self, ParseError};

use super::{Host, Lifetime};
use crate::catalogue::Ticket;
use crate::error::HostError;

/// A prefix, and the hosts that announce it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The prefix, such as `/a/b`.
    pub prefix: String,
    /// The host that answers, if it announces the prefix itself, then the others in the order of
    /// their names. Never empty.
    pub hosts: Vec<String>,
}

impl Host {
    /// Announces prefixes of names: lookups of a name below one of them find this host. They become
    /// keys of an own set, which is created if it does not exist; for each, whether it is new is
    /// appended to `answers`. They are durable once [`Host::settled`] has returned for the ticket.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use umbel_node::{Host, LocalNetwork};
    ///
    /// let host = Host::builder().name("h1").local(&LocalNetwork::new()).start().await?;
    /// host.announce("content", &["/video", "/video/2024/"], &mut Vec::new())?;
    /// let found = host.match_name("content", "/video/2024/intro")?.expect("both cover it");
    /// assert_eq!((found.prefix.as_str(), found.hosts), ("/video/2024", vec!["h1".into()]));
    /// host.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If a prefix is invalid, or as [`Host::add`]; nothing changes then.
    pub fn announce(
        &self,
        set: &str,
        prefixes: &[&str],
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        let names = parse(prefixes)?;
        self.add(set, &keys(&names), Lifetime::Default, answers)
    }

    /// Whether all of these are valid names.
    ///
    /// # Errors
    /// If one is not.
    #[cfg(any(feature = "resp", feature = "http"))]
    pub(crate) fn check_names(names: &[&str]) -> Result<(), HostError> {
        names.iter().try_for_each(|name| parse_one(name).map(|_| ()))
    }

    /// Withdraws announced prefixes; appends for each whether it was announced.
    ///
    /// # Errors
    /// If a prefix is invalid, or as [`Host::remove`]; nothing changes then.
    pub fn withdraw(
        &self,
        set: &str,
        prefixes: &[&str],
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        let names = parse(prefixes)?;
        self.remove(set, &keys(&names), answers)
    }

    /// The longest prefix of a name that any host announces, from this host's memory. No other host
    /// is asked.
    ///
    /// # Errors
    /// If the name or the set's name is invalid.
    pub fn match_name(&self, set: &str, name: &str) -> Result<Option<Announced>, HostError> {
        let name = parse_one(name)?;
        let keys: Vec<&[u8]> = name.prefixes().map(str::as_bytes).collect();
        let (mut prefixes, mut longest) = (name.prefixes(), None);
        self.who(set, &keys, &mut |hosts| {
            let prefix = prefixes.next().unwrap_or_default();
            if longest.is_none() && !hosts.is_empty() {
                let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
                longest = Some(Announced { prefix: prefix.to_owned(), hosts });
            }
        })?;
        Ok(longest)
    }

    /// The longest prefix of a name that a host confirms to announce. Claims are confirmed from the
    /// longest down. If the hosts of a prefix do not reply within half of the remaining time, a
    /// shorter prefix is tried.
    ///
    /// # Errors
    /// If the name or the set's name is invalid.
    pub async fn match_confirmed(
        &self,
        set: &str,
        name: &str,
        timeout: Duration,
    ) -> Result<Option<Announced>, HostError> {
        let name = parse_one(name)?;
        let end = Instant::now() + timeout;
        for prefix in name.prefixes() {
            let left = end.saturating_duration_since(Instant::now());
            let patience = if prefix == "/" { left } else { left / 2 };
            let hosts = match self.locate(set, prefix.as_bytes(), Some(patience)).await {
                Err(HostError::Unanswered) => Vec::new(),
                found => found?,
            };
            if !hosts.is_empty() {
                return Ok(Some(Announced { prefix: prefix.to_owned(), hosts }));
            }
        }
        Ok(None)
    }
}

fn parse_one(text: &str) -> Result<prefix::Name, HostError> {
    text.parse().map_err(|reason: ParseError| {
        let excerpt: String = text.chars().take(80).collect();
        let text = umbel::text::for_terminal(&excerpt).into_owned();
        HostError::PrefixName { text, reason }
    })
}

fn parse(texts: &[&str]) -> Result<Vec<prefix::Name>, HostError> {
    texts.iter().map(|text| parse_one(text)).collect()
}

fn keys(names: &[prefix::Name]) -> Vec<&[u8]> {
    names.iter().map(|name| name.as_str().as_bytes()).collect()
}
