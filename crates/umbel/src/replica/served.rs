//! What a home serves to hosts that lack data of a set: its latest updates and pages of its image.
//!
//! A request for changes is answered from the log ([`UpdateLog`]) or, if that does not reach back,
//! with the first page of an image; a request for a page from a pinned image ([`Pins`]).
//!
//! Always true: every page of a reply is of the epoch that the reply names, and all pages of an
//! epoch are of one published image.

use std::sync::Arc;
use std::time::Duration;

use super::Epoch;
use super::image::Image;
use super::message::{Changes, Message, Page, Request, Wanted};
use super::paged::{self, ONLY, PAGE_BITS};
use super::pins::{Pins, Published};
use super::publisher::Publication;
use super::update_log::{Part, Record, UpdateLog};
use crate::scheme::Scheme;

/// What a home serves of one set.
#[derive(Debug, Default)]
pub(crate) struct Served {
    has_published: bool,
    log: UpdateLog,
    pins: Pins,
}

impl Served {
    /// Records an update that was published, so that hosts that miss it can fetch it.
    pub(crate) fn published(
        &mut self,
        now: Duration,
        newest: Published<'_>,
        publication: &Publication,
    ) {
        self.has_published = true;
        let Published { epoch, image } = newest;
        let record = Record {
            epoch,
            from_nothing: publication.from_nothing,
            scheme: *image.scheme(),
            checksum: image.checksum(),
            changes: Arc::clone(&publication.changes),
        };
        self.log.push(now, record, image.memory_bytes());
    }

    /// Whether there is anything to serve.
    pub(crate) const fn has_published(&self) -> bool {
        self.has_published
    }

    /// Finds what was requested; `None` if nothing was published yet. `may_pin` says whether there
    /// is memory for a pinned image.
    pub(crate) fn find(
        &mut self,
        now: Duration,
        wanted: Wanted,
        newest: Published<'_>,
        may_pin: bool,
    ) -> Option<Found> {
        if !self.has_published {
            return None;
        }
        let ((epoch, image), page) = match wanted {
            Wanted::Page { epoch, page } => {
                match epoch.and_then(|epoch| self.pins.pinned(now, epoch)) {
                    Some(pinned) => (pinned, page),
                    None if epoch == Some(newest.epoch) => {
                        ((newest.epoch, newest.image.clone()), page)
                    }
                    None => (self.pins.begin(now, None, newest, may_pin), 0),
                }
            }
            Wanted::Changes { since, until, offset } => {
                if let Some(part) = self.log.part(since, until, offset) {
                    return Some(Found::Changes { since, scheme: *newest.image.scheme(), part });
                }
                (self.pins.begin(now, Some(since), newest, may_pin), 0)
            }
        };
        Some(Found::Page { epoch, image, page })
    }

    /// Drops what no host needs any more. Returns whether there is more to drop later.
    pub(crate) fn expire(&mut self, now: Duration, patience: Duration, newest: &Image) -> bool {
        self.pins.expire(now, patience);
        self.log.trim(now, newest.memory_bytes());
        !self.pins.is_empty() || self.log.is_fresh(now)
    }

    /// Bytes that updates and pinned images take in addition to the newest image.
    pub(crate) fn memory_bytes(&self, newest: &Image) -> u64 {
        self.log.memory_bytes() + self.pins.memory_bytes(newest)
    }
}

/// What was requested. Encoding a page takes a while, so it is done later, without a lock.
#[derive(Debug)]
pub(crate) enum Found {
    Changes {
        since: Epoch,
        scheme: Scheme,
        part: Part,
    },
    /// A page of this image; the first page if there is no such page.
    Page {
        epoch: Epoch,
        image: Image,
        page: u64,
    },
}

impl Found {
    /// The reply.
    pub(crate) fn into_message(self, request: &Request) -> Message {
        let (home, set) = (request.home.clone(), request.set.clone());
        let incarnation = request.incarnation;
        match self {
            Self::Changes { since, scheme, part } => {
                Message::Changes(Changes { home, set, incarnation, since, scheme, part })
            }
            Self::Page { epoch, image, page } => {
                let (scheme, checksum) = (*image.scheme(), image.checksum());
                let (page, bytes) = coded_page(&image, page);
                let page = Page { home, set, incarnation, epoch, scheme, checksum, page, bytes };
                Message::Page(page)
            }
        }
    }
}

fn coded_page(image: &Image, page: u64) -> (Option<u64>, Vec<u8>) {
    let shape = image.scheme().shape();
    let page = if page < paged::pages(shape) { page } else { 0 };
    let mut bytes = Vec::new();
    let Some(component) = image.component(ONLY) else { return (None, bytes) };
    let len = paged::page_len(shape, page);
    paged::encode_page(&mut bytes, &component.bits.slice(page * PAGE_BITS, len));
    (Some(page), bytes)
}
