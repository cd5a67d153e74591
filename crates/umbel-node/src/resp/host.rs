//! Stand-in for the host until it lands.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::missing_errors_doc,
    clippy::must_use_candidate
)]

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use umbel::replica::{Name, Policy};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);
impl Ticket {
    pub const NONE: Self = Self(0);
}
#[derive(Debug, Clone, Copy)]
pub enum Lifetime {
    Default,
    For(Duration),
}
#[derive(Debug, Clone)]
pub enum Value {
    Text(String),
    Whole(u64),
    Real(f64),
    Flag(bool),
    List(Vec<Value>),
}
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("no such set '{0}'")]
    NoSuchSet(String),
    #[error("{0}")]
    Other(String),
}
#[derive(Debug, Clone)]
pub struct Reserve {
    pub false_positive: f64,
    pub capacity: u64,
    pub expected_hosts: Option<u32>,
    pub policy: Option<Policy>,
    pub lifetime: Option<Duration>,
}
#[derive(Debug, Clone)]
pub struct SetInfo {
    pub name: String,
    pub items: u64,
    pub policy: String,
}
impl SetInfo {
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("name", Value::Text(self.name.clone())),
            ("items", Value::Whole(self.items)),
            ("policy", Value::Text(self.policy.clone())),
        ]
    }
}
#[derive(Debug, Clone)]
pub struct HostInfo {
    pub name: String,
}
impl HostInfo {
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("name", Value::Text(self.name.clone())),
            ("state", Value::Text("here".into())),
            ("sets", Value::List(vec![])),
        ]
    }
}
#[derive(Debug, Clone)]
pub struct Status {
    pub name: String,
}
impl Status {
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("name", Value::Text(self.name.clone())), ("ready", Value::Flag(true))]
    }
}

type Sets = BTreeMap<String, (HashSet<Vec<u8>>, Policy)>;
#[derive(Debug, Clone)]
pub struct Host {
    name: Name,
    sets: Arc<RwLock<Sets>>,
    pub fails: Arc<std::sync::atomic::AtomicBool>,
}

impl Host {
    pub const MAX_KEY: usize = 32 << 10;
    pub fn stand_in(name: &str) -> Self {
        Self { name: Name::new(name).unwrap(), sets: Arc::default(), fails: Arc::default() }
    }
    pub fn name(&self) -> &Name {
        &self.name
    }
    fn check(keys: &[&[u8]]) -> Result<(), HostError> {
        match keys.iter().any(|key| key.len() > Self::MAX_KEY) {
            true => Err(HostError::Other("key too long".into())),
            false => Ok(()),
        }
    }
    pub fn add(
        &self,
        set: &str,
        keys: &[&[u8]],
        _: Lifetime,
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        Self::check(keys)?;
        Name::new(set).ok_or_else(|| HostError::Other("a set's name is bad".into()))?;
        let mut sets = self.sets.write();
        if !sets.contains_key(set) {
            sets.insert(set.to_owned(), Default::default());
        }
        let known = &mut sets.get_mut(set).unwrap().0;
        answers.extend(keys.iter().map(|key| !known.contains(*key) && known.insert(key.to_vec())));
        Ok(Ticket(1))
    }
    pub fn remove(
        &self,
        set: &str,
        keys: &[&[u8]],
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, HostError> {
        Self::check(keys)?;
        let mut sets = self.sets.write();
        let known = &mut sets.get_mut(set).ok_or_else(|| HostError::NoSuchSet(set.into()))?.0;
        answers.extend(keys.iter().map(|key| known.remove(*key)));
        Ok(Ticket(1))
    }
    pub fn has(&self, set: &str, keys: &[&[u8]], answers: &mut Vec<bool>) -> Result<(), HostError> {
        Self::check(keys)?;
        let sets = self.sets.read();
        let known = &sets.get(set).ok_or_else(|| HostError::NoSuchSet(set.into()))?.0;
        answers.extend(keys.iter().map(|key| known.contains(*key)));
        Ok(())
    }
    pub async fn settled(&self, _: Ticket) -> Result<(), HostError> {
        match self.fails.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(HostError::Other("disk full".into())),
            false => Ok(()),
        }
    }
    pub fn who(
        &self,
        set: &str,
        keys: &[&[u8]],
        each: &mut dyn FnMut(&[&str]),
    ) -> Result<(), HostError> {
        Self::check(keys)?;
        let sets = self.sets.read();
        let known = &sets.get(set).ok_or_else(|| HostError::NoSuchSet(set.into()))?.0;
        for key in keys {
            if known.contains(*key) { each(&[self.name.as_str()]) } else { each(&[]) }
        }
        Ok(())
    }
    pub async fn missing(&self, set: &str, keys: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, HostError> {
        let sets = self.sets.read();
        let known = &sets.get(set).ok_or_else(|| HostError::NoSuchSet(set.into()))?.0;
        Ok(keys.into_iter().filter(|key| !known.contains(key)).collect())
    }
    pub async fn locate(
        &self,
        set: &str,
        key: &[u8],
        _: Option<Duration>,
    ) -> Result<Vec<String>, HostError> {
        tokio::time::sleep(Duration::from_millis(if key == b"slow" { 50 } else { 0 })).await;
        let sets = self.sets.read();
        let known = &sets.get(set).ok_or_else(|| HostError::NoSuchSet(set.into()))?.0;
        Ok(known.contains(key).then(|| self.name.to_string()).into_iter().collect())
    }
    pub fn reserve(&self, set: &str, plan: Reserve) -> Result<Ticket, HostError> {
        self.sets.write().entry(set.into()).or_default().1 = plan.policy.unwrap_or_default();
        Ok(Ticket(1))
    }
    pub fn publish(&self, set: &str) -> Result<(), HostError> {
        self.set_info(set).map(drop)
    }
    pub fn set_policy(&self, set: &str, policy: Policy) -> Result<Ticket, HostError> {
        self.sets.write().get_mut(set).ok_or_else(|| HostError::NoSuchSet(set.into()))?.1 = policy;
        Ok(Ticket(1))
    }
    pub fn delete(&self, set: &str) -> Result<(bool, Ticket), HostError> {
        Ok((self.sets.write().remove(set).is_some(), Ticket(1)))
    }
    pub fn sets(&self) -> Vec<SetInfo> {
        self.sets
            .read()
            .iter()
            .map(|(name, (keys, policy))| SetInfo {
                name: name.clone(),
                items: keys.len() as u64,
                policy: policy.to_string(),
            })
            .collect()
    }
    pub fn set_info(&self, set: &str) -> Result<SetInfo, HostError> {
        self.sets()
            .into_iter()
            .find(|info| info.name == set)
            .ok_or_else(|| HostError::NoSuchSet(set.into()))
    }
    pub fn hosts(&self) -> Vec<HostInfo> {
        vec![HostInfo { name: self.name.to_string() }]
    }
    pub fn status(&self) -> Status {
        Status { name: self.name.to_string() }
    }
}
