//! The exact set of keys that a home owns: the source of truth.
//!
//! Adding a key a second time and removing an absent key end here, so that filters and counts see
//! only real changes. The catalogue also remembers which filter component holds each key, which
//! makes removal exact, and makes it possible to rebuild a filter after a restart.

mod memory;

use std::collections::BTreeMap;

use crate::filter::ComponentId;
pub use memory::{MemoryCatalogue, Place};

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
    /// Whether the catalogue contains the key.
    #[must_use]
    fn contains(&self, key: &[u8]) -> bool;

    /// Adds the key with this component; a key that exists already moves there.
    fn insert(&mut self, key: &[u8], component: ComponentId);

    /// Adds the key with this component unless it exists already. Returns whether it is new. The
    /// default makes two lookups; override it if one is enough.
    fn insert_new(&mut self, key: &[u8], component: ComponentId) -> bool {
        let new = !self.contains(key);
        if new {
            self.insert(key, component);
        }
        new
    }

    /// Adds keys with this component, except those that exist already. Calls `on_result` for each
    /// key in order with whether it is new. The default looks up one key after the other; override
    /// it to look up several at once.
    fn insert_many(
        &mut self,
        keys: &[&[u8]],
        component: ComponentId,
        on_result: &mut dyn FnMut(bool),
    ) {
        keys.iter().for_each(|key| on_result(self.insert_new(key, component)));
    }

    /// Removes the key. Returns its component, or `None` if it was absent.
    fn remove(&mut self, key: &[u8]) -> Option<ComponentId>;

    /// Calls `show` once for every key.
    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId));

    /// Moves every key to the component that `assign` returns for it. The default copies all keys;
    /// override it to do so in place or in pieces.
    fn reassign(&mut self, assign: &mut dyn FnMut(&[u8]) -> ComponentId) {
        let mut keys = Vec::new();
        self.for_each(&mut |key, _| keys.push(Box::<[u8]>::from(key)));
        for key in keys {
            let component = assign(&key);
            self.insert(&key, component);
        }
    }

    /// Moves every key to this component. The default visits all keys; override it if that is not
    /// needed.
    fn move_all(&mut self, to: ComponentId) {
        self.reassign(&mut |_| to);
    }

    /// Begins a pass over the present keys. [`Self::pass_part`] visits them part by part while keys
    /// are added and removed. A pass in progress is cancelled. Returns whether the catalogue
    /// supports this; otherwise its home uses [`Self::for_each`], and waits.
    fn begin_pass(&mut self) -> bool {
        false
    }

    /// Visits the next keys of the pass, about `count` at most. Returns whether there are more.
    /// Each key that existed when the pass began is visited once, except removed ones, for which
    /// see [`InPass`]. Keys that were added since are not visited.
    fn pass_part(&mut self, count: usize, show: &mut dyn FnMut(&[u8])) -> bool {
        let (_, _) = (count, show);
        false
    }

    /// Whether the pass has visited a key that is about to be removed.
    #[must_use]
    fn in_pass(&self, key: &[u8]) -> InPass {
        let _ = key;
        InPass::Behind
    }

    /// The pass is over or cancelled.
    fn end_pass(&mut self) {}

    /// How many keys each component holds, sorted by id.
    #[must_use]
    fn components(&self) -> BTreeMap<ComponentId, u64> {
        let mut components = BTreeMap::new();
        self.for_each(&mut |_, component| *components.entry(component).or_default() += 1);
        components
    }

    /// Number of keys.
    #[must_use]
    fn len(&self) -> u64;

    /// Whether there are no keys.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a pass has visited a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPass {
    /// It was visited, or added since the pass began.
    Behind,
    /// It will be visited, unless it is removed before.
    Ahead,
    /// The pass may have visited it, or may visit it later even if it is removed.
    Either,
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
        ReassignPart(usize),
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
            1 => (0usize..5).prop_map(Step::ReassignPart),
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
        let mut results = Vec::new();
        catalogue.insert_many(&keys, ComponentId(id), &mut |new| results.push(new));
        results
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn a_catalogue_in_memory_does_what_the_plainest_one_does(steps in steps(), seed: u64) {
            let mut catalogue = MemoryCatalogue::with_small_shards(seed);
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
                        let results = insert_many(&mut catalogue, &keys, id);
                        prop_assert_eq!(results, insert_many(&mut plain, &keys, id));
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(catalogue.remove(&[key]), plain.remove(&[key]));
                    }
                    Step::Reassign => {
                        catalogue.reassign(&mut |key| assigned(key));
                        plain.reassign(&mut |key| assigned(key));
                    }
                    Step::ReassignPart(part) => {
                        let mut moved = Vec::new();
                        catalogue.reassign_part(part, &mut |key| {
                            moved.push(key.to_vec());
                            assigned(key)
                        });
                        moved.iter().for_each(|key| plain.insert(key, assigned(key)));
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
