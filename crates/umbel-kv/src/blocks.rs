//! The exact set of blocks that a worker holds, per tier, and the changes not yet sent to a sink.
//!
//! The first tier is the engine's GPU memory. Others, such as `CPU`, are added when an event names
//! them.
//!
//! Keys are the engine's hashes or canonical ones. With canonical keys the engine's hash of every
//! block is kept too, because events name parents and removed blocks by it. Several blocks of the
//! engine can have the same canonical hash, so they are counted.
//!
//! Always true: a key is in the set of a tier exactly if the worker holds a block with that key
//! there. The pending changes turn what a sink has into what is held.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::canonical::{block_hash, of_adapter};
use crate::event::{Batch, BlockHash, KvEvent, Removed, Stored};

/// Maximum number of tiers; blocks of further ones are ignored.
const MAX_TIERS: usize = 8;
/// Maximum length of a tier's name.
const MAX_NAME: usize = 32;

/// The key of a block in a set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockKey {
    /// 8 bytes, little-endian.
    Number(u64),
    /// Any other bytes.
    Bytes(Box<[u8]>),
}

impl BlockKey {
    /// Calls `show` with its bytes.
    pub fn with_bytes<T>(&self, show: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Number(number) => show(&number.to_le_bytes()),
            Self::Bytes(bytes) => show(bytes),
        }
    }
}

impl From<BlockHash<'_>> for BlockKey {
    fn from(hash: BlockHash<'_>) -> Self {
        match hash {
            BlockHash::Number(number) => Self::Number(number),
            BlockHash::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }
}

/// Which hashes are used as keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hashing {
    /// Hashes of the tokens, the same for every engine: see [`crate::canonical`].
    #[default]
    Canonical,
    /// The engine's own hashes.
    Engine,
}

/// Counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Blocks in "stored" and "removed" events.
    pub blocks: u64,
    /// Stored blocks without a canonical hash, because their parent or their tokens are not known.
    pub orphans: u64,
    /// Blocks of other groups of layers, and of tiers beyond the eighth.
    pub ignored: u64,
    /// Events of unknown types.
    pub unknown: u64,
}

/// A block that an engine holds in one or more tiers.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Unused if keys are the engine's hashes.
    canonical: u64,
    /// Bit set: one bit per tier.
    tiers: u8,
}

/// A tier, and its changes not yet sent to a sink.
#[derive(Debug, Default)]
struct Tier {
    /// In lower case; empty for the engine's GPU memory.
    name: String,
    /// Number of blocks per canonical key; empty if keys are the engine's hashes.
    canonical: HashMap<u64, u32>,
    /// Whether the sink must drop all its keys first.
    is_cleared: bool,
    /// Changed keys: `true` if the key is to be added, `false` if it is to be removed.
    changed: HashMap<BlockKey, bool>,
}

/// Changes of a tier that are to be sent to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The tier; empty for the engine's GPU memory.
    pub tier: String,
    /// Whether all keys are to be dropped first.
    pub is_cleared: bool,
    /// Keys to be removed.
    pub removed: Vec<BlockKey>,
    /// Keys to be added.
    pub added: Vec<BlockKey>,
}

/// The blocks that a worker holds.
#[derive(Debug)]
pub struct Blocks {
    hashing: Hashing,
    group: u64,
    held: HashMap<BlockKey, Held>,
    tiers: Vec<Tier>,
    counts: Counts,
    scratch: Vec<u8>,
}

impl Blocks {
    /// An empty set of blocks, for one group of layers. Events that name no group apply to every
    /// group.
    #[must_use]
    pub fn new(hashing: Hashing, group: u64) -> Self {
        let tiers = vec![Tier { is_cleared: true, ..Tier::default() }];
        let (held, counts, scratch) = (HashMap::new(), Counts::default(), Vec::new());
        Self { hashing, group, held, tiers, counts, scratch }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Blocks that the engine holds, in whatever tier.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether the engine holds no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Number of changes not yet taken for a sink.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.tiers.iter().map(|tier| tier.changed.len()).sum()
    }

    /// Applies the events of a message.
    pub fn apply(&mut self, batch: &Batch<'_>) {
        self.counts.unknown += batch.unknown;
        for event in &batch.events {
            match event {
                KvEvent::Stored(stored) => self.store(stored),
                KvEvent::Removed(removed) => self.remove(removed),
                KvEvent::Cleared => self.clear(),
            }
        }
    }

    /// Drops all blocks of all tiers.
    pub fn clear(&mut self) {
        self.held.clear();
        for tier in &mut self.tiers {
            tier.canonical.clear();
            tier.changed.clear();
            tier.is_cleared = true;
        }
    }

    /// Marks everything as changed, for a sink that lost its contents.
    pub fn show_all(&mut self) {
        for tier in &mut self.tiers {
            tier.changed.clear();
            tier.is_cleared = true;
        }
        for (key, held) in &self.held {
            for (place, tier) in self.tiers.iter_mut().enumerate() {
                if held.tiers >> place & 1 == 1 {
                    tier.changed.insert(claimed(self.hashing, key, *held), true);
                }
            }
        }
    }

    /// Takes the pending changes of every tier that has any.
    pub fn take_changes(&mut self) -> Vec<Changes> {
        let is_changed = |tier: &&mut Tier| tier.is_cleared || !tier.changed.is_empty();
        self.tiers.iter_mut().filter(is_changed).map(Tier::take).collect()
    }

    /// The position of the tier with this name. Adds the tier if it is new and the limits allow it.
    fn tier(&mut self, medium: Option<&str>) -> Option<usize> {
        let medium = medium.unwrap_or_default();
        if medium.is_empty() || medium.eq_ignore_ascii_case("gpu") {
            return Some(0);
        }
        let found = self.tiers.iter().position(|tier| tier.name.eq_ignore_ascii_case(medium));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_new = || {
            let fits = self.tiers.len() < MAX_TIERS && medium.len() <= MAX_NAME;
            fits && medium.bytes().all(is_name)
        };
        if found.is_none() && is_new() {
            let name = medium.to_ascii_lowercase();
            self.tiers.push(Tier { name, is_cleared: true, ..Tier::default() });
            return Some(self.tiers.len() - 1);
        }
        found
    }

    /// The position of the tier that an event concerns; `None` if its blocks are ignored. Counts
    /// them.
    fn place_of(
        &mut self,
        medium: Option<&str>,
        group: Option<u64>,
        blocks: usize,
    ) -> Option<usize> {
        self.counts.blocks += blocks as u64;
        let is_followed = group.is_none_or(|group| group == self.group);
        let place = if is_followed { self.tier(medium) } else { None };
        self.counts.ignored += if place.is_none() { blocks as u64 } else { 0 };
        place
    }

    fn store(&mut self, stored: &Stored<'_>) {
        let Some(place) = self.place_of(stored.medium, stored.group, stored.hashes.len()) else {
            return;
        };
        let mut parent = match (stored.parent, self.hashing) {
            (Some(parent), Hashing::Canonical) => {
                self.held.get(&BlockKey::from(parent)).map(|held| held.canonical)
            }
            _ => Some(0),
        };
        for (number, hash) in stored.hashes.iter().enumerate() {
            let key = BlockKey::from(*hash);
            if self.hashing == Hashing::Canonical {
                let known = self.held.get(&key).map(|held| held.canonical);
                parent = known.or_else(|| self.canonical(stored, number, parent?));
                if parent.is_none() {
                    // The blocks after it have no canonical hash either.
                    self.counts.orphans += (stored.hashes.len() - number) as u64;
                    return;
                }
            }
            self.hold(key, parent.unwrap_or_default(), place);
        }
    }

    /// The canonical hash of a block, if the event contains its tokens.
    fn canonical(&mut self, stored: &Stored<'_>, number: usize, parent: u64) -> Option<u64> {
        let size = stored.block_size as usize;
        let tokens = stored.tokens.get(number * size..(number + 1) * size)?;
        if tokens.is_empty() {
            return None;
        }
        let mut adapter = Vec::new();
        let extra = match (stored.extra.get(number).copied().flatten(), stored.adapter) {
            (Some(extra), _) => extra,
            // Engines that send `extra_keys` include the adapter there.
            (None, Some(name)) if stored.extra.is_empty() => {
                of_adapter(name, &mut adapter);
                &adapter
            }
            _ => &[],
        };
        Some(block_hash(parent, tokens, extra, &mut self.scratch))
    }

    fn hold(&mut self, key: BlockKey, canonical: u64, place: usize) {
        let (bit, tier) = (1 << place, &mut self.tiers[place]);
        let as_claimed = claimed(self.hashing, &key, Held { canonical, tiers: 0 });
        let held = self.held.entry(key).or_insert(Held { canonical, tiers: 0 });
        if held.tiers & bit != 0 {
            return;
        }
        held.tiers |= bit;
        let blocks = match self.hashing {
            Hashing::Engine => 1,
            Hashing::Canonical => {
                let blocks = tier.canonical.entry(canonical).or_default();
                *blocks += 1;
                *blocks
            }
        };
        if blocks == 1 {
            tier.note(as_claimed, true);
        }
    }

    fn remove(&mut self, removed: &Removed<'_>) {
        let Some(place) = self.place_of(removed.medium, removed.group, removed.hashes.len()) else {
            return;
        };
        for hash in &removed.hashes {
            self.drop_block(BlockKey::from(*hash), place);
        }
    }

    fn drop_block(&mut self, key: BlockKey, place: usize) {
        let (bit, tier) = (1 << place, &mut self.tiers[place]);
        let Entry::Occupied(mut found) = self.held.entry(key) else { return };
        let held = *found.get();
        if held.tiers & bit == 0 {
            return;
        }
        let key = claimed(self.hashing, found.key(), held);
        if held.tiers == bit {
            found.remove();
        } else {
            found.get_mut().tiers &= !bit;
        }
        if self.hashing == Hashing::Canonical
            && let Some(blocks) = tier.canonical.get_mut(&held.canonical)
        {
            *blocks -= 1;
            if *blocks > 0 {
                return;
            }
            tier.canonical.remove(&held.canonical);
        }
        tier.note(key, false);
    }
}

/// The key under which a block is in the set.
fn claimed(hashing: Hashing, key: &BlockKey, held: Held) -> BlockKey {
    match hashing {
        Hashing::Engine => key.clone(),
        Hashing::Canonical => BlockKey::Number(held.canonical),
    }
}

impl Tier {
    /// Records that a key was added or removed. A change that is undone before it is sent cancels
    /// out.
    fn note(&mut self, key: BlockKey, is_claimed: bool) {
        match self.changed.entry(key) {
            Entry::Occupied(changed) => _ = changed.remove(),
            Entry::Vacant(unchanged) => _ = unchanged.insert(is_claimed),
        }
    }

    fn take(&mut self) -> Changes {
        let is_cleared = std::mem::take(&mut self.is_cleared);
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for (key, is_claimed) in self.changed.drain() {
            if is_claimed { added.push(key) } else { removed.push(key) }
        }
        Changes { tier: self.name.clone(), is_cleared, removed, added }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::canonical::chain;

    fn stored<'a>(hashes: &[u64], parent: Option<u64>, tokens: &[u32]) -> Stored<'a> {
        Stored {
            hashes: hashes.iter().copied().map(BlockHash::Number).collect(),
            parent: parent.map(BlockHash::Number),
            tokens: tokens.to_vec(),
            block_size: 2,
            ..Stored::default()
        }
    }

    fn removed<'a>(hashes: &[u64]) -> Removed<'a> {
        let hashes = hashes.iter().copied().map(BlockHash::Number).collect();
        Removed { hashes, ..Removed::default() }
    }

    fn apply(blocks: &mut Blocks, event: KvEvent<'_>) {
        blocks.apply(&Batch { events: vec![event], ..Batch::default() });
    }

    /// Applies all changes to what a sink has.
    fn take(blocks: &mut Blocks, sink: &mut BTreeSet<(String, BlockKey)>) {
        for Changes { tier, is_cleared, removed, added } in blocks.take_changes() {
            if is_cleared {
                sink.retain(|(name, _)| *name != tier);
            }
            removed.into_iter().for_each(|key| _ = sink.remove(&(tier.clone(), key)));
            sink.extend(added.into_iter().map(|key| (tier.clone(), key)));
        }
    }

    fn numbers(sink: &BTreeSet<(String, BlockKey)>, tier: &str) -> BTreeSet<u64> {
        let number = |(name, key): &(String, BlockKey)| match key {
            BlockKey::Number(number) if name == tier => Some(*number),
            _ => None,
        };
        sink.iter().filter_map(number).collect()
    }

    #[test]
    fn canonical_hashes_follow_parents_whatever_the_engine_calls_blocks() {
        let expected = chain(&[1, 2, 3, 4, 5, 6], 2, &[]);
        for names in [[7, 8, 9], [100, 3, 42]] {
            let (mut blocks, mut sink) = (Blocks::new(Hashing::Canonical, 0), BTreeSet::new());
            apply(&mut blocks, KvEvent::Stored(stored(&names[..2], None, &[1, 2, 3, 4])));
            apply(&mut blocks, KvEvent::Stored(stored(&names[2..], Some(names[1]), &[5, 6])));
            take(&mut blocks, &mut sink);
            assert_eq!(numbers(&sink, ""), expected.iter().copied().collect());
            apply(&mut blocks, KvEvent::Removed(removed(&names[2..])));
            take(&mut blocks, &mut sink);
            assert_eq!(numbers(&sink, ""), expected[..2].iter().copied().collect());
        }
    }

    #[test]
    fn a_block_whose_parent_is_unknown_is_an_orphan() {
        let (mut blocks, mut sink) = (Blocks::new(Hashing::Canonical, 0), BTreeSet::new());
        apply(&mut blocks, KvEvent::Stored(stored(&[1, 2], Some(99), &[1, 2, 3, 4])));
        take(&mut blocks, &mut sink);
        assert_eq!((sink.len(), blocks.counts().orphans, blocks.len()), (0, 2, 0));
        let mut blocks = Blocks::new(Hashing::Engine, 0);
        apply(&mut blocks, KvEvent::Stored(stored(&[1, 2], Some(99), &[1, 2, 3, 4])));
        take(&mut blocks, &mut sink);
        assert_eq!(numbers(&sink, ""), [1, 2].into());
    }

    #[test]
    fn two_blocks_of_one_canonical_hash_are_one_key_until_both_are_gone() {
        let (mut blocks, mut sink) = (Blocks::new(Hashing::Canonical, 0), BTreeSet::new());
        apply(&mut blocks, KvEvent::Stored(stored(&[1], None, &[1, 2])));
        apply(&mut blocks, KvEvent::Stored(stored(&[2], None, &[1, 2])));
        take(&mut blocks, &mut sink);
        assert_eq!(sink.len(), 1);
        apply(&mut blocks, KvEvent::Removed(removed(&[1, 1, 77])));
        take(&mut blocks, &mut sink);
        assert_eq!(sink.len(), 1, "the other one is still there");
        apply(&mut blocks, KvEvent::Removed(removed(&[2])));
        take(&mut blocks, &mut sink);
        assert_eq!((sink.len(), blocks.len()), (0, 0));
    }

    #[test]
    fn tiers_are_apart_and_slower_ones_need_no_tokens() {
        let (mut blocks, mut sink) = (Blocks::new(Hashing::Canonical, 0), BTreeSet::new());
        let both: BTreeSet<u64> = chain(&[1, 2, 3, 4], 2, &[]).into_iter().collect();
        let gpu = Stored { medium: Some("GPU"), ..stored(&[1, 2], None, &[1, 2, 3, 4]) };
        apply(&mut blocks, KvEvent::Stored(gpu));
        let cpu = Stored { medium: Some("CPU"), ..stored(&[1, 2], None, &[]) };
        apply(&mut blocks, KvEvent::Stored(cpu));
        apply(&mut blocks, KvEvent::Removed(removed(&[1, 2])));
        take(&mut blocks, &mut sink);
        assert_eq!((numbers(&sink, ""), numbers(&sink, "cpu")), (BTreeSet::new(), both.clone()));
        // Stored again from the slower tier: known by its name.
        apply(&mut blocks, KvEvent::Stored(stored(&[1, 2], None, &[])));
        take(&mut blocks, &mut sink);
        assert_eq!((numbers(&sink, ""), numbers(&sink, "cpu")), (both.clone(), both));
        apply(&mut blocks, KvEvent::Cleared);
        take(&mut blocks, &mut sink);
        assert_eq!((sink.len(), blocks.len()), (0, 0));
        for medium in ["a b", &"x".repeat(33), "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"] {
            let other = Stored { medium: Some(medium), ..stored(&[5], None, &[1, 2]) };
            apply(&mut blocks, KvEvent::Stored(other));
        }
        assert_eq!(blocks.counts().ignored, 4, "two are no names, two too many");
    }

    #[test]
    fn other_groups_are_ignored_and_counted() {
        let mut blocks = Blocks::new(Hashing::Engine, 1);
        for group in [None, Some(0), Some(1)] {
            let number = group.unwrap_or(9);
            let event = Stored { group, ..stored(&[number], None, &[1, 2]) };
            apply(&mut blocks, KvEvent::Stored(event));
        }
        assert_eq!((blocks.len(), blocks.counts().ignored, blocks.counts().blocks), (2, 1, 3));
    }

    #[test]
    fn adapters_and_salts_are_inside_the_hash() {
        use crate::canonical::extra;
        let hash_of = |event: Stored<'_>| {
            let (mut blocks, mut sink) = (Blocks::new(Hashing::Canonical, 0), BTreeSet::new());
            apply(&mut blocks, KvEvent::Stored(event));
            take(&mut blocks, &mut sink);
            numbers(&sink, "").into_iter().next().unwrap()
        };
        let plain = || stored(&[1], None, &[1, 2]);
        let of = |extra: &[u8]| chain(&[1, 2], 2, extra)[0];
        assert_eq!(hash_of(plain()), of(&[]));
        let named = extra(Some("sql"), None);
        assert_eq!(hash_of(Stored { adapter: Some(b"\xa3sql"), ..plain() }), of(&named));
        assert_eq!(hash_of(Stored { extra: vec![Some(&named)], ..plain() }), of(&named));
        let salted = extra(Some("sql"), Some("tenant"));
        let event = Stored { adapter: Some(b"\xa3sql"), extra: vec![Some(&salted)], ..plain() };
        assert_eq!(hash_of(event), of(&salted));
        assert_ne!(of(&named), of(&salted));
    }

    #[test]
    fn a_sink_that_lost_everything_is_shown_everything() {
        let (mut blocks, mut sink) = (Blocks::new(Hashing::Canonical, 0), BTreeSet::new());
        let tokens: Vec<u32> = (0..200).collect();
        let names: Vec<u64> = (0..100).collect();
        apply(&mut blocks, KvEvent::Stored(stored(&names, None, &tokens)));
        let cpu = Stored { medium: Some("cpu"), ..stored(&names[..10], None, &[]) };
        apply(&mut blocks, KvEvent::Stored(cpu));
        apply(&mut blocks, KvEvent::Removed(removed(&names[90..])));
        take(&mut blocks, &mut sink);
        let before = std::mem::take(&mut sink);
        assert_eq!(before.len(), 100);
        sink.insert((String::new(), BlockKey::Number(5)));
        blocks.show_all();
        take(&mut blocks, &mut sink);
        assert_eq!(sink, before);
        assert_eq!(blocks.pending(), 0);
    }
}
