//! What a table must know of a kind of prefix. Sealed: addresses and names.

use std::collections::BTreeMap;

use super::buckets::{Buckets, Home, Line};
use super::filters::{Group, Spot};
use super::simd::Asker;
use crate::codec::{DecodeError, Reader};

/// A kind of prefix, as the table sees it.
pub trait Kind: Sized + 'static {
    /// An address or a prefix, ready to be asked for at any length.
    type Query<'a>: Query;
    /// Where the prefixes themselves are kept.
    type Store<V: Default>: Store<Self, V>;
    /// Spans of a group: how many blocks its eight lengths read.
    const SPANS: usize;
    /// Filter bits a prefix. IPv4 has few lengths, and every bit counts; IPv6 and names have
    /// many, and every length that is asked in vain may lie.
    const FILTER_BITS: usize;

    /// This prefix as a question.
    fn as_query(&self) -> Self::Query<'_>;
}

/// A question that can be cut to any length.
pub trait Query: Copy {
    /// Its longest prefix.
    fn length(&self) -> u8;

    /// Its first sixteen bits, if it is made of bits.
    fn front(&self) -> Option<u16>;

    /// Where its prefix of a length stands in the span of that length.
    fn spot(&self, length: u8) -> Spot;

    /// A hash of its prefix of a length, or of the first 64 bits of that; its highest bits
    /// are spread well.
    fn mark(&self, length: u8) -> u64;

    /// What the filters of a group are asked with.
    type Ready: Copy + Default;

    /// Makes ready to ask a group.
    fn ready(&self, group: &Group) -> Self::Ready;

    /// Asks for the memory that [`Self::ask_ready`] will read.
    fn prefetch(&self, group: &Group, ready: Self::Ready);

    /// Which lengths a group claims, shortest lowest.
    fn ask_ready(&self, asker: impl Asker, group: &Group, ready: Self::Ready) -> u32;

    /// The same, made ready on the spot.
    #[inline(always)]
    fn ask(&self, asker: impl Asker, group: &Group) -> u32 {
        self.ask_ready(asker, group, self.ready(group))
    }
}

/// Prefixes with their values, found by a question and a length.
pub trait Store<P: Kind, V> {
    /// An empty store with room for so many prefixes of each length.
    fn with_room(per_length: &[usize]) -> Self;
    /// Where a prefix belongs.
    type Place: Copy + Default;
    /// Where a prefix of a question belongs.
    fn place(&self, query: &P::Query<'_>, length: u8) -> Self::Place;
    /// The value of a prefix that belongs to a place.
    fn find_at(&self, query: &P::Query<'_>, length: u8, place: Self::Place) -> Option<&V>;
    /// The value of a prefix.
    #[inline(always)]
    fn find(&self, query: &P::Query<'_>, length: u8) -> Option<&V> {
        self.find_at(query, length, self.place(query, length))
    }
    /// The value of a prefix that belongs to a place, to be changed.
    fn find_mut_at(
        &mut self,
        query: &P::Query<'_>,
        length: u8,
        place: Self::Place,
    ) -> Option<&mut V>;
    /// Asks for the memory that [`Self::find_at`] will read.
    fn prefetch(&self, place: Self::Place);
    /// Adds a prefix that belongs to a place and is not there. Places that were worked out
    /// before are then no longer right.
    fn insert_at(&mut self, prefix: &P, place: Self::Place, value: V);
    /// Takes a prefix that belongs to a place out.
    fn remove_at(&mut self, prefix: &P, place: Self::Place) -> Option<V>;
    /// Whether it should be made anew with more room.
    fn is_crowded(&self) -> bool;
    /// Takes about so many prefixes out, from `next` on, which begins with 0; none if there are
    /// none left.
    fn take_some(&mut self, next: &mut usize, count: usize) -> Vec<(P, V)>;
    /// All prefixes, in any order.
    fn iter<'a>(&'a self) -> impl Iterator<Item = (P, &'a V)>
    where
        V: 'a;
    /// Bytes of memory.
    fn memory_bytes(&self) -> usize;
}

/// How prefixes are written.
#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
pub trait Coded: Sized {
    /// The kind of the frame.
    const CODE: u8;
    /// What they are sorted by.
    type Order: Ord;

    /// Where this one belongs.
    fn sorted_by(&self) -> Self::Order;
    /// Appends sorted prefixes.
    fn write(prefixes: &[Self], out: &mut Vec<u8>);
    /// Reads what [`Self::write`] wrote, if it takes no more than so many bytes.
    fn read(reader: &mut Reader<'_>, limit: u64) -> Result<Vec<Self>, DecodeError>;
}

/// A prefix of bits.
pub trait Bits: Kind + Ord + Copy {
    /// The length and the bits, the first of them highest.
    fn to_bits(self) -> (u8, u128);
    /// The prefix of a length that begins so.
    fn from_bits(length: u8, bits: u128) -> Self;
}

/// Short prefixes in cache-line buckets, the few that are longer in a sorted map.
#[derive(Debug, Clone)]
pub struct BitStore<P, L, V> {
    near: Buckets<L, V>,
    far: BTreeMap<P, V>,
}

/// The prefix as a number: a one, then its bits.
#[inline(always)]
const fn number(bits: u128, length: u8) -> u64 {
    let high = (bits >> 64) as u64;
    // In two steps, as a shift by all 64 bits is none.
    1 << length | (high >> 1) >> (63 - length)
}

/// The prefix of a number.
fn prefix<P: Bits>(number: u64) -> P {
    let length = number.ilog2() as u8;
    P::from_bits(length, u128::from(number) << (127 - length) << 1)
}

impl<P, L, V> Store<P, V> for BitStore<P, L, V>
where
    P: for<'a> Kind<Query<'a> = super::ip::BitQuery> + Bits,
    L: Line,
    V: Default,
{
    fn with_room(per_length: &[usize]) -> Self {
        let near = per_length[..=usize::from(L::LENGTH)].iter().sum();
        Self { near: Buckets::with_room(near), far: BTreeMap::new() }
    }

    /// Of the few that are far, none.
    type Place = Option<Home>;

    #[inline(always)]
    fn place(&self, query: &P::Query<'_>, length: u8) -> Option<Home> {
        (length <= L::LENGTH).then(|| self.near.home(number(query.bits(), length)))
    }

    #[inline(always)]
    fn find_at(&self, query: &P::Query<'_>, length: u8, place: Option<Home>) -> Option<&V> {
        match place {
            Some(home) => self.near.find(home),
            None => self.far.get(&P::from_bits(length, query.bits())),
        }
    }

    fn find_mut_at(
        &mut self,
        query: &P::Query<'_>,
        length: u8,
        place: Option<Home>,
    ) -> Option<&mut V> {
        match place {
            Some(home) => self.near.find_mut(home),
            None => self.far.get_mut(&P::from_bits(length, query.bits())),
        }
    }

    #[inline(always)]
    fn prefetch(&self, place: Option<Home>) {
        if let Some(home) = place {
            self.near.prefetch(home);
        }
    }

    #[inline(always)]
    fn insert_at(&mut self, prefix: &P, place: Option<Home>, value: V) {
        match place {
            Some(home) => {
                if let Err(value) = self.near.insert_at(home, value) {
                    let (length, bits) = prefix.to_bits();
                    self.near.grow_and_insert(number(bits, length), value);
                }
            }
            None => _ = self.far.insert(*prefix, value),
        }
    }

    #[inline(always)]
    fn remove_at(&mut self, prefix: &P, place: Option<Home>) -> Option<V> {
        match place {
            Some(home) => self.near.remove_at(home),
            None => self.far.remove(prefix),
        }
    }

    fn is_crowded(&self) -> bool {
        self.near.is_crowded()
    }

    fn take_some(&mut self, next: &mut usize, count: usize) -> Vec<(P, V)> {
        while self.near.len() > 0 {
            let taken = self.near.take_some(next, count);
            // Slots may be empty.
            if !taken.is_empty() {
                return taken.into_iter().map(|(number, value)| (prefix(number), value)).collect();
            }
        }
        std::iter::from_fn(|| self.far.pop_first()).take(count).collect()
    }

    fn iter<'a>(&'a self) -> impl Iterator<Item = (P, &'a V)>
    where
        V: 'a,
    {
        let near = self.near.iter().map(|(number, value)| (prefix(number), value));
        near.chain(self.far.iter().map(|(prefix, value)| (*prefix, value)))
    }

    fn memory_bytes(&self) -> usize {
        self.near.memory_bytes() + map_bytes::<P, V>(self.far.len())
    }
}

/// About what a sorted map takes: its nodes are two thirds full.
pub(super) const fn map_bytes<K, V>(items: usize) -> usize {
    items * (size_of::<K>() + size_of::<V>()) * 3 / 2
}
