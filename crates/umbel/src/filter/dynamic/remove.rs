//! Removes keys, which needs counting components.

use super::super::{CountingFilter, StandardFilter};
use super::{ComponentId, DynamicFilter};
use crate::key_hash::Digest;
use crate::params::ParamError;

/// The result of removing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a key that was kept is still claimed"]
pub enum Removal {
    /// Removed from this component, the only one that claimed it.
    Removed(ComponentId),
    /// Not removed: several components claim it, and removing it from the wrong one would harm
    /// other keys.
    Kept,
    /// No component claimed it; nothing changed.
    Absent,
}

impl DynamicFilter<CountingFilter> {
    /// Removes a key if exactly one component claims it (algorithm 3). If several do, the key is
    /// kept, so that no bits of other keys are cleared.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Removal {
        self.remove_digest(self.scheme.digest(key.as_ref()))
    }

    /// Removes a key by its digest; see [`Self::remove`].
    pub fn remove_digest(&mut self, digest: Digest) -> Removal {
        match self.first_claimants(digest) {
            [None, _] => Removal::Absent,
            [Some(id), None] => {
                self.remove_digest_from(id, digest);
                Removal::Removed(id)
            }
            [Some(_), Some(_)] => Removal::Kept,
        }
    }

    /// Removes a key from the component that `insert` returned. Returns whether that component
    /// claimed it. Exact even when other components claim the key too.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn remove_from(&mut self, component: ComponentId, key: impl AsRef<[u8]>) -> bool {
        self.remove_digest_from(component, self.scheme.digest(key.as_ref()))
    }

    /// Removes a key by its digest from the component that holds it; see
    /// [`Self::remove_from`].
    pub fn remove_digest_from(&mut self, component: ComponentId, digest: Digest) -> bool {
        self.remove_counted(component, digest).is_some()
    }

    /// Removes a key by its digest from the component that holds it; returns how many bits
    /// flipped to zero, or `None` if that component did not claim it.
    pub(crate) fn remove_counted(&mut self, component: ComponentId, digest: Digest) -> Option<u32> {
        let index = self.index_of(component)?;
        let component = &mut self.components[index].1;
        let flips = component.remove_digest(digest)?;
        if let Some(slices) = &mut self.slices {
            let bits = component.bits();
            let positions = digest.positions(self.scheme.shape());
            slices.clear(index, positions.filter(|position| bits.get(*position) == 0));
        }
        if component.items() < self.capacity {
            self.room = self.room.min(index);
        }
        Some(flips)
    }

    /// The filter of the same keys, this many rungs below (`design::ladder`), component by
    /// component.
    ///
    /// # Errors
    /// If the shape would have no bits.
    ///
    /// # Panics
    /// If the components would not be whole numbers of words.
    pub fn folded(&self, steps: u32) -> Result<Self, ParamError> {
        let fold =
            |(id, component): &(ComponentId, CountingFilter)| Ok((*id, component.folded(steps)?));
        let components: Vec<_> = self.components.iter().map(fold).collect::<Result<_, _>>()?;
        let mut folded = Self {
            scheme: *components[0].1.scheme(),
            capacity: self.capacity,
            max_components: self.max_components,
            components,
            aliases: self.aliases.clone(),
            next_id: self.next_id,
            slices: None,
            sliced: self.sliced,
            room: self.room,
        };
        folded.rebuild_slices();
        Ok(folded)
    }

    /// The same filter with plain components: what is published.
    #[must_use]
    pub fn to_standard(&self) -> DynamicFilter<StandardFilter> {
        DynamicFilter {
            scheme: self.scheme,
            capacity: self.capacity,
            max_components: self.max_components,
            components: self.components.iter().map(|(id, c)| (*id, c.to_standard())).collect(),
            aliases: self.aliases.clone(),
            next_id: self.next_id,
            slices: self.slices.clone(),
            sliced: self.sliced,
            room: self.room,
        }
    }
}
