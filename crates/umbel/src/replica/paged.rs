//! Changes of an image as bytes, cut into pages.
//!
//! ```text
//! changes   = varint count, each: varint id, op byte, and unless dropped a change
//! op        = 0 dropped | 1 flips by bits | 2 flips by digests | 3 whole
//! change    = whole: for each page of 2^20 bits varint length, subset of its positions: ones
//!           | flips: [digests: subset of all digests] then for each page varint length, block;
//!             after the length 0 of an unchanged page, unless it is the last one:
//!             varint, how many more pages do not change
//! block     = [by bits: subset of the page's zeros that are set] subset of its ones cleared
//! ```
//!
//! Between nested rungs (`design::ladder`) a change leads to another shape. Down to a lower rung,
//! it is a change of the folded image. Up to a higher rung, it leads to the fold of the new bits,
//! and is followed, for each rung in between, by
//!
//! ```text
//! refined   = for each page of 2^20 bits of the lower rung: varint length, refinement
//! ```
//!
//! Why pages: an image is fetched page by page, and ranks among a page's zeros and ones are found
//! in memory that fits into a cache. A filter of up to 2^20 bits is one page, at the cost of one
//! length field.
//!
//! Always true: what is decoded fits the image it was decoded against.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::image::{Change, Changes, Image};
use crate::bits::BitVector;
use crate::codec::{
    Among, DecodeError, Flips, Reader, decode_differing, decode_digests, decode_positions,
    decode_refinement, encode_differing, encode_digests, encode_refinement, put_varint, subset,
};
use crate::filter::ComponentId;
use crate::key_hash::Digest;
use crate::model::limits;
use crate::params::{Bits, Shape};

/// Bits per page: 128 KiB as they are, less when encoded.
pub(crate) const PAGE_BITS: u64 = 1 << 20;

/// Number of pages of a filter.
pub(crate) const fn pages(shape: &Shape) -> u64 {
    shape.bits().div_ceil(PAGE_BITS)
}

/// Length of a page, which is shorter at the end of a filter.
pub(crate) fn page_len(shape: &Shape, page: u64) -> u64 {
    PAGE_BITS.min(shape.bits() - page * PAGE_BITS)
}

/// What one component is to become.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) id: ComponentId,
    pub(crate) bits: Arc<BitVector>,
    /// Digests that explain the bits set since the base, or none if they are not known.
    pub(crate) added: Vec<Digest>,
}

/// Appends what turns `image` into one with these targets and without the dropped.
pub(crate) fn encode_changes(
    out: &mut Vec<u8>,
    image: &Image,
    targets: &[Target],
    dropped: &[ComponentId],
) {
    put_varint(out, (targets.len() + dropped.len()) as u64);
    for id in dropped {
        put_varint(out, id.0.into());
        out.push(DROPPED);
    }
    for target in targets {
        put_varint(out, target.id.0.into());
        let shape = image.scheme().shape();
        match image.component(target.id) {
            Some(base) => out.extend(shortest(shape, &base.bits, target)),
            None => encode_whole(out, &target.bits),
        }
    }
}

/// Appends a change that adds keys to components, by their digests. The bytes are those of
/// [`encode_changes`], but the bits are not read. Returns whether that was possible.
pub(crate) fn encode_added(
    out: &mut Vec<u8>,
    shape: &Shape,
    added: &[(ComponentId, Vec<Digest>)],
) -> bool {
    put_varint(out, added.len() as u64);
    added.iter().all(|(id, digests)| {
        put_varint(out, id.0.into());
        out.push(BY_DIGESTS);
        let fits = encode_digests(out, shape, digests);
        put_unchanged(out, shape, 0, pages(shape));
        fits
    })
}

/// Reads what [`encode_changes`] wrote against the same image; more than `max` whole components are
/// rejected before memory is allocated for them.
pub(crate) fn decode_changes(
    reader: &mut Reader<'_>,
    image: &Image,
    max: usize,
) -> Result<Changes, DecodeError> {
    let base = |id| image.component(id).map(|component| &*component.bits);
    decode_changes_of(reader, image.scheme().shape(), base, max)
}

/// As [`decode_changes`], against components that are kept elsewhere.
fn decode_changes_of<'a>(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: impl Fn(ComponentId) -> Option<&'a BitVector>,
    max: usize,
) -> Result<Changes, DecodeError> {
    let (mut wholes, mut seen) = (0, BTreeSet::new());
    let mut changes: Changes = Vec::new();
    for _ in 0..reader.varint()? {
        let id = ComponentId(reader.varint32()?);
        if !seen.insert(id) {
            return Err(DecodeError::Malformed("a component changes twice"));
        }
        let change = match (reader.byte()?, base(id)) {
            (DROPPED, _) => Change::Dropped,
            (WHOLE, _) => {
                wholes += 1;
                check_number(wholes, max)?;
                Change::Whole(decode_whole(reader, shape)?)
            }
            (op @ (BY_BITS | BY_DIGESTS), Some(base)) => decode_flips(reader, shape, base, op)?,
            _ => return Err(DecodeError::Malformed("unknown change of a component")),
        };
        changes.push((id, change));
    }
    Ok(changes)
}

/// The component of an image on a ladder, which has no other.
pub(crate) const ONLY: ComponentId = ComponentId(0);

/// Reads the change of an image's only component; `None` if it does not change.
pub(crate) fn decode_change(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: Option<&BitVector>,
) -> Result<Option<Change>, DecodeError> {
    let mut changes = decode_changes_of(reader, shape, |id| base.filter(|_| id == ONLY), 1)?;
    if changes.iter().any(|(id, _)| *id != ONLY) {
        return Err(DecodeError::Malformed("an image on a ladder has one component, number 0"));
    }
    Ok(changes.pop().map(|(_, change)| change))
}

/// Appends the change from `image` to one whose only component has these bits, `steps` rungs above.
pub(crate) fn encode_climb(out: &mut Vec<u8>, image: &Image, target: &Target, steps: u32) {
    let bits = Arc::new(target.bits.folded(steps));
    let folded = Target { id: target.id, bits, added: target.added.clone() };
    encode_changes(out, image, &[folded], &[]);
    for above in (0..steps).rev() {
        let finer = target.bits.folded(above);
        for page in 0..(finer.len() / 2).div_ceil(PAGE_BITS) {
            let mut block = Vec::new();
            encode_refinement(&mut block, &finer.slice(2 * page * PAGE_BITS, 2 * PAGE_BITS));
            put_varint(out, block.len() as u64);
            out.append(&mut block);
        }
    }
}

/// Reads the bits of the only component of an image on another rung than `base`, which has the
/// shape `shape`. `steps` is the number of rungs above or, if negative, below.
pub(crate) fn decode_step(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: &BitVector,
    steps: i32,
) -> Result<BitVector, DecodeError> {
    if steps < 0 {
        let folded = base.folded(steps.unsigned_abs());
        let lower = Shape::new(folded.len(), shape.hashes())?;
        let lower = lower.with_digest_bits(shape.digest_bits());
        return changed(reader, &lower, folded);
    }
    let mut bits = changed(reader, shape, base.clone())?;
    for _ in 0..steps {
        bits = decode_refined(reader, &bits)?;
    }
    Ok(bits)
}

/// Reads a change and returns the bits that it leads to.
fn changed(
    reader: &mut Reader<'_>,
    shape: &Shape,
    mut bits: BitVector,
) -> Result<BitVector, DecodeError> {
    match decode_change(reader, shape, Some(&bits))? {
        None => {}
        Some(Change::Whole(whole)) => bits = whole,
        Some(Change::Flips(flips)) => flips.apply(&mut bits),
        Some(Change::Dropped) => {
            return Err(DecodeError::Malformed("a component that is dropped has no next rung"));
        }
    }
    Ok(bits)
}

/// The bits one rung above `base`.
fn decode_refined(reader: &mut Reader<'_>, base: &BitVector) -> Result<BitVector, DecodeError> {
    let mut finer = BitVector::zeros(Bits::new(base.len() * 2)?)?;
    for page in 0..base.len().div_ceil(PAGE_BITS) {
        let mut block = block(reader)?;
        let here = decode_refinement(&mut block, &base.slice(page * PAGE_BITS, PAGE_BITS))?;
        block.end()?;
        finer.put_slice(2 * page * PAGE_BITS, &here);
    }
    Ok(finer)
}

fn check_number(wholes: usize, max: usize) -> Result<(), DecodeError> {
    if wholes > max {
        return Err(DecodeError::Malformed("more components than are accepted"));
    }
    Ok(())
}

/// More components than any home has. Limits the memory that a hostile host can make us allocate.
pub(crate) const MAX_COMPONENTS: usize = 1024;

const DROPPED: u8 = 0;
const BY_BITS: u8 = 1;
const BY_DIGESTS: u8 = 2;
const WHOLE: u8 = 3;

/// The shortest of: flipped bits, digests and cleared bits, the whole component.
fn shortest(shape: &Shape, base: &BitVector, target: &Target) -> Vec<u8> {
    let mut best = match by_digests(shape, base, target) {
        // Encoding the bits cannot be that much shorter than their entropy: do not try it.
        Some(digests) if (digests.len() as f64) < 0.95 * min_bytes(base, &target.bits) => digests,
        Some(digests) => shorter(by_bits(shape, base, target), digests),
        None => by_bits(shape, base, target),
    };
    // More than half as long as the bits themselves: perhaps most of the filter is new.
    if best.len() as u64 > shape.bits() / 16 {
        let mut whole = Vec::new();
        encode_whole(&mut whole, &target.bits);
        best = shorter(best, whole);
    }
    best
}

/// The fewest bytes that can encode the flipped bits, if all bits are equally likely to flip.
fn min_bytes(base: &BitVector, new: &BitVector) -> f64 {
    limits::delta_bytes(limits::Flips {
        zeros: (base.len() - base.ones()) as f64,
        set: new.count_beyond(base) as f64,
        ones: base.ones() as f64,
        cleared: base.count_beyond(new) as f64,
    })
}

fn shorter(a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    if b.len() < a.len() { b } else { a }
}

/// Flipped bits.
fn by_bits(shape: &Shape, base: &BitVector, target: &Target) -> Vec<u8> {
    let mut out = vec![BY_BITS];
    encode_pages(&mut out, shape, |page| {
        let (base, new) = (page_of(base, shape, page), page_of(&target.bits, shape, page));
        let mut block = Vec::new();
        if base != new {
            encode_differing(&mut block, &base, &new, Among::Zeros);
            encode_differing(&mut block, &base, &new, Among::Ones);
        }
        block
    });
    out
}

/// Digests and cleared bits, if the digests are known.
fn by_digests(shape: &Shape, base: &BitVector, target: &Target) -> Option<Vec<u8>> {
    let mut out = vec![BY_DIGESTS];
    if target.added.is_empty() || !encode_digests(&mut out, shape, &target.added) {
        return None;
    }
    encode_pages(&mut out, shape, |page| {
        let (base, new) = (page_of(base, shape, page), page_of(&target.bits, shape, page));
        let mut block = Vec::new();
        if !base.is_subset_of(&new) {
            encode_differing(&mut block, &base, &new, Among::Ones);
        }
        block
    });
    Some(out)
}

fn encode_whole(out: &mut Vec<u8>, bits: &BitVector) {
    out.push(WHOLE);
    for page in 0..bits.len().div_ceil(PAGE_BITS) {
        let mut block = Vec::new();
        encode_page(&mut block, &bits.slice(page * PAGE_BITS, PAGE_BITS));
        put_varint(out, block.len() as u64);
        out.append(&mut block);
    }
}

/// Appends one page: the subset of its positions that are ones.
pub(crate) fn encode_page(out: &mut Vec<u8>, page: &BitVector) {
    subset::encode(out, page.len().into(), page.ones(), page);
}

/// Reads one page of this length.
pub(crate) fn decode_page(reader: &mut Reader<'_>, len: u64) -> Result<BitVector, DecodeError> {
    let mut bits = BitVector::zeros(Bits::new(len)?)?;
    subset::decode(reader, len.into(), len, &mut bits)?;
    Ok(bits)
}

fn decode_whole(reader: &mut Reader<'_>, shape: &Shape) -> Result<BitVector, DecodeError> {
    let mut bits = BitVector::zeros(Bits::new(shape.bits())?)?;
    for page in 0..pages(shape) {
        let mut block = block(reader)?;
        let here = decode_page(&mut block, page_len(shape, page))?;
        block.end()?;
        bits.put_slice(page * PAGE_BITS, &here);
    }
    Ok(bits)
}

fn decode_flips(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: &BitVector,
    op: u8,
) -> Result<Change, DecodeError> {
    if op == BY_DIGESTS
        && let Some(flips) = decode_added(reader, shape, base)?
    {
        return Ok(Change::Flips(flips));
    }
    let mut new = base.clone();
    if op == BY_DIGESTS {
        decode_digests(reader, shape, &mut new)?;
    }
    let mut page = 0;
    while let Some((changed, mut block)) = next_block(reader, shape, page)? {
        let mut here = page_of(&new, shape, changed);
        decode_block(&mut block, &page_of(base, shape, changed), &mut here, op)?;
        new.put_slice(changed * PAGE_BITS, &here);
        page = changed + 1;
    }
    // A few bytes can flip all bits, and a list of flips takes 64 times as much memory as the bits.
    let flips = base.count_beyond(&new) + new.count_beyond(base);
    let is_dense = flips > shape.bits() / 8;
    Ok(if is_dense { Change::Whole(new) } else { Change::Flips(Flips::between(base, &new)) })
}

/// Reads a change that consists only of digests of added keys, without a pass over the bits.
/// Returns `None` and reads nothing if there are many digests, or if bits are cleared as well.
fn decode_added(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: &BitVector,
) -> Result<Option<Flips>, DecodeError> {
    let mut ahead = reader.clone();
    // The limit ensures that the list takes no more memory than the bits.
    let Some(mut sets) = decode_positions(&mut ahead, shape, shape.bits() / 64)? else {
        return Ok(None);
    };
    if next_block(&mut ahead, shape, 0)?.is_some() {
        return Ok(None);
    }
    *reader = ahead;
    sets.retain(|position| base.get(*position) == 0);
    sets.sort_unstable();
    sets.dedup();
    Ok(Some(Flips { sets, clears: Vec::new() }))
}

/// Reads one page's block and flips the bits of `new`, which contains the bits of `base` and
/// perhaps more.
fn decode_block(
    reader: &mut Reader<'_>,
    base: &BitVector,
    new: &mut BitVector,
    op: u8,
) -> Result<(), DecodeError> {
    if op == BY_BITS {
        decode_differing(reader, base, Among::Zeros, new)?;
    }
    decode_differing(reader, base, Among::Ones, new)?;
    reader.end()
}

/// Appends the blocks of all pages, of which most are empty if few bits of a long filter change.
fn encode_pages(out: &mut Vec<u8>, shape: &Shape, block: impl Fn(u64) -> Vec<u8>) {
    let mut unchanged = 0;
    for page in 0..pages(shape) {
        let mut block = block(page);
        if block.is_empty() {
            unchanged += 1;
            continue;
        }
        put_unchanged(out, shape, page - unchanged, std::mem::take(&mut unchanged));
        put_varint(out, block.len() as u64);
        out.append(&mut block);
    }
    put_unchanged(out, shape, pages(shape) - unchanged, unchanged);
}

/// Appends that `count` pages, starting with `first`, do not change.
fn put_unchanged(out: &mut Vec<u8>, shape: &Shape, first: u64, count: u64) {
    if count > 0 {
        out.push(0);
        if first + 1 < pages(shape) {
            put_varint(out, count - 1);
        }
    }
}

/// Reads on, starting with this page. Returns the next page that changes, and its block.
fn next_block<'a>(
    reader: &mut Reader<'a>,
    shape: &Shape,
    mut page: u64,
) -> Result<Option<(u64, Reader<'a>)>, DecodeError> {
    while page < pages(shape) {
        let block = block(reader)?;
        if !block.is_empty() {
            return Ok(Some((page, block)));
        }
        page += 1;
        if page < pages(shape) {
            page = page.saturating_add(reader.varint()?);
        }
    }
    if page > pages(shape) {
        return Err(DecodeError::Malformed("a change names pages beyond the last"));
    }
    Ok(None)
}

fn block<'a>(reader: &mut Reader<'a>) -> Result<Reader<'a>, DecodeError> {
    let length = reader.varint()?;
    Ok(Reader::new(reader.take(length)?))
}

fn page_of(bits: &BitVector, shape: &Shape, page: u64) -> BitVector {
    bits.slice(page * PAGE_BITS, page_len(shape, page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_hash::KeyHash;

    /// Both ways to write digests make the same bytes, and both ways to read them the same flips.
    #[test]
    fn digests_alone_need_no_pass_over_the_bits() {
        let shape = Shape::new(3 << 20, 7).unwrap();
        let hash = |number: u64| KeyHash::from_raw(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let digest = |number| hash(number).digest(shape.digest_bits());
        let mut base = BitVector::zeros(Bits::new(shape.bits()).unwrap()).unwrap();
        let held = (0..100_000).map(digest);
        held.flat_map(|digest| digest.positions(&shape)).for_each(|position| {
            base.set(position);
        });
        for keys in [1, 10, 1000, 6000, 8000] {
            let keys = (200_000..200_000 + keys).map(digest);
            // One of them twice, and one that the base claims.
            let added: Vec<Digest> = keys.chain([digest(200_000), digest(0)]).collect();
            let mut bits = base.clone();
            added.iter().flat_map(|digest| digest.positions(&shape)).for_each(|position| {
                bits.set(position);
            });
            let target = Target { id: ONLY, bits: Arc::new(bits.clone()), added: added.clone() };
            let slowly = by_digests(&shape, &base, &target).unwrap();
            let mut quickly = Vec::new();
            assert!(encode_added(&mut quickly, &shape, &[(ONLY, added)]));
            assert_eq!(quickly[2..], slowly, "after the count and the id");
            let change = decode_flips(&mut Reader::new(&slowly[1..]), &shape, &base, BY_DIGESTS);
            assert_eq!(change, Ok(Change::Flips(Flips::between(&base, &bits))));
        }
    }

    /// In a long filter with few changes, unchanged pages do not cost bytes each.
    #[test]
    fn pages_without_changes_take_no_bytes() {
        let shape = Shape::new(300 * PAGE_BITS, 7).unwrap();
        let base = BitVector::zeros(Bits::new(shape.bits()).unwrap()).unwrap();
        let last = pages(&shape) - 1;
        let cases: [&[u64]; 6] = [&[], &[0], &[last], &[0, last], &[7, 8], &[0, 9, 200]];
        for changed in cases {
            // The kind, the end, and of each page its block and what is between it and the last.
            let max = 4 + changed.len() * 16;
            let mut bits = base.clone();
            changed.iter().for_each(|page| _ = bits.set(page * PAGE_BITS + 5));
            let target = Target { id: ONLY, bits: bits.clone().into(), added: Vec::new() };
            let bytes = by_bits(&shape, &base, &target);
            assert!(bytes.len() <= max, "{} bytes for {changed:?}", bytes.len());
            let mut reader = Reader::new(&bytes[1..]);
            let change = decode_flips(&mut reader, &shape, &base, BY_BITS);
            assert_eq!(change, Ok(Change::Flips(Flips::between(&base, &bits))));
            assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn pages_beyond_the_last_are_refused() {
        let shape = Shape::new(3 * PAGE_BITS, 7).unwrap();
        let base = BitVector::zeros(Bits::new(shape.bits()).unwrap()).unwrap();
        for (more, is_valid) in [(2, true), (3, false), (u64::MAX, false)] {
            let mut bytes = vec![0];
            put_varint(&mut bytes, more);
            let change = decode_flips(&mut Reader::new(&bytes), &shape, &base, BY_BITS);
            let is_refused = matches!(change, Err(DecodeError::Malformed(_)));
            assert_eq!(is_refused, !is_valid, "{more}: {change:?}");
        }
    }

    /// A receiver of very many flips stores the bits, not a list of flips.
    #[test]
    fn a_change_of_most_bits_is_held_as_bits() {
        let shape = Shape::new(4096, 3).unwrap();
        let base = BitVector::zeros(Bits::new(4096).unwrap()).unwrap();
        for (flips, dense) in [(0, false), (512, false), (513, true), (4096, true)] {
            let mut bits = base.clone();
            for position in 0..flips {
                bits.set(position);
            }
            let target =
                Target { id: ComponentId(1), bits: Arc::new(bits.clone()), added: Vec::new() };
            let bytes = by_bits(&shape, &base, &target);
            let change = decode_flips(&mut Reader::new(&bytes[1..]), &shape, &base, bytes[0]);
            let expected = match dense {
                true => Change::Whole(bits),
                false => Change::Flips(Flips::between(&base, &bits)),
            };
            assert_eq!(change, Ok(expected), "{flips} flips");
        }
    }
}
