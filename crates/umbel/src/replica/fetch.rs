//! A home's image on its way, page by page.
//!
//! All pages are of one epoch: the first reply names it, the home pins that image, and every
//! further request asks for it. What the home publishes meanwhile is fetched afterwards, as changes
//! since that epoch; so a busy home cannot starve a joiner. If the home has let go of the epoch, a
//! reply names another one, and the fetch begins again with that.
//!
//! Always true: an image is handed out only when all its pages are of one epoch and their checksum
//! is the one that the home gave for it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Epoch;
use super::message::{Page, Wanted};
use super::paged::{self, PAGE_BITS};
use super::window::Window;
use crate::bits::BitVector;
use crate::codec::{DecodeError, Reader};
use crate::params::Bits;
use crate::scheme::Scheme;

/// An image being fetched.
#[derive(Debug)]
pub(crate) struct Fetch {
    scheme: Scheme,
    /// The epoch that is fetched, with the checksum of its image; `None` until the first reply.
    of: Option<(Epoch, u64)>,
    pages: BTreeMap<u64, BitVector>,
    window: Window,
}

/// A whole image, and which epoch it is.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) epoch: Epoch,
    pub(crate) scheme: Scheme,
    /// `None`: the home has the set no longer.
    pub(crate) bits: Option<BitVector>,
}

impl Fetch {
    pub(crate) const fn new(scheme: Scheme) -> Self {
        Self { scheme, of: None, pages: BTreeMap::new(), window: Window::new() }
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
    ) -> Vec<Wanted> {
        let epoch = self.of.map(|(epoch, _)| epoch);
        let pages = if epoch.is_some() { paged::pages(self.scheme.shape()) } else { 1 };
        let missing = (0..pages).filter(|page| !self.pages.contains_key(page));
        let pages = self.window.open(now, missing, patience);
        pages.into_iter().map(|page| Wanted::Page { epoch, page }).collect()
    }

    /// When to ask again.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.window.next_timeout()
    }

    /// Takes a page. `Ok(None)` if more are needed.
    ///
    /// # Errors
    /// If the page is not what it says; all pages are thrown away when it completes an image
    /// that is not the home's.
    pub(crate) fn page(&mut self, page: &Page) -> Result<Option<Fetched>, DecodeError> {
        let bits = decoded(page)?;
        match self.of {
            // A reply to an earlier fetch, delivered late.
            Some((epoch, _)) if page.epoch < epoch => return Ok(None),
            Some(of) if of == (page.epoch, page.checksum) && self.scheme == page.scheme => {}
            _ => self.begin(page),
        }
        let Some((index, bits)) = page.page.zip(bits) else {
            let (epoch, scheme) = (page.epoch, page.scheme);
            return Ok(Some(Fetched { epoch, scheme, bits: None }));
        };
        self.window.arrived(index);
        self.pages.insert(index, bits);
        self.complete(page.epoch, page.checksum)
    }

    /// Fetches the image that this page is of, and nothing of another one.
    fn begin(&mut self, page: &Page) {
        self.scheme = page.scheme;
        self.of = Some((page.epoch, page.checksum));
        self.pages.clear();
        self.window.restart();
    }

    /// The image, once all pages are here.
    fn complete(&mut self, epoch: Epoch, checksum: u64) -> Result<Option<Fetched>, DecodeError> {
        let shape = *self.scheme.shape();
        if (self.pages.len() as u64) < paged::pages(&shape) {
            return Ok(None);
        }
        let mut bits = BitVector::zeros(Bits::new(shape.bits())?)?;
        for (page, here) in std::mem::take(&mut self.pages) {
            bits.put_slice(page * PAGE_BITS, &here);
        }
        let found = bits.checksum();
        if found != checksum {
            self.of = None;
            self.window.failed();
            return Err(DecodeError::WrongResult { stored: checksum, found });
        }
        Ok(Some(Fetched { epoch, scheme: self.scheme, bits: Some(bits) }))
    }
}

/// Checks a page against what it says of itself, and decodes it; `None` for an image without
/// components.
fn decoded(page: &Page) -> Result<Option<BitVector>, DecodeError> {
    let shape = page.scheme.shape();
    let Some(index) = page.page else {
        return match (page.bytes.is_empty(), page.checksum) {
            (true, 0) => Ok(None),
            _ => Err(DecodeError::Malformed("a page of nothing")),
        };
    };
    if index >= paged::pages(shape) {
        return Err(DecodeError::Malformed("a page that its image does not have"));
    }
    let mut reader = Reader::new(&page.bytes);
    let bits = paged::decode_page(&mut reader, paged::page_len(shape, index))?;
    reader.end()?;
    Ok(Some(bits))
}
