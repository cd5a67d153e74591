//! The routing entry of one link: the homes advertised over it, and the ORs of their filters.
//!
//! The filters of a CUBF are columns of the table's bank; its entry has only the list of homes, the
//! number of filters and their combined rate.

use super::table::{Filters, HomeId, Stored};
use super::union::Union;

/// The routing entry of one link.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) members: Vec<(HomeId, u8)>,
    pub(super) filters: u64,
    /// For a CUBF, the probability that all its filters deny an absent key.
    pub(super) denies: f64,
    /// One OR for an ABF, one OR per distance for an attenuated entry.
    pub(super) levels: Vec<Union>,
}

impl Entry {
    pub(super) fn new(levels: usize) -> Self {
        Self {
            members: Vec::new(),
            filters: 0,
            denies: 1.0,
            levels: vec![Union::default(); levels],
        }
    }

    /// The index of the OR that holds filters from this distance.
    pub(super) fn place(&self, hops: u8) -> usize {
        (usize::from(hops) - 1).min(self.levels.len().saturating_sub(1))
    }

    /// The OR of filters from this distance; `None` for a CUBF, which has no ORs.
    pub(super) fn level(&mut self, hops: u8) -> Option<&mut Union> {
        let place = self.place(hops);
        self.levels.get_mut(place)
    }

    pub(super) fn denies(&self) -> f64 {
        self.denies * self.levels.iter().map(Union::denies).product::<f64>()
    }

    /// Rebuilds an OR from the stored filters of its members.
    pub(super) fn rebuild_level(&mut self, hops: u8, stored: &impl Stored) {
        let place = self.place(hops);
        self.levels[place] = Union::default();
        let mut filters = 0;
        for (home, distance) in self.members.clone() {
            let Some((scheme, components)) = stored.load(home) else { continue };
            filters += components.len() as u64;
            if self.place(distance) == place {
                let components = components.iter().collect();
                self.levels[place].add(&Filters { scheme: &scheme, components });
            }
        }
        self.filters = filters;
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let lists = (size_of::<Self>() + size_of_val(&*self.members)) as u64;
        lists + self.levels.iter().map(Union::memory_bytes).sum::<u64>()
    }
}
