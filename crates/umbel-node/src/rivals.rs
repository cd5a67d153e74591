//! Several hosts of one name: decides which of them is accepted, and which stops.
//!
//! While the accepted incarnation of a host still replies, another incarnation of its name is
//! refused and notified, and stops if it finds that the other one replies too. The other hosts
//! decide by which one they accept; if that is undecided, the later incarnation stops. An
//! incarnation that announced its end is replaced at once, one that does not reply after
//! [`MAX_UNANSWERED`] tests.
//!
//! An incarnation that vanished may have ended, or be out of reach for a moment, because a link is
//! reopened. It keeps its name until the protocol gives it up, unless nothing listens at its
//! address any more, or only its successor does. The result of a test that began before it came
//! back does not count.
//!
//! A reply may be late and a request may be lost, so one test is never final: as long as two
//! incarnations of a name are seen, they are tested again every [`TEST_EVERY`].
//!
//! Always true: a name has one entry, and refused incarnations stay refused until the accepted one
//! is gone or does not reply.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use umbel::replica::{Incarnation, Name};

/// Interval between two tests of the incarnations of a name.
pub(crate) const TEST_EVERY: Duration = Duration::from_secs(5);
/// An incarnation that does not reply to so many successive tests is replaced.
const MAX_UNANSWERED: u32 = 2;
/// A test whose result does not arrive within this time is repeated.
const MAX_TEST: Duration = Duration::from_secs(10);
/// Interval between two tests of a name whose accepted incarnation has vanished.
const TEST_VANISHED_EVERY: Duration = Duration::from_millis(500);
/// An incarnation that vanished is replaced after this number of tests without a reply if its address
/// is unknown.
const MAX_UNANSWERED_VANISHED: u32 = 3;
/// An incarnation that is not accepted is no longer tested after so many tests without a reply.
const MAX_SILENT_TESTS: u32 = 12;
/// Maximum number of incarnations that are tested in addition to the accepted one.
pub(crate) const MAX_LIVES: usize = 8;

/// Names of which several incarnations are seen.
#[derive(Debug, Default)]
pub(crate) struct Rivals(HashMap<Name, Contest>);

/// The incarnations of one name.
#[derive(Debug)]
struct Contest {
    /// The accepted incarnation, and its successive tests without a reply.
    accepted: Incarnation,
    unanswered: u32,
    /// The others, each with its tests without a reply; `None` before its first test.
    others: BTreeMap<Incarnation, Option<u32>>,
    /// When the next test is due.
    next: Duration,
    /// When the test began whose result is awaited.
    running: Option<Duration>,
    /// Whether the accepted incarnation came back since then.
    is_outdated: bool,
}

/// What is known of the accepted incarnation in addition to whether it replied to a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is seen; or it is gone, and was given up.
    Normal,
    /// It disappeared a moment ago without a word, and may be out of reach only.
    Vanished {
        /// Whether its address is known, so that it would be noticed if nothing listened there.
        has_address: bool,
    },
    /// It disappeared, and nothing or another incarnation listens at its address.
    Dead,
}

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No change.
    Wait,
    /// This incarnation is accepted and replies. Another one replies too and must be notified.
    Refuse(Incarnation),
    /// This incarnation must be accepted from now on.
    Believe(Incarnation),
}

impl Rivals {
    /// Another incarnation of a name is seen than the accepted one: both are tested soon.
    pub(crate) fn appeared(
        &mut self,
        now: Duration,
        host: &Name,
        accepted: Incarnation,
        life: Incarnation,
    ) {
        let contest = self.0.entry(host.clone()).or_insert_with(|| Contest::new(now, accepted));
        contest.accept(accepted);
        if contest.others.contains_key(&life) {
            return;
        }
        if contest.others.len() >= MAX_LIVES {
            contest.others.pop_first();
        }
        contest.others.insert(life, None);
        contest.next = now;
    }

    /// The accepted incarnation of a host is seen again after it had vanished.
    pub(crate) fn returned(&mut self, now: Duration, host: &Name, life: Incarnation) {
        if let Some(contest) = self.0.get_mut(host).filter(|contest| contest.accepted == life) {
            contest.unanswered = 0;
            contest.is_outdated = contest.running.is_some();
            contest.next = now;
        }
    }

    /// The names that are due for a test. The result of each test must be passed to
    /// [`Self::tested`].
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Name> {
        let due = self.0.iter_mut().filter(|(_, contest)| contest.due() <= now);
        due.map(|(host, contest)| {
            contest.running = Some(now);
            host.clone()
        })
        .collect()
    }

    /// When the next test is due.
    pub(crate) fn next(&self) -> Duration {
        self.0.values().map(Contest::due).min().unwrap_or(Duration::MAX)
    }

    /// The names of which several incarnations are seen.
    pub(crate) fn names(&self) -> BTreeSet<Name> {
        self.0.keys().cloned().collect()
    }

    /// Handles the result of a test: the incarnations that replied.
    pub(crate) fn tested(
        &mut self,
        now: Duration,
        host: &Name,
        replied: &BTreeSet<Incarnation>,
        presence: Presence,
    ) -> Verdict {
        let Some(contest) = self.0.get_mut(host) else { return Verdict::Wait };
        let verdict = contest.tested(now, replied, presence);
        if contest.others.is_empty() {
            self.0.remove(host);
        }
        verdict
    }

    /// The accepted incarnation of a name, if several are seen.
    pub(crate) fn accepted(&self, host: &Name) -> Option<Incarnation> {
        self.0.get(host).map(|contest| contest.accepted)
    }

    /// Handles that an incarnation is gone. Returns the one that replaces it, if there is one. If it
    /// vanished, all are tested first.
    pub(crate) fn gone(
        &mut self,
        now: Duration,
        host: &Name,
        life: Incarnation,
        has_vanished: bool,
    ) -> Option<Incarnation> {
        let contest = self.0.get_mut(host)?;
        contest.others.remove(&life);
        let mut next = None;
        if contest.accepted == life && has_vanished {
            contest.next = now;
        } else if contest.accepted == life {
            next = contest.successor();
        }
        if let Some(next) = next {
            contest.accept(next);
        }
        if contest.others.is_empty() {
            self.0.remove(host);
        }
        next
    }
}

impl Contest {
    const fn new(now: Duration, accepted: Incarnation) -> Self {
        let others = BTreeMap::new();
        Self { accepted, unanswered: 0, others, next: now, running: None, is_outdated: false }
    }

    /// When the next test is due: not before the last one is over.
    fn due(&self) -> Duration {
        self.running.map_or(self.next, |since| since + MAX_TEST)
    }

    /// Accepts this incarnation from now on.
    fn accept(&mut self, life: Incarnation) {
        if self.accepted != life {
            self.others.remove(&life);
            (self.accepted, self.unanswered) = (life, 0);
        }
    }

    fn tested(
        &mut self,
        now: Duration,
        replied: &BTreeSet<Incarnation>,
        presence: Presence,
    ) -> Verdict {
        self.running = None;
        if std::mem::take(&mut self.is_outdated) {
            return Verdict::Wait;
        }
        for (life, unanswered) in &mut self.others {
            let before = unanswered.unwrap_or(0);
            *unanswered = Some(if replied.contains(life) { 0 } else { before + 1 });
        }
        self.others.retain(|_, unanswered| unanswered.is_none_or(|tests| tests < MAX_SILENT_TESTS));
        let has_replied = replied.contains(&self.accepted);
        self.unanswered = if has_replied { 0 } else { self.unanswered + 1 };
        self.next = now + self.pause(presence);
        if has_replied {
            let has_rival = self.others.values().any(|unanswered| *unanswered == Some(0));
            return if has_rival { Verdict::Refuse(self.accepted) } else { Verdict::Wait };
        }
        match self.successor().filter(|_| self.may_be_replaced(presence)) {
            None => Verdict::Wait,
            Some(next) => {
                let (last, unanswered) = (self.accepted, self.unanswered);
                self.accept(next);
                if presence == Presence::Normal {
                    // It may reply later, and is then notified that it was replaced.
                    self.others.insert(last, Some(unanswered));
                }
                Verdict::Believe(next)
            }
        }
    }

    /// The time until the next test.
    const fn pause(&self, presence: Presence) -> Duration {
        match presence {
            Presence::Vanished { .. } | Presence::Dead => TEST_VANISHED_EVERY,
            // Repeat the test at once: the first request may have been lost.
            Presence::Normal if self.unanswered == 1 => Duration::ZERO,
            Presence::Normal => TEST_EVERY,
        }
    }

    /// Whether the accepted incarnation, which did not reply to the last test, may be replaced.
    const fn may_be_replaced(&self, presence: Presence) -> bool {
        match presence {
            Presence::Normal => self.unanswered >= MAX_UNANSWERED,
            Presence::Vanished { has_address } => {
                !has_address && self.unanswered >= MAX_UNANSWERED_VANISHED
            }
            Presence::Dead => true,
        }
    }

    /// The incarnation that replaces the accepted one. An earlier incarnation must have replied: it
    /// may be a remnant of a host that ended.
    fn successor(&self) -> Option<Incarnation> {
        let latest = || self.others.iter().rev();
        let replied = latest().find(|(_, unanswered)| **unanswered == Some(0));
        replied.or_else(|| latest().find(|(life, _)| **life > self.accepted)).map(|(life, _)| *life)
    }
}

/// The incarnations of a name that hosts accept, one vote per host however often it replied.
/// Replies from hosts of that name do not count: each would vote for itself.
pub(crate) fn votes(name: &Name, replies: impl IntoIterator<Item = (Name, u64)>) -> Vec<u64> {
    let others = replies.into_iter().filter(|(host, _)| host != name);
    others.collect::<BTreeMap<Name, u64>>().into_values().collect()
}

/// Whether a host must stop that has found another incarnation of its name to reply, given the
/// incarnations that the other hosts accept; 0 for hosts that know none.
pub(crate) fn must_stop(own: Incarnation, other: Incarnation, believed: &[u64]) -> bool {
    let count = |life: Incarnation| believed.iter().filter(|believed| **believed == life.0).count();
    let (for_own, for_other) = (count(own), count(other));
    for_other > for_own || (for_other == for_own && own > other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Incarnation = Incarnation(7);
    const SECOND: Incarnation = Incarnation(9);
    const START: Duration = Duration::ZERO;

    fn fern() -> Name {
        Name::new("fern").unwrap()
    }

    /// The second incarnation appeared while the first one is accepted.
    fn contest() -> Rivals {
        let mut rivals = Rivals::default();
        rivals.appeared(START, &fern(), FIRST, SECOND);
        rivals
    }

    /// Runs the next test, to which these incarnations reply.
    fn test(rivals: &mut Rivals, replied: &[Incarnation]) -> Verdict {
        test_of(rivals, replied, Presence::Normal)
    }

    fn test_of(rivals: &mut Rivals, replied: &[Incarnation], presence: Presence) -> Verdict {
        let now = rivals.next();
        assert_eq!(rivals.due(now), [fern()]);
        assert!(rivals.due(now).is_empty(), "the test runs");
        rivals.tested(now, &fern(), &replied.iter().copied().collect(), presence)
    }

    /// An incarnation is gone that announced its end.
    fn gone(rivals: &mut Rivals, life: Incarnation) -> Option<Incarnation> {
        rivals.gone(START, &fern(), life, false)
    }

    #[test]
    fn a_life_is_refused_while_the_one_that_is_believed_replies() {
        let mut rivals = contest();
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST));
        assert_eq!(gone(&mut rivals, Incarnation(1)), None, "somebody else's token");
        assert_eq!(gone(&mut rivals, FIRST), Some(SECOND), "it takes its place at once");
        assert_eq!(rivals.next(), Duration::MAX);
        assert_eq!(gone(&mut rivals, SECOND), None);
    }

    /// A bug: it was notified only once, and a host that missed the message ran beside the first one
    /// for ever.
    #[test]
    fn a_life_that_is_refused_is_told_so_until_one_of_the_two_is_gone() {
        let mut rivals = contest();
        for _ in 0..100 {
            assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST));
        }
        assert_eq!(test(&mut rivals, &[FIRST]), Verdict::Wait);
        assert_eq!(rivals.next(), START + TEST_EVERY * 101);
        assert_eq!(gone(&mut rivals, SECOND), None);
        assert_eq!(rivals.next(), Duration::MAX);
    }

    #[test]
    fn a_life_is_believed_if_the_one_before_does_not_reply_twice() {
        let mut rivals = contest();
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Wait, "a reply may be lost");
        assert_eq!(rivals.next(), START, "it is tested again at once");
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Believe(SECOND));
        // An incarnation that is starting may reply later than its token is seen.
        let mut rivals = contest();
        assert_eq!(test(&mut rivals, &[]), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[]), Verdict::Believe(SECOND));
    }

    /// A bug: it was not tested again, so that both ran for ever.
    #[test]
    fn a_life_that_was_replaced_and_replies_again_is_told_so() {
        let mut rivals = contest();
        test(&mut rivals, &[SECOND]);
        test(&mut rivals, &[SECOND]);
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(SECOND));
        assert_eq!(gone(&mut rivals, SECOND), Some(FIRST), "it replied, and takes its place");
    }

    /// A bug: a second host of a name was accepted because the link to the first one was being
    /// reopened.
    #[test]
    fn a_life_that_vanished_keeps_its_name_while_it_may_be_out_of_reach() {
        let vanished = Presence::Vanished { has_address: true };
        let mut rivals = contest();
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST));
        assert_eq!(rivals.gone(START, &fern(), FIRST, true), None);
        assert_eq!(rivals.next(), START, "it is tested at once");
        for tests in 0..100 {
            assert_eq!(rivals.next(), START + TEST_VANISHED_EVERY * tests);
            assert_eq!(test_of(&mut rivals, &[SECOND], vanished), Verdict::Wait);
        }
        // It comes back while a test runs, to which it could not reply yet.
        let now = rivals.next();
        assert_eq!(rivals.due(now), [fern()]);
        rivals.returned(now, &fern(), FIRST);
        let replied = [SECOND].into();
        assert_eq!(rivals.tested(now, &fern(), &replied, Presence::Normal), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Wait, "a reply may be lost");
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST), "it is back");
    }

    #[test]
    fn a_test_whose_result_is_lost_is_repeated() {
        let mut rivals = contest();
        assert_eq!(rivals.due(START), [fern()]);
        assert_eq!(rivals.next(), START + MAX_TEST);
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST));
    }

    #[test]
    fn a_life_that_vanished_is_replaced_once_its_address_is_free_or_it_is_given_up() {
        let vanished = Presence::Vanished { has_address: true };
        for end in [Presence::Dead, Presence::Normal] {
            let mut rivals = contest();
            assert_eq!(test_of(&mut rivals, &[SECOND], vanished), Verdict::Wait);
            assert_eq!(test_of(&mut rivals, &[SECOND], vanished), Verdict::Wait);
            assert_eq!(test_of(&mut rivals, &[SECOND], end), Verdict::Believe(SECOND));
        }
        let nowhere = Presence::Vanished { has_address: false };
        let mut rivals = contest();
        assert_eq!(test_of(&mut rivals, &[SECOND], nowhere), Verdict::Wait);
        assert_eq!(test_of(&mut rivals, &[SECOND], nowhere), Verdict::Wait);
        assert_eq!(test_of(&mut rivals, &[SECOND], nowhere), Verdict::Believe(SECOND));
    }

    #[test]
    fn an_earlier_life_that_does_not_reply_takes_nobodys_place() {
        let mut rivals = Rivals::default();
        rivals.appeared(START, &fern(), SECOND, FIRST);
        assert_eq!(test(&mut rivals, &[]), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[]), Verdict::Wait);
        assert_eq!(gone(&mut rivals, SECOND), None);
        assert_eq!(test(&mut rivals, &[FIRST]), Verdict::Believe(FIRST));
    }

    #[test]
    fn lives_that_never_reply_and_very_many_lives_are_not_tested_for_ever() {
        let mut rivals = contest();
        for _ in 0..MAX_SILENT_TESTS {
            assert_eq!(test(&mut rivals, &[FIRST]), Verdict::Wait);
        }
        assert_eq!(rivals.next(), Duration::MAX);
        (10..100).for_each(|life| rivals.appeared(START, &fern(), FIRST, Incarnation(life)));
        assert_eq!(rivals.0[&fern()].others.len(), MAX_LIVES);
    }

    /// A bug: both stopped, because each counted the other's reply.
    #[test]
    fn hosts_of_a_name_do_not_vote_for_themselves_and_nobody_votes_twice() {
        let name = |text: &str| Name::new(text).unwrap();
        let replies = [("fern", 7), ("lily", 9), ("moss", 7), ("fern", 9), ("lily", 9)];
        let replies = replies.map(|(host, life)| (name(host), life));
        assert_eq!(votes(&fern(), replies), [9, 7]);
        // With only two hosts the first one continues, whichever of them decides.
        for own in [FIRST, SECOND] {
            let other = if own == FIRST { SECOND } else { FIRST };
            let votes = votes(&fern(), [(fern(), other.0)]);
            assert_eq!(must_stop(own, other, &votes), own == SECOND);
        }
    }

    #[test]
    fn others_decide_who_stops_and_the_later_one_does_where_they_cannot() {
        assert!(must_stop(SECOND, FIRST, &[7, 7, 0]) && !must_stop(FIRST, SECOND, &[7, 7, 0]));
        // The first one hung and was replaced; now it is back.
        assert!(must_stop(FIRST, SECOND, &[9, 9]) && !must_stop(SECOND, FIRST, &[9, 9]));
        for undecided in [&[][..], &[0, 0], &[7, 9], &[5]] {
            assert!(must_stop(SECOND, FIRST, undecided), "{undecided:?}");
            assert!(!must_stop(FIRST, SECOND, undecided), "{undecided:?}");
        }
    }
}
