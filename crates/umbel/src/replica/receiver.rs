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
use super::image::{Change, Image};
use super::message::{AnnouncedSet, Page, Update};
use super::paged::decode_changes;
use super::{Counters, Epoch, Incarnation};
use crate::bank::{Bank, BankError, ColumnId};
use crate::codec::{DecodeError, Reader};
use crate::filter::ComponentId;
use crate::scheme::Scheme;

/// One home's set, as a host has it.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The home's newest life that was heard of.
    incarnation: Incarnation,
    installed: Option<Installed>,
    fetch: Option<Fetch>,
    /// Since when the home is known to have published something that is not here.
    behind_since: Option<Duration>,
    /// When the last image or update arrived.
    updated: Duration,
    /// Members that the home named, and how many of them the image denied.
    pub(crate) sampled: Sampled,
    /// Keys that the home says it holds.
    pub(crate) items: u64,
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
    pub(crate) const fn new(now: Duration, incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            installed: None,
            fetch: None,
            behind_since: None,
            updated: now,
            sampled: Sampled { members: 0, denied: 0 },
            items: 0,
        }
    }

    /// Takes an update; `most` bounds the components that it may give anew.
    pub(crate) fn update(
        &mut self,
        now: Duration,
        update: &Update,
        most: usize,
        bank: &mut Bank,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
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
                self.install(now, Fetched { epoch: update.epoch, image }, bank)
            }
            (Some(changes), Some(base)) if self.fits(base, &update.scheme) => {
                self.take_delta(now, update, changes, most, bank)?;
                counters.deltas += 1;
                Ok(())
            }
            _ => {
                counters.gaps += 1;
                self.start_fetch(now, &update.scheme);
                self.feed_fetch(now, update, most, bank, counters)
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
            self.behind_since = None;
        }
        true
    }

    /// Whether a change against this epoch and scheme is one against the installed image.
    fn fits(&self, base: Epoch, scheme: &Scheme) -> bool {
        self.epoch() == Some(base)
            && self.installed.as_ref().is_some_and(|here| here.image.scheme() == scheme)
    }

    /// A change of the installed image: checked before a single bit moves.
    fn take_delta(
        &mut self,
        now: Duration,
        update: &Update,
        changes: &[u8],
        most: usize,
        bank: &mut Bank,
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
        here.apply(&changes, bank)?;
        here.epoch = update.epoch;
        self.updated = now;
        self.behind_since = None;
        self.fetch = None;
        Ok(())
    }

    /// Takes a page that was asked for.
    pub(crate) fn page(
        &mut self,
        now: Duration,
        page: &Page,
        bank: &mut Bank,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        if !self.is_of_this_life(page.incarnation, counters) {
            return Ok(());
        }
        let Some(fetch) = &mut self.fetch else { return Ok(()) };
        counters.pages += 1;
        if let Some(fetched) = fetch.page(page)? {
            counters.snapshots += 1;
            self.install(now, fetched, bank)?;
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
                    self.behind_since.get_or_insert(now);
                } else if set.epoch == here.epoch && set.checksum != here.image.checksum() {
                    counters.mismatches += 1;
                    self.start_fetch(now, &set.scheme);
                }
            }
            _ => self.start_fetch(now, &set.scheme),
        }
        // The update may be on its way behind the announcement: wait a little.
        if self.behind_since.is_some_and(|since| now >= since + PATIENCE) {
            counters.gaps += 1;
            self.start_fetch(now, &set.scheme);
        }
    }

    /// Pages to ask the home for now.
    pub(crate) fn requests(
        &mut self,
        now: Duration,
        patience: impl Fn(u32) -> Duration,
    ) -> Vec<Option<PageId>> {
        self.fetch.as_mut().map_or(Vec::new(), |fetch| fetch.requests(now, patience))
    }

    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.fetch.as_ref().and_then(Fetch::next_timeout)
    }

    /// The home is gone: its columns answer no more.
    pub(crate) fn expire(&mut self, bank: &mut Bank) {
        if let Some(here) = self.installed.take() {
            here.remove(bank);
        }
        self.fetch = None;
        self.behind_since = None;
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
        self.epoch().is_some() && self.fetch.is_none() && self.behind_since.is_none()
    }

    pub(crate) const fn updated(&self) -> Duration {
        self.updated
    }

    /// The columns that answer.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnId> {
        self.installed.iter().flat_map(|here| here.columns.iter().map(|(_, column)| *column))
    }

    /// Life, epoch and checksum of what answers, for checks.
    pub(crate) fn installed_checksum(&self) -> Option<(Incarnation, Epoch, u64)> {
        let here = self.installed.as_ref()?;
        Some((here.incarnation, here.epoch, here.image.checksum()))
    }

    /// What answers, for checks.
    pub(crate) fn image(&self) -> Option<&Image> {
        self.installed.as_ref().map(|here| &here.image)
    }

    fn start_fetch(&mut self, now: Duration, scheme: &Scheme) {
        self.behind_since.get_or_insert(now);
        if self.fetch.is_none() {
            self.fetch = Some(Fetch::new(self.incarnation, *scheme));
        }
    }

    fn feed_fetch(
        &mut self,
        now: Duration,
        update: &Update,
        most: usize,
        bank: &mut Bank,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        let Some(fetch) = &mut self.fetch else { return Ok(()) };
        if let Some(fetched) = fetch.update(update, most)? {
            counters.snapshots += 1;
            self.install(now, fetched, bank)?;
        }
        Ok(())
    }

    /// Puts a whole image in the place of the one that answered so far: the new columns
    /// first, then the old ones go.
    fn install(&mut self, now: Duration, fetched: Fetched, bank: &mut Bank) -> Result<(), Refused> {
        let Fetched { epoch, image } = fetched;
        let bits: Vec<_> = image.components().iter().map(|component| &component.bits).collect();
        let columns = bank.add_many(image.scheme(), &bits)?;
        let ids = image.components().iter().map(|component| component.id);
        let columns = ids.zip(columns).collect();
        let incarnation = self.incarnation;
        let old = self.installed.replace(Installed { incarnation, epoch, image, columns });
        if let Some(old) = old {
            old.remove(bank);
        }
        self.fetch = None;
        self.behind_since = None;
        self.updated = now;
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
    fn apply(&mut self, changes: &super::image::Changes, bank: &mut Bank) -> Result<(), BankError> {
        let scheme = *self.image.scheme();
        let column = |columns: &[(ComponentId, ColumnId)], id| {
            columns.iter().find(|(other, _)| *other == id).map(|(_, column)| *column)
        };
        let mut added = Vec::new();
        for (id, change) in changes {
            if let (Change::Whole(bits), None) = (change, column(&self.columns, *id)) {
                match bank.add(&scheme, bits) {
                    Ok(column) => added.push((*id, column)),
                    Err(error) => {
                        // Nothing has changed yet but new columns: take them back.
                        for (_, column) in &added {
                            let _ = bank.remove(*column);
                        }
                        return Err(error);
                    }
                }
            }
        }
        for (id, change) in changes {
            if let (Change::Flips(flips), Some(column)) = (change, column(&self.columns, *id)) {
                bank.set(column, &flips.sets)?;
            }
        }
        for (id, change) in changes {
            match (change, column(&self.columns, *id)) {
                (Change::Flips(flips), Some(column)) => bank.clear(column, &flips.clears)?,
                (Change::Whole(bits), Some(column)) => bank.replace(column, bits)?,
                (Change::Dropped, Some(column)) => bank.remove(column)?,
                (_, None) => {}
            }
        }
        self.image.apply(changes);
        self.columns.retain(|(id, _)| self.image.component(*id).is_some());
        self.columns.extend(added);
        Ok(())
    }

    fn remove(&self, bank: &mut Bank) {
        for (_, column) in &self.columns {
            let gone = bank.remove(*column);
            debug_assert!(gone.is_ok(), "an installed column is in the bank");
        }
    }
}
