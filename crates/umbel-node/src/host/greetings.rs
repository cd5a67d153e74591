//! The greetings of this host and of the others, and whether other hosts know hosts that this one
//! has not heard of.
//!
//! Every greeting carries a digest of the hosts that its sender knows: their number, and the sum of
//! their hashes. If the sum is that of all or some of the hosts known here, the sender knows nobody
//! new. Any other sum may include new hosts: the sender counts as knowing others until its digest
//! changes, or until its list has arrived and every host in it is expected by name.
//!
//! Always true: the digest in this host's greeting covers exactly the hosts that are known here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

use umbel::KeyHasher;
use umbel::coverage::Gap;
use umbel::replica::{Incarnation, Name};

use crate::hello::{Difference, Hello};

/// Up to this number of hosts the sums of all subsets are kept; beyond it, only those that lack at
/// most one host. Hosts that start together learn of each other in any order.
const ALL_SUBSETS: usize = 10;
/// Maximum number of past digests that are kept.
const MAX_DIGESTS: usize = 256;

/// The greetings of this host and of the others.
#[derive(Debug)]
pub(crate) struct Greetings {
    own: Hello,
    others: HashMap<Name, Hello>,
    /// Incompatible hosts of the cluster, and why.
    refused: HashMap<Name, String>,
    /// Sums over subsets of the hosts that are known here.
    sums: HashSet<u64>,
    /// Digests of the hosts that were known here before, at most [`MAX_DIGESTS`].
    past: HashSet<String>,
    /// The hosts that others listed, by the digest of the list.
    listed: HashMap<String, BTreeSet<Name>>,
}

impl Greetings {
    pub(super) fn new(own: Hello) -> Self {
        let mut greetings = Self {
            own,
            others: HashMap::new(),
            refused: HashMap::new(),
            sums: HashSet::new(),
            past: HashSet::new(),
            listed: HashMap::new(),
        };
        greetings.refresh();
        greetings
    }

    /// This host's greeting.
    pub(crate) const fn own(&self) -> &Hello {
        &self.own
    }

    /// Changes this host's greeting.
    pub(crate) fn change_own(&mut self, change: impl FnOnce(&mut Hello)) {
        change(&mut self.own);
        self.refresh();
    }

    /// Another host's greeting.
    pub(crate) fn of(&self, host: &Name) -> Option<&Hello> {
        self.others.get(host)
    }

    /// Whether a host's greeting may be stored: the host is known already, or there are fewer than
    /// `max`.
    pub(crate) fn has_room_for(&self, host: &Name, max: usize) -> bool {
        self.others.len() < max || self.others.contains_key(host)
    }

    pub(crate) fn insert(&mut self, host: Name, hello: Hello) {
        let listen = hello.listen.clone();
        self.refused.remove(&host);
        let last = self.others.insert(host, hello);
        if last.is_none_or(|last| last.listen != listen) {
            self.refresh();
        }
    }

    /// Records that a host of the cluster is incompatible. At most `max` are kept.
    pub(crate) fn refuse(&mut self, host: Name, why: &Difference, max: usize) {
        self.remove(&host);
        if self.refused.len() < max {
            self.refused.insert(host, why.kind().to_owned());
        }
    }

    /// A host is gone.
    pub(crate) fn remove(&mut self, host: &Name) {
        self.refused.remove(host);
        if self.others.remove(host).is_some() {
            self.refresh();
        }
    }

    /// The hosts that are known and where they listen, this one included.
    pub(crate) fn hosts(&self) -> Vec<(&str, SocketAddr)> {
        let all = self.others.values().chain([&self.own]);
        all.filter_map(|hello| Some((hello.name.as_str(), hello.listens()?))).collect()
    }

    /// Hosts whose digest differs from this host's.
    pub(crate) fn knowing_others(&self) -> Vec<Name> {
        let others = self.others.iter().filter(|(_, hello)| {
            hello.listen.is_some() && hello.hosts.is_some() && hello.hosts != self.own.hosts
        });
        others.map(|(host, _)| host.clone()).collect()
    }

    /// Stores the list of hosts that a host knows.
    pub(crate) fn list(&mut self, from: &Name, hosts: &[(Name, SocketAddr)], max: usize) {
        if !self.others.contains_key(from) {
            return;
        }
        let shares = hosts.iter().map(|(host, address)| share(host.as_str(), *address));
        let digest = digest(hosts.len(), sum(shares));
        let names = hosts.iter().map(|(host, _)| host.clone()).take(max).collect();
        self.listed.insert(digest, names);
        let published: HashSet<&String> =
            self.others.values().filter_map(|hello| hello.hosts.as_ref()).collect();
        self.listed.retain(|digest, _| published.contains(digest));
    }

    /// Hosts that are in the latest lists of others but have not greeted this one.
    pub(super) fn hearsay(&self) -> BTreeSet<Name> {
        let published = |digest: &String| {
            self.others.values().any(|hello| hello.hosts.as_ref() == Some(digest))
        };
        let latest = self.listed.iter().filter(|(digest, _)| published(digest));
        let names = latest.flat_map(|(_, names)| names);
        let is_new = |name: &&Name| !self.others.contains_key(*name);
        names.filter(is_new).filter(|name| name.as_str() != self.own.name).cloned().collect()
    }

    /// Why a host is incompatible, if it is.
    pub(super) fn why_refused(&self, host: &Name) -> Option<&str> {
        self.refused.get(host).map(String::as_str)
    }

    /// What is missing of a host's greeting and of its list, for this incarnation of it.
    pub(super) fn gap_of(&self, host: &Name, life: Option<Incarnation>) -> Option<Gap> {
        let hello =
            self.others.get(host).filter(|hello| Some(Incarnation(hello.incarnation)) == life);
        let Some(hello) = hello else { return Some(Gap::NotGreeted) };
        self.knows_others(hello).then_some(Gap::KnowsOthers)
    }

    /// Whether a host may know others that this one has not heard of.
    fn knows_others(&self, hello: &Hello) -> bool {
        let (Some(theirs), Some(own)) = (&hello.hosts, &self.own.hosts) else { return false };
        let sum = theirs.split('-').nth(1).and_then(|sum| u64::from_str_radix(sum, 16).ok());
        let is_subset = theirs == own || sum.is_some_and(|sum| self.sums.contains(&sum));
        !is_subset && !self.past.contains(theirs) && !self.listed.contains_key(theirs)
    }

    fn refresh(&mut self) {
        if self.own.listen.is_none() || self.own.overlay.is_some() {
            return;
        }
        // A host that knows only what this host knew before knows nobody new.
        if self.past.len() >= MAX_DIGESTS {
            self.past.clear();
        }
        self.past.extend(self.own.hosts.take());
        let shares: Vec<u64> =
            self.hosts().iter().map(|(name, address)| share(name, *address)).collect();
        let all = sum(shares.iter().copied());
        self.sums = sums(&shares, all);
        self.own.hosts = Some(digest(shares.len(), all));
    }
}

fn share(name: &str, address: SocketAddr) -> u64 {
    KeyHasher::default().hash(format!("{name} {address}").as_bytes()).get()
}

/// Does not depend on the order.
fn sum(shares: impl Iterator<Item = u64>) -> u64 {
    shares.fold(0, u64::wrapping_add)
}

fn digest(hosts: usize, sum: u64) -> String {
    format!("{hosts}-{sum:016x}")
}

/// The sums of subsets of the known hosts.
fn sums(shares: &[u64], all: u64) -> HashSet<u64> {
    if shares.len() > ALL_SUBSETS {
        return shares.iter().map(|share| all.wrapping_sub(*share)).chain([all]).collect();
    }
    let mut sums = vec![0_u64];
    for share in shares {
        let with: Vec<u64> = sums.iter().map(|sum| sum.wrapping_add(*share)).collect();
        sums.extend(with);
    }
    sums.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn hello(host: &str, life: u64) -> Hello {
        let (name, cluster) = (name(host), name("local"));
        let mut hello = Hello::new(&name, &cluster, Incarnation(life), &KeyHasher::default());
        hello.listen = Some(address(host).to_string());
        hello
    }

    fn address(host: &str) -> SocketAddr {
        format!("127.0.0.1:{}", host.as_bytes()[0]).parse().unwrap()
    }

    /// The greetings of a host that has heard of these hosts.
    fn greetings(me: &str, others: &[&str]) -> Greetings {
        let mut greetings = Greetings::new(hello(me, 1));
        others.iter().for_each(|host| greetings.insert(name(host), hello(host, 1)));
        greetings
    }

    fn gap(greetings: &Greetings, host: &str) -> Option<Gap> {
        greetings.gap_of(&name(host), Some(Incarnation(1)))
    }

    #[test]
    fn a_host_has_greeted_in_this_life_of_it() {
        let mut a = greetings("a", &[]);
        assert_eq!(gap(&a, "b"), Some(Gap::NotGreeted));
        a.insert(name("b"), greetings("b", &[]).own().clone());
        assert_eq!(gap(&a, "b"), None);
        assert_eq!(a.gap_of(&name("b"), Some(Incarnation(2))), Some(Gap::NotGreeted));
    }

    #[test]
    fn whoever_knows_a_host_that_is_not_known_here_is_asked_for_its_list() {
        let mut a = greetings("a", &[]);
        let b = greetings("b", &["a", "c"]);
        a.insert(name("b"), b.own().clone());
        assert_eq!(gap(&a, "b"), Some(Gap::KnowsOthers));
        assert_eq!(a.hearsay(), BTreeSet::new());
        let list = ["a", "b", "c"].map(|host| (name(host), address(host)));
        a.list(&name("b"), &list, 100);
        assert_eq!(gap(&a, "b"), None, "its hosts are looked for by name");
        assert_eq!(a.hearsay(), BTreeSet::from([name("c")]));
        a.insert(name("c"), greetings("c", &[]).own().clone());
        assert_eq!(a.hearsay(), BTreeSet::new());
        // `b` learns of another host: its list is outdated.
        a.insert(name("b"), greetings("b", &["a", "c", "d"]).own().clone());
        assert_eq!(gap(&a, "b"), Some(Gap::KnowsOthers));
    }

    #[test]
    fn hearsay_ends_when_its_source_knows_better() {
        let mut a = greetings("a", &[]);
        a.insert(name("b"), greetings("b", &["a", "c"]).own().clone());
        let list = ["a", "b", "c"].map(|host| (name(host), address(host)));
        a.list(&name("b"), &list, 100);
        assert_eq!(a.hearsay().len(), 1);
        a.insert(name("b"), greetings("b", &["a"]).own().clone());
        assert_eq!((a.hearsay().len(), gap(&a, "b")), (0, None));
    }

    #[test]
    fn whoever_knows_fewer_hosts_names_nobody_new() {
        let mut a = greetings("a", &["c", "d"]);
        for known in [&[][..], &["a"], &["c"], &["a", "d"], &["a", "c", "d"]] {
            a.insert(name("b"), greetings("b", known).own().clone());
            assert_eq!(gap(&a, "b"), None, "{known:?}");
        }
        let many: Vec<String> = ('c'..'q').map(String::from).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let mut a = greetings("a", &many);
        let but_one: Vec<&str> = ["a"].into_iter().chain(many[1..].iter().copied()).collect();
        a.insert(name("b"), greetings("b", &but_one).own().clone());
        assert_eq!(gap(&a, "b"), None);
    }

    #[test]
    fn a_host_that_left_is_not_new_to_whoever_knew_it() {
        let mut a = greetings("a", &["c"]);
        a.insert(name("b"), greetings("b", &["a", "c"]).own().clone());
        assert_eq!(a.others[&name("b")].hosts, a.own.hosts);
        a.remove(&name("c"));
        assert_eq!(gap(&a, "b"), None, "its next greeting says so too");
    }

    #[test]
    fn a_host_that_does_not_match_is_refused_until_it_does() {
        let mut a = greetings("a", &["b"]);
        let difference = Difference::Hash(String::new(), String::new());
        a.refuse(name("b"), &difference, 1);
        a.refuse(name("c"), &difference, 1);
        assert_eq!(a.why_refused(&name("b")), Some("other hash key"));
        assert_eq!(a.why_refused(&name("c")), None, "one too many");
        a.insert(name("b"), hello("b", 2));
        assert_eq!(a.why_refused(&name("b")), None);
    }
}
