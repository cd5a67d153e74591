//! What this host has published, in the order of publication.
//!
//! Announcements contain the number of the last publication and a sum over all sets. Hosts that
//! compute a different sum request the sets after the last publication that they know, or all sets.
//!
//! Always true: each set is in the list once, at its last publication; deleted sets are not in it.
//! The sum is computed from the sets in the list.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::key_hash::KeyHasher;
use crate::replica::message::ListedSet;
use crate::replica::{Epoch, Incarnation, Name};

/// The sets that this host has published.
#[derive(Debug)]
pub(super) struct PublishedSets {
    incarnation: Incarnation,
    /// Number of publications, withdrawals included.
    sequence: u64,
    sum: u64,
    by_sequence: BTreeMap<u64, ListedSet>,
    sequences: BTreeMap<Name, u64>,
    /// The latest epoch of any deleted set. New sets start after it, because one may reuse a name.
    deleted_until: Epoch,
}

impl PublishedSets {
    pub(super) const fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            sequence: 0,
            sum: 0,
            by_sequence: BTreeMap::new(),
            sequences: BTreeMap::new(),
            deleted_until: Epoch(0),
        }
    }

    /// A set was published; returns the number of the publication.
    pub(super) fn publish(&mut self, set: ListedSet) -> u64 {
        self.remove(&set.set);
        self.sequence += 1;
        self.sum = self.sum.wrapping_add(self.share(&set));
        self.sequences.insert(set.set.clone(), self.sequence);
        self.by_sequence.insert(self.sequence, set);
        self.sequence
    }

    /// A set was deleted, of which this was the last epoch; returns the number of the withdrawal.
    pub(super) fn withdraw(&mut self, set: &Name, epoch: Epoch) -> u64 {
        self.remove(set);
        self.deleted_until = self.deleted_until.max(epoch);
        self.sequence += 1;
        self.sequence
    }

    fn remove(&mut self, set: &Name) {
        let listed = self.sequences.remove(set).and_then(|at| self.by_sequence.remove(&at));
        if let Some(listed) = listed {
            self.sum = self.sum.wrapping_sub(self.share(&listed));
        }
    }

    fn share(&self, set: &ListedSet) -> u64 {
        share(&set.set, self.incarnation, set.epoch, set.checksum)
    }

    /// The epoch at which a new set starts; its first update has the next one.
    pub(super) const fn first_epoch(&self) -> Epoch {
        self.deleted_until
    }

    pub(super) const fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    /// Up to `max` sets that were published after this publication, and the number of the last
    /// publication that they cover.
    pub(super) fn after(&self, after: u64, max: usize) -> (Vec<ListedSet>, u64) {
        let mut later = self.by_sequence.range((Bound::Excluded(after), Bound::Unbounded));
        let (mut sets, mut until) = (Vec::new(), after);
        for (sequence, set) in later.by_ref().take(max) {
            sets.push(set.clone());
            until = *sequence;
        }
        let is_all = later.next().is_none();
        (sets, if is_all { self.sequence.max(after) } else { until })
    }

    /// The next set published after this publication; if there is none, the first set of all.
    pub(super) fn next(&self, after: u64) -> Option<(u64, &Name)> {
        let later = self.by_sequence.range((Bound::Excluded(after), Bound::Unbounded)).next();
        let (sequence, set) = later.or_else(|| self.by_sequence.first_key_value())?;
        Some((*sequence, &set.set))
    }
}

/// A set's share of the sum.
pub(super) fn share(set: &Name, life: Incarnation, epoch: Epoch, checksum: u64) -> u64 {
    let mut bytes = set.as_str().as_bytes().to_vec();
    for number in [life.0, epoch.0, checksum] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    KeyHasher::default().hash(&bytes).get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Shape;
    use crate::replica::tests::{hasher, name};
    use crate::scheme::Scheme;

    fn set(text: &str, epoch: u64) -> ListedSet {
        let scheme = Scheme::new(Shape::new(1024, 3).unwrap(), hasher());
        ListedSet { set: name(text), scheme, epoch: Epoch(epoch), checksum: 7 * epoch, items: 1 }
    }

    fn names((sets, until): (Vec<ListedSet>, u64)) -> (Vec<String>, u64) {
        (sets.iter().map(|set| set.set.as_str().to_owned()).collect(), until)
    }

    #[test]
    fn a_set_stands_at_its_last_publication() {
        let mut list = PublishedSets::new(Incarnation(1));
        for (text, epoch) in [("a", 1), ("b", 1), ("c", 1), ("a", 2)] {
            list.publish(set(text, epoch));
        }
        assert_eq!(names(list.after(0, 9)), (["b", "c", "a"].map(String::from).to_vec(), 4));
        assert_eq!(names(list.after(0, 2)), (["b", "c"].map(String::from).to_vec(), 3));
        assert_eq!(names(list.after(3, 2)), (["a"].map(String::from).to_vec(), 4));
        assert_eq!(names(list.after(4, 2)), (vec![], 4));
        assert_eq!(names(list.after(99, 2)), (vec![], 99), "of another life");
        assert_eq!(list.next(3).unwrap().1, &name("a"));
        assert_eq!(list.next(4).unwrap().1, &name("b"), "and from the front again");
    }

    #[test]
    fn the_sum_follows_from_the_sets_alone() {
        let (mut list, mut other) =
            (PublishedSets::new(Incarnation(1)), PublishedSets::new(Incarnation(1)));
        for (text, epoch) in [("a", 1), ("b", 1), ("c", 1), ("a", 2)] {
            list.publish(set(text, epoch));
        }
        assert_eq!(list.withdraw(&name("c"), Epoch(9)), 5);
        other.publish(set("a", 2));
        other.publish(set("b", 1));
        assert_eq!(list.sum(), other.sum());
        assert_eq!((list.first_epoch(), other.first_epoch()), (Epoch(9), Epoch(0)));
        assert_eq!(list.after(4, 9), (Vec::new(), 5));
        other.withdraw(&name("a"), Epoch(3));
        other.withdraw(&name("b"), Epoch(3));
        assert_eq!(other.sum(), 0);
    }
}
