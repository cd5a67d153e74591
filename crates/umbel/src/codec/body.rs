//! The body of a frame: one filter, as a whole or as a change of a base.
//!
//! ```text
//! standard = varint items, then: whole,      subset of all positions: the ones
//!                                or a change against the base's bits
//! counting = varint items, varint levels, for each level t = 1, 2, …:
//!            whole,      subset of the positions of level t-1 whose counter reaches t
//!            or against the base's level t, subset of zeros set, subset of ones cleared
//! blocked  = varint items, then: whole,      subset of all positions: the ones
//!                                or against the base, subset of zeros set, subset of ones cleared
//! dynamic  = varint capacity, max components, next id,
//!            varint aliases, each: varint id, varint the component it leads to,
//!            varint components, each: varint id, 0 whole | 1 against the base's, body
//! ```
//!
//! Always true: a filter that was read keeps every promise of its type, even if the bytes are
//! hostile.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bytes::{Reader, put_varint};
use super::change::{decode_change, decode_differing, encode_change, encode_differing};
use super::ranks::{Among, Flip};
use super::subset::{self, Sink, Source};
use super::{DecodeError, Kind};
use crate::bits::BitVector;
use crate::filter::{
    BlockedFilter, Component, ComponentId, CountingFilter, DynamicFilter, StandardFilter,
    slices_bytes,
};
use crate::key_hash::Digest;
use crate::params::Bits;
use crate::scheme::Scheme;

/// A filter that can be written into a frame. Implemented by every filter kind, and closed
/// to others.
pub trait Encodable: private::Body {}

impl<F: private::Body> Encodable for F {}

/// A decoder's memory limit, and how much of it is used.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    pub(super) limit: u64,
    pub(super) used: u64,
}

impl Budget {
    /// Charges memory that the decoded filter keeps.
    fn charge(&mut self, bytes: u64) -> Result<(), DecodeError> {
        self.used = self.used.saturating_add(bytes);
        self.lend(0)
    }

    /// Checks that there is also room for temporary memory.
    fn lend(self, bytes: u64) -> Result<(), DecodeError> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.limit {
            return Err(DecodeError::TooLarge { needed, limit: self.limit });
        }
        Ok(())
    }
}

/// Bytes of a bit vector of a scheme's length.
fn vector_bytes(scheme: &Scheme) -> u64 {
    scheme.shape().bits().div_ceil(64) * 8
}

pub(super) mod private {
    use super::{Budget, DecodeError, Digest, Kind, Reader, Scheme};

    #[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
    pub trait Body: Sized {
        const KIND: Kind;
        fn own_scheme(&self) -> &Scheme;
        /// A checksum of the contents, to identify the base or the result of a delta.
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

impl Source for BitVector {
    fn each(&self, mut found: impl FnMut(u64)) {
        for (index, word) in (0..).zip(self.words()) {
            let mut word = *word;
            while word != 0 {
                found(index * 64 + u64::from(word.trailing_zeros()));
                word &= word - 1;
            }
        }
    }

    fn bitmap(&self, universe: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size_of_val(self.words()));
        self.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.truncate(universe.div_ceil(8) as usize);
        bytes
    }
}

/// Sets the bits of a vector of zeros.
impl Sink for BitVector {
    #[inline]
    fn put(&mut self, number: u64) {
        self.flip((number >> 6) as usize, 1 << (number & 63));
    }

    #[inline]
    fn run(&mut self, numbers: Range<u64>) {
        let mut start = numbers.start;
        while start < numbers.end {
            let end = numbers.end.min((start | 63) + 1);
            let ones = u64::MAX >> (64 - (end - start));
            self.flip((start >> 6) as usize, ones << (start & 63));
            start = end;
        }
    }

    #[inline]
    fn byte(&mut self, index: u64, byte: u8) {
        self.words_mut()[(index >> 3) as usize] |= u64::from(byte) << ((index & 7) * 8);
        self.add_ones(byte.count_ones().into());
    }
}

fn write_whole(bits: &BitVector, out: &mut Vec<u8>) {
    subset::encode(out, bits.len().into(), bits.ones(), bits);
}

fn read_whole(reader: &mut Reader<'_>, scheme: &Scheme) -> Result<BitVector, DecodeError> {
    let len = scheme.shape().bits();
    let mut bits = BitVector::zeros(Bits::new(len)?)?;
    subset::decode(reader, len.into(), len, &mut bits)?;
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
        budget.charge(vector_bytes(&scheme))?;
        let items = reader.varint()?;
        let bits = match base {
            None => read_whole(reader, &scheme)?,
            Some(base) => {
                let mut bits = base.bits().clone();
                decode_change(reader, scheme.shape(), base.bits(), &mut bits)?;
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
        let level = |filter: &Self, level| filter.level(level).expect("memory for one level");
        let mut below: Option<BitVector> = None;
        for number in 1..=levels {
            let here = level(self, number);
            if let Some(base) = base {
                let before = level(base, number);
                encode_differing(out, &before, &here, Among::Zeros);
                encode_differing(out, &before, &here, Among::Ones);
            } else if let Some(below) = &below {
                let reached = Reached { below, here: &here };
                subset::encode(out, below.ones().into(), here.ones(), &reached);
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
        // Kept: four bits per counter and its plain bit. Temporary: a level and the one before it.
        budget.charge(vector_bytes(&scheme) * 5)?;
        budget.lend(vector_bytes(&scheme) * 2)?;
        let items = reader.varint()?;
        let levels = match reader.varint()? {
            levels @ 0..=15 => levels as u8,
            _ => return Err(DecodeError::Malformed("counters have at most 15 levels")),
        };
        let mut filter = match base {
            Some(base) => read_levels_against(reader, base, levels)?,
            None => read_levels(reader, scheme, levels)?,
        };
        filter.recount(scheme, items)?;
        Ok(filter)
    }
}

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl Body for BlockedFilter {
    const KIND: Kind = Kind::Blocked;

    fn own_scheme(&self) -> &Scheme {
        self.scheme()
    }

    fn checksum(&self) -> u64 {
        bits_of(self).checksum()
    }

    fn write(&self, base: Option<&Self>, _added: &[Digest], out: &mut Vec<u8>) {
        put_varint(out, self.items());
        let here = bits_of(self);
        match base.map(bits_of) {
            None => write_whole(&here, out),
            Some(before) => {
                encode_differing(out, &before, &here, Among::Zeros);
                encode_differing(out, &before, &here, Among::Ones);
            }
        }
    }

    fn read(
        reader: &mut Reader<'_>,
        scheme: Scheme,
        base: Option<&Self>,
        budget: &mut Budget,
    ) -> Result<Self, DecodeError> {
        budget.charge(vector_bytes(&scheme))?;
        budget.lend(vector_bytes(&scheme) * 2)?;
        let items = reader.varint()?;
        let bits = match base {
            None => read_whole(reader, &scheme)?,
            Some(base) => {
                let before = base.to_bits()?;
                let mut after = before.clone();
                decode_differing(reader, &before, Among::Zeros, &mut after)?;
                decode_differing(reader, &before, Among::Ones, &mut after)?;
                after
            }
        };
        Ok(Self::from_parts(scheme, &bits, items)?)
    }
}

fn bits_of(filter: &BlockedFilter) -> BitVector {
    filter.to_bits().expect("memory for a copy")
}

/// The positions of one level whose counters reach the next level, by rank.
struct Reached<'a> {
    below: &'a BitVector,
    here: &'a BitVector,
}

impl Source for Reached<'_> {
    fn each(&self, mut found: impl FnMut(u64)) {
        let mut before = 0;
        for (below, here) in self.below.words().iter().zip(self.here.words()) {
            let mut reached = *here;
            while reached != 0 {
                let lowest = reached & reached.wrapping_neg();
                found(before + u64::from((below & (lowest - 1)).count_ones()));
                reached ^= lowest;
            }
            before += u64::from(below.count_ones());
        }
    }
}

/// Reads each level as a subset of the one below it.
fn read_levels(
    reader: &mut Reader<'_>,
    scheme: Scheme,
    levels: u8,
) -> Result<CountingFilter, DecodeError> {
    let mut filter = CountingFilter::new(scheme)?;
    let mut below: Option<BitVector> = None;
    for _ in 0..levels {
        let here = match &below {
            None => read_whole(reader, &scheme)?,
            Some(below) => {
                let mut here = BitVector::zeros(Bits::new(below.len())?)?;
                let sink = &mut Flip::new(below, Among::Ones, &mut here);
                subset::decode(reader, below.ones().into(), below.ones(), sink)?;
                here
            }
        };
        filter.move_level(None, &here);
        below = Some(here);
    }
    Ok(filter)
}

/// Reads each level as a change of the base's level. Malformed levels that do not nest still give
/// counters; the checksum of the result usually rejects them. No counter leaves its range, because
/// a level is set only where the base's counter is below it, and cleared only where it is not.
fn read_levels_against(
    reader: &mut Reader<'_>,
    base: &CountingFilter,
    levels: u8,
) -> Result<CountingFilter, DecodeError> {
    let mut filter = base.clone();
    for level in 1..=levels {
        let before = base.level(level)?;
        let mut after = before.clone();
        decode_differing(reader, &before, Among::Zeros, &mut after)?;
        decode_differing(reader, &before, Among::Ones, &mut after)?;
        filter.move_level(Some(&before), &after);
    }
    Ok(filter)
}

/// A component of a dynamic filter; each kind of component has its own kind of dynamic filter.
pub trait Part: Component + Body {
    const DYNAMIC: Kind;
}

impl Part for CountingFilter {
    const DYNAMIC: Kind = Kind::Dynamic;
}

impl Part for StandardFilter {
    const DYNAMIC: Kind = Kind::PlainDynamic;
}

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl<C: Part> Body for DynamicFilter<C> {
    const KIND: Kind = C::DYNAMIC;

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
    let capacity = reader.varint()?;
    let max_components = reader.varint32()?;
    let next_id = reader.varint32()?;
    // Keep half of all ids for future components.
    if capacity == 0 || !(1..=1 << 16).contains(&max_components) || next_id > 1 << 31 {
        return Err(DecodeError::Malformed("the plan of a dynamic filter is out of range"));
    }
    let aliases = read_aliases(reader, budget)?;
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
        charge_component::<C>(components.len(), &scheme, budget)?;
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

/// Charges memory for the component at `index`: in the list, which grows by doubling, and in the
/// slices, which exist from two components on.
fn charge_component<C>(
    index: usize,
    scheme: &Scheme,
    budget: &mut Budget,
) -> Result<(), DecodeError> {
    budget.charge(2 * size_of::<(ComponentId, C)>() as u64)?;
    let slices = |components: usize| match components {
        0..2 => 0,
        _ => slices_bytes(components as u64, scheme.shape().bits()),
    };
    budget.charge(slices(index + 1) - slices(index))
}

fn read_aliases(
    reader: &mut Reader<'_>,
    budget: &mut Budget,
) -> Result<BTreeMap<ComponentId, ComponentId>, DecodeError> {
    let mut aliases = BTreeMap::new();
    for _ in 0..reader.varint()? {
        let alias = ComponentId(reader.varint32()?);
        let target = ComponentId(reader.varint32()?);
        if aliases.last_key_value().is_some_and(|(last, _)| *last >= alias) {
            return Err(DecodeError::Malformed("aliases do not ascend"));
        }
        budget.charge(ALIAS_BYTES)?;
        aliases.insert(alias, target);
    }
    Ok(aliases)
}

/// Bytes that an alias takes in a tree whose nodes are half full.
const ALIAS_BYTES: u64 = 32;
