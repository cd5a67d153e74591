//! One home's set as it was last published: bits, component by component.
//!
//! The home keeps one (its *kept copy*, to know what receivers have). Every receiver keeps one (to
//! apply deltas to). The same bytes lead both to the same next image.
//!
//! Always true: components are sorted by id, and the checksum of each is that of its bits. The
//! image's checksum is a weighted sum of theirs, so that updating it costs only the words that
//! changed.

use std::sync::Arc;

use crate::bits::BitVector;
use crate::codec::Flips;
use crate::filter::{ComponentId, claims};
use crate::key_hash::{Digest, Walk};
use crate::scheme::Scheme;

/// One component as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageComponent {
    pub(crate) id: ComponentId,
    /// Shared, so that an image that is being fetched takes no extra memory until the next one is
    /// published.
    pub(crate) bits: Arc<BitVector>,
    checksum: u64,
}

impl ImageComponent {
    pub(crate) fn new(id: ComponentId, bits: BitVector) -> Self {
        let checksum = bits.checksum();
        Self { id, bits: Arc::new(bits), checksum }
    }

    /// A component's share of the image's checksum; depends on its id too.
    const fn share(&self) -> u64 {
        self.checksum.wrapping_mul(2 * self.id.0 as u64 + 1)
    }
}

/// What happens to one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Bits flip.
    Flips(Flips),
    /// All bits are replaced; the component may be new.
    Whole(BitVector),
    /// The component is removed: its keys are in another one, or gone.
    Dropped,
}

/// What turns one image into the next: components in the order of their ids.
pub(crate) type Changes = Vec<(ComponentId, Change)>;

/// A home's set as published.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Image {
    scheme: Scheme,
    components: Vec<ImageComponent>,
}

impl Image {
    pub(crate) fn new(scheme: Scheme, components: Vec<ImageComponent>) -> Self {
        debug_assert!(components.is_sorted_by(|a, b| a.id < b.id));
        Self { scheme, components }
    }

    pub(crate) const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    pub(crate) fn components(&self) -> &[ImageComponent] {
        &self.components
    }

    pub(crate) fn component(&self, id: ComponentId) -> Option<&ImageComponent> {
        Some(&self.components[self.place(id).ok()?])
    }

    /// The image of the same keys, this many rungs below.
    pub(crate) fn folded(&self, scheme: Scheme, steps: u32) -> Self {
        let fold = |component: &ImageComponent| {
            ImageComponent::new(component.id, component.bits.folded(steps))
        };
        Self::new(scheme, self.components.iter().map(fold).collect())
    }

    /// A checksum over the bits of all components.
    pub(crate) fn checksum(&self) -> u64 {
        self.components.iter().map(ImageComponent::share).fold(0, u64::wrapping_add)
    }

    /// Bytes that its bits take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bytes = |component: &ImageComponent| size_of_val(component.bits.words()) as u64;
        self.components.iter().map(bytes).sum()
    }

    /// Whether any component claims a digest.
    #[inline]
    pub(crate) fn claims(&self, digest: Digest) -> bool {
        // A component that does not hold the key denies it after two bits on average. Slices across
        // all components would be no faster, and take more memory than the bits.
        let (shape, components) = (self.scheme.shape(), &self.components);
        components.iter().any(|c| claims(&c.bits, Walk::new(digest, shape), shape.hashes()))
    }

    /// Prefetches the first three bits that [`Self::claims`] reads; it rarely reads more.
    #[inline]
    pub(crate) fn prefetch_claims(&self, digest: Digest) {
        let mut walk = Walk::new(digest, self.scheme.shape());
        for first in [walk.next(), walk.next(), walk.next()] {
            self.components.iter().for_each(|component| component.bits.prefetch(first));
        }
    }

    /// The fills of all components.
    pub(crate) fn fills(&self) -> Vec<f64> {
        self.components.iter().map(|component| component.bits.fill()).collect()
    }

    /// Applies the changes. Flips of a missing component are ignored: decoding against this image
    /// never yields them.
    pub(crate) fn apply(&mut self, changes: &Changes) {
        for (id, change) in changes {
            match change {
                Change::Whole(bits) => self.put(*id, bits.clone()),
                Change::Dropped => self.drop(*id),
                Change::Flips(flips) => self.flip(*id, flips),
            }
        }
    }

    /// Sets the bits of a component, which may be new.
    pub(crate) fn put(&mut self, id: ComponentId, bits: BitVector) {
        let component = ImageComponent::new(id, bits);
        match self.place(id) {
            Ok(index) => self.components[index] = component,
            Err(index) => self.components.insert(index, component),
        }
    }

    /// Removes a component, if it exists.
    pub(crate) fn drop(&mut self, id: ComponentId) {
        if let Ok(index) = self.place(id) {
            self.components.remove(index);
        }
    }

    fn flip(&mut self, id: ComponentId, flips: &Flips) {
        if let Ok(index) = self.place(id) {
            let component = &mut self.components[index];
            component.checksum = flips.checksum_after(&component.bits, component.checksum);
            flips.apply(Arc::make_mut(&mut component.bits));
        }
    }

    /// The index of a component, or where it would be inserted.
    fn place(&self, id: ComponentId) -> Result<usize, usize> {
        self.components.binary_search_by_key(&id, |component| component.id)
    }
}
