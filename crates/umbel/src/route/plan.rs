//! What all hosts of an overlay agree on: how far filters travel, how entries store them, and the
//! false positive rate of an entry. This determines the shape of filters.
//!
//! Always true: an entry of `filters` filters of `items` keys each, made of the plan's shape,
//! claims an absent key with a probability of at most `false_positive`, according to the formula.

use std::fmt;
use std::str::FromStr;

use crate::design::{self, routing};
use crate::model::each_of;
use crate::params::{ParamError, Rate, Shape};

/// How the entry of a link stores the filters that arrived over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Separately, one column per filter: the shortest filters, and a withdrawal needs no rebuild.
    Cubf,
    /// As their OR: the smallest entry, of long and sparse filters.
    Abf,
    /// As one OR per distance: knows which link is nearest.
    Attenuated,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Cubf, Self::Abf, Self::Attenuated];

    /// The number that stands for it in messages.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Cubf => 1,
            Self::Abf => 2,
            Self::Attenuated => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cubf => "cubf",
            Self::Abf => "abf",
            Self::Attenuated => "attenuated",
        })
    }
}

/// A name that is not one of a kind of entry. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown entry '{0}': use cubf, abf or attenuated")]
pub struct UnknownKind(String);

impl FromStr for EntryKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let named = Self::ALL.into_iter().find(|kind| kind.to_string() == name);
        named.ok_or_else(|| UnknownKind(name.to_owned()))
    }
}

/// What all hosts of an overlay agree on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// How entries store filters.
    pub kind: EntryKind,
    /// Hops that a filter travels (the paper's `d`): 1 to 255.
    pub depth: u8,
    /// Average number of keys per home (`n`).
    pub items: u64,
    /// Number of filters that arrive over a link (`s`); a CUBF refuses more.
    pub filters: u64,
    /// Highest probability that an entry claims an absent key (`σ`).
    pub false_positive: f64,
}

impl Plan {
    /// The shape of every home's filter: by the receiver-oriented design, exact, with a tenth
    /// more room.
    ///
    /// The extra room is for bits of a published copy that wait to be cleared. The design already
    /// accounts for the variance of short filters.
    ///
    /// ```
    /// use umbel::route::{EntryKind, Plan};
    ///
    /// let plan = Plan { kind: EntryKind::Cubf, depth: 3, items: 30, filters: 100, false_positive: 0.001 };
    /// assert_eq!((plan.shape()?.bits(), plan.shape()?.hashes()), (811, 17));
    /// # Ok::<(), umbel::params::ParamError>(())
    /// ```
    ///
    /// # Errors
    /// If a number is zero or out of its range, or the filter would be too long.
    pub fn shape(&self) -> Result<Shape, ParamError> {
        let rate = Rate::new(self.false_positive)?;
        if self.depth == 0 {
            return Err(ParamError::Items(0));
        }
        let items = self.room_for(self.items)?;
        match self.kind {
            EntryKind::Cubf => Ok(routing::exact(items, self.filters, rate)?.cubf),
            EntryKind::Abf => Ok(routing::exact(items, self.filters, rate)?.abf),
            // Any of the `d` ORs may claim the key, and the farthest one contains nearly all
            // filters.
            EntryKind::Attenuated => {
                let all = items.checked_mul(self.filters).ok_or(ParamError::Bits(u64::MAX))?;
                let each = each_of(rate.get(), f64::from(self.depth));
                design::standard(all, Rate::new(each)?)
            }
        }
    }

    /// Keys that one component of a home's filter holds: with a CUBF a home of more keys sends
    /// several filters, so that each keeps its rate. In an OR it does not matter to which home a
    /// key belongs.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match self.kind {
            EntryKind::Cubf => self.items,
            _ => self.items.saturating_mul(self.filters),
        }
    }

    /// Levels of an entry that keeps ORs.
    pub(crate) const fn levels(&self) -> usize {
        match self.kind {
            EntryKind::Cubf => 0,
            EntryKind::Abf => 1,
            EntryKind::Attenuated => self.depth as usize,
        }
    }

    const fn room_for(&self, items: u64) -> Result<u64, ParamError> {
        match items.checked_add(items.div_ceil(10)) {
            Some(0) => Err(ParamError::Items(0)),
            Some(items) => Ok(items),
            None => Err(ParamError::Bits(u64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{any_of, routing, standard};

    #[test]
    fn kinds_are_written_as_they_are_read() {
        for kind in EntryKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(EntryKind::from_code(kind.code()), Some(kind));
        }
        assert!("bloom".parse::<EntryKind>().unwrap_err().to_string().contains("attenuated"));
        assert_eq!(EntryKind::from_code(0), None);
    }

    #[test]
    fn shapes_keep_the_rate_of_a_full_entry() {
        for kind in EntryKind::ALL {
            let plan = Plan { kind, depth: 4, items: 30, filters: 50, false_positive: 0.002 };
            let shape = plan.shape().unwrap();
            let rate = match kind {
                EntryKind::Cubf => routing::cubf(shape, 33, 50),
                EntryKind::Abf => routing::abf(shape, 33, 50),
                // As if every level were as full as all of them together.
                EntryKind::Attenuated => any_of(standard::false_positive(shape, 33 * 50), 4.0),
            };
            assert!(rate <= 0.002 * (1.0 + 1e-9), "{kind}: {rate}");
        }
    }

    #[test]
    fn plans_of_nothing_are_refused() {
        let plan = Plan {
            kind: EntryKind::Attenuated,
            depth: 3,
            items: 30,
            filters: 7,
            false_positive: 0.01,
        };
        for bad in [
            Plan { depth: 0, ..plan },
            Plan { items: 0, ..plan },
            Plan { filters: 0, ..plan },
            Plan { false_positive: 1.0, ..plan },
            Plan { items: u64::MAX, ..plan },
            Plan { filters: u64::MAX, ..plan },
        ] {
            assert!(bad.shape().is_err(), "{bad:?}");
        }
    }
}
