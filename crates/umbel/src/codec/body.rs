//! The body of a frame: one filter, whole or against a base.
//!
//! ```text
//! standard = varint items, then: whole,      subset of all positions: the ones
//!                                or a change against the base's bits
//! counting = varint items, varint levels, for each level t = 1, 2, …:
//!            whole,      subset of the positions of level t-1 whose counter reaches t
//!            or against the base's level t, subset of zeros set, subset of ones cleared
//! dynamic  = varint capacity, max components, next id,
//!            varint aliases, each: varint id, varint the component it leads to,
//!            varint components, each: varint id, 0 whole | 1 against the base's, body
//! ```
//!
//! Always true: what is read is a filter that keeps every promise of its type, whoever
//! wrote the bytes.

use std::collections::BTreeMap;

use super::bytes::{Reader, put_varint};
use super::change::{decode_change, decode_flipped, encode_change, encode_flipped};
use super::ranks::{Among, Ranks};
use super::{DecodeError, Kind, subset};
use crate::bits::BitVector;
use crate::filter::{Component, ComponentId, CountingFilter, DynamicFilter, StandardFilter};
use crate::key_hash::Digest;
use crate::params::Bits;
use crate::scheme::Scheme;

/// A filter that can be written into a frame. Implemented by every filter kind, and closed
/// to others.
pub trait Encodable: private::Body {}

impl<F: private::Body> Encodable for F {}

/// What is left of a decoder's memory limit.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    pub(super) limit: u64,
    pub(super) used: u64,
}

impl Budget {
    fn charge(&mut self, bytes: u64) -> Result<(), DecodeError> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.limit {
            return Err(DecodeError::TooLarge { needed: self.used, limit: self.limit });
        }
        Ok(())
    }
}

pub(super) mod private {
    use super::{Budget, DecodeError, Digest, Kind, Reader, Scheme};

    #[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
    pub trait Body: Sized {
        const KIND: Kind;
        fn own_scheme(&self) -> &Scheme;
        /// Names the contents, as the base or the result of a delta.
        fn checksum(&self) -> u64;
        fn write(&self, base: Option<&Self>, added: &[Digest], out: &mut Vec<u8>);
        fn read(
            reader: &mut Reader<'_>,
            scheme: Scheme,
            base: Option<&Self>,
            budget: &mut Budget,
        ) -> Result<Self, DecodeError>;
    }
}

use private::Body;

/// More keys than any filter counts; leaves room to count on.
const MOST_ITEMS: u64 = 1 << 56;

fn read_items(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    match reader.varint()? {
        items @ 0..=MOST_ITEMS => Ok(items),
        _ => Err(DecodeError::Malformed("more items than a filter counts")),
    }
}

fn write_whole(bits: &BitVector, out: &mut Vec<u8>) {
    subset::encode(out, bits.len().into(), bits.ones(), bits.positions());
}

fn read_whole(reader: &mut Reader<'_>, len: u64) -> Result<BitVector, DecodeError> {
    let mut bits = BitVector::zeros(Bits::new(len)?)?;
    subset::decode(reader, len.into(), len, |position| {
        bits.set(position);
    })?;
    Ok(bits)
}

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl Body for StandardFilter {
    const KIND: Kind = Kind::Standard;

    fn own_scheme(&self) -> &Scheme {
        self.scheme()
    }

    fn checksum(&self) -> u64 {
        self.bits().checksum()
    }

    fn write(&self, base: Option<&Self>, added: &[Digest], out: &mut Vec<u8>) {
        put_varint(out, self.items());
        match base {
            None => write_whole(self.bits(), out),
            Some(base) => {
                encode_change(out, self.scheme().shape(), base.bits(), self.bits(), added);
            }
        }
    }

    fn read(
        reader: &mut Reader<'_>,
        scheme: Scheme,
        base: Option<&Self>,
        budget: &mut Budget,
    ) -> Result<Self, DecodeError> {
        budget.charge(scheme.shape().bits() / 8)?;
        let items = read_items(reader)?;
        let bits = match base {
            None => read_whole(reader, scheme.shape().bits())?,
            Some(base) => {
                let flips = decode_change(reader, scheme.shape(), base.bits())?;
                let mut bits = base.bits().clone();
                flips.apply(&mut bits);
                bits
            }
        };
        Ok(Self::from_parts(scheme, bits, items))
    }
}

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl Body for CountingFilter {
    const KIND: Kind = Kind::Counting;

    fn own_scheme(&self) -> &Scheme {
        self.scheme()
    }

    fn checksum(&self) -> u64 {
        self.counters_checksum()
    }

    fn write(&self, base: Option<&Self>, _added: &[Digest], out: &mut Vec<u8>) {
        put_varint(out, self.items());
        let levels = self.levels().max(base.map_or(0, Self::levels));
        put_varint(out, levels.into());
        let mut below: Option<BitVector> = None;
        for level in 1..=levels {
            let here = self.level(level);
            if let Some(base) = base {
                let before = base.level(level);
                encode_flipped(out, &here, &before, &before, Among::Zeros);
                encode_flipped(out, &before, &here, &before, Among::Ones);
            } else if let Some(below) = &below {
                let mut ranks = Ranks::new(below, Among::Ones);
                let reached = here.positions().map(|position| ranks.rank(position));
                subset::encode(out, below.ones().into(), here.ones(), reached);
            } else {
                write_whole(&here, out);
            }
            below = Some(here);
        }
    }

    fn read(
        reader: &mut Reader<'_>,
        scheme: Scheme,
        base: Option<&Self>,
        budget: &mut Budget,
    ) -> Result<Self, DecodeError> {
        budget.charge(scheme.shape().bits() / 8 * 5)?;
        let items = read_items(reader)?;
        let levels = match reader.varint()? {
            levels @ 0..=15 => levels as u8,
            _ => return Err(DecodeError::Malformed("counters have at most 15 levels")),
        };
        let mut filter = match base {
            Some(base) => read_levels_against(reader, base, levels)?,
            None => read_levels(reader, scheme, levels)?,
        };
        filter.recount(items);
        Ok(filter)
    }
}

/// Each level among the one below it.
fn read_levels(
    reader: &mut Reader<'_>,
    scheme: Scheme,
    levels: u8,
) -> Result<CountingFilter, DecodeError> {
    let mut filter = CountingFilter::new(scheme)?;
    let mut below: Option<BitVector> = None;
    for _ in 0..levels {
        let here = match &below {
            None => read_whole(reader, scheme.shape().bits())?,
            Some(below) => {
                let mut here = BitVector::zeros(Bits::new(below.len())?)?;
                let mut ranks = Ranks::new(below, Among::Ones);
                subset::decode(reader, below.ones().into(), below.ones(), |rank| {
                    here.set(ranks.position(rank));
                })?;
                here
            }
        };
        here.positions().for_each(|position| filter.raise_counter(position));
        below = Some(here);
    }
    Ok(filter)
}

/// Each level against the base's. Levels that do not nest give counters that the result's
/// checksum denies; no counter leaves its range, since a level is set only where the base's
/// counter lies below it and cleared only where it does not.
fn read_levels_against(
    reader: &mut Reader<'_>,
    base: &CountingFilter,
    levels: u8,
) -> Result<CountingFilter, DecodeError> {
    let mut filter = base.clone();
    for level in 1..=levels {
        let before = base.level(level);
        let sets = decode_flipped(reader, &before, Among::Zeros)?;
        sets.iter().for_each(|position| filter.raise_counter(*position));
        let clears = decode_flipped(reader, &before, Among::Ones)?;
        clears.iter().for_each(|position| filter.lower_counter(*position));
    }
    Ok(filter)
}

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl Body for DynamicFilter<CountingFilter> {
    const KIND: Kind = Kind::Dynamic;

    fn own_scheme(&self) -> &Scheme {
        self.scheme()
    }

    fn checksum(&self) -> u64 {
        dynamic_checksum(self)
    }

    fn write(&self, base: Option<&Self>, _added: &[Digest], out: &mut Vec<u8>) {
        write_dynamic(self, base, out);
    }

    fn read(
        reader: &mut Reader<'_>,
        scheme: Scheme,
        base: Option<&Self>,
        budget: &mut Budget,
    ) -> Result<Self, DecodeError> {
        read_dynamic(reader, scheme, base, budget)
    }
}

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl Body for DynamicFilter<StandardFilter> {
    const KIND: Kind = Kind::PlainDynamic;

    fn own_scheme(&self) -> &Scheme {
        self.scheme()
    }

    fn checksum(&self) -> u64 {
        dynamic_checksum(self)
    }

    fn write(&self, base: Option<&Self>, _added: &[Digest], out: &mut Vec<u8>) {
        write_dynamic(self, base, out);
    }

    fn read(
        reader: &mut Reader<'_>,
        scheme: Scheme,
        base: Option<&Self>,
        budget: &mut Budget,
    ) -> Result<Self, DecodeError> {
        read_dynamic(reader, scheme, base, budget)
    }
}

fn dynamic_checksum<C: Component + Body>(filter: &DynamicFilter<C>) -> u64 {
    filter.components().iter().fold(0u64, |sum, (id, component)| {
        let mixed = (sum.rotate_left(5) ^ u64::from(id.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed.wrapping_add(component.checksum())
    })
}

const WHOLE: u8 = 0;
const CHANGED: u8 = 1;

fn write_dynamic<C: Component + Body>(
    filter: &DynamicFilter<C>,
    base: Option<&DynamicFilter<C>>,
    out: &mut Vec<u8>,
) {
    put_varint(out, filter.capacity());
    put_varint(out, filter.max_components().into());
    put_varint(out, filter.next_id().into());
    put_varint(out, filter.aliases().len() as u64);
    for (alias, target) in filter.aliases() {
        put_varint(out, alias.0.into());
        put_varint(out, target.0.into());
    }
    put_varint(out, filter.components().len() as u64);
    for (id, component) in filter.components() {
        put_varint(out, id.0.into());
        let before = base.and_then(|base| base.component(*id));
        out.push(if before.is_some() { CHANGED } else { WHOLE });
        component.write(before, &[], out);
    }
}

fn read_dynamic<C: Component + Body>(
    reader: &mut Reader<'_>,
    scheme: Scheme,
    base: Option<&DynamicFilter<C>>,
    budget: &mut Budget,
) -> Result<DynamicFilter<C>, DecodeError> {
    let capacity = read_items(reader)?;
    let max_components = reader.varint32()?;
    let next_id = reader.varint32()?;
    // Half of all ids are left for components to come.
    if capacity == 0 || !(1..=1 << 16).contains(&max_components) || next_id > 1 << 31 {
        return Err(DecodeError::Malformed("the plan of a dynamic filter is out of range"));
    }
    let aliases = read_aliases(reader)?;
    let mut components: Vec<(ComponentId, C)> = Vec::new();
    for _ in 0..reader.varint()? {
        let id = ComponentId(reader.varint32()?);
        if id.0 >= next_id || components.last().is_some_and(|(last, _)| *last >= id) {
            return Err(DecodeError::Malformed("ids of components do not ascend"));
        }
        let before = match (reader.byte()?, base) {
            (WHOLE, _) => None,
            (CHANGED, Some(base)) => Some(
                base.component(id)
                    .ok_or(DecodeError::Malformed("a change of a component that is not there"))?,
            ),
            _ => return Err(DecodeError::Malformed("unknown kind of a component")),
        };
        // Its share of the slices.
        budget.charge(scheme.shape().bits() / 8)?;
        components.push((id, C::read(reader, scheme, before, budget)?));
    }
    let lives = |id: &ComponentId| components.binary_search_by_key(id, |(id, _)| *id).is_ok();
    if components.is_empty() {
        return Err(DecodeError::Malformed("a dynamic filter has no component"));
    }
    if aliases.iter().any(|(alias, target)| alias.0 >= next_id || lives(alias) || !lives(target)) {
        return Err(DecodeError::Malformed("an alias leads nowhere"));
    }
    let parts = (capacity, max_components, next_id);
    Ok(DynamicFilter::from_parts(scheme, parts, components, aliases))
}

fn read_aliases(
    reader: &mut Reader<'_>,
) -> Result<BTreeMap<ComponentId, ComponentId>, DecodeError> {
    let mut aliases = BTreeMap::new();
    for _ in 0..reader.varint()? {
        let alias = ComponentId(reader.varint32()?);
        let target = ComponentId(reader.varint32()?);
        if aliases.last_key_value().is_some_and(|(last, _)| *last >= alias) {
            return Err(DecodeError::Malformed("aliases do not ascend"));
        }
        aliases.insert(alias, target);
    }
    Ok(aliases)
}
