//! What a table must know of a kind of prefix. Sealed: addresses and names.

use std::marker::PhantomData;

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

    /// All of its bits, the first one highest, if it is made of bits.
    fn bits(&self) -> Option<u128>;

    /// Where its prefix of a length stands in its span of the group that begins behind `base`.
    fn spot(&self, base: u8, length: u8) -> Spot;

    /// A hash of its prefix of a length; its highest bits are spread well.
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
    fn prefetch(&self, length: u8, place: Self::Place);
    /// Adds a prefix that belongs to a place and is not there. Places that were worked out
    /// before are then no longer right.
    fn insert_at(&mut self, prefix: &P, place: Self::Place, value: V);
    /// Takes a prefix that belongs to a place out.
    fn remove_at(&mut self, prefix: &P, place: Self::Place) -> Option<V>;
    /// Whether it should be made anew with more room.
    fn is_crowded(&self) -> bool;
    /// Takes about so many prefixes out; none if there are none left. Nothing may be added after it.
    fn take_some(&mut self, count: usize) -> Vec<(P, V)>;
    /// One prefix in so many, picked at random.
    fn sample(&self, one_in: usize) -> Vec<P>;
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

/// Prefixes in cache-line buckets: short ones, long ones and up to whole addresses, each with
/// words that are no wider than they must be.
#[derive(Debug, Clone)]
pub struct BitStore<P, A, B, C, V> {
    short: Buckets<A, V>,
    long: Buckets<B, V>,
    whole: Buckets<C, V>,
    /// Prefixes are kept as numbers.
    kind: PhantomData<P>,
}

/// Calls a method of the buckets that prefixes of a length are in.
macro_rules! of_length {
    ($store:ident, $length:expr, $($call:tt)+) => {
        if $length <= A::LENGTH {
            $store.short.$($call)+
        } else if $length <= B::LENGTH {
            $store.long.$($call)+
        } else {
            $store.whole.$($call)+
        }
    };
}

impl<P, A, B, C, V> Store<P, V> for BitStore<P, A, B, C, V>
where
    P: for<'a> Kind<Query<'a> = super::ip::BitQuery> + Bits,
    A: Line,
    B: Line,
    C: Line,
    V: Default,
{
    fn with_room(per_length: &[usize]) -> Self {
        let (short, longer) = per_length.split_at(usize::from(A::LENGTH) + 1);
        let (long, whole) = longer.split_at(usize::from(B::LENGTH - A::LENGTH));
        Self {
            short: Buckets::with_room(short.iter().sum()),
            long: Buckets::with_room(long.iter().sum()),
            whole: Buckets::with_room(whole.iter().sum()),
            kind: PhantomData,
        }
    }

    type Place = Home;

    #[inline(always)]
    fn place(&self, query: &P::Query<'_>, length: u8) -> Home {
        of_length!(self, length, home_of(query.address(), length))
    }

    #[inline(always)]
    fn find_at(&self, _: &P::Query<'_>, length: u8, home: Home) -> Option<&V> {
        of_length!(self, length, find(home))
    }

    fn find_mut_at(&mut self, _: &P::Query<'_>, length: u8, home: Home) -> Option<&mut V> {
        of_length!(self, length, find_mut(home))
    }

    #[inline(always)]
    fn prefetch(&self, length: u8, home: Home) {
        of_length!(self, length, prefetch(home));
    }

    #[inline(always)]
    fn insert_at(&mut self, prefix: &P, home: Home, value: V) {
        let (length, bits) = prefix.to_bits();
        if let Err(value) = of_length!(self, length, insert_at(home, value)) {
            of_length!(self, length, grow_and_insert_prefix(bits, length, value));
        }
    }

    #[inline(always)]
    fn remove_at(&mut self, prefix: &P, home: Home) -> Option<V> {
        of_length!(self, prefix.to_bits().0, remove_at(home))
    }

    fn is_crowded(&self) -> bool {
        self.short.is_crowded() || self.long.is_crowded() || self.whole.is_crowded()
    }

    fn take_some(&mut self, count: usize) -> Vec<(P, V)> {
        let mut taken = self.short.take_some(count);
        if taken.is_empty() {
            taken = self.long.take_some(count);
        }
        if taken.is_empty() {
            taken = self.whole.take_some(count);
        }
        let prefix = |((length, bits), value)| (P::from_bits(length, bits), value);
        taken.into_iter().map(prefix).collect()
    }

    fn sample(&self, one_in: usize) -> Vec<P> {
        let shorter = self.short.sample(one_in).chain(self.long.sample(one_in));
        let all = shorter.chain(self.whole.sample(one_in));
        all.map(|(length, bits)| P::from_bits(length, bits)).collect()
    }

    fn iter<'a>(&'a self) -> impl Iterator<Item = (P, &'a V)>
    where
        V: 'a,
    {
        let all = self.short.iter().chain(self.long.iter()).chain(self.whole.iter());
        all.map(|((length, bits), value)| (P::from_bits(length, bits), value))
    }

    fn memory_bytes(&self) -> usize {
        self.short.memory_bytes() + self.long.memory_bytes() + self.whole.memory_bytes()
    }
}

/// About what a sorted map takes: its nodes are two thirds full.
pub(super) const fn map_bytes<K, V>(items: usize) -> usize {
    items * (size_of::<K>() + size_of::<V>()) * 3 / 2
}
