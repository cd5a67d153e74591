//! Sets of keys with named attributes, which can be queried by any of them.
//!
//! There is one dynamic filter per attribute, which holds its values, and one more that holds
//! combinations. So `colour = red` of one key and `wheels = 2` of another are not mistaken for a
//! red bicycle: a query for several attributes is claimed only if their values were seen
//! *together*. (Papers: the multi-dimension dynamic Bloom filters of Guo and others, which paper 4
//! names in section 3.5.2.)
//!
//! ```text
//! insert(red, 2)   colour: {red}   wheels: {2}   combinations: {colour = red, wheels = 2}
//! ```
//!
//! Always true: a query that some key matches never returns [`Answer::No`], nor [`Answer::Apart`]
//! if its combination is checked. Values repeat, so components are plain and a value that is
//! claimed already is not added again: filters grow with the number of distinct values.
//!
//! Not here: removal, because a filter cannot know whether another key has the same value; rebuild
//! it from the keys instead. The formulas for the rates are in [`crate::model::attributes`].

use std::fmt;

use super::{DynamicFilter, StandardFilter};
use crate::key_hash::KeyHasher;
use crate::params::{ParamError, Rate};
use crate::scheme::Scheme;
use crate::{design, model};

/// Which combinations of values are stored, so that other combinations are recognised as wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combinations {
    /// Only the combination of all attributes: one per key. Queries for two or more attributes, but
    /// not all, are answered from the single values ([`Answer::Apart`]).
    Whole,
    /// Every combination of two or more attributes: `2^d - d - 1` per key, for up to six
    /// attributes.
    Every,
}

/// The answer to a query for keys with given values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No key has these values. Certain.
    No,
    /// Each value belongs to some key, but perhaps not to the same one.
    Apart,
    /// A key has them all, unless it is a false positive.
    Yes,
}

/// Why a filter was not made, a key not added, or a query not answered. Nothing changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeError {
    /// No attributes, or more than are allowed with these combinations.
    #[error("there are 1 to {max} attributes, not {given}")]
    Attributes {
        /// How many were given.
        given: usize,
        /// How many there can be.
        max: usize,
    },
    /// An attribute is named twice, in the set or in a query.
    #[error("the attribute {0:?} is named twice")]
    Twice(String),
    /// The set has no such attribute.
    #[error("there is no attribute {0:?}")]
    Unknown(String),
    /// The number of values differs from the number of attributes.
    #[error("a key has {wanted} values, one an attribute, not {given}")]
    Values {
        /// How many were given.
        given: usize,
        /// How many attributes there are.
        wanted: usize,
    },
    /// A query for no attribute.
    #[error("a question names at least one attribute")]
    Nothing,
    /// A number outside its range, or no memory.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// A filter of keys that have a value for each of several named attributes.
///
/// ```
/// use umbel::filter::{Answer, AttributeFilter, Combinations};
///
/// let names = ["kind", "colour", "wheels"];
/// let mut set = AttributeFilter::for_target(&names, Combinations::Every, 1000, 0.001)?;
/// set.insert(&["car", "red", "4"])?;
/// set.insert(&["bicycle", "blue", "2"])?;
///
/// assert_eq!(set.ask(&[("colour", "red")])?, Answer::Yes);
/// assert_eq!(set.ask(&[("wheels", "4"), ("colour", "red")])?, Answer::Yes);
/// // There are red things and things with two wheels, but no red one with two.
/// assert_eq!(set.ask(&[("wheels", "2"), ("colour", "red")])?, Answer::No);
/// # Ok::<(), umbel::filter::AttributeError>(())
/// ```
#[derive(Clone)]
pub struct AttributeFilter {
    names: Vec<String>,
    checked: Combinations,
    values: Vec<DynamicFilter<StandardFilter>>,
    combinations: DynamicFilter<StandardFilter>,
    keys: u64,
}

impl AttributeFilter {
    /// The most attributes of a set with [`Combinations::Every`].
    pub const MAX_OF_EVERY: usize = 6;
    /// The most attributes of a set with [`Combinations::Whole`].
    pub const MAX_OF_WHOLE: usize = 64;

    /// A filter for `items` keys per component. A query that no key matches is claimed with a
    /// probability of at most `rate`, even if all its values exist in different keys.
    ///
    /// # Errors
    /// If names are missing, repeated or too many, or a number is outside its range.
    pub fn for_target(
        names: &[&str],
        checked: Combinations,
        items: u64,
        rate: f64,
    ) -> Result<Self, AttributeError> {
        Self::with_hasher(names, checked, (items, rate), KeyHasher::default())
    }

    /// The same with the caller's hasher.
    ///
    /// # Errors
    /// As [`Self::for_target`].
    pub fn with_hasher(
        names: &[&str],
        checked: Combinations,
        (items, rate): (u64, f64),
        hasher: KeyHasher,
    ) -> Result<Self, AttributeError> {
        check_names(names, checked)?;
        let filter = |items: u64| -> Result<_, ParamError> {
            let max = DynamicFilter::MAX_COMPONENTS;
            let shape = design::dynamic_component(items, Rate::new(rate)?, max)?;
            DynamicFilter::new(Scheme::new(shape, hasher), items, max)
        };
        let values = names.iter().map(|_| filter(items)).collect::<Result<_, _>>()?;
        let a_key = masks(names.len(), checked).count().max(1) as u64;
        Ok(Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            checked,
            values,
            combinations: filter(items.saturating_mul(a_key))?,
            keys: 0,
        })
    }

    /// Adds a key: a value for each attribute, in the order of the names.
    ///
    /// # Errors
    /// If there are more or fewer values than attributes.
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert<V: AsRef<[u8]>>(&mut self, values: &[V]) -> Result<(), AttributeError> {
        let (given, wanted) = (values.len(), self.names.len());
        if given != wanted {
            return Err(AttributeError::Values { given, wanted });
        }
        for (filter, value) in self.values.iter_mut().zip(values) {
            filter.insert_if_absent(value);
        }
        for mask in masks(wanted, self.checked) {
            let asked = (0..wanted).filter(|i| mask >> i & 1 == 1).map(|i| (i, values[i].as_ref()));
            self.combinations.insert_if_absent(combination(asked));
        }
        self.keys += 1;
        Ok(())
    }

    /// Whether some key has all these values.
    ///
    /// # Errors
    /// If no attribute is named, one is unknown, or one is named twice.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn ask<V: AsRef<[u8]>>(&self, question: &[(&str, V)]) -> Result<Answer, AttributeError> {
        let attributes = self.attributes(question.iter().map(|(name, _)| *name))?;
        let values = question.iter().map(|(_, value)| value.as_ref());
        let mut asked: Vec<_> = attributes.into_iter().zip(values).collect();
        asked.sort_unstable_by_key(|(attribute, _)| *attribute);
        if !asked.iter().all(|(attribute, value)| self.values[*attribute].contains(value)) {
            return Ok(Answer::No);
        }
        if asked.len() == 1 {
            return Ok(Answer::Yes);
        }
        if !self.is_checked(asked.len()) {
            return Ok(Answer::Apart);
        }
        let together = self.combinations.contains(combination(asked.into_iter()));
        Ok(if together { Answer::Yes } else { Answer::No })
    }

    /// The probability that a query that no key matches is claimed, computed from the present
    /// fills. The `unknown` attributes have a value that no key has, the `known` ones a value of
    /// some key. See [`model::attributes::false_positive`].
    ///
    /// # Errors
    /// If no attribute is named, one is unknown to the set, or one is named twice.
    pub fn false_positive(&self, unknown: &[&str], known: &[&str]) -> Result<f64, AttributeError> {
        let asked = self.attributes(unknown.iter().chain(known).copied())?;
        let strange = asked.iter().take(unknown.len());
        let rates: Vec<f64> = strange.map(|i| self.values[*i].false_positive()).collect();
        let is_checked = asked.len() > 1 && self.is_checked(asked.len());
        let combination = is_checked.then(|| self.combinations.false_positive());
        Ok(model::attributes::false_positive(&rates, combination))
    }

    /// The attributes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Keys added, repeats included.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// Bits of all filters together.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let all = self.values.iter().chain([&self.combinations]);
        all.map(|filter| filter.components().len() as u64 * filter.scheme().shape().bits()).sum()
    }

    fn is_checked(&self, asked: usize) -> bool {
        self.checked == Combinations::Every || asked == self.names.len()
    }

    /// The attributes of these names, at least one and each named once.
    fn attributes<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<usize>, AttributeError> {
        let mut attributes = Vec::new();
        for name in names {
            let attribute = self.names.iter().position(|known| known == name);
            let attribute = attribute.ok_or_else(|| AttributeError::Unknown(name.to_owned()))?;
            if attributes.contains(&attribute) {
                return Err(AttributeError::Twice(name.to_owned()));
            }
            attributes.push(attribute);
        }
        if attributes.is_empty() { Err(AttributeError::Nothing) } else { Ok(attributes) }
    }
}

impl fmt::Debug for AttributeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttributeFilter({:?}, {:?}, {} keys)", self.names, self.checked, self.keys)
    }
}

fn check_names(names: &[&str], checked: Combinations) -> Result<(), AttributeError> {
    let max = match checked {
        Combinations::Whole => AttributeFilter::MAX_OF_WHOLE,
        Combinations::Every => AttributeFilter::MAX_OF_EVERY,
    };
    if names.is_empty() || names.len() > max {
        return Err(AttributeError::Attributes { given: names.len(), max });
    }
    let repeated = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    repeated.map_or(Ok(()), |(_, name)| Err(AttributeError::Twice((*name).to_owned())))
}

/// The combinations that are stored per key, as bit masks of attributes.
fn masks(attributes: usize, checked: Combinations) -> impl Iterator<Item = u64> {
    let all = u64::MAX >> (64 - attributes);
    let first = match checked {
        Combinations::Whole => all,
        Combinations::Every => 1,
    };
    (first..=all).filter(|mask| mask.count_ones() > 1)
}

/// The bytes of a combination: attribute, length and value, so that different combinations have
/// different bytes.
fn combination<'a>(asked: impl Iterator<Item = (usize, &'a [u8])>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (attribute, value) in asked {
        bytes.push(attribute as u8);
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn set(checked: Combinations) -> AttributeFilter {
        AttributeFilter::for_target(&NAMES, checked, 500, 0.001).unwrap()
    }

    #[test]
    fn whole_combinations_do_not_tell_parts_of_them() {
        let mut set = set(Combinations::Whole);
        set.insert(&["1", "2", "3"]).unwrap();
        set.insert(&["4", "5", "6"]).unwrap();
        assert_eq!(set.ask(&[("a", "1"), ("b", "5")]), Ok(Answer::Apart));
        assert_eq!(set.ask(&[("a", "1"), ("b", "5"), ("c", "3")]), Ok(Answer::No));
        assert_eq!(set.ask(&[("c", "6"), ("a", "4"), ("b", "5")]), Ok(Answer::Yes));
        assert_eq!(set.ask(&[("a", "7")]), Ok(Answer::No));
    }

    #[test]
    fn values_are_not_mixed_up_with_their_neighbours() {
        let mut set = set(Combinations::Every);
        set.insert(&["ab", "c", ""]).unwrap();
        set.insert(&["a", "bc", ""]).unwrap();
        assert_eq!(set.ask(&[("a", "ab"), ("b", "bc")]), Ok(Answer::No));
        assert_eq!(set.ask(&[("a", "c")]), Ok(Answer::No));
        assert_eq!(set.ask(&[("c", "")]), Ok(Answer::Yes));
    }

    /// All values exist; only an ambiguous encoding could confuse two combinations.
    #[test]
    fn combinations_of_other_lengths_or_attributes_are_not_taken_for_each_other() {
        let mut set = set(Combinations::Every);
        set.insert(&["x\u{1}y", "", ""]).unwrap();
        set.insert(&["x", "q", ""]).unwrap();
        set.insert(&["z", "y\u{1}", ""]).unwrap();
        assert_eq!(set.ask(&[("a", "x"), ("b", "y\u{1}")]), Ok(Answer::No));
        set.insert(&["1", "2", "9"]).unwrap();
        set.insert(&["8", "7", "2"]).unwrap();
        assert_eq!(set.ask(&[("a", "1"), ("c", "2")]), Ok(Answer::No));
        assert_eq!(set.ask(&[("a", "1"), ("b", "2")]), Ok(Answer::Yes));
    }

    /// Three attributes have four combinations of two or more.
    #[test]
    fn combinations_have_room_for_as_many_as_a_key_has() {
        let capacities = |checked| {
            let set = set(checked);
            (set.values.iter().map(DynamicFilter::capacity).max(), set.combinations.capacity())
        };
        assert_eq!(capacities(Combinations::Every), (Some(500), 2000));
        assert_eq!(capacities(Combinations::Whole), (Some(500), 500));
    }

    #[test]
    fn repeats_do_not_fill_components() {
        let mut set = set(Combinations::Every);
        for i in 0..5000 {
            set.insert(&["same", "same", &format!("{}", i % 7)]).unwrap();
        }
        assert_eq!(set.keys(), 5000);
        assert!(set.values.iter().all(|filter| filter.components().len() == 1));
        assert_eq!(set.values[0].items(), 1);
    }

    #[test]
    fn bad_names_and_questions_are_refused() {
        let made = |names: &[&str], checked| AttributeFilter::for_target(names, checked, 10, 0.01);
        let seven = ["1", "2", "3", "4", "5", "6", "7"];
        assert!(matches!(made(&[], Combinations::Whole), Err(AttributeError::Attributes { .. })));
        assert!(matches!(
            made(&seven, Combinations::Every),
            Err(AttributeError::Attributes { .. })
        ));
        assert!(made(&seven, Combinations::Whole).is_ok());
        assert!(made(&["one"], Combinations::Every).is_ok());
        let many: Vec<String> = (0..65).map(|i| i.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(made(&many, Combinations::Whole).is_err());
        assert!(made(&many[..64], Combinations::Whole).is_ok());
        assert_eq!(
            made(&["x", "x"], Combinations::Whole).err(),
            Some(AttributeError::Twice("x".into()))
        );
        assert!(AttributeFilter::for_target(&NAMES, Combinations::Every, 0, 0.01).is_err());
        assert!(AttributeFilter::for_target(&NAMES, Combinations::Every, 10, 1.0).is_err());
        let mut set = set(Combinations::Every);
        assert!(matches!(set.insert(&["1"]), Err(AttributeError::Values { given: 1, wanted: 3 })));
        assert_eq!(set.keys(), 0);
        assert_eq!(set.ask(&[("d", "1")]), Err(AttributeError::Unknown("d".into())));
        assert_eq!(set.ask(&[("a", "1"), ("a", "2")]), Err(AttributeError::Twice("a".into())));
        assert_eq!(set.ask::<&str>(&[]), Err(AttributeError::Nothing));
        assert_eq!(set.false_positive(&[], &[]), Err(AttributeError::Nothing));
        assert_eq!(set.false_positive(&["a"], &["d"]), Err(AttributeError::Unknown("d".into())));
        // An attribute that is named twice must not count as a combination of two.
        let twice = Err(AttributeError::Twice("a".into()));
        assert_eq!(set.false_positive(&["a"], &["a"]), twice);
        assert_eq!(set.false_positive(&["a", "b", "a"], &[]), twice);
    }

    #[test]
    fn rates_are_those_of_the_fills() {
        let mut set = set(Combinations::Every);
        for i in 0..500_u64 {
            set.insert(&[i.to_le_bytes(), (i / 5).to_le_bytes(), (i / 50).to_le_bytes()]).unwrap();
        }
        let invented = set.false_positive(&[], &["a", "b"]).unwrap();
        assert!(invented > 0.0 && invented < 0.001, "{invented}");
        let stranger = set.false_positive(&["a", "b"], &[]).unwrap();
        let (a, b) = (set.values[0].false_positive(), set.values[1].false_positive());
        assert!((stranger / (a * b * invented) - 1.0).abs() < 1e-12);
        assert_eq!(set.false_positive(&["b"], &[]), Ok(b));
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn every_question_that_a_key_answers_is_claimed(
            keys in prop::collection::vec([0_u8..5, 0_u8..5, 0_u8..5], 1..40), mask in 1_usize..8,
        ) {
            for checked in [Combinations::Every, Combinations::Whole] {
                let mut set = set(checked);
                for key in &keys {
                    set.insert(&key.map(|value| [value])).unwrap();
                }
                for key in &keys {
                    let asked = (0..3).filter(|i| mask >> i & 1 == 1);
                    let question: Vec<_> = asked.map(|i| (NAMES[i], [key[i]])).collect();
                    let unchecked = checked == Combinations::Whole && question.len() == 2;
                    let wanted = if unchecked { Answer::Apart } else { Answer::Yes };
                    prop_assert_eq!(set.ask(&question), Ok(wanted));
                }
            }
        }
    }
}
