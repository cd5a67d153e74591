//! Lookups that are confirmed: the hosts that memory names are asked whether they hold the key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
#[cfg(feature = "otel")]
use tracing::Instrument as _;
use umbel::replica::Name;

use super::sets::Known;
use super::{HELD, Host, Missing, UNKNOWN};
use crate::error::HostError;
use crate::peer_request::PeerRequest;

/// Default time that candidates have to reply.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of keys in one request, and of their bytes.
const KEYS: usize = 10_000;
const BYTES: usize = 192 << 10;
/// Maximum number of requests to one host that are under way at once: the network drops what does
/// not fit into its queues.
const AT_ONCE: usize = 2;

/// The replies of all candidates about one key.
#[derive(Debug, Clone, Default)]
pub(super) struct Verdict {
    /// Hosts that hold it.
    pub(super) holders: Vec<Name>,
    /// Whether a host that was named does not.
    named_wrong_host: bool,
    /// Whether a host that was named did not answer.
    unanswered: bool,
}

impl Host {
    /// The hosts that confirm that they hold a key, in a mesh; and whether every host that was
    /// asked has replied.
    ///
    /// # Errors
    /// If the set's name is invalid.
    pub(super) async fn confirmed(
        &self,
        set: &str,
        key: &[u8],
        timeout: Option<Duration>,
    ) -> Result<(Vec<String>, bool), HostError> {
        let Some(known) = self.inner.sets.look_up(set)? else { return Ok((Vec::new(), true)) };
        let keys = [key];
        let others = self.confirm(&known, &keys, timeout.unwrap_or(PATIENCE));
        let (own, verdicts) = tokio::join!(self.holds(set, &keys), others);
        let mut hosts: Vec<String> = Vec::new();
        if own == [HELD] {
            hosts.push(self.name().as_str().to_owned());
        }
        let answered = own != [UNKNOWN] && verdicts.iter().all(|verdict| !verdict.unanswered);
        let holders = verdicts.into_iter().flat_map(|verdict| verdict.holders);
        hosts.extend(holders.map(|host| host.as_str().to_owned()));
        Ok((hosts, answered))
    }

    /// Which keys no host holds, in a mesh.
    pub(super) async fn missing_confirmed(&self, known: &Arc<Known>, keys: &[Vec<u8>]) -> Missing {
        let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let own = self.holds(known.name.as_str(), &borrowed).await;
        let absent = borrowed.iter().zip(own).filter(|(_, own)| *own != HELD);
        let (absent, own): (Vec<&[u8]>, Vec<u8>) = absent.map(|(key, own)| (*key, own)).unzip();
        let verdicts = self.confirm(known, &absent, patience(&absent)).await;
        let mut answer = Missing::default();
        for ((key, own), verdict) in absent.iter().zip(own).zip(verdicts) {
            match verdict.holders.is_empty() {
                true if own == UNKNOWN || verdict.unanswered => {
                    answer.unconfirmed.push(key.to_vec());
                }
                true => answer.missing.push(key.to_vec()),
                false => {}
            }
        }
        answer
    }

    /// Asks every candidate about its keys: one request per candidate, or several if the keys do
    /// not fit into one.
    pub(super) async fn confirm(
        &self,
        known: &Arc<Known>,
        keys: &[&[u8]],
        timeout: Duration,
    ) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::default(); keys.len()];
        let mut asked = Vec::new();
        let until = Instant::now() + timeout;
        for (host, places) in self.candidates(known, keys) {
            let turns = Arc::new(Semaphore::new(AT_ONCE));
            for part in parts(&places, keys) {
                let set = known.name.as_str();
                let named = part.iter().map(|place| keys[*place]).collect();
                let bytes = PeerRequest::Holds { set, keys: named }.encode();
                let network = Arc::clone(&self.inner.cluster.network);
                let (to, turns) = (host.clone(), Arc::clone(&turns));
                let answer = async move {
                    let _turn = timeout_at(until, turns.acquire()).await.ok()?.ok()?;
                    let left = until.saturating_duration_since(Instant::now());
                    network.ask(&to, bytes, left).await
                };
                #[cfg(feature = "otel")]
                let answer = answer.instrument(crate::traces::peer_request(&host, set, part.len()));
                let answer = tokio::spawn(answer);
                asked.push((host.clone(), part, answer));
            }
        }
        for (host, places, answer) in asked {
            let answer = answer.await.ok().flatten().filter(|answer| answer.len() == places.len());
            // Another host of this name may have replied.
            let is_contested = self.inner.cluster.is_contested(&host);
            for (index, place) in places.into_iter().enumerate() {
                let verdict = &mut verdicts[place];
                match answer.as_ref().map(|answer| answer[index]) {
                    Some(HELD) => verdict.holders.push(host.clone()),
                    Some(UNKNOWN) | None => verdict.unanswered = true,
                    Some(_) if is_contested => verdict.unanswered = true,
                    Some(_) => verdict.named_wrong_host = true,
                }
            }
        }
        for verdict in verdicts.iter().filter(|verdict| !verdict.unanswered) {
            known.confirmed.count(verdict.named_wrong_host);
        }
        verdicts
    }

    /// For each host, the indexes of the keys that it may hold according to memory.
    pub(super) fn candidates(&self, known: &Known, keys: &[&[u8]]) -> BTreeMap<Name, Vec<usize>> {
        let set = known.name.as_str();
        self.inner.sets.with_keys(set, keys, |keys| self.candidates_of(known, keys))
    }

    fn candidates_of(&self, known: &Known, keys: &[&[u8]]) -> BTreeMap<Name, Vec<usize>> {
        let hashes: Vec<_> = keys.iter().map(|key| self.inner.sets.hasher.hash(key)).collect();
        let mut candidates: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
        let (mut places, mut denied, held) = (0.., Vec::new(), known.held());
        let Some(replicas) = &known.replicas else { return candidates };
        replicas.who(&hashes, &mut umbel::bank::BatchCandidates::new(), |hosts| {
            let place = places.next().unwrap_or_default();
            if hosts.is_empty() && !held.is_some_and(|own| own.contains(keys[place])) {
                denied.push(hashes[place]);
            }
            for host in hosts {
                match candidates.get_mut(*host) {
                    Some(places) => places.push(place),
                    None => drop(candidates.insert((*host).clone(), vec![place])),
                }
            }
        });
        let found = (keys.len() - denied.len()) as u64;
        known.lookups.note(found, &denied, || self.inner.now());
        candidates
    }
}

/// How long candidates may take to reply about these keys: more bytes take longer.
fn patience(keys: &[&[u8]]) -> Duration {
    let bytes: usize = keys.iter().map(|key| key.len()).sum();
    PATIENCE + Duration::from_millis((bytes >> 12) as u64)
}

/// Splits a list of indexes into requests of limited length.
fn parts(places: &[usize], keys: &[&[u8]]) -> Vec<Vec<usize>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for place in places {
        bytes += keys[*place].len() + 4;
        let full = |part: &Vec<usize>| !part.is_empty() && (part.len() == KEYS || bytes > BYTES);
        if parts.last().is_some_and(full) {
            parts.push(Vec::new());
            bytes = keys[*place].len() + 4;
        }
        parts.last_mut().expect("there is always a part").push(*place);
    }
    parts
}
