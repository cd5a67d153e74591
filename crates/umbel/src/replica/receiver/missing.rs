//! What a receiver lacks of its home's newest image, and how it fetches that.
//!
//! An update that was announced may still arrive, so nothing is requested before [`PATIENCE`] is
//! over. Then the receiver requests the changes since its image. It requests a whole image if it
//! has none, or if the home no longer has the changes.
//!
//! Always true: at most one of the two is being fetched, and nothing is being fetched if nothing is
//! missing.

use std::time::Duration;

use crate::replica::Epoch;
use crate::replica::catch_up::CatchUp;
use crate::replica::fetch::Fetch;
use crate::replica::lag::Lag;
use crate::replica::message::Wanted;
use crate::scheme::Scheme;

/// How long an update may arrive after the announcement that names it.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a receiver wants of its home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Nothing,
    /// An update that may still arrive. If it is missing at this time, it must be fetched.
    UpdateUntil(Duration),
    /// Changes or pages.
    Fetch,
}

/// What a receiver lacks.
#[derive(Debug)]
pub(super) struct Missing {
    /// The newest image that the home is known to have published, if it has not arrived.
    behind: Option<Behind>,
    /// Since when it is missing.
    lag: Lag,
    repair: Option<Repair>,
}

/// The newest image that a home is known to have published.
#[derive(Debug, Clone, Copy)]
struct Behind {
    /// Since when that is known.
    since: Duration,
    epoch: Epoch,
    scheme: Scheme,
}

/// How the missing data is fetched.
#[derive(Debug)]
pub(super) enum Repair {
    /// As a whole image.
    Fetch(Fetch),
    /// As the changes since the installed image.
    CatchUp(CatchUp),
}

impl Missing {
    pub(super) const NOTHING: Self = Self { behind: None, lag: Lag::new(), repair: None };

    pub(super) const fn is_nothing(&self) -> bool {
        self.behind.is_none() && self.repair.is_none()
    }

    /// The home has published an image that has not arrived.
    pub(super) fn note(&mut self, now: Duration, epoch: Epoch, scheme: &Scheme) {
        self.lag.announced(now, epoch);
        let behind = self.behind.get_or_insert(Behind { since: now, epoch, scheme: *scheme });
        if epoch >= behind.epoch {
            (behind.epoch, behind.scheme) = (epoch, *scheme);
        }
    }

    /// The image of this epoch is installed: only later ones can be missing.
    pub(super) fn arrived(&mut self, epoch: Epoch) {
        self.behind = self.behind.filter(|behind| behind.epoch > epoch);
        self.lag.arrived(epoch);
        self.repair = None;
    }

    /// When the oldest missing epoch was announced.
    pub(super) fn since(&self) -> Option<Duration> {
        self.lag.since()
    }

    /// Begins to fetch what is missing, if anything, unless a fetch is in progress. `here` is the
    /// epoch of the installed image, if changes can be applied to it. `until` is the epoch up to
    /// which changes are needed.
    pub(super) fn start(&mut self, here: Option<Epoch>, until: Option<Epoch>) {
        let Some(behind) = self.behind.filter(|_| self.repair.is_none()) else { return };
        self.repair = Some(match here {
            Some(epoch) => Repair::CatchUp(CatchUp::new(epoch, until)),
            None => Repair::Fetch(Fetch::new(behind.scheme)),
        });
    }

    /// As [`Self::start`], but only after an update has had time to arrive. Returns whether a fetch
    /// began.
    pub(super) fn start_late(
        &mut self,
        now: Duration,
        here: Option<Epoch>,
        until: Option<Epoch>,
    ) -> bool {
        let is_late = self.behind.is_some_and(|behind| now >= behind.since + PATIENCE);
        let starts = is_late && self.repair.is_none();
        if starts {
            self.start(here, until);
        }
        starts
    }

    /// Begins to fetch a whole image: the installed one cannot be changed into the next one.
    pub(super) fn start_fetch(
        &mut self,
        now: Duration,
        epoch: Epoch,
        scheme: &Scheme,
    ) -> &mut Fetch {
        self.note(now, epoch, scheme);
        if !matches!(self.repair, Some(Repair::Fetch(_))) {
            self.repair = Some(Repair::Fetch(Fetch::new(*scheme)));
        }
        let Some(Repair::Fetch(fetch)) = &mut self.repair else { unreachable!("it was begun") };
        fetch
    }

    /// The fetch in progress, if any.
    pub(super) const fn repair(&mut self) -> Option<&mut Repair> {
        self.repair.as_mut()
    }

    /// Whether a page is a late reply to an earlier request: it is not newer than the installed
    /// image.
    pub(super) fn is_late(&self, page: Epoch, here: Option<Epoch>) -> bool {
        match &self.repair {
            None => true,
            Some(Repair::Fetch(_)) => here.is_some_and(|here| page < here),
            Some(Repair::CatchUp(_)) => here.is_some_and(|here| page <= here),
        }
    }

    /// What to request from the home now.
    pub(super) fn requests(
        &mut self,
        now: Duration,
        patience: impl Fn(u32) -> Duration,
    ) -> Vec<Wanted> {
        match &mut self.repair {
            Some(Repair::Fetch(fetch)) => fetch.requests(now, patience),
            Some(Repair::CatchUp(catch_up)) => catch_up.requests(now, patience),
            None => Vec::new(),
        }
    }

    /// When to repeat a request.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        match self.repair.as_ref()? {
            Repair::Fetch(fetch) => fetch.next_timeout(),
            Repair::CatchUp(catch_up) => catch_up.next_timeout(),
        }
    }

    pub(super) fn want(&self) -> Want {
        match (&self.repair, self.behind) {
            (Some(_), _) => Want::Fetch,
            (None, Some(behind)) => Want::UpdateUntil(behind.since + PATIENCE),
            (None, None) => Want::Nothing,
        }
    }

    /// Length of the image that is missing, or of the one being fetched if that is longer.
    pub(super) fn bits(&self) -> u64 {
        let behind = self.behind.map_or(0, |behind| behind.scheme.shape().bits());
        match &self.repair {
            Some(Repair::Fetch(fetch)) => behind.max(fetch.bits()),
            _ => behind,
        }
    }
}
