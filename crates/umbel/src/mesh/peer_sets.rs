//! What is known about another host's sets. A change costs time only for the sets that change,
//! however many sets there are.
//!
//! Always true: the sum is computed from the newest known version of each set. [`Requests`] lists
//! exactly those sets of which something is missing or awaited.

use std::collections::BTreeSet;
use std::time::Duration;

use super::published::share;
use super::requests::Requests;
use crate::coverage::Gap;
use crate::replica::Name;
use crate::replica::message::List;
use crate::replica::receiver::{Receiver, Want};

/// The sets of another host.
#[derive(Debug, Default)]
pub(super) struct PeerSets {
    names: BTreeSet<Name>,
    pub(super) requests: Requests,
    /// Number of sets of which no image has arrived in this incarnation of the host.
    without_image: usize,
    sum: u64,
    /// The part of the host's sum that is due to sets that are not accepted here.
    not_accepted: u64,
    /// All publications up to this one are known.
    seen: u64,
    /// The list that is being fetched.
    listing: Option<Listing>,
    /// Whether the complete list of the host has arrived.
    is_listed: bool,
    /// Since when the host's sum is known to differ from ours.
    differs_since: Option<Duration>,
    doubt: Doubt,
}

/// Whether the sets of the other host may have changed while this host did not run.
///
/// Messages that were sent in that time arrive late: an announcement among them may agree with what
/// is known and still be seconds old. Only a list that is requested afterwards shows what the host
/// has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    #[default]
    None,
    /// A list has been requested.
    Requested,
    /// The list is known, and what it names is being fetched.
    Fetching,
}

/// A list of sets that is being fetched.
#[derive(Debug)]
struct Listing {
    /// The publication that the next part begins after.
    after: u64,
    /// The names so far, if the whole list was requested.
    whole: Option<BTreeSet<Name>>,
    /// The host's sequence number when the list began; `None` before the first part.
    began: Option<u64>,
    /// Whether a set of it was not accepted.
    is_refused: bool,
}

/// What a receiver contributes to [`PeerSets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contribution {
    sum: u64,
    has_image: bool,
    want: Want,
}

impl Contribution {
    pub(super) fn of(set: &Name, receiver: &Receiver) -> Self {
        let life = receiver.incarnation();
        let share = |(epoch, checksum)| share(set, life, epoch, checksum);
        Self {
            sum: receiver.newest().map_or(0, share),
            has_image: receiver.epoch().is_some(),
            want: receiver.want(),
        }
    }
}

/// What to do about a host's list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Nothing,
    /// Request the sets after this publication.
    Request(u64),
    /// The list is complete: forget all sets but these, and those published after it.
    Keep {
        names: BTreeSet<Name>,
        sequence: u64,
    },
}

impl PeerSets {
    /// A receiver of a set was added or changed.
    pub(super) fn changed(&mut self, set: &Name, before: Option<Contribution>, now: Contribution) {
        if before.is_none() {
            self.names.insert(set.clone());
        }
        self.sum = self.sum.wrapping_sub(before.map_or(0, |before| before.sum));
        self.sum = self.sum.wrapping_add(now.sum);
        self.without_image -= usize::from(before.is_some_and(|before| !before.has_image));
        self.without_image += usize::from(!now.has_image);
        self.requests.note(set, now.want);
        self.end_doubt();
    }

    /// A receiver of a set was removed.
    pub(super) fn removed(&mut self, set: &Name, before: Contribution) {
        self.sum = self.sum.wrapping_sub(before.sum);
        self.without_image -= usize::from(!before.has_image);
        self.requests.remove(set);
        self.names.remove(set);
        self.end_doubt();
    }

    /// The host has a new incarnation, of which nothing is known yet.
    pub(super) fn restart(&mut self) {
        (self.seen, self.not_accepted, self.listing, self.is_listed) = (0, 0, None, false);
        (self.differs_since, self.doubt) = (None, Doubt::None);
    }

    pub(super) const fn names(&self) -> &BTreeSet<Name> {
        &self.names
    }

    /// What is missing of the list of sets or of their images. Does not tell whether replicas are
    /// behind.
    pub(super) fn gap(&self, now: Duration, max_lag: Duration) -> Option<Gap> {
        let sets = self.names.len() as u64;
        let is_late = |since| now.saturating_sub(since) > max_lag;
        let is_doubted = self.doubt != Doubt::None;
        if !self.is_listed || is_doubted || self.differs_since.is_some_and(is_late) {
            return Some(Gap::NoList);
        }
        let fetched = sets - self.without_image as u64;
        (fetched < sets).then_some(Gap::Fetching { fetched, sets })
    }

    /// Whether the complete list of the host's sets has arrived.
    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether some of the host's sets are not accepted here.
    pub(super) const fn is_refused(&self) -> bool {
        self.not_accepted != 0
    }

    /// The host's sets may have changed without our notice: request a list of what changed.
    pub(super) fn doubt(&mut self) -> NextStep {
        (self.is_listed, self.doubt) = (false, Doubt::Requested);
        self.listing = Some(Listing::after(self.seen));
        NextStep::Request(self.seen)
    }

    /// Ends doubt once the list is known and nothing that it names is missing.
    fn end_doubt(&mut self) {
        if self.doubt == Doubt::Fetching && self.requests.unfinished().next().is_none() {
            self.doubt = Doubt::None;
        }
    }

    /// Whether a publication is known, whether or not it was accepted.
    pub(super) const fn has_seen(&self, sequence: u64) -> bool {
        sequence <= self.seen
    }

    /// A publication arrived.
    pub(super) const fn saw(&mut self, sequence: u64) {
        if sequence == self.seen + 1 {
            self.seen = sequence;
        }
    }

    const fn agrees(&self, sum: u64) -> bool {
        self.sum.wrapping_add(self.not_accepted) == sum
    }

    /// The host announced its number of publications and its sum.
    pub(super) fn announced(&mut self, now: Duration, sequence: u64, sum: u64) -> NextStep {
        let agrees = self.agrees(sum);
        if agrees && self.doubt != Doubt::Requested {
            (self.seen, self.is_listed, self.listing) = (sequence, true, None);
            self.differs_since = None;
            return NextStep::Nothing;
        }
        if sequence < self.seen {
            // An old announcement, delivered after later publications: ignore it.
            return NextStep::Nothing;
        }
        if !agrees {
            self.differs_since.get_or_insert(now);
        }
        // Continue a list that did not arrive completely since the last announcement.
        let seen = self.seen;
        let listing = self.listing.get_or_insert_with(|| Listing::after(seen));
        NextStep::Request(listing.after)
    }

    /// A set of the list is not accepted here.
    pub(super) const fn refused(&mut self) {
        if let Some(listing) = &mut self.listing {
            listing.is_refused = true;
        }
    }

    /// Whether a part is the next one of the list that is being fetched.
    pub(super) fn expects(&self, after: u64) -> bool {
        self.listing.as_ref().is_some_and(|listing| listing.after == after)
    }

    /// The sets of one part of the list were processed.
    pub(super) fn listed(&mut self, part: &List) -> NextStep {
        let Some(listing) = &mut self.listing else { return NextStep::Nothing };
        let began = *listing.began.get_or_insert(part.sequence);
        if let Some(names) = &mut listing.whole {
            names.extend(part.sets.iter().map(|set| set.set.clone()));
        }
        listing.after = part.until;
        self.seen = self.seen.max(part.until);
        if part.until < part.sequence {
            return NextStep::Request(part.until);
        }
        let Some(Listing { whole, is_refused, .. }) = self.listing.take() else {
            return NextStep::Nothing;
        };
        self.differs_since = self.differs_since.filter(|_| whole.is_none());
        if self.doubt == Doubt::Requested && (whole.is_some() || self.agrees(part.sum)) {
            self.doubt = Doubt::Fetching;
            self.end_doubt();
        }
        match whole {
            Some(names) => {
                let is_steady = began == part.sequence;
                self.is_listed = true;
                self.not_accepted = 0;
                if is_refused && is_steady {
                    // `sum` still includes sets that will be removed: `settled` corrects this.
                    self.not_accepted = part.sum;
                }
                NextStep::Keep { names, sequence: part.sequence }
            }
            None if self.agrees(part.sum) => {
                (self.is_listed, self.differs_since) = (true, None);
                NextStep::Nothing
            }
            None => {
                self.listing = Some(Listing::after(0));
                NextStep::Request(0)
            }
        }
    }

    /// Checks that the counts match what these receivers contribute.
    ///
    /// # Panics
    /// If it is not: a bug in this crate.
    pub(super) fn validate<'a>(&self, receivers: impl Iterator<Item = (&'a Name, &'a Receiver)>) {
        let mut recounted = Self::default();
        for (name, receiver) in receivers {
            recounted.changed(name, None, Contribution::of(name, receiver));
        }
        assert_eq!(self.names, recounted.names, "sets are listed");
        let wanted =
            |requests: &Requests| -> BTreeSet<Name> { requests.unfinished().cloned().collect() };
        assert_eq!(
            wanted(&self.requests),
            wanted(&recounted.requests),
            "what is missing is listed"
        );
        assert_eq!(self.without_image, recounted.without_image, "images are counted");
        assert_eq!(self.sum, recounted.sum, "versions are summed");
    }

    /// The whole list was processed, and the sets that it does not name were removed.
    pub(super) const fn settled(&mut self) {
        if self.not_accepted > 0 {
            self.not_accepted = self.not_accepted.wrapping_sub(self.sum);
        }
    }
}

impl Listing {
    fn after(after: u64) -> Self {
        let whole = (after == 0).then(BTreeSet::new);
        Self { after, whole, began: None, is_refused: false }
    }
}
