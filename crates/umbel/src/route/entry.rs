//! What came over one link: which homes, and the ORs of their filters.
//!
//! The filters of a CUBF are columns of the table's bank; its entry has the list, their number and
//! their common rate alone.

use super::table::{Filters, HomeId, Stored};
use super::union::Union;

/// What came over one link.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) members: Vec<(HomeId, u8)>,
    pub(super) filters: u64,
    /// Of a CUBF: chance that all its filters deny a stranger.
    pub(super) denies: f64,
    /// Of an ABF one, of an attenuated entry one for each distance.
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

    /// Which OR holds filters from this far.
    pub(super) fn place(&self, hops: u8) -> usize {
        (usize::from(hops) - 1).min(self.levels.len().saturating_sub(1))
    }

    /// The OR of filters from this far; the filters of a CUBF are in none.
    pub(super) fn level(&mut self, hops: u8) -> Option<&mut Union> {
        let place = self.place(hops);
        self.levels.get_mut(place)
    }

    pub(super) fn denies(&self) -> f64 {
        self.denies * self.levels.iter().map(Union::denies).product::<f64>()
    }

    /// Builds an OR again from what is stored of its members.
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
