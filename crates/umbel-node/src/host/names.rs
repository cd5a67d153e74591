//! Names such as `/a/b/c`: prefixes that hosts announce, and the longest one of a name.
//!
//! An announced prefix is a key of its set, the name's own text. So everything that keys have
//! carries it: the catalogue, expiry, the filter, replicas. A match asks memory for all prefixes
//! of the name at once and takes the longest that anybody claims.
//!
//! Always true: every announced prefix that has reached this host and is as long as the answer
//! or longer is found. What is found may be claimed falsely: a name of `n` components asks
//! `n + 1` keys, each wrong at the set's rate at most, so an answer from memory is wrong at
//! most `n + 1` times as often; a confirmed one is not.

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
    /// The host that was asked first if it announces the prefix itself, then the others in the
    /// order of their names. Never empty.
    pub hosts: Vec<String>,
}

impl Host {
    /// Announces prefixes of names: others that ask for a name below one find this host. They
    /// become keys of an own set, which is made if it is not there; for each, whether it is new
    /// is appended to `answers`. They may be called safe once [`Host::settled`] has returned
    /// for the ticket.
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
    /// If a prefix is no name, or as [`Host::add`]; nothing changes then.
    pub fn announce(
        &self,
        set: &str,
        prefixes: &[&str],
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        let names = parse(prefixes)?;
        self.add(set, &keys(&names), Lifetime::Default, answers)
    }

    /// Whether all of these are names.
    ///
    /// # Errors
    /// If one is not.
    #[cfg(feature = "resp")]
    pub(crate) fn check_names(names: &[&str]) -> Result<(), HostError> {
        names.iter().try_for_each(|name| parse_one(name).map(|_| ()))
    }

    /// Takes back what was announced; for each prefix, whether it was is appended.
    ///
    /// # Errors
    /// If a prefix is no name, or as [`Host::remove`]; nothing changes then.
    pub fn withdraw(
        &self,
        set: &str,
        prefixes: &[&str],
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        let names = parse(prefixes)?;
        self.remove(set, &keys(&names), answers)
    }

    /// The longest prefix of a name that any host announces, as far as this host's memory
    /// knows. No other host is asked.
    ///
    /// # Errors
    /// If it is no name, or no set can have that name.
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

    /// The longest prefix of a name that any host confirms to announce, asked from the longest
    /// claim down. A prefix whose hosts do not answer gives way to a shorter one after half of
    /// the time that is left.
    ///
    /// # Errors
    /// If it is no name, or no set can have that name.
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
