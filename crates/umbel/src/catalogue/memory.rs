//! A catalogue in memory.
//!
//! ```text
//! key ─► hash ─► directory (top bits of the route) ─► shard: an ordered table of some hundred keys
//! ```
//!
//! A shard that has grown too large is split in two, by the next bit of its keys' routes. So no
//! change takes longer than moving the keys of one shard, however many keys there are. One large
//! table would block for a tenth of a second when it grows.
//!
//! Always true: a shard holds exactly the keys whose routes start with its prefix. During a pass,
//! the first `ahead` places of each shard, and no others, must still be visited: new keys are
//! placed after them, a removal fills the gap with the last of them, and a split keeps the order.
//! Shards before `pass_at` have none left: of the halves of a split shard, one stays in its place
//! and the other is appended at the end.

use std::fmt;
use std::hash::BuildHasher;
use std::hint::black_box;

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};
use siphasher::sip::SipHasher13;

use super::{Catalogue, InPass};
use crate::filter::ComponentId;
use crate::sync::{self, AtomicUsize, Ordering};

/// Keys that are looked up at once.
const BATCH: usize = 8;
/// A shard of more keys than this is split. Lookups wait for that, some fifty microseconds.
const MAX_SHARD: usize = sync::size(1 << 9, 4);
/// The most bits of a route that choose a shard.
const MAX_DEPTH: u32 = 24;

/// A catalogue in memory. The order in which it visits its keys depends only on its history and its
/// seed.
pub struct MemoryCatalogue {
    seeded: Seeded,
    max_shard: usize,
    shards: Vec<Shard>,
    /// The shard of each route, by its top `depth` bits.
    directory: Vec<u32>,
    depth: u32,
    len: usize,
    /// The pass in progress has visited all keys of the shards before this one.
    pass_at: AtomicUsize,
}

/// The keys of one range of routes.
struct Shard {
    keys: IndexMap<Box<[u8]>, ComponentId, Seeded>,
    /// The common prefix of the routes of its keys, and its length in bits.
    prefix: u64,
    bits: u32,
    /// Number of keys that the pass in progress must still visit: those in the first places. Atomic
    /// only so that the pass can continue while other threads read.
    ahead: AtomicUsize,
}

impl Clone for MemoryCatalogue {
    fn clone(&self) -> Self {
        let Self { seeded, max_shard, depth, len, .. } = *self;
        let (shards, directory) = (self.shards.clone(), self.directory.clone());
        let pass_at = AtomicUsize::new(self.pass_at.load(Ordering::Relaxed));
        Self { seeded, max_shard, shards, directory, depth, len, pass_at }
    }
}

impl Clone for Shard {
    fn clone(&self) -> Self {
        let Self { prefix, bits, .. } = *self;
        Self { keys: self.keys.clone(), prefix, bits, ahead: AtomicUsize::new(self.ahead()) }
    }
}

/// Hashes the keys of a table. Without the seed nobody can craft colliding keys.
#[derive(Debug, Clone, Copy, Default)]
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, !self.0)
    }
}

/// The bits of a hash that choose the shard: neither the lowest nor the highest ones, which a table
/// uses.
const fn route(hash: u64) -> u64 {
    hash.rotate_left(16)
}

/// The first `bits` bits of a route.
const fn first_bits(route: u64, bits: u32) -> u64 {
    // Two shifts: one by 64 would be an overflow.
    (route >> 1) >> (63 - bits)
}

impl Shard {
    fn new(seeded: Seeded, prefix: u64, bits: u32) -> Self {
        Self { keys: IndexMap::with_hasher(seeded), prefix, bits, ahead: AtomicUsize::new(0) }
    }

    fn ahead(&self) -> usize {
        self.ahead.load(Ordering::Relaxed)
    }

    fn insert(&mut self, hash: u64, key: &[u8], component: ComponentId) -> bool {
        match self.keys.raw_entry_mut_v1().from_key_hashed_nocheck(hash, key) {
            RawEntryMut::Occupied(_) => false,
            RawEntryMut::Vacant(place) => {
                place.insert_hashed_nocheck(hash, key.into(), component);
                true
            }
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        let mut place = self.keys.get_index_of(key)?;
        let ahead = self.ahead.get_mut();
        if place < *ahead {
            // The last key that is still to be shown takes its place, and the last of all that one's.
            *ahead -= 1;
            self.keys.swap_indices(place, *ahead);
            place = *ahead;
        }
        self.keys.swap_remove_index(place).map(|(_, component)| component)
    }

    /// Splits the shard by the next bit of the routes. Returns the half with that bit set.
    fn split(&mut self) -> Self {
        let (seeded, bits) = (*self.keys.hasher(), self.bits + 1);
        let mut low = Self::new(seeded, self.prefix << 1, bits);
        let mut high = Self::new(seeded, (self.prefix << 1) | 1, bits);
        let half = self.keys.len() / 2 + self.keys.len() / 16;
        low.keys.reserve(half);
        high.keys.reserve(half);
        let ahead = self.ahead();
        for (place, (key, component)) in std::mem::take(&mut self.keys).into_iter().enumerate() {
            let hash = seeded.hash_one(&*key);
            let into = match first_bits(route(hash), bits) & 1 {
                0 => &mut low,
                _ => &mut high,
            };
            *into.ahead.get_mut() += usize::from(place < ahead);
            if let RawEntryMut::Vacant(free) =
                into.keys.raw_entry_mut_v1().from_key_hashed_nocheck(hash, &key)
            {
                free.insert_hashed_nocheck(hash, key, component);
            }
        }
        *self = low;
        high
    }
}

impl MemoryCatalogue {
    /// An empty catalogue.
    #[must_use]
    pub fn new() -> Self {
        Self::with_seed(0)
    }

    /// An empty catalogue with a seeded hash: for keys that an attacker may choose.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_shards(seed, MAX_SHARD)
    }

    /// With small shards, so that a few keys make many of them.
    #[cfg(test)]
    pub(crate) fn with_small_shards(seed: u64) -> Self {
        Self::with_shards(seed, 4)
    }

    fn with_shards(seed: u64, max_shard: usize) -> Self {
        let seeded = Seeded(seed);
        let shards = vec![Shard::new(seeded, 0, 0)];
        let (directory, pass_at) = (vec![0], AtomicUsize::new(0));
        Self { seeded, max_shard, shards, directory, depth: 0, len: 0, pass_at }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.seeded.hash_one(key)
    }

    fn shard_of(&self, hash: u64) -> usize {
        self.directory[first_bits(route(hash), self.depth) as usize] as usize
    }

    fn shard_of_key(&self, key: &[u8]) -> &Shard {
        &self.shards[self.shard_of(self.hash(key))]
    }

    fn insert_hashed(&mut self, hash: u64, key: &[u8], component: ComponentId) -> bool {
        let shard = self.shard_of(hash);
        let is_new = self.shards[shard].insert(hash, key, component);
        if is_new {
            self.len += 1;
            if self.shards[shard].keys.len() > self.max_shard {
                self.split(shard);
            }
        }
        is_new
    }

    fn split(&mut self, shard: usize) {
        if self.shards[shard].bits == MAX_DEPTH {
            return;
        }
        if self.shards[shard].bits == self.depth {
            self.directory = self.directory.iter().flat_map(|shard| [*shard; 2]).collect();
            self.depth += 1;
        }
        let high = self.shards[shard].split();
        let spread = self.depth - high.bits;
        let first = (high.prefix << spread) as usize;
        let number = self.shards.len() as u32;
        self.directory[first..first + (1 << spread)].fill(number);
        self.shards.push(high);
    }

    /// As [`Catalogue::pass_part`], while other threads read. Only one thread at a time may
    /// continue a pass.
    pub fn show_part(&self, count: usize, show: &mut dyn FnMut(&[u8])) -> bool {
        let mut left = count;
        let first = self.pass_at.load(Ordering::Relaxed);
        for (place, shard) in self.shards.iter().enumerate().skip(first) {
            let end = shard.ahead();
            let start = end.saturating_sub(left);
            shard.keys.as_slice()[start..end].keys().for_each(|key| show(key));
            left -= end - start;
            shard.ahead.store(start, Ordering::Relaxed);
            self.pass_at.store(place, Ordering::Relaxed);
            if left == 0 {
                break;
            }
        }
        let rest = &self.shards[self.pass_at.load(Ordering::Relaxed)..];
        rest.iter().any(|shard| shard.ahead() > 0)
    }

    /// As [`Catalogue::reassign`], for the keys of one part. Returns whether there is such a part.
    pub fn reassign_part(
        &mut self,
        part: usize,
        assign: &mut dyn FnMut(&[u8]) -> ComponentId,
    ) -> bool {
        let Some(shard) = self.shards.get_mut(part) else { return false };
        shard.keys.iter_mut().for_each(|(key, component)| *component = assign(key));
        true
    }

    /// A page of about `count` keys, in no particular order, and where the next page begins. A key
    /// that exists during the whole iteration is returned at least once, perhaps twice. Start with
    /// `None`.
    #[must_use]
    pub fn page(&self, from: Option<Place>, count: usize) -> (Vec<&[u8]>, Option<Place>) {
        let mut next = Some(from.unwrap_or(Place { prefix: 0, bits: 0, end: u32::MAX }));
        while let Some(from) = next {
            let keys: Vec<&[u8]>;
            (keys, next) = self.page_of_shard(from, count.max(1));
            if !keys.is_empty() {
                return (keys, next);
            }
        }
        (Vec::new(), None)
    }

    fn page_of_shard(&self, from: Place, count: usize) -> (Vec<&[u8]>, Option<Place>) {
        let shard = &self.shards[self.shard_of(route_back(from.start()))];
        // If the shard was split in the meantime, its halves are returned from the beginning.
        let is_same = (shard.prefix, shard.bits) == (from.prefix, from.bits);
        let end = if is_same { from.end as usize } else { usize::MAX }.min(shard.keys.len());
        // From the last place to the first: a removal moves the last key, which was returned
        // already.
        let start = end.saturating_sub(count);
        let keys = shard.keys.as_slice()[start..end].keys().map(|key| &**key).collect();
        let next = match start {
            0 => self.after(shard),
            _ => Some(Place { prefix: shard.prefix, bits: shard.bits, end: start as u32 }),
        };
        (keys, next)
    }

    /// The beginning of the shard that follows in the order of routes.
    fn after(&self, shard: &Shard) -> Option<Place> {
        let next = shard.prefix + 1;
        if next >> shard.bits != 0 {
            return None;
        }
        let place = Place { prefix: next, bits: shard.bits, end: u32::MAX };
        let shard = &self.shards[self.shard_of(route_back(place.start()))];
        Some(Place { prefix: shard.prefix, bits: shard.bits, end: u32::MAX })
    }
}

/// Where the next page of a catalogue in memory begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    prefix: u64,
    bits: u32,
    /// The place after the next key.
    end: u32,
}

impl Place {
    /// As bytes, for a client to keep.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&(self.prefix as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.bits.to_le_bytes());
        bytes[8..].copy_from_slice(&self.end.to_le_bytes());
        bytes
    }

    /// From bytes; `None` if they are not a valid place.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (prefix, bits, end) = (u64::from(number(0)?), number(4)?, number(8)?);
        let fits = bytes.len() == 12 && bits <= MAX_DEPTH && prefix >> bits == 0;
        fits.then_some(Self { prefix, bits, end })
    }

    /// The first route of its shard.
    const fn start(self) -> u64 {
        match self.bits {
            0 => 0,
            bits => self.prefix << (64 - bits),
        }
    }
}

/// A hash with this route.
const fn route_back(route: u64) -> u64 {
    route.rotate_right(16)
}

impl Catalogue for MemoryCatalogue {
    fn contains(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        let shard = &self.shards[self.shard_of(hash)];
        shard.keys.raw_entry_v1().from_key_hashed_nocheck(hash, key).is_some()
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        let hash = self.hash(key);
        if !self.insert_hashed(hash, key, component) {
            let shard = self.shard_of(hash);
            self.shards[shard].keys.insert(key.into(), component);
        }
    }

    fn insert_new(&mut self, key: &[u8], component: ComponentId) -> bool {
        self.insert_hashed(self.hash(key), key, component)
    }

    fn insert_many(
        &mut self,
        keys: &[&[u8]],
        component: ComponentId,
        on_result: &mut dyn FnMut(bool),
    ) {
        for keys in keys.chunks(BATCH) {
            let mut hashes = [0; BATCH];
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = self.hash(key));
            // Read all places first, and ignore the result: the processor then waits for their
            // memory once, not one after the other.
            for hash in &hashes[..keys.len()] {
                let shard = &self.shards[self.shard_of(*hash)];
                black_box(shard.keys.raw_entry_v1().index_from_hash(*hash, |_| true));
            }
            for (key, hash) in keys.iter().zip(hashes) {
                on_result(self.insert_hashed(hash, key, component));
            }
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        let shard = self.shard_of(self.hash(key));
        let removed = self.shards[shard].remove(key);
        self.len -= usize::from(removed.is_some());
        removed
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        for shard in &self.shards {
            shard.keys.iter().for_each(|(key, component)| show(key, *component));
        }
    }

    fn reassign(&mut self, assign: &mut dyn FnMut(&[u8]) -> ComponentId) {
        for shard in &mut self.shards {
            shard.keys.iter_mut().for_each(|(key, component)| *component = assign(key));
        }
    }

    fn begin_pass(&mut self) -> bool {
        for shard in &mut self.shards {
            *shard.ahead.get_mut() = shard.keys.len();
        }
        *self.pass_at.get_mut() = 0;
        true
    }

    fn pass_part(&mut self, count: usize, show: &mut dyn FnMut(&[u8])) -> bool {
        self.show_part(count, show)
    }

    fn in_pass(&self, key: &[u8]) -> InPass {
        let shard = self.shard_of_key(key);
        match shard.keys.get_index_of(key) {
            Some(place) if place < shard.ahead() => InPass::Ahead,
            _ => InPass::Behind,
        }
    }

    fn end_pass(&mut self) {
        self.shards.iter_mut().for_each(|shard| *shard.ahead.get_mut() = 0);
    }

    fn len(&self) -> u64 {
        self.len as u64
    }
}

impl Default for MemoryCatalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryCatalogue {
    /// Does not print keys: there may be many, and they may be private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryCatalogue({} keys)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Add(u8),
        Remove(u8),
        Part(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => any::<u8>().prop_map(Step::Add),
            3 => any::<u8>().prop_map(Step::Remove),
            2 => (1usize..6).prop_map(Step::Part),
        ];
        prop::collection::vec(step, 0..200)
    }

    fn pages(catalogue: &MemoryCatalogue, count: usize, mut each: impl FnMut(&[u8])) {
        let mut from = None;
        loop {
            let (keys, next) = catalogue.page(from, count);
            keys.into_iter().for_each(&mut each);
            let Some(next) = next else { return };
            from = Place::from_bytes(&next.to_bytes());
            assert_eq!(from, Some(next));
        }
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        /// What a pass has shown, with what was added and without what was removed behind it, is
        /// what the catalogue holds.
        #[test]
        fn a_pass_shows_each_key_once_while_keys_come_and_go(
            held in prop::collection::btree_set(any::<u8>(), 0..100),
            steps in steps(),
            seed: u64,
        ) {
            let mut catalogue = MemoryCatalogue::with_small_shards(seed);
            held.iter().for_each(|key| _ = catalogue.insert_new(&[*key], ComponentId(0)));
            prop_assert!(catalogue.begin_pass());
            let mut copy: BTreeMap<u8, u32> = BTreeMap::new();
            for step in steps.into_iter().chain([Step::Part(usize::MAX)]) {
                match step {
                    Step::Add(key) => {
                        if catalogue.insert_new(&[key], ComponentId(0)) {
                            *copy.entry(key).or_default() += 1;
                        }
                    }
                    Step::Remove(key) => {
                        let in_pass = catalogue.in_pass(&[key]);
                        if catalogue.remove(&[key]).is_some() && in_pass == InPass::Behind {
                            *copy.get_mut(&key).expect("it was shown or added") -= 1;
                        }
                    }
                    Step::Part(count) => {
                        catalogue.pass_part(count, &mut |key| {
                            *copy.entry(key[0]).or_default() += 1;
                        });
                    }
                }
            }
            prop_assert!(!catalogue.pass_part(1, &mut |_| panic!("it is over")));
            copy.retain(|_, count| *count > 0);
            prop_assert!(copy.values().all(|count| *count == 1), "{copy:?}");
            let mut left = BTreeSet::new();
            catalogue.for_each(&mut |key, _| _ = left.insert(key[0]));
            prop_assert_eq!(copy.into_keys().collect::<BTreeSet<u8>>(), left);
        }

        #[test]
        fn pages_show_every_key_that_stays(
            held in prop::collection::btree_set(0u16..1000, 0..200),
            fresh in prop::collection::btree_set(1000u16..2000, 0..200),
            count in 1usize..20,
            seed: u64,
        ) {
            let mut catalogue = MemoryCatalogue::with_small_shards(seed);
            let bytes = |key: &u16| key.to_le_bytes();
            held.iter().for_each(|key| _ = catalogue.insert_new(&bytes(key), ComponentId(0)));
            let mut shown = BTreeSet::new();
            pages(&catalogue, count, |key| _ = shown.insert(key.to_vec()));
            prop_assert_eq!(shown.len(), held.len());
            // Shards are split between two pages.
            let (mut shown, mut from, mut fresh) = (BTreeSet::new(), None, fresh.iter());
            loop {
                let (keys, next) = catalogue.page(from, count);
                shown.extend(keys.into_iter().map(<[u8]>::to_vec));
                if next.is_none() {
                    break;
                }
                from = next;
                for key in fresh.by_ref().take(5) {
                    catalogue.insert_new(&bytes(key), ComponentId(0));
                }
            }
            prop_assert!(held.iter().all(|key| shown.contains(&bytes(key)[..])));
        }
    }

    /// Regression test: one table for all keys blocked for most of a second when it grew.
    #[test]
    fn no_change_moves_more_keys_than_a_shard_has() {
        let mut catalogue = MemoryCatalogue::new();
        for key in 0..50_000u32 {
            catalogue.insert(&key.to_le_bytes(), ComponentId(0));
        }
        let largest = catalogue.shards.iter().map(|shard| shard.keys.len()).max();
        assert!(largest.is_some_and(|keys| keys <= MAX_SHARD), "{largest:?} keys of 50,000");
        let slots = catalogue.shards.iter().map(|shard| shard.keys.capacity()).max();
        assert!(slots.is_some_and(|slots| slots <= 4 * MAX_SHARD), "{slots:?} slots");
    }

    #[test]
    fn bytes_that_are_no_place_are_refused() {
        for bytes in [&[][..], &[1; 11], &[255; 12], &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]] {
            assert_eq!(Place::from_bytes(bytes), None);
        }
    }
}
