//! Fetches a home's image, page by page.
//!
//! All pages are of one epoch: the first reply names it, the home pins that image, and every
//! further request asks for it. What the home publishes in the meantime is fetched afterwards, as
//! changes since that epoch, so that a busy home cannot starve a joining host. If the home has
//! dropped the image of that epoch, a reply names another one, and the fetch starts again with
//! that.
//!
//! Always true: an image is returned only if all its pages are of one epoch and their checksum is
//! the one that the home gave for it.

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
    /// `None` means that the home no longer has the set.
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

    /// The pages to request now. `patience` returns how long to wait for a reply, given the number
    /// of tries so far.
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

    /// When to retry.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.window.next_timeout()
    }

    /// Stores a page. Returns `Ok(None)` if more pages are needed.
    ///
    /// # Errors
    /// If the page is malformed. Also if it completes an image whose checksum is wrong: then all
    /// pages are discarded.
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

    /// Starts to fetch the image that this page belongs to. Discards the pages of any other image.
    fn begin(&mut self, page: &Page) {
        self.scheme = page.scheme;
        self.of = Some((page.epoch, page.checksum));
        self.pages.clear();
        self.window.restart();
    }

    /// The image, once all pages have arrived.
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

/// Checks a page against its own header and decodes it; `None` for an image without components.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Shape;
    use crate::replica::Incarnation;
    use crate::replica::tests::{hasher, name};

    fn scheme() -> Scheme {
        Scheme::new(Shape::new(2 * PAGE_BITS, 3).unwrap(), hasher())
    }

    /// An image of two pages, each with these bits.
    fn image(positions: &[u64]) -> BitVector {
        let mut bits = BitVector::zeros(Bits::new(2 * PAGE_BITS).unwrap()).unwrap();
        for position in positions {
            bits.set(*position);
            bits.set(PAGE_BITS + position);
        }
        bits
    }

    fn page(epoch: u64, image: &BitVector, index: u64) -> Page {
        let mut bytes = Vec::new();
        paged::encode_page(&mut bytes, &image.slice(index * PAGE_BITS, PAGE_BITS));
        Page {
            home: name("a"),
            set: name("set"),
            incarnation: Incarnation(1),
            epoch: Epoch(epoch),
            scheme: scheme(),
            checksum: image.checksum(),
            page: Some(index),
            bytes,
        }
    }

    #[test]
    fn pages_of_two_epochs_are_never_mixed() {
        let (mut fetch, old, new) = (Fetch::new(scheme()), image(&[1, 5]), image(&[7]));
        assert!(fetch.page(&page(3, &old, 0)).unwrap().is_none());
        assert!(fetch.page(&page(4, &new, 1)).unwrap().is_none(), "the fetch begins again");
        assert!(fetch.page(&page(3, &old, 1)).unwrap().is_none(), "delivered late");
        let fetched = fetch.page(&page(4, &new, 0)).unwrap().expect("both pages are here");
        assert_eq!((fetched.epoch, fetched.bits), (Epoch(4), Some(new)));
    }

    #[test]
    fn an_image_that_is_not_the_one_that_was_named_is_thrown_away() {
        let (mut fetch, named, other) = (Fetch::new(scheme()), image(&[1, 5]), image(&[7]));
        let lie = |index| Page { checksum: named.checksum(), ..page(3, &other, index) };
        assert!(fetch.page(&lie(0)).unwrap().is_none());
        assert!(matches!(fetch.page(&lie(1)), Err(DecodeError::WrongResult { .. })));
        assert!(fetch.page(&page(3, &named, 0)).unwrap().is_none(), "nothing of it is left");
        assert!(fetch.page(&page(3, &named, 1)).unwrap().is_some());
    }
}
