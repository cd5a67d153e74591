//! One home's set at a host: the image it has, and the next one on its way.
//!
//! Updates are applied in order, exactly once: flips are not idempotent. Duplicates and old
//! lives are ignored; a gap, a wrong checksum, a new life or an announcement that names
//! something newer leads to a fetch. The column in the bank keeps answering with the last
//! good image until the next one is whole.
//!
//! An update to another rung of the ladder is decoded against the image that is here: folded to
//! the lower one, refined to the higher one. A home that restarts with the same bits sends
//! nothing: their checksum says that the image here is the one it has.
//!
//! Always true: the column holds exactly one image that the home published, never a mixture
//! of two. Its bits are kept in the bank alone.
//!
//! Not here: who the home is and whether it lives (`engine`).

use std::time::Duration;

use super::fetch::{Fetch, Fetched, PageId};
use super::image::Change;
use super::message::{AnnouncedSet, Page, Update};
use super::paged::{decode_change, decode_step};
use super::replicas::Replicas;
use super::{Counters, Epoch, Incarnation, Name};
use crate::bank::{BankError, ColumnId, Rows};
use crate::bits::BitVector;
use crate::codec::{DecodeError, Flips, Reader};
use crate::design::ladder::steps_between;
use crate::filter::claims;
use crate::key_hash::Walk;
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

/// The image that answers.
#[derive(Debug)]
struct Installed {
    incarnation: Incarnation,
    epoch: Epoch,
    scheme: Scheme,
    /// Of the bits; 0 if there are none.
    checksum: u64,
    /// `None` if the home says that it has the set no longer.
    column: Option<ColumnId>,
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

    /// Takes an update.
    pub(crate) fn update<R: Rows>(
        &mut self,
        now: Duration,
        update: &Update,
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
        if self.has_bits(&update.scheme, update.checksum) {
            counters.same_bits += 1;
            self.adopt(now, update.epoch);
            return Ok(());
        }
        match (&update.changes, update.base) {
            (Some(changes), None) => {
                let bits = decode_snapshot(update, changes)?;
                counters.snapshots += 1;
                self.install(now, update.epoch, &update.scheme, bits, replicas)
            }
            (Some(changes), Some(base)) if self.fits(base, &update.scheme) => {
                self.take_change(now, update, changes, replicas)?;
                counters.deltas += 1;
                Ok(())
            }
            _ => {
                counters.gaps += 1;
                self.start_fetch(now, &update.scheme);
                self.feed_fetch(now, update, replicas, counters)
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

    /// Whether a change against this epoch, to this scheme, is one against the installed image.
    fn fits(&self, base: Epoch, scheme: &Scheme) -> bool {
        let here = self.installed.as_ref().filter(|here| here.column.is_some());
        self.epoch() == Some(base) && here.is_some_and(|here| here.steps_to(scheme).is_some())
    }

    /// Whether the installed image, of whichever life, has these bits.
    fn has_bits(&self, scheme: &Scheme, checksum: u64) -> bool {
        let here = self.installed.as_ref();
        here.is_some_and(|here| &here.scheme == scheme && here.checksum == checksum)
    }

    /// The installed image is the home's newest: nothing needs to arrive.
    fn adopt(&mut self, now: Duration, epoch: Epoch) {
        if let Some(here) = &mut self.installed {
            (here.incarnation, here.epoch) = (self.incarnation, epoch);
        }
        self.is_up_to_date(now);
    }

    fn is_up_to_date(&mut self, now: Duration) {
        self.updated = now;
        self.received.updates += 1;
        self.behind = None;
        self.fetch = None;
    }

    /// A change of the installed image: checked before a single bit moves.
    fn take_change<R: Rows>(
        &mut self,
        now: Duration,
        update: &Update,
        changes: &[u8],
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let here = self.installed.as_mut().expect("the change fits what is installed");
        let column = here.column.expect("the change fits what is installed");
        let decoded =
            replicas.with_bits(column, |bits| here.decode(bits, &update.scheme, changes))?;
        let checked = decoded.and_then(|(next, checksum)| match checksum {
            found if found == update.checksum => Ok(next),
            found => Err(DecodeError::WrongResult { stored: update.checksum, found }),
        });
        match checked {
            Err(error) => {
                self.start_fetch(now, &update.scheme);
                return Err(error.into());
            }
            Ok(Next::Flips(flips)) => {
                // First all that adds, then all that takes away: a key that is claimed before
                // and after is never denied in between.
                replicas.set(column, &flips.sets)?;
                replicas.clear(column, &flips.clears)?;
            }
            Ok(Next::Bits(bits)) => {
                here.column = Some(replicas.install(&self.home, &update.scheme, bits)?);
            }
            Ok(Next::Nothing) => {
                replicas.remove(&self.home);
                here.column = None;
            }
        }
        here.epoch = update.epoch;
        here.scheme = update.scheme;
        here.checksum = update.checksum;
        self.is_up_to_date(now);
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
            self.install_fetched(now, fetched, replicas)?;
        }
        Ok(())
    }

    /// Takes what a home says of its set.
    pub(crate) fn announced<R: Rows>(
        &mut self,
        now: Duration,
        incarnation: Incarnation,
        set: &AnnouncedSet,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) {
        if !self.is_of_this_life(incarnation, counters) {
            return;
        }
        self.items = set.items;
        match &self.installed {
            Some(here) if here.incarnation == incarnation => {
                if let Some(denied) = here.denied_of(set, replicas) {
                    self.sampled.members += set.samples.len() as u64;
                    self.sampled.denied += denied;
                }
                if set.epoch > here.epoch {
                    // The update may be on its way behind the announcement: wait a little.
                    self.behind.get_or_insert((now, set.scheme)).1 = set.scheme;
                } else if set.epoch == here.epoch && set.checksum != here.checksum {
                    counters.mismatches += 1;
                    self.start_fetch(now, &set.scheme);
                }
            }
            _ if self.has_bits(&set.scheme, set.checksum) => {
                counters.same_bits += 1;
                self.adopt(now, set.epoch);
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

    /// The home is gone: its column answers no more.
    pub(crate) fn expire<R: Rows>(&mut self, replicas: &Replicas<R>) {
        if self.installed.take().is_some_and(|here| here.column.is_some()) {
            replicas.remove(&self.home);
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

    /// Length of the image that answers, or of the one on its way if that is longer: what the
    /// budget for replicas is charged by.
    pub(crate) fn bits(&self) -> u64 {
        let here = self.installed.as_ref().filter(|here| here.column.is_some());
        let here = here.map_or(0, |here| here.scheme.shape().bits());
        let behind = self.behind.map_or(0, |(_, scheme)| scheme.shape().bits());
        here.max(behind).max(self.fetch.as_ref().map_or(0, Fetch::bits))
    }

    /// The column that answers and the checksum of its bits, for checks.
    pub(crate) fn expected(&self) -> Option<(&Name, ColumnId, u64)> {
        let here = self.installed.as_ref()?;
        Some((&self.home, here.column?, here.checksum))
    }

    /// Whether the home says that it has the set no longer: an image without components.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.installed.as_ref().is_some_and(|here| here.column.is_none())
    }

    /// Life, epoch and checksum of what answers, for checks.
    pub(crate) fn installed_checksum(&self) -> Option<(Incarnation, Epoch, u64)> {
        let here = self.installed.as_ref()?;
        Some((here.incarnation, here.epoch, here.checksum))
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
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        let Some(fetch) = &mut self.fetch else { return Ok(()) };
        if let Some(fetched) = fetch.update(update, 1)? {
            counters.snapshots += 1;
            self.install_fetched(now, fetched, replicas)?;
        }
        Ok(())
    }

    fn install_fetched<R: Rows>(
        &mut self,
        now: Duration,
        fetched: Fetched,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let Fetched { epoch, image } = fetched;
        let scheme = *image.scheme();
        self.install(now, epoch, &scheme, image.into_only(), replicas)
    }

    /// Puts a whole image in the place of the one that answered so far, in one instant.
    fn install<R: Rows>(
        &mut self,
        now: Duration,
        epoch: Epoch,
        scheme: &Scheme,
        bits: Option<BitVector>,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let checksum = bits.as_ref().map_or(0, BitVector::checksum);
        let column = match bits {
            Some(bits) => Some(replicas.install(&self.home, scheme, bits)?),
            None => {
                replicas.remove(&self.home);
                None
            }
        };
        let (incarnation, scheme) = (self.incarnation, *scheme);
        self.installed = Some(Installed { incarnation, epoch, scheme, checksum, column });
        self.is_up_to_date(now);
        Ok(())
    }
}

/// An image that came whole in an update.
fn decode_snapshot(update: &Update, changes: &[u8]) -> Result<Option<BitVector>, DecodeError> {
    let mut reader = Reader::new(changes);
    let change = decode_change(&mut reader, update.scheme.shape(), None)?;
    reader.end()?;
    let bits = match change {
        Some(Change::Whole(bits)) => Some(bits),
        _ => None,
    };
    match bits.as_ref().map_or(0, BitVector::checksum) {
        found if found == update.checksum => Ok(bits),
        found => Err(DecodeError::WrongResult { stored: update.checksum, found }),
    }
}

/// How long an update may lag behind the announcement that names it.
const PATIENCE: Duration = Duration::from_millis(500);

/// What becomes of the bits that are here.
#[derive(Debug)]
enum Next {
    /// Some flip.
    Flips(Flips),
    /// All are given anew, perhaps in another shape.
    Bits(BitVector),
    /// The home has the set no longer.
    Nothing,
}

impl Installed {
    /// By how many rungs a scheme stands above the image's, if it is nested with it or the same.
    fn steps_to(&self, scheme: &Scheme) -> Option<i32> {
        let (here, there) = (self.scheme.shape(), scheme.shape());
        match self.scheme.hasher() == scheme.hasher() {
            true if here == there => Some(0),
            true => steps_between(here, there),
            false => None,
        }
    }

    /// What a change makes of these bits, and the checksum of the result.
    fn decode(
        &self,
        bits: &BitVector,
        scheme: &Scheme,
        changes: &[u8],
    ) -> Result<(Next, u64), DecodeError> {
        let (mut reader, shape) = (Reader::new(changes), self.scheme.shape());
        let decoded = match self.steps_to(scheme) {
            Some(0) => match decode_change(&mut reader, shape, Some(bits))? {
                None => (Next::Flips(Flips::default()), self.checksum),
                Some(Change::Dropped) => (Next::Nothing, 0),
                Some(Change::Whole(bits)) => {
                    let checksum = bits.checksum();
                    (Next::Bits(bits), checksum)
                }
                Some(Change::Flips(flips)) => {
                    let checksum = flips.checksum_after(bits, self.checksum);
                    (Next::Flips(flips), checksum)
                }
            },
            steps => {
                let bits = decode_step(&mut reader, shape, bits, steps.unwrap_or(0))?;
                let checksum = bits.checksum();
                (Next::Bits(bits), checksum)
            }
        };
        reader.end()?;
        Ok(decoded)
    }

    /// How many of the members that a home named are denied; `None` if its digests are not those
    /// of the image.
    fn denied_of<R: Rows>(&self, set: &AnnouncedSet, replicas: &Replicas<R>) -> Option<u64> {
        let (shape, theirs) = (self.scheme.shape(), set.scheme.shape());
        let alike = shape.digest_bits() == theirs.digest_bits();
        let column = self.column.filter(|_| alike && !set.samples.is_empty())?;
        let denied = |bits: &BitVector| {
            let claimed = |digest| claims(bits, Walk::new(digest, shape), shape.hashes());
            set.samples.iter().filter(|digest| !claimed(**digest)).count() as u64
        };
        replicas.with_bits(column, denied).ok()
    }
}
