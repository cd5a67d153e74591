//! The exact keys of a host's own sets: in memory, in a folder, or in a catalogue of the embedding
//! program.
//!
//! A [`HostCatalogue`] is a handle: the engine changes it, and queries read it from other threads
//! at the same time.

mod journal;
mod layout;
mod pass;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockWriteGuard};
use umbel::catalogue::{Catalogue, InPass, MemoryCatalogue, Place};
use umbel::filter::ComponentId;

pub use journal::Ticket;
pub(crate) use journal::{Journal, JournalReport};
pub(crate) use layout::{SetNumber, SetRecord, VERSION as LAYOUT};
use pass::Pass;

/// A catalogue provided by the embedding program.
pub type OwnCatalogue = Box<dyn Catalogue + Send + Sync>;

/// A page of keys of a set, and the cursor of the next page, if there is one.
pub type KeyPage = (Vec<Vec<u8>>, Option<Vec<u8>>);

/// The exact keys of one own set.
#[derive(Clone)]
pub(crate) enum HostCatalogue {
    Memory(Arc<RwLock<MemoryCatalogue>>),
    Folder(FolderCatalogue),
    Own(Arc<RwLock<OwnCatalogue>>),
}

impl fmt::Debug for HostCatalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory(_) => "Memory",
            Self::Folder(_) => "Folder",
            Self::Own(_) => "Own",
        })
    }
}

/// A page of keys ends at this number of bytes: keys may be long, and a page is held in memory.
const PAGE_BYTES: usize = 1 << 20;
/// Keys that are inserted into a catalogue in memory per lock: this takes a few microseconds, for
/// which a query spins instead of sleeping.
const INSERTED_AT_ONCE: usize = 8;
/// A page of a catalogue in memory is collected in steps of so many keys, until it is full.
const PAGE_PART: usize = 64;

impl HostCatalogue {
    /// A page of at most `count` keys and about [`PAGE_BYTES`], in no particular order, and the
    /// cursor of the next page. A key that is held during the whole listing is returned, perhaps
    /// twice.
    pub(crate) fn page(&self, cursor: &[u8], count: usize) -> KeyPage {
        match self {
            Self::Folder(folder) => folder.page(cursor, count),
            Self::Memory(keys) => {
                let (page, next) = page_in_memory(&keys.read(), Place::from_bytes(cursor), count);
                (page, next.map(|next| next.to_bytes().to_vec()))
            }
            Self::Own(keys) => {
                let mut all = Vec::new();
                keys.read().for_each(&mut |key, _| all.push(key.to_vec()));
                (all, None)
            }
        }
    }
}

fn page_in_memory(
    keys: &MemoryCatalogue,
    mut from: Option<Place>,
    count: usize,
) -> (Vec<Vec<u8>>, Option<Place>) {
    let (mut page, mut bytes) = (Vec::new(), 0);
    loop {
        let (part, next) = keys.page(from, PAGE_PART.min(count - page.len()));
        bytes += part.iter().map(|key| key.len()).sum::<usize>();
        page.extend(part.into_iter().map(<[u8]>::to_vec));
        if next.is_none() || page.len() >= count || bytes >= PAGE_BYTES {
            return (page, next);
        }
        from = next;
    }
}

impl Catalogue for HostCatalogue {
    fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Memory(keys) => keys.read().contains(key),
            Self::Folder(folder) => folder.contains(key),
            Self::Own(keys) => keys.read().contains(key),
        }
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        match self {
            Self::Memory(keys) => keys.write().insert(key, component),
            Self::Folder(folder) => folder.insert(key, component),
            Self::Own(keys) => keys.write().insert(key, component),
        }
    }

    fn insert_new(&mut self, key: &[u8], component: ComponentId) -> bool {
        match self {
            Self::Memory(keys) => fairly(keys, |keys| keys.insert_new(key, component)),
            Self::Folder(folder) => folder.insert_new(key, component),
            Self::Own(keys) => keys.write().insert_new(key, component),
        }
    }

    fn insert_many(
        &mut self,
        keys: &[&[u8]],
        component: ComponentId,
        on_result: &mut dyn FnMut(bool),
    ) {
        match self {
            Self::Memory(held) => {
                for keys in keys.chunks(INSERTED_AT_ONCE) {
                    fairly(held, |held| held.insert_many(keys, component, on_result));
                }
            }
            Self::Folder(folder) => {
                keys.iter().for_each(|key| on_result(folder.insert_new(key, component)));
            }
            Self::Own(held) => held.write().insert_many(keys, component, on_result),
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        match self {
            Self::Memory(keys) => fairly(keys, |keys| keys.remove(key)),
            Self::Folder(folder) => folder.remove(key),
            Self::Own(keys) => keys.write().remove(key),
        }
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        match self {
            Self::Memory(keys) => keys.read().for_each(show),
            Self::Folder(folder) => folder.for_each(show),
            Self::Own(keys) => keys.read().for_each(show),
        }
    }

    fn reassign(&mut self, assign: &mut dyn FnMut(&[u8]) -> ComponentId) {
        match self {
            Self::Memory(keys) => {
                // In parts, so that no query waits for all of it.
                let mut part = 0;
                while keys.write().reassign_part(part, assign) {
                    part += 1;
                }
            }
            Self::Folder(folder) => folder.reassign(assign),
            Self::Own(keys) => keys.write().reassign(assign),
        }
    }

    fn move_all(&mut self, to: ComponentId) {
        match self {
            Self::Memory(_) => self.reassign(&mut |_| to),
            Self::Folder(folder) => folder.move_all(to),
            Self::Own(keys) => keys.write().move_all(to),
        }
    }

    fn begin_pass(&mut self) -> bool {
        match self {
            Self::Memory(keys) => keys.write().begin_pass(),
            Self::Folder(folder) => folder.begin_pass(),
            Self::Own(keys) => keys.write().begin_pass(),
        }
    }

    fn pass_part(&mut self, count: usize, show: &mut dyn FnMut(&[u8])) -> bool {
        match self {
            Self::Memory(keys) => keys.read().show_part(count, show),
            Self::Folder(folder) => folder.pass.as_ref().is_some_and(|pass| pass.part(show)),
            Self::Own(keys) => keys.write().pass_part(count, show),
        }
    }

    fn in_pass(&self, key: &[u8]) -> InPass {
        match self {
            Self::Memory(keys) => keys.read().in_pass(key),
            Self::Folder(_) => InPass::Either,
            Self::Own(keys) => keys.read().in_pass(key),
        }
    }

    fn end_pass(&mut self) {
        match self {
            Self::Memory(keys) => keys.write().end_pass(),
            Self::Folder(folder) => folder.pass = None,
            Self::Own(keys) => keys.write().end_pass(),
        }
    }

    fn components(&self) -> BTreeMap<ComponentId, u64> {
        match self {
            Self::Memory(keys) => keys.read().components(),
            Self::Folder(folder) => folder.held.clone(),
            Self::Own(keys) => keys.read().components(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Memory(keys) => keys.read().len(),
            Self::Folder(folder) => folder.len(),
            Self::Own(keys) => keys.read().len(),
        }
    }
}

/// Changes a catalogue, and hands its lock to a waiting reader: a bulk load that takes the lock
/// again at once would otherwise keep readers waiting until it ends.
fn fairly<T>(keys: &RwLock<MemoryCatalogue>, change: impl FnOnce(&mut MemoryCatalogue) -> T) -> T {
    let mut keys = keys.write();
    let changed = change(&mut keys);
    RwLockWriteGuard::unlock_fair(keys);
    changed
}

/// Keys that are reassigned per batch.
const PART: usize = 4096;

/// One set's keys in the host's folder: the journal stores those of all sets.
///
/// A damaged file cannot be reported through the trait: the journal remembers the failure, rejects
/// changes from then on, and the host checks it after every change.
#[derive(Debug)]
pub(crate) struct FolderCatalogue {
    journal: Arc<Journal>,
    set: SetNumber,
    /// Number of keys per component. Only maintained by the handle that changes the set; others do
    /// not use it.
    held: BTreeMap<ComponentId, u64>,
    /// A key whose record has a lower component belongs to this one: so all keys can move to a new
    /// component without changing their records.
    floor: ComponentId,
    /// The running pass over the keys, if any.
    pass: Option<Pass>,
}

impl Clone for FolderCatalogue {
    /// Another handle; a pass belongs to the one that began it.
    fn clone(&self) -> Self {
        let (journal, held) = (Arc::clone(&self.journal), self.held.clone());
        Self { journal, set: self.set, held, floor: self.floor, pass: None }
    }
}

impl FolderCatalogue {
    /// The catalogue of a new set.
    pub(crate) const fn empty(journal: Arc<Journal>, set: SetNumber) -> Self {
        Self { journal, set, held: BTreeMap::new(), floor: ComponentId(0), pass: None }
    }

    /// The catalogue of an existing set, after counting its keys.
    pub(crate) fn open(journal: Arc<Journal>, set: SetNumber) -> Self {
        let mut catalogue = Self::empty(journal, set);
        let floor = catalogue.journal.get(&layout::floor(set), component).flatten();
        catalogue.floor = floor.unwrap_or(catalogue.floor);
        let mut held = BTreeMap::new();
        catalogue.for_each(&mut |_, component| *held.entry(component).or_default() += 1);
        catalogue.held = held;
        catalogue
    }

    fn len(&self) -> u64 {
        self.held.values().sum()
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        self.remove(key);
        self.insert_new(key, component);
    }

    fn insert_new(&mut self, key: &[u8], component: ComponentId) -> bool {
        let new = self.journal.insert(layout::key(self.set, key), &component.0.to_le_bytes());
        *self.held.entry(component).or_default() += u64::from(new);
        new
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        let name = layout::key(self.set, key);
        let component = self.journal.get(&name, component)??.max(self.floor);
        self.journal.delete(name);
        if let Some(keys) = self.held.get_mut(&component) {
            *keys -= 1;
        }
        Some(component)
    }

    /// Begins a pass; returns false if no thread can be started for it.
    fn begin_pass(&mut self) -> bool {
        self.pass = Pass::begin(&self.journal, layout::keys(self.set).to_vec()).ok();
        self.pass.is_some()
    }

    fn move_all(&mut self, to: ComponentId) {
        self.journal.put(layout::floor(self.set), &to.0.to_le_bytes());
        self.held = BTreeMap::from([(to, self.len())]);
        self.floor = to;
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.journal.get(&layout::key(self.set, key), |_| ()).is_some()
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        let prefix = layout::keys(self.set);
        let mut shown = 0u64;
        self.journal.visit(&prefix, &mut |key, value| {
            if let Some(component) = component(value) {
                show(&key[prefix.len()..], component.max(self.floor));
            }
            shown += 1;
            if shown.is_multiple_of(1_000_000) {
                tracing::info!(keys = shown, of = self.len(), "reading the catalogue");
            }
        });
    }

    fn page(&self, cursor: &[u8], count: usize) -> KeyPage {
        let prefix = layout::keys(self.set);
        let (mut page, mut bytes, mut next) = (Vec::new(), 0, None);
        self.journal.scan_from(&prefix, cursor, &mut |key, _| {
            let key = &key[prefix.len()..];
            if page.len() == count || bytes >= PAGE_BYTES {
                next = Some(key.to_vec());
                return false;
            }
            bytes += key.len();
            page.push(key.to_vec());
            true
        });
        (page, next)
    }

    fn reassign(&mut self, assign: &mut dyn FnMut(&[u8]) -> ComponentId) {
        let (journal, prefix) = (Arc::clone(&self.journal), layout::keys(self.set));
        let (mut moved, mut held) = (Vec::new(), BTreeMap::new());
        journal.visit(&prefix, &mut |key, _| {
            let component = assign(&key[prefix.len()..]);
            *held.entry(component).or_default() += 1;
            moved.push((Box::<[u8]>::from(key), component.0.to_le_bytes()));
            if moved.len() == 16 * PART {
                journal.write_now(&mut moved);
            }
        });
        journal.write_now(&mut moved);
        self.held = held;
    }
}

/// The component in a key's record; `None` if the record is invalid.
fn component(value: &[u8]) -> Option<ComponentId> {
    value.try_into().ok().map(|bytes| ComponentId(u32::from_le_bytes(bytes)))
}
