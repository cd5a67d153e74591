//! What a home serves to hosts that lack something of a set: its latest updates and pages of its
//! image.
//!
//! A request for changes is answered from the log ([`UpdateLog`]) or, if that does not reach back,
//! with the first page of an image; a request for a page from a pinned image ([`Pins`]).
//!
//! Always true: every page of a reply is of the epoch that the reply names, and all pages of an
//! epoch are of one published image.

use std::sync::Arc;
use std::time::Duration;

use super::image::Image;
use super::message::{Changes, Message, Page, Request, Wanted};
use super::paged::{self, ONLY, PAGE_BITS};
use super::pins::{Pins, Published};
use super::publisher::Publication;
use super::update_log::{Record, UpdateLog};

/// What a home serves of one set.
#[derive(Debug, Default)]
pub(crate) struct Served {
    has_published: bool,
    log: UpdateLog,
    pins: Pins,
}

impl Served {
    /// Notes an update that was published, so that whoever misses it can fetch it.
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

    /// The reply to a request. `may_pin`: whether there is memory for a pinned image.
    pub(crate) fn reply(
        &mut self,
        now: Duration,
        request: &Request,
        newest: Published<'_>,
        may_pin: bool,
    ) -> Message {
        let ((epoch, image), page) = match request.wanted {
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
                    let Request { home, set, .. } = request.clone();
                    let (incarnation, scheme) = (request.incarnation, *newest.image.scheme());
                    let changes = Changes { home, set, incarnation, since, scheme, part };
                    return Message::Changes(changes);
                }
                (self.pins.begin(now, Some(since), newest, may_pin), 0)
            }
        };
        let published = Published { epoch, image: &image };
        Message::Page(page_of(published, request, page))
    }

    /// Lets go of what nobody needs any more.
    pub(crate) fn expire(&mut self, now: Duration, patience: Duration, newest: &Image) {
        self.pins.expire(now, patience);
        self.log.trim(now, newest.memory_bytes());
    }

    /// Whether there is anything to expire.
    pub(crate) fn is_empty(&self) -> bool {
        self.log.memory_bytes() == 0 && self.pins.is_empty()
    }

    /// Bytes that updates and pinned images take, beside the newest image.
    pub(crate) fn memory_bytes(&self, newest: &Image) -> u64 {
        self.log.memory_bytes() + self.pins.memory_bytes(newest)
    }
}

/// The page that was asked for, or the first one if there is no such page.
fn page_of(published: Published<'_>, request: &Request, page: u64) -> Page {
    let Published { epoch, image } = published;
    let shape = image.scheme().shape();
    let page = if page < paged::pages(shape) { page } else { 0 };
    let mut bytes = Vec::new();
    let component = image.component(ONLY);
    if let Some(component) = component {
        let len = paged::page_len(shape, page);
        paged::encode_page(&mut bytes, &component.bits.slice(page * PAGE_BITS, len));
    }
    Page {
        home: request.home.clone(),
        set: request.set.clone(),
        incarnation: request.incarnation,
        epoch,
        scheme: *image.scheme(),
        checksum: image.checksum(),
        page: component.map(|_| page),
        bytes,
    }
}
