//! The exact set of keys a home owns: the source of truth.
//!
//! A second add of a key and a removal of an absent one stop here, so that filters and
//! counts see real changes only. It also remembers which filter component holds each key,
//! which makes removal exact, and lets a filter be built again after a restart.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher;
use std::hint::black_box;

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};
use siphasher::sip::SipHasher13;

use crate::filter::ComponentId;

/// The exact keys of one set at its home, each with the filter component that holds it.
///
/// Implemented in memory by [`MemoryCatalogue`], on disk by the store, or by a service that
/// already indexes its objects.
///
/// ```
/// use umbel::DynamicFilter;
/// use umbel::catalogue::{Catalogue, MemoryCatalogue};
///
/// let mut filter = DynamicFilter::for_target(1000, 0.01)?;
/// let mut catalogue = MemoryCatalogue::new();
/// for key in ["apple", "pear", "apple"] {
///     // The second apple stops here: the filter counts each key once.
///     if !catalogue.contains(key.as_bytes()) {
///         catalogue.insert(key.as_bytes(), filter.insert(key));
///     }
/// }
/// // So does the removal of what is not there; what is there leaves without residue.
/// assert_eq!(catalogue.remove(b"plum"), None);
/// if let Some(component) = catalogue.remove(b"apple") {
///     assert!(filter.remove_from(component, "apple"));
/// }
/// assert_eq!((catalogue.len(), filter.items()), (1, 1));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
pub trait Catalogue {
    /// Whether the key is held.
    #[must_use]
    fn contains(&self, key: &[u8]) -> bool;

    /// Holds the key in this component; a key that is held already moves there.
    fn insert(&mut self, key: &[u8], component: ComponentId);

    /// Holds the key in this component unless it is held already; whether it is new. A
    /// catalogue that can do both with one look need not look twice as this does.
    fn insert_new(&mut self, key: &[u8], component: ComponentId) -> bool {
        let new = !self.contains(key);
        if new {
            self.insert(key, component);
        }
        new
    }

    /// Holds keys in this component, each unless it is held already; `told` hears of each in
    /// turn whether it is new. A catalogue that can look for several at once need not look
    /// for one after the other as this does.
    fn insert_many(&mut self, keys: &[&[u8]], component: ComponentId, told: &mut dyn FnMut(bool)) {
        keys.iter().for_each(|key| told(self.insert_new(key, component)));
    }

    /// Lets go of the key; returns the component that held it, or `None` if it was absent.
    fn remove(&mut self, key: &[u8]) -> Option<ComponentId>;

    /// Shows every key once.
    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId));

    /// Moves every key to the component that `assign` names for it. A catalogue that can do
    /// so in place, or piece by piece, need not copy all keys as this does.
    fn reassign(&mut self, assign: &mut dyn FnMut(&[u8]) -> ComponentId) {
        let mut keys = Vec::new();
        self.for_each(&mut |key, _| keys.push(Box::<[u8]>::from(key)));
        for key in keys {
            let component = assign(&key);
            self.insert(&key, component);
        }
    }

    /// Moves every key to this one component. A catalogue that can do so without touching
    /// its keys need not go through them as this does.
    fn move_all(&mut self, to: ComponentId) {
        self.reassign(&mut |_| to);
    }

    /// How many keys each component holds, in the order of their ids.
    #[must_use]
    fn components(&self) -> BTreeMap<ComponentId, u64> {
        let mut components = BTreeMap::new();
        self.for_each(&mut |_, component| *components.entry(component).or_default() += 1);
        components
    }

    /// Number of keys.
    #[must_use]
    fn len(&self) -> u64;

    /// Whether no key is held.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Keys that are looked for at once.
const BATCH: usize = 8;

/// A catalogue in memory. Shows its keys in an order that follows from its history alone.
#[derive(Clone, Default)]
pub struct MemoryCatalogue {
    keys: IndexMap<Box<[u8]>, ComponentId, Seeded>,
}

/// Hashes keys of a table: without the seed nobody can craft keys that collide.
#[derive(Debug, Clone, Copy, Default)]
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, !self.0)
    }
}

impl MemoryCatalogue {
    /// An empty catalogue.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_seed(0)
    }

    /// An empty catalogue whose table is seeded: for keys that strangers choose.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self { keys: IndexMap::with_hasher(Seeded(seed)) }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.keys.hasher().hash_one(key)
    }

    fn insert_hashed(&mut self, hash: u64, key: &[u8], component: ComponentId) -> bool {
        match self.keys.raw_entry_mut_v1().from_key_hashed_nocheck(hash, key) {
            RawEntryMut::Occupied(_) => false,
            RawEntryMut::Vacant(place) => {
                place.insert_hashed_nocheck(hash, key.into(), component);
                true
            }
        }
    }

    /// Keys by place, up to `count` of them from the place `start` on.
    pub fn range(&self, start: usize, count: usize) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().skip(start).take(count).map(|key| &**key)
    }

    /// As [`Catalogue::reassign`], for a range of places.
    pub fn reassign_range(
        &mut self,
        start: usize,
        count: usize,
        assign: &mut dyn FnMut(&[u8]) -> ComponentId,
    ) {
        for (key, component) in self.keys.iter_mut().skip(start).take(count) {
            *component = assign(key);
        }
    }
}

impl Catalogue for MemoryCatalogue {
    fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        self.keys.insert(key.into(), component);
    }

    fn insert_new(&mut self, key: &[u8], component: ComponentId) -> bool {
        self.insert_hashed(self.hash(key), key, component)
    }

    fn insert_many(&mut self, keys: &[&[u8]], component: ComponentId, told: &mut dyn FnMut(bool)) {
        for keys in keys.chunks(BATCH) {
            let mut hashes = [0; BATCH];
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = self.hash(key));
            // A look at all places first: the processor waits for their memory once, not in
            // turn. What is seen there does not matter.
            for hash in &hashes[..keys.len()] {
                black_box(self.keys.raw_entry_v1().index_from_hash(*hash, |_| true));
            }
            for (key, hash) in keys.iter().zip(hashes) {
                told(self.insert_hashed(hash, key, component));
            }
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        self.keys.swap_remove(key)
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        self.keys.iter().for_each(|(key, component)| show(key, *component));
    }

    fn reassign(&mut self, assign: &mut dyn FnMut(&[u8]) -> ComponentId) {
        self.keys.iter_mut().for_each(|(key, component)| *component = assign(key));
    }

    fn len(&self) -> u64 {
        self.keys.len() as u64
    }
}

impl fmt::Debug for MemoryCatalogue {
    /// Keys may be many, and nobody else's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryCatalogue({} keys)", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The simplest catalogue there is: it does only what it must, so that the trait's own
    /// ways do all the rest.
    #[derive(Default)]
    struct Plain(BTreeMap<Vec<u8>, ComponentId>);

    impl Catalogue for Plain {
        fn contains(&self, key: &[u8]) -> bool {
            self.0.contains_key(key)
        }
        fn insert(&mut self, key: &[u8], component: ComponentId) {
            self.0.insert(key.to_vec(), component);
        }
        fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
            self.0.remove(key)
        }
        fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
            self.0.iter().for_each(|(key, component)| show(key, *component));
        }
        fn len(&self) -> u64 {
            self.0.len() as u64
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u8, u32),
        InsertNew(u8, u32),
        InsertMany(Vec<u8>, u32),
        Remove(u8),
        Reassign,
        ReassignRange(usize, usize),
        MoveAll(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let (key, component) = (any::<u8>, || 0u32..5);
        let many = prop::collection::vec(any::<u8>(), 0..30);
        let step = prop_oneof![
            4 => (key(), component()).prop_map(|(key, id)| Step::Insert(key, id)),
            4 => (key(), component()).prop_map(|(key, id)| Step::InsertNew(key, id)),
            2 => (many, component()).prop_map(|(keys, id)| Step::InsertMany(keys, id)),
            4 => key().prop_map(Step::Remove),
            1 => Just(Step::Reassign),
            1 => (0usize..50, 0usize..50).prop_map(|(start, count)| Step::ReassignRange(start, count)),
            1 => component().prop_map(Step::MoveAll),
        ];
        prop::collection::vec(step, 0..80)
    }

    /// A component that follows from the key, none of those that steps name.
    fn assigned(key: &[u8]) -> ComponentId {
        ComponentId(10 + u32::from(key[0]))
    }

    fn insert_many(catalogue: &mut impl Catalogue, keys: &[u8], id: u32) -> Vec<bool> {
        let keys: Vec<&[u8]> = keys.chunks(1).collect();
        let mut told = Vec::new();
        catalogue.insert_many(&keys, ComponentId(id), &mut |new| told.push(new));
        told
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn a_catalogue_in_memory_does_what_the_plainest_one_does(steps in steps(), seed: u64) {
            let mut catalogue = MemoryCatalogue::with_seed(seed);
            let mut plain = Plain::default();
            for step in steps {
                match step {
                    Step::Insert(key, id) => {
                        catalogue.insert(&[key], ComponentId(id));
                        plain.insert(&[key], ComponentId(id));
                    }
                    Step::InsertNew(key, id) => {
                        let new = catalogue.insert_new(&[key], ComponentId(id));
                        prop_assert_eq!(new, plain.insert_new(&[key], ComponentId(id)));
                    }
                    Step::InsertMany(keys, id) => {
                        let told = insert_many(&mut catalogue, &keys, id);
                        prop_assert_eq!(told, insert_many(&mut plain, &keys, id));
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(catalogue.remove(&[key]), plain.remove(&[key]));
                    }
                    Step::Reassign => {
                        catalogue.reassign(&mut |key| assigned(key));
                        plain.reassign(&mut |key| assigned(key));
                    }
                    Step::ReassignRange(start, count) => {
                        let places: Vec<_> = catalogue.range(start, count).map(Vec::from).collect();
                        catalogue.reassign_range(start, count, &mut |key| assigned(key));
                        places.iter().for_each(|key| plain.insert(key, assigned(key)));
                    }
                    Step::MoveAll(id) => {
                        catalogue.move_all(ComponentId(id));
                        plain.move_all(ComponentId(id));
                    }
                }
            }
            let mut shown = BTreeMap::new();
            catalogue.for_each(&mut |key, component| {
                assert!(shown.insert(key.to_vec(), component).is_none(), "every key once");
            });
            prop_assert_eq!(shown, plain.0.clone());
            prop_assert_eq!(catalogue.components(), plain.components());
            prop_assert_eq!(catalogue.len(), plain.len());
            prop_assert_eq!(catalogue.is_empty(), plain.is_empty());
            prop_assert!((0..=255).all(|key| catalogue.contains(&[key]) == plain.contains(&[key])));
        }
    }
}
