//! Own sets as Redis clients see them: Bloom and cuckoo filters.
//!
//! Such a set is an ordinary one with a [`FilterKind`] beside its terms. A set that was created in
//! another way can be used as a scalable Bloom filter: items can be added and tested. It counts
//! nothing, so it cannot be used as a cuckoo filter.

use std::sync::Arc;

use umbel::replica::{Name, SetPlan};

use super::sets::{OwnSet, SetChange, Terms};
use super::{Host, Lifetime};
use crate::catalogue::Ticket;
use crate::error::HostError;
use crate::filter_kind::{Bloom, Cuckoo, FilterKind};

/// Why a filter command failed. Nothing changed.
#[derive(Debug)]
pub(crate) enum FilterError {
    /// This host has no set of that name.
    NotFound,
    /// The set is a filter of the other kind.
    WrongType,
    /// A cuckoo filter that has the maximum number of stacked filters.
    MaxExpansions,
    Host(HostError),
}

impl From<HostError> for FilterError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// Which kind of filter a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterType {
    Bloom,
    Cuckoo,
}

impl FilterType {
    /// Whether a set created as this kind, or not as a filter at all, can be used as this type.
    pub(crate) const fn fits(self, kind: Option<FilterKind>) -> bool {
        match self {
            Self::Bloom => !matches!(kind, Some(FilterKind::Cuckoo(_))),
            Self::Cuckoo => matches!(kind, Some(FilterKind::Cuckoo(_))),
        }
    }
}

/// A filter, as the `INFO` commands report it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FilterStatus {
    /// `None`: it was not created by a Redis client.
    pub(crate) kind: Option<FilterKind>,
    /// Distinct keys.
    pub(crate) keys: u64,
    /// How often keys were added again, summed over all keys.
    pub(crate) repeats: u64,
    /// Items that clients deleted.
    pub(crate) deleted: u64,
    /// Bytes that the filter and its published copy take.
    pub(crate) bytes: u64,
}

/// How to add items to a cuckoo filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CuckooAdd {
    /// The filter to create if there is no such set.
    pub(crate) create: Option<Cuckoo>,
    /// Whether items that are there already are skipped.
    pub(crate) only_new: bool,
}

/// The result of adding an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CuckooAdded {
    Added,
    Exists,
    /// There was no room.
    Refused,
}

impl Host {
    /// The filter kind with which a Redis client created an own set; `None` if this host has no
    /// such set.
    pub(crate) fn filter_kind(&self, set: &str) -> Option<Option<FilterKind>> {
        self.inner.sets.own(set).map(|own| own.filter)
    }

    /// The status of an own set for the `INFO` commands.
    pub(crate) fn filter_status(&self, set: &str) -> Option<FilterStatus> {
        let own = self.inner.sets.own(set)?;
        let (keys, bytes) = own.keys_and_bytes(&self.inner.sets);
        let (repeats, deleted) = own.repeats_and_deleted();
        Some(FilterStatus { kind: own.filter, keys, repeats, deleted, bytes })
    }

    /// Creates a filter; returns whether it is new.
    ///
    /// # Errors
    /// If the name cannot be a set's, there are too many sets, or the catalogue has failed.
    pub(crate) fn create_filter(
        &self,
        set: &str,
        kind: FilterKind,
    ) -> Result<(bool, Ticket), HostError> {
        let (_, made) = self.own_or_filter(set, kind)?;
        Ok((made, self.inner.sets.ticket()))
    }

    /// An own set, created as a filter if it does not exist; and whether it was created.
    fn own_or_filter(&self, set: &str, kind: FilterKind) -> Result<(Arc<OwnSet>, bool), HostError> {
        let sets = &self.inner.sets;
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let mut plan = sets.default_plan();
        // In an overlay all sets have the same shape, on which all hosts agreed.
        if self.inner.settings.overlay.is_none() {
            let (false_positive, capacity) = kind.plan();
            plan = SetPlan { false_positive, capacity: Some(capacity), ..plan };
            self.check_size(&plan)?;
        }
        let terms = Terms { filter: Some(kind), ..sets.default_terms() };
        sets.own_or_create(&name, plan, terms)
    }

    /// Changes a filter; creates it first if `create` is given.
    fn change_filter<T>(
        &self,
        set: &str,
        of: FilterType,
        create: Option<FilterKind>,
        change: impl FnOnce(&mut SetChange<'_>, Option<FilterKind>) -> Result<T, FilterError>,
    ) -> Result<(T, Ticket), FilterError> {
        let sets = &self.inner.sets;
        loop {
            let own = match (sets.own(set), create) {
                (Some(own), _) => own,
                (None, Some(kind)) => self.own_or_filter(set, kind)?.0,
                (None, None) => return Err(FilterError::NotFound),
            };
            let kind = own.filter;
            if !of.fits(kind) {
                return Err(FilterError::WrongType);
            }
            // Deleted a moment ago: create it again.
            let Some(mut changing) = sets.change(&own)? else { continue };
            let changed = change(&mut changing, kind)?;
            self.inner.wake_if_urgent(&changing);
            return Ok((changed, sets.checked_ticket()?));
        }
    }

    /// Adds items to a Bloom filter and appends to `answers`, for each item, whether it is new.
    /// Stops at the first item that does not fit into a full filter: there are fewer answers than
    /// items then.
    ///
    /// # Errors
    /// If there is no such filter and none is to be created, the set is of another kind, or an item
    /// is not a valid key.
    pub(crate) fn add_to_bloom(
        &self,
        set: &str,
        items: &[&[u8]],
        create: Option<Bloom>,
        answers: &mut Vec<bool>,
    ) -> Result<Ticket, FilterError> {
        Self::check_keys(items)?;
        let create = create.map(FilterKind::Bloom);
        let added = self.change_filter(set, FilterType::Bloom, create, |changing, kind| {
            let max_items = match kind {
                Some(FilterKind::Bloom(bloom)) => bloom.max_items(),
                _ => None,
            };
            let count = match max_items {
                Some(max_items) => changing.count_fitting(items, max_items),
                None => items.len(),
            };
            changing.add(&items[..count], Lifetime::Default, &mut |new| answers.push(new));
            Ok(())
        });
        added.map(|((), ticket)| ticket)
    }

    /// Adds items to a cuckoo filter and appends the result for each. A command calls it with parts
    /// of its items and the same `answers`.
    ///
    /// # Errors
    /// As [`Self::add_to_bloom`], and if the filter had grown as often as it may before the command.
    pub(crate) fn add_to_cuckoo(
        &self,
        set: &str,
        items: &[&[u8]],
        how: CuckooAdd,
        answers: &mut Vec<CuckooAdded>,
    ) -> Result<Ticket, FilterError> {
        Self::check_keys(items)?;
        let create = how.create.map(FilterKind::Cuckoo);
        let added = self.change_filter(set, FilterType::Cuckoo, create, |changing, kind| {
            let Some(FilterKind::Cuckoo(cuckoo)) = kind else { return Err(FilterError::WrongType) };
            let held = changing.items();
            // The rest of a command is added even if it was accepted in parts.
            if answers.is_empty() && cuckoo.is_expanded(held) {
                return Err(FilterError::MaxExpansions);
            }
            let mut room = Room { cuckoo, held };
            for item in items {
                let exists = how.only_new && changing.holds(item);
                let outcome = match exists {
                    true => CuckooAdded::Exists,
                    false => room.take_one(),
                };
                if outcome == CuckooAdded::Added {
                    changing.add_once_more(item);
                }
                answers.push(outcome);
            }
            Ok(())
        });
        added.map(|((), ticket)| ticket)
    }

    /// Removes one occurrence of an item from a cuckoo filter; returns whether it was there.
    ///
    /// # Errors
    /// If there is no such filter, or the set is of another kind.
    pub(crate) fn remove_from_cuckoo(
        &self,
        set: &str,
        item: &[u8],
    ) -> Result<(bool, Ticket), FilterError> {
        self.change_filter(set, FilterType::Cuckoo, None, |changing, _| {
            Ok(changing.remove_once(item))
        })
    }

    /// How often an item is in a cuckoo filter; 0 if there is none of that name.
    pub(crate) fn count_in_cuckoo(&self, set: &str, item: &[u8]) -> u64 {
        let own = self.inner.sets.own(set);
        let cuckoo = own.filter(|own| FilterType::Cuckoo.fits(own.filter));
        cuckoo.map_or(0, |own| own.times(item))
    }

    /// Whether each item is in a filter: exact. All are false if this host has no such filter.
    pub(crate) fn has_in_filter(
        &self,
        set: &str,
        of: FilterType,
        items: &[&[u8]],
        answers: &mut Vec<bool>,
    ) {
        let part = self.inner.sets.directory_of(set);
        let own = part.get(set).and_then(|known| known.own.as_ref());
        let held = own.filter(|own| of.fits(own.filter)).map(|own| own.held());
        answers.extend(items.iter().map(|item| held.is_some_and(|held| held.contains(item))));
    }

    /// A page of at most `count` keys of a filter with their repeats, and the cursor of the next
    /// page.
    pub(crate) fn filter_page(&self, set: &str, cursor: &[u8], count: usize) -> FilterPage {
        let Some(own) = self.inner.sets.own(set) else { return FilterPage::default() };
        let (keys, next) = own.held().page(cursor, count);
        let repeats = |key: &[u8]| own.times(key).saturating_sub(1) as u32;
        FilterPage { keys: keys.into_iter().map(|key| (repeats(&key), key)).collect(), next }
    }

    /// Adds the keys of a page, with their repeats, to an existing filter.
    ///
    /// # Errors
    /// If there is no such filter, the set is of another kind, or a key is invalid.
    pub(crate) fn load_filter(
        &self,
        set: &str,
        of: FilterType,
        keys: &[(u32, &[u8])],
    ) -> Result<Ticket, FilterError> {
        let names: Vec<&[u8]> = keys.iter().map(|(_, key)| *key).collect();
        Self::check_keys(&names)?;
        let loaded = self.change_filter(set, of, None, |changing, _| {
            changing.add(&names, Lifetime::Default, &mut |_| ());
            keys.iter().for_each(|(repeats, key)| changing.set_repeats(key, *repeats));
            Ok(())
        });
        loaded.map(|((), ticket)| ticket)
    }

    /// Sets the number of deleted items of a cuckoo filter, which a dump carries over from its
    /// source.
    ///
    /// # Errors
    /// If there is no such filter.
    pub(crate) fn set_filter_deleted(
        &self,
        set: &str,
        deleted: u64,
    ) -> Result<Ticket, FilterError> {
        let noted = self.change_filter(set, FilterType::Cuckoo, None, |changing, _| {
            changing.set_deleted(deleted);
            Ok(())
        });
        noted.map(|((), ticket)| ticket)
    }
}

/// A page of keys of a filter, each with how often it was added after the first time.
#[derive(Debug, Default)]
pub(crate) struct FilterPage {
    pub(crate) keys: Vec<(u32, Vec<u8>)>,
    /// The cursor of the next page, if there is more.
    pub(crate) next: Option<Vec<u8>>,
}

/// How many items a cuckoo filter still accepts.
#[derive(Debug)]
struct Room {
    cuckoo: Cuckoo,
    held: u64,
}

impl Room {
    fn take_one(&mut self) -> CuckooAdded {
        if self.cuckoo.is_full(self.held) {
            return CuckooAdded::Refused;
        }
        self.held += 1;
        CuckooAdded::Added
    }
}
