//! Single keys: what a program that embeds a host mostly needs.

use super::{Host, Lifetime};
use crate::error::HostError;

impl Host {
    /// Adds one key and waits until it is durable; returns whether it is new.
    ///
    /// # Errors
    /// As [`Host::add`].
    pub async fn add_key(&self, set: &str, key: &[u8]) -> Result<bool, HostError> {
        let mut answers = Vec::with_capacity(1);
        let ticket = self.add(set, &[key], Lifetime::Default, &mut answers)?;
        self.settled(ticket).await?;
        Ok(answers == [true])
    }

    /// Removes one key and waits until that is durable; returns whether it was held.
    ///
    /// # Errors
    /// As [`Host::remove`].
    pub async fn remove_key(&self, set: &str, key: &[u8]) -> Result<bool, HostError> {
        let mut answers = Vec::with_capacity(1);
        let ticket = self.remove(set, &[key], &mut answers)?;
        self.settled(ticket).await?;
        Ok(answers == [true])
    }

    /// The hosts that may hold one key, this one first: from memory.
    ///
    /// # Errors
    /// As [`Host::who`].
    pub fn who_has(&self, set: &str, key: &[u8]) -> Result<Vec<String>, HostError> {
        let mut hosts = Vec::new();
        self.who(set, &[key], &mut |named| {
            hosts.extend(named.iter().map(|host| (*host).to_owned()));
        })?;
        Ok(hosts)
    }
}
