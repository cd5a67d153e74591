//! Images that a home keeps while others fetch them.
//!
//! A fetch of many pages takes a while, during which the home publishes further images. The image
//! that the fetch began with is pinned: all pages are served from it, and later updates are served
//! from the log. Fetches share pins.
//!
//! Always true: at most [`MAX_PINS`] epochs are pinned; a pin ends [`PATIENCE_INTERVALS`] patience
//! intervals after the last request for it.
//!
//! An image is pinned whole: an update of some hundred keys changes every page anyway.

use std::sync::Arc;
use std::time::Duration;

use super::Epoch;
use super::image::Image;

/// The most epochs of a set that are pinned at the same time.
pub(crate) const MAX_PINS: usize = 2;
/// How long a pin lasts without a request, as a multiple of the time that a receiver first waits
/// for a page.
pub(crate) const PATIENCE_INTERVALS: u32 = 3;

#[derive(Debug)]
struct Pin {
    epoch: Epoch,
    image: Image,
    requested: Duration,
}

/// The images of a set that are being fetched, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pins: Vec<Pin>,
}

/// An image as it is published now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) image: &'a Image,
}

impl Pins {
    /// The image of an epoch, if it is pinned.
    pub(crate) fn pinned(&mut self, now: Duration, wanted: Epoch) -> Option<(Epoch, Image)> {
        let pin = self.pins.iter_mut().find(|pin| pin.epoch == wanted)?;
        pin.requested = now;
        Some((pin.epoch, pin.image.clone()))
    }

    /// The image that a new fetch begins with, for a receiver that has an older one of epoch `has`.
    /// `may_pin` says whether there is memory for a pin. If not, the newest image is served without
    /// a pin. An epoch that was never published counts as none: only a faulty or hostile receiver
    /// names one, and it must not end the pins of others.
    pub(crate) fn begin(
        &mut self,
        now: Duration,
        has: Option<Epoch>,
        newest: Published<'_>,
        may_pin: bool,
    ) -> (Epoch, Image) {
        let has = has.filter(|has| *has <= newest.epoch);
        if self.pins.len() == MAX_PINS && self.pins.last().is_some_and(|pin| Some(pin.epoch) <= has)
        {
            // The receiver has both images already, or newer ones: make room for a new pin.
            self.pins.remove(0);
        }
        if self.pins.last().is_none_or(|pin| pin.epoch != newest.epoch) {
            if self.pins.len() < MAX_PINS && may_pin {
                let Published { epoch, image } = newest;
                self.pins.push(Pin { epoch, image: image.clone(), requested: now });
            } else if self.pins.len() < MAX_PINS {
                return (newest.epoch, newest.image.clone());
            }
        }
        let pin = self.pins.last_mut().expect("there is a pin, or one was just made");
        pin.requested = now;
        (pin.epoch, pin.image.clone())
    }

    /// Drops the pins that were not requested for long.
    pub(crate) fn expire(&mut self, now: Duration, patience: Duration) {
        self.pins.retain(|pin| now < pin.requested + patience * PATIENCE_INTERVALS);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pins.is_empty()
    }

    /// Bytes that pinned images take in addition to the newest image.
    pub(crate) fn memory_bytes(&self, newest: &Image) -> u64 {
        let shared = |pin: &&Pin| {
            let mut bits = pin.image.components().iter().zip(newest.components());
            pin.image.components().len() == newest.components().len()
                && bits.all(|(pinned, kept)| Arc::ptr_eq(&pinned.bits, &kept.bits))
        };
        let own = self.pins.iter().filter(|pin| !shared(pin));
        own.map(|pin| pin.image.memory_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitVector;
    use crate::params::{Bits, Shape};
    use crate::replica::image::ImageComponent;
    use crate::replica::paged::ONLY;
    use crate::replica::tests::hasher;
    use crate::scheme::Scheme;

    fn image() -> Image {
        let scheme = Scheme::new(Shape::new(1024, 3).unwrap(), hasher());
        let bits = BitVector::zeros(Bits::new(1024).unwrap()).unwrap();
        Image::new(scheme, vec![ImageComponent::new(ONLY, bits)])
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn fetches_share_at_most_two_epochs() {
        let (mut pins, images) = (Pins::default(), [image(), image(), image()]);
        let begin = |pins: &mut Pins, has: Option<u64>, newest: u64| {
            let image = &images[newest as usize - 1];
            let newest = Published { epoch: Epoch(newest), image };
            pins.begin(at(1), has.map(Epoch), newest, true).0.0
        };
        assert_eq!(begin(&mut pins, None, 1), 1);
        assert_eq!(begin(&mut pins, None, 2), 2, "a new fetch begins with the newest");
        assert_eq!(begin(&mut pins, None, 3), 2, "or shares the newest that is pinned");
        assert_eq!(begin(&mut pins, Some(1), 3), 2);
        assert_eq!(begin(&mut pins, Some(u64::MAX), 3), 2, "nobody has what was never published");
        let epochs = [1, 2, 3].map(|epoch| pins.pinned(at(1), Epoch(epoch)).is_some());
        assert_eq!(epochs, [true, true, false]);
        assert_eq!(pins.memory_bytes(&images[2]), 2 * 128);
        assert_eq!(pins.memory_bytes(&images[1]), 128, "the newest image costs nothing");
        pins.expire(at(3), at(1));
        assert_eq!(pins.pins.len(), 2);
        assert_eq!(begin(&mut pins, Some(2), 3), 3, "a receiver is never given what it has");
        assert_eq!(pins.pins.len(), 2);
        pins.expire(at(4), at(1));
        assert!(pins.pins.is_empty(), "three patience intervals without a request");
    }

    #[test]
    fn without_memory_nothing_is_pinned() {
        let (mut pins, image) = (Pins::default(), image());
        let newest = Published { epoch: Epoch(7), image: &image };
        assert_eq!(pins.begin(at(1), Some(Epoch(3)), newest, false).0, Epoch(7));
        assert!(pins.pins.is_empty());
    }
}
