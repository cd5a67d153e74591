//! Adding keys: to the first component with room, or to the one that a catalogue remembers.

use super::super::{BATCH, Component, CountingFilter, StandardFilter, in_batches};
use super::{ComponentId, DynamicFilter};
use crate::key_hash::Digest;

impl<C: Component> DynamicFilter<C> {
    /// Adds a key to the first component with room, adding one if none has; returns the
    /// component, for callers who will want [`Self::remove_from`].
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> ComponentId {
        self.insert_digest(self.scheme.digest(key.as_ref()))
    }

    /// Adds a key by its digest; see [`Self::insert`].
    ///
    /// # Panics
    /// If there is no memory for another component.
    pub fn insert_digest(&mut self, digest: Digest) -> ComponentId {
        let index = self.index_with_room();
        let (id, component) = &mut self.components[index];
        component.add(digest);
        if let Some(slices) = &mut self.slices {
            slices.set(index, digest.positions(self.scheme.shape()));
        }
        let id = *id;
        self.was_filled(index);
        id
    }

    /// Adds a key to the component of this id, even if it is full. Used to rebuild a filter from a
    /// catalogue that remembers each key's component. A component of an unknown id is created; the
    /// id of a merged component leads to the component that took its keys.
    ///
    /// # Panics
    /// If there is no memory for another component, or the id is the largest possible one, which is
    /// never used; nothing changes then.
    pub fn insert_into(&mut self, component: ComponentId, digest: Digest) {
        let index = self.index_of(component).unwrap_or_else(|| self.add_component(component));
        self.components[index].1.add(digest);
        if let Some(slices) = &mut self.slices {
            slices.set(index, digest.positions(self.scheme.shape()));
        }
        self.was_filled(index);
    }

    /// Adds many keys, prefetching memory. Each goes to the component that [`Self::insert`] would
    /// choose.
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) {
        let scheme = self.scheme;
        in_batches::<BATCH, _>(
            keys,
            |key| scheme.digest(key),
            |digests| self.insert_digests(digests),
        );
    }

    /// Adds many keys by their digests, prefetching memory.
    ///
    /// # Panics
    /// If there is no memory for another component.
    pub fn insert_digests(&mut self, mut digests: &[Digest]) {
        while !digests.is_empty() {
            let index = self.index_with_room();
            let room = self.capacity - self.components[index].1.items();
            let batch = (digests.len() as u64).min(room).min(BATCH as u64) as usize;
            let (now, later) = digests.split_at(batch);
            self.insert_digests_at(index, now);
            digests = later;
        }
    }

    /// Adds keys to the component at `index`, which has room for them.
    fn insert_digests_at(&mut self, index: usize, digests: &[Digest]) {
        let shape = self.scheme.shape();
        if let Some(slices) = &self.slices {
            digests.iter().for_each(|d| slices.prefetch_column(index, d.positions(shape)));
        }
        self.components[index].1.add_digests(digests);
        if let Some(slices) = &mut self.slices {
            digests.iter().for_each(|digest| slices.set(index, digest.positions(shape)));
        }
        self.was_filled(index);
    }

    /// The component that [`Self::insert`] will add the next key to. It may not exist yet.
    pub(crate) fn next_component(&self) -> ComponentId {
        self.components.get(self.room).map_or(ComponentId(self.next_id), |(id, _)| *id)
    }

    /// How many more keys the component of [`Self::next_component`] has room for; 0 if it does not
    /// exist yet.
    pub(crate) fn room_in_next(&self) -> u64 {
        let next = self.components.get(self.room);
        next.map_or(0, |(_, component)| self.capacity - component.items())
    }

    /// Algorithm 1's `GetActiveStandardBF`, which adds a component if none has room.
    fn index_with_room(&mut self) -> usize {
        if self.room == self.components.len() {
            self.add_component(ComponentId(self.next_id));
        }
        self.room
    }
}

impl DynamicFilter<CountingFilter> {
    /// Adds a key by its digest; also returns how many bits flipped to one.
    pub(crate) fn insert_counted(&mut self, digest: Digest) -> (ComponentId, u32) {
        let index = self.index_with_room();
        let (id, component) = &mut self.components[index];
        let flips = component.insert_digest(digest);
        if let Some(slices) = &mut self.slices {
            slices.set(index, digest.positions(self.scheme.shape()));
        }
        let id = *id;
        self.was_filled(index);
        (id, flips)
    }

    /// Prefetches the memory that inserting this digest will change.
    pub(crate) fn prefetch_insert(&self, digest: Digest) {
        if let Some((_, component)) = self.components.get(self.room) {
            component.prefetch_insert(digest);
        }
    }
}

impl DynamicFilter<StandardFilter> {
    /// Adds a key unless some component claims it already, so that repeats and false positives do
    /// not fill components. For plain components only: with counting ones a later removal of the
    /// key would clear bits of the keys that caused the claim.
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert_if_absent(&mut self, key: impl AsRef<[u8]>) -> Option<ComponentId> {
        let digest = self.scheme.digest(key.as_ref());
        (!self.contains_digest(digest)).then(|| self.insert_digest(digest))
    }
}
