//! The exact set of keys a home owns: the source of truth.
//!
//! A second add of a key and a removal of an absent one stop here, so that filters and
//! counts see real changes only. It also remembers which filter component holds each key,
//! which makes removal exact, and lets a filter be built again after a restart.

use std::collections::BTreeMap;

use crate::filter::ComponentId;

/// The exact keys of one set at its home, each with the filter component that holds it.
///
/// Implemented in memory by [`MemoryCatalogue`], on disk by the store, or by a service that
/// already indexes its objects.
pub trait Catalogue {
    /// Whether the key is held.
    #[must_use]
    fn contains(&self, key: &[u8]) -> bool;

    /// Holds the key in this component; a key that is held already moves there.
    fn insert(&mut self, key: &[u8], component: ComponentId);

    /// Lets go of the key; returns the component that held it, or `None` if it was absent.
    fn remove(&mut self, key: &[u8]) -> Option<ComponentId>;

    /// Shows every key once.
    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId));

    /// Number of keys.
    #[must_use]
    fn len(&self) -> u64;

    /// Whether no key is held.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A catalogue in memory, in the order of keys.
#[derive(Debug, Clone, Default)]
pub struct MemoryCatalogue {
    keys: BTreeMap<Box<[u8]>, ComponentId>,
}

impl MemoryCatalogue {
    /// An empty catalogue.
    #[must_use]
    pub const fn new() -> Self {
        Self { keys: BTreeMap::new() }
    }
}

impl Catalogue for MemoryCatalogue {
    fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        self.keys.insert(key.into(), component);
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        self.keys.remove(key)
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        self.keys.iter().for_each(|(key, component)| show(key, *component));
    }

    fn len(&self) -> u64 {
        self.keys.len() as u64
    }
}
