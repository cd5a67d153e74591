//! One home's set at a host: the image it has, and the next one on its way.
//!
//! Updates are applied in order, exactly once: flips are not idempotent. Duplicates and old
//! lives are ignored; a gap, a wrong checksum, a new life or an announcement that names
//! something newer leads to a fetch. The columns in the bank keep answering with the last
//! good image until the next one is whole.
//!
//! Always true: the columns hold exactly one image that the home published, never a mixture
//! of two.
//!
//! Not here: who the home is and whether it lives (`engine`).

use std::time::Duration;

use super::fetch::{Fetch, Fetched, PageId};
use super::image::{Change, Changes, Image};
use super::message::{AnnouncedSet, Page, Update};
use super::paged::decode_changes;
use super::replicas::Replicas;
use super::{Counters, Epoch, Incarnation, Name};
use crate::bank::{BankError, ColumnId, Rows};
use crate::bits::BitVector;
use crate::codec::{DecodeError, Reader};
use crate::filter::ComponentId;
use crate::scheme::Scheme;

/// One home's set, as a host has it.
#[derive(Debug)]
pub(crate) struct Receiver {
    home: Name,
    /// The home's newest life that was heard of.
    incarnation: Incarnation,
    installed: Option<Installed>,
    fetch: Option<Fetch>,
    /// Since when the home is known to have published something that is not here, and of
    /// which scheme it is.
    behind: Option<(Duration, Scheme)>,
    /// When the last image or update arrived.
    updated: Duration,
    /// Members that the home named, and how many of them the image denied.
    pub(crate) sampled: Sampled,
    /// Keys that the home says it holds.
    pub(crate) items: u64,
    pub(crate) received: Received,
}

/// What arrived of a home's set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Images and changes that were taken.
    pub updates: u64,
    /// Bytes of updates and pages, taken or not.
    pub bytes: u64,
}

/// Members that a home named in announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sampled {
    /// Members named.
    pub members: u64,
    /// Of these, denied by the replica.
    pub denied: u64,
}

#[derive(Debug)]
struct Installed {
    incarnation: Incarnation,
    epoch: Epoch,
    image: Image,
    columns: Vec<(ComponentId, ColumnId)>,
}

/// Why nothing came of a message. The columns are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Bank(#[from] BankError),
}

impl Receiver {
    pub(crate) const fn new(now: Duration, home: Name, incarnation: Incarnation) -> Self {
        Self {
            home,
            incarnation,
            installed: None,
            fetch: None,
            behind: None,
            updated: now,
            sampled: Sampled { members: 0, denied: 0 },
            items: 0,
            received: Received { updates: 0, bytes: 0 },
        }
    }

    /// Takes an update; `most` bounds the components that it may give anew.
    pub(crate) fn update<R: Rows>(
        &mut self,
        now: Duration,
        update: &Update,
        most: usize,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        self.received.bytes += update.changes.as_ref().map_or(0, Vec::len) as u64;
        if !self.is_of_this_life(update.incarnation, counters) {
            return Ok(());
        }
        if self.epoch().is_some_and(|epoch| update.epoch <= epoch) {
            counters.duplicates += 1;
            return Ok(());
        }
        match (&update.changes, update.base) {
            (Some(changes), None) => {
                let image = decode_snapshot(update, changes, most)?;
                counters.snapshots += 1;
                self.install(now, Fetched { epoch: update.epoch, image }, replicas)
            }
            (Some(changes), Some(base)) if self.fits(base, &update.scheme) => {
                self.take_delta(now, update, changes, most, replicas)?;
                counters.deltas += 1;
                Ok(())
            }
            _ => {
                counters.gaps += 1;
                self.start_fetch(now, &update.scheme);
                self.feed_fetch(now, update, most, replicas, counters)
            }
        }
    }

    /// Whether a message is of the home's newest life; a newer one than known makes it so.
    fn is_of_this_life(&mut self, incarnation: Incarnation, counters: &mut Counters) -> bool {
        if incarnation < self.incarnation {
            counters.old_lives += 1;
            return false;
        }
        if incarnation > self.incarnation {
            self.incarnation = incarnation;
            self.fetch = None;
            self.behind = None;
        }
        true
    }

    /// Whether a change against this epoch and scheme is one against the installed image.
    fn fits(&self, base: Epoch, scheme: &Scheme) -> bool {
        self.epoch() == Some(base)
            && self.installed.as_ref().is_some_and(|here| here.image.scheme() == scheme)
    }

    /// A change of the installed image: checked before a single bit moves.
    fn take_delta<R: Rows>(
        &mut self,
        now: Duration,
        update: &Update,
        changes: &[u8],
        most: usize,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let here = self.installed.as_mut().expect("the change fits what is installed");
        let mut reader = Reader::new(changes);
        let decoded = decode_changes(&mut reader, &here.image, most).and_then(|changes| {
            reader.end()?;
            let found = here.image.checksum_after(&changes);
            if found == update.checksum {
                Ok(changes)
            } else {
                Err(DecodeError::WrongResult { stored: update.checksum, found })
            }
        });
        let changes = match decoded {
            Ok(changes) => changes,
            Err(error) => {
                self.start_fetch(now, &update.scheme);
                return Err(error.into());
            }
        };
        here.apply(&self.home, &changes, replicas)?;
        here.epoch = update.epoch;
        self.updated = now;
        self.received.updates += 1;
        self.behind = None;
        self.fetch = None;
        Ok(())
    }

    /// Takes a page that was asked for.
    pub(crate) fn page<R: Rows>(
        &mut self,
        now: Duration,
        page: &Page,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        self.received.bytes += page.bytes.len() as u64;
        if !self.is_of_this_life(page.incarnation, counters) {
            return Ok(());
        }
        let Some(fetch) = &mut self.fetch else { return Ok(()) };
        counters.pages += 1;
        if let Some(fetched) = fetch.page(page)? {
            counters.snapshots += 1;
            self.install(now, fetched, replicas)?;
        }
        Ok(())
    }

    /// Takes what a home says of its set.
    pub(crate) fn announced(
        &mut self,
        now: Duration,
        incarnation: Incarnation,
        set: &AnnouncedSet,
        counters: &mut Counters,
    ) {
        if !self.is_of_this_life(incarnation, counters) {
            return;
        }
        self.items = set.items;
        match &self.installed {
            Some(here) if here.incarnation == incarnation => {
                if here.image.scheme() == &set.scheme {
                    self.sampled.members += set.samples.len() as u64;
                    let denied = set.samples.iter().filter(|digest| !here.image.claims(**digest));
                    self.sampled.denied += denied.count() as u64;
                }
                if set.epoch > here.epoch {
                    // The update may be on its way behind the announcement: wait a little.
                    self.behind.get_or_insert((now, set.scheme)).1 = set.scheme;
                } else if set.epoch == here.epoch && set.checksum != here.image.checksum() {
                    counters.mismatches += 1;
                    self.start_fetch(now, &set.scheme);
                }
            }
            _ => self.start_fetch(now, &set.scheme),
        }
    }

    /// Pages to ask the home for now.
    pub(crate) fn requests(
        &mut self,
        now: Duration,
        patience: impl Fn(u32) -> Duration,
        counters: &mut Counters,
    ) -> Vec<Option<PageId>> {
        if let Some((since, scheme)) = self.behind
            && self.fetch.is_none()
            && now >= since + PATIENCE
        {
            counters.gaps += 1;
            self.start_fetch(now, &scheme);
        }
        self.fetch.as_mut().map_or(Vec::new(), |fetch| fetch.requests(now, patience))
    }

    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        match (&self.fetch, self.behind) {
            (Some(fetch), _) => fetch.next_timeout(),
            (None, Some((since, _))) => Some(since + PATIENCE),
            (None, None) => None,
        }
    }

    /// The home is gone: its columns answer no more.
    pub(crate) fn expire<R: Rows>(&mut self, replicas: &Replicas<R>) {
        if let Some(here) = self.installed.take() {
            here.remove(&self.home, replicas);
        }
        self.fetch = None;
        self.behind = None;
    }

    /// The epoch of the installed image, if it is of the home's newest life.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        let here = self.installed.as_ref()?;
        (here.incarnation == self.incarnation).then_some(here.epoch)
    }

    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Whether nothing newer is known of than what answers.
    pub(crate) fn is_current(&self) -> bool {
        self.epoch().is_some() && self.fetch.is_none() && self.behind.is_none()
    }

    pub(crate) const fn updated(&self) -> Duration {
        self.updated
    }

    /// The columns that answer.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnId> {
        self.installed.iter().flat_map(|here| here.columns.iter().map(|(_, column)| *column))
    }

    /// The columns that answer, each with the bits it should hold, for checks.
    pub(crate) fn expected(&self) -> Vec<(ColumnId, &Name, &BitVector)> {
        let Some(here) = &self.installed else { return Vec::new() };
        let bits = |id| &here.image.component(id).expect("columns hold components").bits;
        here.columns.iter().map(|(id, column)| (*column, &self.home, bits(*id))).collect()
    }

    /// Whether the home says that it has the set no longer: an image without components.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.installed.as_ref().is_some_and(|here| here.columns.is_empty())
    }

    /// Life, epoch and checksum of what answers, for checks.
    pub(crate) fn installed_checksum(&self) -> Option<(Incarnation, Epoch, u64)> {
        let here = self.installed.as_ref()?;
        Some((here.incarnation, here.epoch, here.image.checksum()))
    }

    fn start_fetch(&mut self, now: Duration, scheme: &Scheme) {
        self.behind.get_or_insert((now, *scheme));
        if self.fetch.is_none() {
            self.fetch = Some(Fetch::new(self.incarnation, *scheme));
        }
    }

    fn feed_fetch<R: Rows>(
        &mut self,
        now: Duration,
        update: &Update,
        most: usize,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        let Some(fetch) = &mut self.fetch else { return Ok(()) };
        if let Some(fetched) = fetch.update(update, most)? {
            counters.snapshots += 1;
            self.install(now, fetched, replicas)?;
        }
        Ok(())
    }

    /// Puts a whole image in the place of the one that answered so far, in one instant.
    fn install<R: Rows>(
        &mut self,
        now: Duration,
        fetched: Fetched,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let Fetched { epoch, image } = fetched;
        let bits: Vec<_> = image.components().iter().map(|component| &component.bits).collect();
        let gained = replicas.add(image.scheme(), &bits)?;
        let lost: Vec<ColumnId> = self.columns().collect();
        replicas.hand_over(&self.home, &gained, &lost);
        replicas.remove(&lost);
        let ids = image.components().iter().map(|component| component.id);
        let columns = ids.zip(gained).collect();
        let incarnation = self.incarnation;
        self.installed = Some(Installed { incarnation, epoch, image, columns });
        self.fetch = None;
        self.behind = None;
        self.updated = now;
        self.received.updates += 1;
        Ok(())
    }
}

/// An image that came whole in an update.
fn decode_snapshot(update: &Update, changes: &[u8], most: usize) -> Result<Image, DecodeError> {
    let mut image = Image::new(update.scheme, Vec::new());
    let mut reader = Reader::new(changes);
    let changes = decode_changes(&mut reader, &image, most)?;
    reader.end()?;
    image.apply(&changes);
    match image.checksum() {
        found if found == update.checksum => Ok(image),
        found => Err(DecodeError::WrongResult { stored: update.checksum, found }),
    }
}

/// How long an update may lag behind the announcement that names it.
const PATIENCE: Duration = Duration::from_millis(500);

impl Installed {
    /// Makes checked changes in the bank and in the image: first all that adds, then all
    /// that takes away, so that a key claimed before and after is never denied in between.
    fn apply<R: Rows>(
        &mut self,
        home: &Name,
        changes: &Changes,
        replicas: &Replicas<R>,
    ) -> Result<(), BankError> {
        let (mut ids, mut bits) = (Vec::new(), Vec::new());
        for (id, change) in changes {
            if let (Change::Whole(whole), None) = (change, self.column(*id)) {
                ids.push(*id);
                bits.push(whole);
            }
        }
        let gained = replicas.add(self.image.scheme(), &bits)?;
        for (id, change) in changes {
            match (change, self.column(*id)) {
                (Change::Flips(flips), Some(column)) => replicas.set(column, &flips.sets)?,
                (Change::Whole(bits), Some(column)) => {
                    replicas.replace(&[(column, &self.with_old_bits(*id, bits))])?;
                }
                (Change::Dropped, _) | (_, None) => {}
            }
        }
        let dropped = changes.iter().filter(|(_, change)| *change == Change::Dropped);
        let lost: Vec<ColumnId> = dropped.filter_map(|(id, _)| self.column(*id)).collect();
        replicas.hand_over(home, &gained, &lost);
        for (id, change) in changes {
            match (change, self.column(*id)) {
                (Change::Flips(flips), Some(column)) => replicas.clear(column, &flips.clears)?,
                (Change::Whole(bits), Some(column)) => replicas.replace(&[(column, bits)])?,
                (Change::Dropped, Some(_)) | (_, None) => {}
            }
        }
        replicas.remove(&lost);
        self.image.apply(changes);
        self.columns.retain(|(id, _)| self.image.component(*id).is_some());
        self.columns.extend(ids.into_iter().zip(gained));
        Ok(())
    }

    /// The bits that a component has and those that it gets.
    fn with_old_bits(&self, id: ComponentId, bits: &BitVector) -> BitVector {
        let mut both = bits.clone();
        if let Some(old) = self.image.component(id) {
            both.union_with(&old.bits);
        }
        both
    }

    fn column(&self, id: ComponentId) -> Option<ColumnId> {
        self.columns.iter().find(|(other, _)| *other == id).map(|(_, column)| *column)
    }

    fn remove<R: Rows>(&self, home: &Name, replicas: &Replicas<R>) {
        let lost: Vec<ColumnId> = self.columns.iter().map(|(_, column)| *column).collect();
        replicas.hand_over(home, &[], &lost);
        replicas.remove(&lost);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::bank::{BatchCandidates, HeapRows};
    use crate::{KeyHasher, Shape, StandardFilter};

    /// One component is dropped, and another, given anew, has its key from then on.
    #[test]
    fn a_key_that_moves_to_a_component_given_anew_is_never_denied() {
        let scheme = Scheme::from(Shape::new(1 << 20, 3).unwrap());
        let home = Name::new("home").unwrap();
        let (first, second) = (ComponentId(1), ComponentId(2));
        let empty = StandardFilter::new(scheme).unwrap();
        let mut holder = empty.clone();
        holder.insert("key");
        let hash = scheme.hasher().hash(b"key");

        let replicas: Replicas<HeapRows> = Replicas::new(KeyHasher::default());
        let bits = [holder.bits(), empty.bits()];
        let columns = replicas.add(&scheme, &bits).unwrap();
        replicas.hand_over(&home, &columns, &[]);
        let mut image = Image::new(scheme, Vec::new());
        [first, second].iter().zip(bits).for_each(|(id, bits)| image.put(*id, bits.clone()));
        let columns = [first, second].into_iter().zip(columns).collect();
        let mut here = Installed { incarnation: Incarnation(1), epoch: Epoch(1), image, columns };

        let (begun, done) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let (mut found, mut asked, mut denied) = (BatchCandidates::new(), 0, 0);
                begun.wait();
                while !done.load(Ordering::Relaxed) {
                    replicas
                        .who(&[hash], &mut found, |hosts| denied += usize::from(hosts.is_empty()));
                    asked += 1;
                }
                (asked, denied)
            });
            let whole = Change::Whole(holder.bits().clone());
            begun.wait();
            here.apply(&home, &vec![(first, Change::Dropped), (second, whole)], &replicas).unwrap();
            done.store(true, Ordering::Relaxed);
            let (asked, denied) = asking.join().unwrap();
            assert_eq!(denied, 0, "of {asked} questions");
        });
        replicas.who(&[hash], &mut BatchCandidates::new(), |hosts| assert_eq!(hosts, [&home]));
    }
}
