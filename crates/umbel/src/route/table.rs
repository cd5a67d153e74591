//! A host's routing table: for each link, the filters that arrived over it. Finds the links that
//! claim a key.
//!
//! Filters that are stored separately (CUBF) are columns of one bank, one column per component,
//! however many links it arrived over. So a single sliced lookup asks all links. ORs (ABF,
//! attenuated) are kept per link. To withdraw a filter from an OR, the caller must be able to
//! [load](Stored) the others.
//!
//! Always true: a link claims every key of every home that was admitted from it. The probability
//! that a link claims an absent key, computed from the present fills, stays within the plan's rate:
//! filters that would exceed it are refused. A CUBF also refuses filters beyond the first `s`, and
//! an OR refuses all filters once its fill reaches 1/2 (paper 5, section 4.3).
//!
//! Not here: who the homes are, how filters arrive (`router`); where a query goes (`visit`).

use std::collections::BTreeMap;

use super::entry::Entry;
use super::plan::{EntryKind, Plan};
use crate::bank::{Bank, Candidates, ColumnId};
use crate::bits::BitVector;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::model::standard::false_positive_of_fill;
use crate::scheme::Scheme;

/// Identifies a link of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Identifies a home in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeId(pub u32);

/// A home's filter: components of one scheme.
#[derive(Debug, Clone)]
pub struct Filters<'a> {
    /// What the bits mean.
    pub scheme: &'a Scheme,
    /// The bits, component by component.
    pub components: Vec<&'a BitVector>,
}

/// Loads the filters of homes, to rebuild an OR after one was withdrawn from it.
pub trait Stored {
    /// The filter of a home as it was last offered.
    fn load(&self, home: HomeId) -> Option<(Scheme, Vec<BitVector>)>;
}

/// A link that claims a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteMatch {
    /// The link.
    pub link: LinkId,
    /// Distance of the nearest claim; `None` for an ABF, which does not know it.
    pub hops: Option<u8>,
}

/// Why a filter was refused. The table is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A CUBF already has its `s` filters.
    #[error("the entry has as many filters as it is planned for")]
    Filters,
    /// An OR has reached its highest fill.
    #[error("the entry is half full")]
    Fill,
    /// Absent keys would be claimed more often than planned.
    #[error("the entry would claim strangers more often than planned")]
    Rate,
    /// The filter hashes keys differently, its length differs from that of its shape, or there is
    /// no memory for it.
    #[error("the filter does not fit this table")]
    Unfit,
}

/// What entries may hold.
#[derive(Debug, Clone, Copy)]
struct Limits {
    filters: u64,
    false_positive: f64,
}

/// A home that was admitted from some link.
#[derive(Debug, Clone)]
struct HomeEntry {
    /// The columns in the bank; only for a CUBF.
    columns: Vec<ColumnId>,
    components: u64,
    /// Probability that its filter denies an absent key.
    denies: f64,
    /// Links and distances.
    via: Vec<(LinkId, u8)>,
}

/// Which links claim a key.
///
/// ```
/// use umbel::route::{EntryKind, Filters, HomeId, LinkId, Plan, RouteTable};
/// use umbel::{KeyHasher, Scheme, StandardFilter};
///
/// let plan = Plan { kind: EntryKind::Cubf, depth: 3, items: 30, filters: 7, false_positive: 0.001 };
/// let scheme = Scheme::new(plan.shape()?, KeyHasher::default());
/// let mut filter = StandardFilter::new(scheme)?;
/// filter.insert("apple");
///
/// let mut table = RouteTable::new(&plan, KeyHasher::default());
/// let filters = Filters { scheme: &scheme, components: vec![filter.bits()] };
/// table.offer(LinkId(1), HomeId(9), 2, &filters)?;
/// let found = table.matches(KeyHasher::default().hash(b"apple"));
/// assert_eq!((found[0].link, found[0].hops), (LinkId(1), Some(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RouteTable {
    kind: EntryKind,
    levels: usize,
    limits: Option<Limits>,
    bank: Bank,
    owners: BTreeMap<ColumnId, HomeId>,
    homes: BTreeMap<HomeId, HomeEntry>,
    links: BTreeMap<LinkId, Entry>,
}

impl RouteTable {
    /// An empty table for this plan.
    #[must_use]
    pub fn new(plan: &Plan, hasher: KeyHasher) -> Self {
        let mut table = Self::unlimited(plan, hasher);
        let Plan { filters, false_positive, .. } = *plan;
        table.limits = Some(Limits { filters, false_positive });
        table
    }

    /// A table that refuses nothing, like designs before the receiver-oriented one.
    #[must_use]
    pub fn unlimited(plan: &Plan, hasher: KeyHasher) -> Self {
        Self {
            kind: plan.kind,
            levels: plan.levels(),
            limits: None,
            bank: Bank::new(hasher),
            owners: BTreeMap::new(),
            homes: BTreeMap::new(),
            links: BTreeMap::new(),
        }
    }

    /// Adds a home's filter that arrived over a link, from `hops` away, unless the entry has no
    /// room. If the home was admitted from the link already, only its distance changes. In an
    /// attenuated entry not even that changes: withdraw the home first to move it.
    ///
    /// # Errors
    /// If it is refused; the table is unchanged.
    ///
    /// # Panics
    /// Never: the home is there once it has been found or added.
    pub fn offer(
        &mut self,
        link: LinkId,
        home: HomeId,
        hops: u8,
        filters: &Filters<'_>,
    ) -> Result<(), Refusal> {
        let hops = hops.max(1);
        if self.distance(link, home).is_some() {
            if self.kind != EntryKind::Attenuated {
                self.set_distance(link, home, hops);
            }
            return Ok(());
        }
        let admitted = self.admits(link, hops, filters)?;
        if !self.homes.contains_key(&home) {
            let columns = self.add_columns(home, filters)?;
            let components = filters.components.len() as u64;
            let denies = denies(filters);
            self.homes.insert(home, HomeEntry { columns, components, denies, via: Vec::new() });
        }
        let levels = self.levels;
        let entry = self.links.entry(link).or_insert_with(|| Entry::new(levels));
        if let Some(level) = entry.level(hops)
            && !level.add(filters)
        {
            return Err(Refusal::Unfit);
        }
        entry.denies *= admitted;
        entry.filters += filters.components.len() as u64;
        entry.members.push((home, hops));
        let held = self.homes.get_mut(&home).expect("the home was just found or added");
        held.via.push((link, hops));
        Ok(())
    }

    /// Replaces a home's filter by a newer one in all entries that admitted it. `grown` says that
    /// the newer one has all bits of the older one. Returns the links that now refuse it.
    pub fn update(
        &mut self,
        home: HomeId,
        filters: &Filters<'_>,
        grown: bool,
        stored: &impl Stored,
    ) -> Vec<LinkId> {
        let via = self.homes.get(&home).map_or(Vec::new(), |held| held.via.clone());
        if grown && self.kind != EntryKind::Cubf && self.grow(home, &via, filters) {
            return Vec::new();
        }
        for (link, _) in &via {
            self.withdraw(*link, home, stored);
        }
        let refused =
            via.into_iter().filter(|(link, hops)| self.offer(*link, home, *hops, filters).is_err());
        refused.map(|(link, _)| link).collect()
    }

    /// A home is no longer reached over a link.
    pub fn withdraw(&mut self, link: LinkId, home: HomeId, stored: &impl Stored) {
        let Some(hops) = self.distance(link, home) else { return };
        self.forget(link, home);
        let Some(entry) = self.links.get_mut(&link) else { return };
        entry.members.retain(|(other, _)| *other != home);
        if self.kind == EntryKind::Cubf {
            let members = entry.members.iter().filter_map(|(home, _)| self.homes.get(home));
            let (filters, denies) =
                members.fold((0, 1.0), |(n, d), held| (n + held.components, d * held.denies));
            (entry.filters, entry.denies) = (filters, denies);
        } else {
            entry.rebuild_level(hops, stored);
        }
        if entry.members.is_empty() {
            self.links.remove(&link);
        }
    }

    /// Removes a link, with everything that arrived over it.
    pub fn remove_link(&mut self, link: LinkId) {
        let Some(entry) = self.links.remove(&link) else { return };
        entry.members.iter().for_each(|(home, _)| self.forget(link, *home));
    }

    /// The links that claim a key, nearest first.
    #[must_use]
    pub fn matches(&self, hash: KeyHash) -> Vec<RouteMatch> {
        let mut found: Vec<RouteMatch> = match self.kind {
            EntryKind::Cubf => self.columns_claiming(hash),
            EntryKind::Abf => self.levels_claiming(hash).map(|(link, _)| (link, None)).collect(),
            EntryKind::Attenuated => self
                .levels_claiming(hash)
                .map(|(link, level)| (link, Some(level as u8 + 1)))
                .collect(),
        }
        .into_iter()
        .map(|(link, hops)| RouteMatch { link, hops })
        .collect();
        found.sort_unstable_by_key(|found| (found.hops, found.link));
        found
    }

    /// The homes whose filters claim a key, each once; `None` if entries do not store homes
    /// separately.
    #[must_use]
    pub fn homes_claiming(&self, hash: KeyHash) -> Option<Vec<HomeId>> {
        if self.kind != EntryKind::Cubf {
            return None;
        }
        let mut homes = self.owners_claiming(hash);
        homes.sort_unstable();
        homes.dedup();
        Some(homes)
    }

    /// The distance of a home over a link, if it was admitted.
    #[must_use]
    pub fn distance(&self, link: LinkId, home: HomeId) -> Option<u8> {
        let via = &self.homes.get(&home)?.via;
        via.iter().find(|(other, _)| *other == link).map(|(_, hops)| *hops)
    }

    /// The links that a home was admitted from, with distances.
    #[must_use]
    pub fn via(&self, home: HomeId) -> &[(LinkId, u8)] {
        self.homes.get(&home).map_or(&[], |held| &held.via)
    }

    /// The homes that were admitted from a link, in the order of admission.
    pub fn homes(&self, link: LinkId) -> impl Iterator<Item = HomeId> {
        self.links
            .get(&link)
            .into_iter()
            .flat_map(|entry| entry.members.iter().map(|(home, _)| *home))
    }

    /// Number of filters that a link's entry holds.
    #[must_use]
    pub fn filters(&self, link: LinkId) -> u64 {
        self.links.get(&link).map_or(0, |entry| entry.filters)
    }

    /// Probability that a link claims an absent key, computed from the present fills of its
    /// filters.
    #[must_use]
    pub fn false_positive(&self, link: LinkId) -> f64 {
        self.links.get(&link).map_or(0.0, |entry| 1.0 - entry.denies())
    }

    /// Bytes that filters and lists take, without what is kept to rebuild ORs.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let entries = self.links.values().map(Entry::memory_bytes).sum::<u64>();
        let owned = size_of::<ColumnId>() + size_of::<(ColumnId, HomeId)>();
        let homes = self.homes.values().map(|held| {
            let lists = held.columns.len() * owned + size_of_val(&*held.via);
            (size_of::<(HomeId, HomeEntry)>() + lists) as u64
        });
        self.bank.memory_bytes() + entries + homes.sum::<u64>()
    }

    /// Checks all counts and lists against a full recount. Slow.
    ///
    /// # Panics
    /// If a promise of this type is broken: a bug in this crate.
    pub fn validate(&self) {
        let mut columns = 0;
        for (home, held) in &self.homes {
            assert!(!held.via.is_empty(), "a home was admitted from some link");
            for (link, hops) in &held.via {
                assert!(self.links[link].members.contains(&(*home, *hops)), "links know it");
            }
            assert!(held.columns.iter().all(|column| self.owners.get(column) == Some(home)));
            columns += held.columns.len();
        }
        assert_eq!((self.bank.columns(), self.owners.len()), (columns, columns), "no column more");
        for (link, entry) in &self.links {
            assert!(!entry.members.is_empty(), "an entry has members");
            let held = |home: &HomeId| &self.homes[home];
            let filters = entry.members.iter().map(|(home, _)| held(home).components).sum::<u64>();
            assert_eq!(filters, entry.filters, "filters are counted");
            for (home, _) in &entry.members {
                assert!(held(home).via.iter().any(|(other, _)| other == link), "homes know it");
            }
            if let Some(limits) = self.limits {
                let rate = 1.0 - entry.denies();
                assert!(rate <= limits.false_positive * (1.0 + 1e-6), "an entry keeps its rate");
                assert!(self.kind != EntryKind::Cubf || entry.filters <= limits.filters);
            }
        }
    }

    /// Whether a link's entry has room. If so, returns the factor by which a CUBF's probability to
    /// deny an absent key falls.
    fn admits(&self, link: LinkId, hops: u8, filters: &Filters<'_>) -> Result<f64, Refusal> {
        let length = filters.scheme.shape().bits();
        if filters.components.iter().any(|bits| bits.len() != length) {
            return Err(Refusal::Unfit);
        }
        let denies = if self.kind == EntryKind::Cubf { denies(filters) } else { 1.0 };
        let Some(limits) = self.limits else { return Ok(denies) };
        let empty = Entry::new(self.levels);
        let entry = self.links.get(&link).unwrap_or(&empty);
        let more = filters.components.len() as u64;
        let would_deny = match self.kind {
            EntryKind::Cubf if entry.filters + more > limits.filters => {
                return Err(Refusal::Filters);
            }
            EntryKind::Cubf => entry.denies * denies,
            _ => {
                let level = &entry.levels[entry.place(hops)];
                if level.is_full(filters.scheme) {
                    return Err(Refusal::Fill);
                }
                let (now, then) = (level.denies(), level.denies_with(filters));
                if now > 0.0 { entry.denies() / now * then } else { 0.0 }
            }
        };
        // Tolerance of one part in 10^9: products computed in another order may differ by that
        // much.
        if 1.0 - would_deny > limits.false_positive * (1.0 + 1e-9) {
            return Err(Refusal::Rate);
        }
        Ok(denies)
    }

    fn add_columns(
        &mut self,
        home: HomeId,
        filters: &Filters<'_>,
    ) -> Result<Vec<ColumnId>, Refusal> {
        if self.kind != EntryKind::Cubf {
            return Ok(Vec::new());
        }
        let columns = self.bank.add_many(filters.scheme, &filters.components);
        let columns = columns.map_err(|_| Refusal::Unfit)?;
        self.owners.extend(columns.iter().map(|column| (*column, home)));
        Ok(columns)
    }

    /// Adds a grown filter to the ORs that hold it; `false` if one has no room.
    fn grow(&mut self, home: HomeId, via: &[(LinkId, u8)], filters: &Filters<'_>) -> bool {
        let admitted = |(link, hops): &(LinkId, u8)| self.admits(*link, *hops, filters).is_ok();
        if !via.iter().all(admitted) {
            return false;
        }
        let components = filters.components.len() as u64;
        let Some(held) = self.homes.get_mut(&home) else { return true };
        let before = std::mem::replace(&mut held.components, components);
        for (link, hops) in via {
            let Some(entry) = self.links.get_mut(link) else { continue };
            entry.filters = entry.filters - before + components;
            if let Some(level) = entry.level(*hops) {
                level.add(filters);
            }
        }
        true
    }

    /// The homes whose columns claim a key; a home appears once per such column.
    fn owners_claiming(&self, hash: KeyHash) -> Vec<HomeId> {
        let mut candidates = Candidates::new();
        self.bank.who(hash, &mut candidates);
        // The most frequent case.
        if candidates.is_empty() {
            return Vec::new();
        }
        let mut columns = Vec::new();
        candidates.extend_ids(&mut columns);
        columns.iter().filter_map(|column| self.owners.get(column)).copied().collect()
    }

    fn columns_claiming(&self, hash: KeyHash) -> Vec<(LinkId, Option<u8>)> {
        let mut nearest: Vec<(LinkId, Option<u8>)> = Vec::new();
        let owners = self.owners_claiming(hash);
        for (link, hops) in owners.iter().flat_map(|home| self.via(*home)) {
            match nearest.iter_mut().find(|(other, _)| other == link) {
                Some((_, best)) => *best = (*best).min(Some(*hops)),
                None => nearest.push((*link, Some(*hops))),
            }
        }
        nearest
    }

    fn levels_claiming(&self, hash: KeyHash) -> impl Iterator<Item = (LinkId, usize)> {
        self.links.iter().filter_map(move |(link, entry)| {
            Some((*link, entry.levels.iter().position(|level| level.claims(hash))?))
        })
    }

    fn set_distance(&mut self, link: LinkId, home: HomeId, hops: u8) {
        let held = self.homes.get_mut(&home).map(|held| &mut held.via);
        let via = held.into_iter().flatten().filter(|(other, _)| *other == link);
        via.for_each(|(_, distance)| *distance = hops);
        let members = self.links.get_mut(&link).map(|entry| &mut entry.members);
        let member = members.into_iter().flatten().filter(|(other, _)| *other == home);
        member.for_each(|(_, distance)| *distance = hops);
    }

    /// A home is no longer reached over a link. If no link is left, removes the home and its
    /// columns.
    fn forget(&mut self, link: LinkId, home: HomeId) {
        let Some(held) = self.homes.get_mut(&home) else { return };
        held.via.retain(|(other, _)| *other != link);
        if held.via.is_empty() {
            for column in &held.columns {
                self.owners.remove(column);
                let gone = self.bank.remove(*column);
                debug_assert!(gone.is_ok(), "an owned column is in the bank");
            }
            self.homes.remove(&home);
        }
    }
}

/// Probability that all components deny an absent key, computed from their fills.
fn denies(filters: &Filters<'_>) -> f64 {
    let rate = |bits: &&BitVector| false_positive_of_fill(*filters.scheme.shape(), bits.fill());
    filters.components.iter().map(|bits| 1.0 - rate(bits)).product()
}
