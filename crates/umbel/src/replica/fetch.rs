//! A home's image on its way, page by page.
//!
//! Pages come at the epoch that the home had when it answered, so a busy home's pages differ
//! in epoch. Updates that arrive meanwhile bring the pages that are here up to date, and
//! only the others are asked for again: a busy home cannot starve a joiner.
//!
//! Always true: an image is handed out only when all its pages are of one epoch and their
//! checksum is the one that the home gave for it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::image::{Image, ImageComponent};
use super::message::{Page, Update};
use super::paged::{self, PAGE_BITS, PartialChange};
use super::{Epoch, Incarnation};
use crate::bits::BitVector;
use crate::codec::{DecodeError, Reader};
use crate::filter::ComponentId;
use crate::params::Bits;
use crate::scheme::Scheme;

/// Which page.
pub(crate) type PageId = (ComponentId, u64);

/// An image being fetched.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) incarnation: Incarnation,
    scheme: Scheme,
    /// The newest epoch that is known, with the checksum and components of its image.
    newest: Option<Newest>,
    pages: BTreeMap<PageId, (Epoch, BitVector)>,
    /// Pages asked for, and when to ask again; `None` asks for any.
    asked: BTreeMap<Option<PageId>, Duration>,
    tries: u32,
}

#[derive(Debug, Clone)]
struct Newest {
    epoch: Epoch,
    checksum: u64,
    components: Vec<ComponentId>,
}

/// A whole image, and which epoch it is.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) epoch: Epoch,
    pub(crate) image: Image,
}

/// Pages asked for at the same time.
const WINDOW: usize = 4;

impl Fetch {
    pub(crate) const fn new(incarnation: Incarnation, scheme: Scheme) -> Self {
        Self {
            incarnation,
            scheme,
            newest: None,
            pages: BTreeMap::new(),
            asked: BTreeMap::new(),
            tries: 0,
        }
    }

    /// Length of the image.
    pub(crate) const fn bits(&self) -> u64 {
        self.scheme.shape().bits()
    }

    /// The pages to ask for now. `patience` gives, for the number of tries so far, how long
    /// to wait for an answer.
    pub(crate) fn requests(
        &mut self,
        now: Duration,
        patience: impl Fn(u32) -> Duration,
    ) -> Vec<Option<PageId>> {
        let overdue: Vec<_> =
            self.asked.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p).collect();
        if !overdue.is_empty() {
            self.tries += 1;
            overdue.iter().for_each(|page| {
                self.asked.remove(page);
            });
        }
        let wanted: Vec<_> =
            self.missing().into_iter().filter(|page| !self.asked.contains_key(page)).collect();
        let room = WINDOW.saturating_sub(self.asked.len());
        let requests: Vec<_> = wanted.into_iter().take(room).collect();
        let until = now + patience(self.tries);
        requests.iter().for_each(|page| {
            self.asked.insert(*page, until);
        });
        requests
    }

    /// When to ask again.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.asked.values().min().copied()
    }

    /// Pages that are not here at the newest epoch, up to a window of them.
    fn missing(&self) -> Vec<Option<PageId>> {
        let Some(newest) = &self.newest else { return vec![None] };
        let pages = paged::pages(self.scheme.shape());
        let all = newest.components.iter().flat_map(|id| (0..pages).map(|page| (*id, page)));
        let here = |page: &PageId| self.pages.get(page).is_some_and(|(e, _)| *e == newest.epoch);
        all.filter(|page| !here(page)).take(2 * WINDOW).map(Some).collect()
    }

    /// Takes a page. `Ok(None)` if more are needed.
    ///
    /// # Errors
    /// If the page is not what it says; all pages are thrown away when it completes an image
    /// that is not the home's.
    pub(crate) fn page(&mut self, page: &Page) -> Result<Option<Fetched>, DecodeError> {
        if self.scheme != page.scheme {
            // The home has another shape by now: start over with that.
            *self = Self { tries: self.tries, ..Self::new(self.incarnation, page.scheme) };
        }
        let bits = self.check(page)?;
        self.asked.remove(&None);
        if self.newest.as_ref().is_none_or(|newest| newest.epoch <= page.epoch) {
            self.newest = Some(Newest {
                epoch: page.epoch,
                checksum: page.checksum,
                components: page.components.clone(),
            });
        }
        if let (Some(id), Some(bits)) = (page.of, bits) {
            self.asked.remove(&Some(id));
            let older = self.pages.get(&id).is_none_or(|(epoch, _)| *epoch <= page.epoch);
            if older {
                self.pages.insert(id, (page.epoch, bits));
            }
        }
        self.complete()
    }

    /// Checks a page against what it says of itself, and decodes it.
    fn check(&self, page: &Page) -> Result<Option<BitVector>, DecodeError> {
        let shape = self.scheme.shape();
        let Some((component, index)) = page.of else {
            return if page.components.is_empty() && page.bytes.is_empty() {
                Ok(None)
            } else {
                Err(DecodeError::Malformed("a page of nothing"))
            };
        };
        if page.components.binary_search(&component).is_err() || index >= paged::pages(shape) {
            return Err(DecodeError::Malformed("a page that its image does not have"));
        }
        let mut reader = Reader::new(&page.bytes);
        let bits = paged::decode_page(&mut reader, paged::page_len(shape, index))?;
        reader.end()?;
        Ok(Some(bits))
    }

    /// Lets an update bring the pages that are here up to date. `Ok(None)` if more are
    /// needed.
    ///
    /// # Errors
    /// If the update is malformed.
    pub(crate) fn update(
        &mut self,
        update: &Update,
        most: usize,
    ) -> Result<Option<Fetched>, DecodeError> {
        let (Some(newest), Some(base), Some(changes)) =
            (&mut self.newest, update.base, &update.changes)
        else {
            return Ok(None);
        };
        if update.scheme != self.scheme || update.epoch <= newest.epoch {
            return Ok(None);
        }
        let pages = &self.pages;
        let have = |id: ComponentId, page: u64| {
            pages.get(&(id, page)).filter(|(epoch, _)| *epoch == base).map(|(_, bits)| bits)
        };
        let changes =
            paged::decode_partial(&mut Reader::new(changes), self.scheme.shape(), most, have)?;
        if newest.epoch == base {
            let untouched = |id: &ComponentId| !changes.components.iter().any(|(c, _)| c == id);
            for ((id, _), (epoch, _)) in &mut self.pages {
                if *epoch == base && untouched(id) {
                    *epoch = update.epoch;
                }
            }
            newest.epoch = update.epoch;
            newest.checksum = update.checksum;
            for (id, change) in changes.components {
                self.take(id, change, update.epoch);
            }
            return self.complete();
        }
        Ok(None)
    }

    fn take(&mut self, id: ComponentId, change: PartialChange, epoch: Epoch) {
        let newest = self.newest.as_mut().expect("pages are changed only once one is here");
        match change {
            PartialChange::Dropped => {
                self.pages.retain(|(component, _), _| *component != id);
                newest.components.retain(|component| *component != id);
            }
            PartialChange::Whole(pages) => {
                if let Err(place) = newest.components.binary_search(&id) {
                    newest.components.insert(place, id);
                }
                let pages = (0..).zip(pages);
                self.pages.extend(pages.map(|(page, bits)| ((id, page), (epoch, bits))));
            }
            PartialChange::Pages(pages) => {
                self.pages
                    .extend(pages.into_iter().map(|(page, bits)| ((id, page), (epoch, bits))));
            }
        }
    }

    /// The image, once all pages are here at one epoch.
    fn complete(&mut self) -> Result<Option<Fetched>, DecodeError> {
        let Some(newest) = self.newest.clone() else { return Ok(None) };
        if !self.missing().is_empty() {
            return Ok(None);
        }
        let shape = *self.scheme.shape();
        let mut components = Vec::new();
        for id in &newest.components {
            let mut bits = BitVector::zeros(Bits::new(shape.bits())?)?;
            for page in 0..paged::pages(&shape) {
                bits.put_slice(page * PAGE_BITS, &self.pages[&(*id, page)].1);
            }
            components.push(ImageComponent::new(*id, bits));
        }
        let image = Image::new(self.scheme, components);
        let found = image.checksum();
        if found != newest.checksum {
            self.pages.clear();
            self.newest = None;
            self.tries += 1;
            return Err(DecodeError::WrongResult { stored: newest.checksum, found });
        }
        Ok(Some(Fetched { epoch: newest.epoch, image }))
    }
}
