//! One home's set at another host: the image that the host has, and how it gets the next one.
//!
//! Updates are applied in order, exactly once: flips are not idempotent. Duplicates and messages of
//! old incarnations are ignored. A receiver that missed updates requests the changes since its last
//! one (`catch_up`). A receiver that has no image of this incarnation, or needs changes that the
//! home no longer has, requests pages (`fetch`). Updates that arrive in the meantime are kept and
//! applied in their order. Lookups use the last good image in the bank until the next one is
//! complete.
//!
//! An update to another rung of the ladder is decoded against the installed image: folded to a
//! lower rung, refined to a higher rung. A home that restarts with the same bits need not send
//! them: the checksum shows that the receiver has the same image.
//!
//! ```text
//! messages ─► Receiver ─┬─ Installed      the image that answers: a column of the bank
//!                       ├─ Missing        what the home has beyond it, being fetched
//!                       └─ EarlyUpdates   what comes after that
//! ```
//!
//! Always true: the column holds exactly one image that the home published, never a mixture
//! of two.
//!
//! Not here: who the home is and whether it is alive (`engine`).

mod early;
mod installed;
mod missing;

use std::time::Duration;

use super::draft::{Label, Next, decode_snapshot};
use super::fetch::Fetched;
use super::message::{Changes, ListedSet, Members, Page, Update, Wanted};
use super::replicas::Replicas;
use super::{Counters, Epoch, Incarnation, Name};
use crate::bank::{BankError, ColumnId, Rows};
use crate::bits::BitVector;
use crate::codec::DecodeError;
use crate::scheme::Scheme;
use early::EarlyUpdates;
use installed::Installed;
pub(crate) use missing::Want;
use missing::{Missing, Repair};

/// One home's set, as a host has it.
#[derive(Debug)]
pub(crate) struct Receiver {
    home: Name,
    /// The newest known incarnation of the home.
    incarnation: Incarnation,
    installed: Option<Installed>,
    missing: Missing,
    /// The newest known epoch of this incarnation, and the checksum of its image.
    heard: Option<(Epoch, u64)>,
    /// The number of the last publication of this set that arrived in this incarnation.
    pub(crate) sequence: u64,
    early: EarlyUpdates,
    /// When the last image or update arrived.
    updated: Duration,
    /// Members that the home sampled, and how many of them the image denied.
    pub(crate) sampled: Sampled,
    /// Number of keys that the home reports.
    pub(crate) items: u64,
    pub(crate) received: Received,
}

/// What was received of a home's set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Images and changes that were applied.
    pub updates: u64,
    /// Bytes of updates, changes and pages, applied or not.
    pub bytes: u64,
}

/// Members that a home sampled in announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sampled {
    /// Members sampled.
    pub members: u64,
    /// Of these, denied by the replica.
    pub denied: u64,
}

/// Why a message was rejected. The columns are unchanged.
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
            missing: Missing::NOTHING,
            heard: None,
            sequence: 0,
            early: EarlyUpdates::new(),
            updated: now,
            sampled: Sampled { members: 0, denied: 0 },
            items: 0,
            received: Received { updates: 0, bytes: 0 },
        }
    }

    /// Processes an update.
    pub(crate) fn update<R: Rows>(
        &mut self,
        now: Duration,
        update: Update,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        self.received.bytes += update.changes.as_ref().map_or(0, Vec::len) as u64;
        if !self.is_of_this_life(update.incarnation, counters) {
            return Ok(());
        }
        self.sequence = self.sequence.max(update.sequence);
        if self.hear(update.epoch, update.checksum) {
            self.items = update.items;
        }
        if self.epoch().is_some_and(|epoch| update.epoch <= epoch) {
            counters.duplicates += 1;
            return Ok(());
        }
        let label = update.label();
        if self.has_bits(&label) {
            counters.same_bits += 1;
            self.adopt(now, update.epoch);
            return self.take_early(now, replicas, counters);
        }
        match (&update.changes, update.base) {
            (Some(changes), None) => {
                let bits = decode_snapshot(&label, changes)?;
                counters.snapshots += 1;
                self.install(now, update.epoch, &label, bits, replicas)?;
            }
            (Some(changes), Some(base)) if self.fits(base, &update.scheme) => {
                self.take_change(now, update.epoch, &label, changes, replicas)?;
                counters.deltas += 1;
            }
            _ => {
                counters.gaps += 1;
                self.missing.note(now, update.epoch, &update.scheme);
                let max_bytes = self.bits() / 8;
                self.early.keep(update, max_bytes);
                self.start_repair();
                return Ok(());
            }
        }
        self.take_early(now, replicas, counters)
    }

    /// Applies the kept updates that are next in order.
    fn take_early<R: Rows>(
        &mut self,
        now: Duration,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        while let Some(epoch) = self.epoch() {
            let Some(update) = self.early.take(epoch) else { break };
            let Some(changes) = update.changes.as_ref() else { break };
            if !self.fits(epoch, &update.scheme) {
                break;
            }
            self.take_change(now, update.epoch, &update.label(), changes, replicas)?;
            counters.deltas += 1;
        }
        self.start_repair();
        Ok(())
    }

    /// Whether a message is of the home's newest incarnation. If it is of a newer one than was
    /// known, that one becomes the newest.
    fn is_of_this_life(&mut self, incarnation: Incarnation, counters: &mut Counters) -> bool {
        if incarnation < self.incarnation {
            counters.old_lives += 1;
            return false;
        }
        if incarnation > self.incarnation {
            self.incarnation = incarnation;
            (self.heard, self.sequence) = (None, 0);
            self.forget_repair();
        }
        true
    }

    /// Records an epoch of this incarnation. Returns whether no later one is known.
    fn hear(&mut self, epoch: Epoch, checksum: u64) -> bool {
        let is_newest = self.heard.is_none_or(|(heard, _)| heard <= epoch);
        if is_newest {
            self.heard = Some((epoch, checksum));
        }
        is_newest
    }

    /// The newest known epoch of this incarnation, installed or not, and the checksum of its image.
    pub(crate) fn newest(&self) -> Option<(Epoch, u64)> {
        let here = self.installed.as_ref().filter(|here| here.incarnation == self.incarnation);
        let here = here.map(|here| (here.epoch, here.label.checksum));
        here.into_iter().chain(self.heard).max_by_key(|(epoch, _)| *epoch)
    }

    /// Cancels the fetch in progress and drops the kept updates.
    fn forget_repair(&mut self) {
        self.missing = Missing::NOTHING;
        self.early.clear();
    }

    /// Whether a change with this base epoch and this target scheme can be applied to the installed
    /// image.
    fn fits(&self, base: Epoch, scheme: &Scheme) -> bool {
        let here = self.installed.as_ref();
        self.epoch() == Some(base) && here.is_some_and(|here| here.can_become(scheme))
    }

    /// Whether the installed image, of whichever incarnation, has these bits.
    fn has_bits(&self, label: &Label) -> bool {
        self.installed.as_ref().is_some_and(|here| here.label == *label)
    }

    /// The installed image is the home's newest already: nothing must be fetched.
    fn adopt(&mut self, now: Duration, epoch: Epoch) {
        if let Some(here) = &mut self.installed {
            (here.incarnation, here.epoch) = (self.incarnation, epoch);
        }
        self.arrived(now, epoch);
    }

    /// The image of this epoch is installed.
    fn arrived(&mut self, now: Duration, epoch: Epoch) {
        self.updated = now;
        self.received.updates += 1;
        self.missing.arrived(epoch);
    }

    /// Begins to fetch what is missing, if anything, unless a fetch is in progress.
    fn start_repair(&mut self) {
        self.missing.start(self.changeable(), self.early.first());
    }

    /// The epoch of the installed image, if changes of the home's newest incarnation can be applied
    /// to it.
    fn changeable(&self) -> Option<Epoch> {
        let has_column = self.installed.as_ref().is_some_and(|here| here.column.is_some());
        self.epoch().filter(|_| has_column)
    }

    /// Applies a change to the installed image, after checking it completely.
    fn take_change<R: Rows>(
        &mut self,
        now: Duration,
        epoch: Epoch,
        label: &Label,
        changes: &[u8],
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let here = self.installed.as_ref().expect("the change fits what is installed");
        match here.decode(label, changes, replicas) {
            Ok(next) => self.take_next(now, (epoch, *label), next, replicas),
            Err(error) => {
                self.missing.start_fetch(now, epoch, &label.scheme);
                Err(error)
            }
        }
    }

    /// Turns the installed image into the next one.
    fn take_next<R: Rows>(
        &mut self,
        now: Duration,
        to: (Epoch, Label),
        next: Next,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let here = self.installed.as_mut().expect("only what is installed is changed");
        here.become_next(&self.home, to, next, replicas)?;
        self.arrived(now, to.0);
        Ok(())
    }

    /// Processes changes that were requested.
    pub(crate) fn changes<R: Rows>(
        &mut self,
        now: Duration,
        changes: &Changes,
        replicas: &Replicas<R>,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        self.received.bytes += changes.part.bytes.len() as u64;
        if !self.is_of_this_life(changes.incarnation, counters) {
            return Ok(());
        }
        let max = changes.scheme.shape().bits().max(self.bits()) / 8 + LONGEST_HEADERS;
        let Some(Repair::CatchUp(catch_up)) = self.missing.repair() else { return Ok(()) };
        counters.parts += 1;
        let applied = match catch_up.part(changes.since, &changes.part, max) {
            Ok(None) => {
                self.missing.note(now, changes.part.until, &changes.scheme);
                return Ok(());
            }
            Ok(Some(stream)) if stream.is_empty() => {
                // The home has published nothing since.
                self.forget_repair();
                return Ok(());
            }
            Ok(Some(stream)) => self.take_stream(now, &stream, &changes.scheme, replicas),
            Err(error) => Err(error.into()),
        };
        match applied {
            Ok(()) => {
                counters.caught_up += 1;
                self.take_early(now, replicas, counters)
            }
            Err(error) => {
                self.missing.start_fetch(now, changes.part.until, &changes.scheme);
                Err(error)
            }
        }
    }

    /// Applies a whole stream of changes in one step.
    fn take_stream<R: Rows>(
        &mut self,
        now: Duration,
        stream: &[u8],
        newest: &Scheme,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let here = self.installed.as_ref().expect("only what is installed is caught up");
        let (epoch, label, next) = here.decode_stream(stream, newest, replicas)?;
        self.take_next(now, (epoch, label), next, replicas)
    }

    /// Processes a page that was requested.
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
        if self.missing.is_late(page.epoch, self.epoch()) {
            return Ok(());
        }
        // A page in reply to a request for changes means that the home no longer has them.
        let fetch = self.missing.start_fetch(now, page.epoch, &page.scheme);
        counters.pages += 1;
        if let Some(Fetched { epoch, scheme, bits }) = fetch.page(page)? {
            counters.snapshots += 1;
            let label = Label { scheme, checksum: page.checksum };
            self.install(now, epoch, &label, bits, replicas)?;
            self.take_early(now, replicas, counters)?;
        }
        Ok(())
    }

    /// Processes the entry of this set in a home's list.
    pub(crate) fn listed(
        &mut self,
        now: Duration,
        incarnation: Incarnation,
        set: &ListedSet,
        counters: &mut Counters,
    ) {
        if !self.is_of_this_life(incarnation, counters) {
            return;
        }
        if self.hear(set.epoch, set.checksum) {
            self.items = set.items;
        }
        match &self.installed {
            Some(here) if here.incarnation == incarnation => {
                if set.epoch > here.epoch {
                    // The update may still arrive after the list: wait a little.
                    self.missing.note(now, set.epoch, &set.scheme);
                } else if set.epoch == here.epoch && set.checksum != here.label.checksum {
                    counters.mismatches += 1;
                    self.missing.start_fetch(now, set.epoch, &set.scheme);
                }
            }
            _ if self.has_bits(&Label { scheme: set.scheme, checksum: set.checksum }) => {
                counters.same_bits += 1;
                self.adopt(now, set.epoch);
            }
            _ => _ = self.missing.start_fetch(now, set.epoch, &set.scheme),
        }
    }

    /// Counts how many of the members that a home sampled are denied.
    pub(crate) fn sampled_by<R: Rows>(&mut self, members: &Members, replicas: &Replicas<R>) {
        self.items = members.items;
        let here = self.installed.as_ref().filter(|here| here.incarnation == self.incarnation);
        if let Some(denied) = here.and_then(|here| here.denied_of(members, replicas)) {
            self.sampled.members += members.samples.len() as u64;
            self.sampled.denied += denied;
        }
    }

    /// What to request from the home now.
    pub(crate) fn requests(
        &mut self,
        now: Duration,
        patience: impl Fn(u32) -> Duration,
        counters: &mut Counters,
    ) -> Vec<Wanted> {
        if self.missing.start_late(now, self.changeable(), self.early.first()) {
            counters.gaps += 1;
        }
        self.missing.requests(now, patience)
    }

    /// When to repeat a request to the home.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.missing.next_timeout()
    }

    /// What is wanted of the home.
    pub(crate) fn want(&self) -> Want {
        self.missing.want()
    }

    /// The home is gone: removes its column.
    pub(crate) fn expire<R: Rows>(&mut self, replicas: &Replicas<R>) {
        if self.installed.take().is_some_and(|here| here.column.is_some()) {
            replicas.remove(&self.home);
        }
        self.forget_repair();
    }

    /// The epoch of the installed image, if it is of the home's newest incarnation.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        let here = self.installed.as_ref()?;
        (here.incarnation == self.incarnation).then_some(here.epoch)
    }

    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Whether nothing newer is known than the installed image.
    pub(crate) fn is_current(&self) -> bool {
        self.epoch().is_some() && self.missing.is_nothing()
    }

    /// By how many updates the installed image is older than the newest announced one, and when the
    /// first of these was announced; `None` if nothing newer is known.
    pub(crate) fn lag(&self) -> Option<(u64, Duration)> {
        let (since, newest) = (self.missing.since()?, self.newest()?.0);
        let here = self.epoch().map_or(0, |epoch| epoch.0);
        Some((newest.0.saturating_sub(here), since))
    }

    pub(crate) const fn updated(&self) -> Duration {
        self.updated
    }

    /// Length of the installed image, or of the one being fetched if that is longer. The budget for
    /// replicas is charged by it.
    pub(crate) fn bits(&self) -> u64 {
        self.installed.as_ref().map_or(0, Installed::bits).max(self.missing.bits())
    }

    /// The column of the installed image and the checksum of its bits, for checks.
    pub(crate) fn expected(&self) -> Option<(&Name, ColumnId, u64)> {
        let here = self.installed.as_ref()?;
        Some((&self.home, here.column?, here.label.checksum))
    }

    /// Whether the home announced, by an image without components, that it no longer has the set.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.installed.as_ref().is_some_and(|here| here.column.is_none())
    }

    /// Incarnation, epoch and checksum of the installed image, for checks.
    pub(crate) fn installed_checksum(&self) -> Option<(Incarnation, Epoch, u64)> {
        let here = self.installed.as_ref()?;
        Some((here.incarnation, here.epoch, here.label.checksum))
    }

    /// Atomically replaces the installed image by a whole new one.
    fn install<R: Rows>(
        &mut self,
        now: Duration,
        epoch: Epoch,
        label: &Label,
        bits: Option<BitVector>,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        let published = (self.incarnation, epoch);
        self.installed = Some(Installed::new(&self.home, published, *label, bits, replicas)?);
        self.arrived(now, epoch);
        Ok(())
    }
}

/// The most bytes that the headers of a stream may take in addition to the bytes of the image.
const LONGEST_HEADERS: u64 = 1 << 20;
