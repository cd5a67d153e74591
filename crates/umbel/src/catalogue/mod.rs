//! The exact set of keys a home owns: the source of truth.
//!
//! A second add of a key and a removal of an absent one stop here, so that filters and
//! counts see real changes only. It also remembers which filter component holds each key,
//! which makes removal exact, and lets a filter be built again after a restart.

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

    /// Begins a pass over the keys that are held now, which [`Self::pass_part`] shows part by part
    /// while keys come and go; a pass that is under way is given up. Returns whether the catalogue
    /// can do that. One that cannot is gone through by [`Self::for_each`], while its home waits.
    fn begin_pass(&mut self) -> bool {
        false
    }

    /// Shows the next keys of the pass, about `count` at most; whether there are more. Each key
    /// that was held when the pass began is shown once, but for removed ones as [`InPass`] says;
    /// keys that were added since are not.
    fn pass_part(&mut self, count: usize, show: &mut dyn FnMut(&[u8])) -> bool {
        let (_, _) = (count, show);
        false
    }

    /// How the pass stands with a key that is held, before it is removed.
    #[must_use]
    fn in_pass(&self, key: &[u8]) -> InPass {
        let _ = key;
        InPass::Behind
    }

    /// The pass is over, or given up.
    fn end_pass(&mut self) {}

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

/// How a pass stands with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPass {
    /// It was shown, or added since the pass began.
    Behind,
    /// It will be shown, unless it is removed before.
    Ahead,
    /// The pass may have shown it or may show it yet, even when it is removed.
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
        let mut told = Vec::new();
        catalogue.insert_many(&keys, ComponentId(id), &mut |new| told.push(new));
        told
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
