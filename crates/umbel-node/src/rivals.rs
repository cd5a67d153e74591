//! Hosts of one name: which of them is believed, and which of them stops.
//!
//! While the life of a host that is believed still replies, another life of its name is refused: it
//! is told so, and stops if it finds the other one replying too. Other hosts decide by whom they
//! believe; where they do not tell, the later life gives way. A life that has gone is replaced at
//! once, one that does not reply after [`MAX_UNANSWERED`] tests.
//!
//! A reply may be late and a request may be lost, so one test settles nothing for good: as long as two
//! lives of a name are seen, they are tested again every [`TEST_EVERY`].
//!
//! Always true: a name has one entry, and lives that are refused stay refused until the one that is
//! believed is gone or does not reply.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use umbel::replica::{Incarnation, Name};

/// From one test of a name's lives to the next.
pub(crate) const TEST_EVERY: Duration = Duration::from_secs(5);
/// A life that leaves so many tests unanswered, one right after the other, is replaced.
const MAX_UNANSWERED: u32 = 2;
/// A life that is not believed and leaves so many tests unanswered is not tested any more.
const MAX_SILENT_TESTS: u32 = 12;
/// The largest number of lives that are tested beside the one that is believed.
pub(crate) const MAX_LIVES: usize = 8;

/// Names of which several lives are seen.
#[derive(Debug, Default)]
pub(crate) struct Rivals(HashMap<Name, Contest>);

/// The lives of one name.
#[derive(Debug)]
struct Contest {
    /// The life that is believed, and the tests that it left unanswered.
    held: Incarnation,
    unanswered: u32,
    /// The others, each with the tests that it left unanswered; `None` before its first one.
    others: BTreeMap<Incarnation, Option<u32>>,
    /// When they are tested next; `None` while a test runs.
    next: Option<Duration>,
}

/// What a test showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing new.
    Wait,
    /// This life is believed and replies, and another one replies too, which is to be told so.
    Refuse(Incarnation),
    /// This life is to be believed from now on.
    Believe(Incarnation),
}

impl Rivals {
    /// Another life of a name is seen than the one that is believed: both are tested soon.
    pub(crate) fn appeared(
        &mut self,
        now: Duration,
        host: &Name,
        held: Incarnation,
        life: Incarnation,
    ) {
        let contest = self.0.entry(host.clone()).or_insert_with(|| Contest::new(now, held));
        contest.hold(held);
        if contest.others.contains_key(&life) {
            return;
        }
        if contest.others.len() >= MAX_LIVES {
            contest.others.pop_first();
        }
        contest.others.insert(life, None);
        contest.next = contest.next.map(|_| now);
    }

    /// The names whose lives are to be tested now. Each test is to be reported to [`Self::tested`].
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Name> {
        let due = self.0.iter_mut().filter(|(_, contest)| contest.next.is_some_and(|at| at <= now));
        due.map(|(host, contest)| {
            contest.next = None;
            host.clone()
        })
        .collect()
    }

    /// When there is something to test.
    pub(crate) fn next(&self) -> Duration {
        self.0.values().filter_map(|contest| contest.next).min().unwrap_or(Duration::MAX)
    }

    /// These lives of a name replied to a test.
    pub(crate) fn tested(
        &mut self,
        now: Duration,
        host: &Name,
        replied: &BTreeSet<Incarnation>,
    ) -> Verdict {
        let Some(contest) = self.0.get_mut(host) else { return Verdict::Wait };
        let verdict = contest.tested(now, replied);
        if contest.others.is_empty() {
            self.0.remove(host);
        }
        verdict
    }

    /// A life of a host is gone. Returns the life that takes its place, if one waits for that.
    pub(crate) fn gone(&mut self, host: &Name, life: Incarnation) -> Option<Incarnation> {
        let contest = self.0.get_mut(host)?;
        contest.others.remove(&life);
        let next = (contest.held == life).then(|| contest.successor()).flatten();
        if let Some(next) = next {
            contest.hold(next);
        }
        if contest.others.is_empty() {
            self.0.remove(host);
        }
        next
    }

    /// Whether a life is refused because the one that is believed replied to the last test.
    pub(crate) fn is_refused(&self, host: &Name, life: Incarnation) -> bool {
        let contest = self.0.get(host).filter(|contest| contest.unanswered == 0);
        contest.is_some_and(|contest| contest.others.get(&life).is_some_and(Option::is_some))
    }
}

impl Contest {
    const fn new(now: Duration, held: Incarnation) -> Self {
        Self { held, unanswered: 0, others: BTreeMap::new(), next: Some(now) }
    }

    /// This life is believed from now on.
    fn hold(&mut self, life: Incarnation) {
        if self.held != life {
            self.others.remove(&life);
            (self.held, self.unanswered) = (life, 0);
        }
    }

    fn tested(&mut self, now: Duration, replied: &BTreeSet<Incarnation>) -> Verdict {
        for (life, unanswered) in &mut self.others {
            let before = unanswered.unwrap_or(0);
            *unanswered = Some(if replied.contains(life) { 0 } else { before + 1 });
        }
        self.others.retain(|_, unanswered| unanswered.is_none_or(|tests| tests < MAX_SILENT_TESTS));
        let is_held = replied.contains(&self.held);
        self.unanswered = if is_held { 0 } else { self.unanswered + 1 };
        // Once more at once: the first request may have been lost.
        let pause = if self.unanswered == 1 { Duration::ZERO } else { TEST_EVERY };
        self.next = Some(now + pause);
        if is_held {
            let has_rival = self.others.values().any(|unanswered| *unanswered == Some(0));
            return if has_rival { Verdict::Refuse(self.held) } else { Verdict::Wait };
        }
        match self.successor().filter(|_| self.unanswered >= MAX_UNANSWERED) {
            None => Verdict::Wait,
            Some(next) => {
                // It may reply later, and is told then that it was replaced.
                let (last, unanswered) = (self.held, self.unanswered);
                self.hold(next);
                self.others.insert(last, Some(unanswered));
                Verdict::Believe(next)
            }
        }
    }

    /// The life that takes the place of the one that is believed. An earlier one must have replied:
    /// it may be what is left of a host that ended.
    fn successor(&self) -> Option<Incarnation> {
        let latest = || self.others.iter().rev();
        let replied = latest().find(|(_, unanswered)| **unanswered == Some(0));
        replied.or_else(|| latest().find(|(life, _)| **life > self.held)).map(|(life, _)| *life)
    }
}

/// Whether a host stops that has found another life of its name to reply, given the lives of that
/// name that the other hosts believe; 0 where they know of none.
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

    /// The second life appeared while the first one is believed.
    fn contest() -> Rivals {
        let mut rivals = Rivals::default();
        rivals.appeared(START, &fern(), FIRST, SECOND);
        rivals
    }

    /// The next test, to which these lives reply.
    fn test(rivals: &mut Rivals, replied: &[Incarnation]) -> Verdict {
        let now = rivals.next();
        assert_eq!(rivals.due(now), [fern()]);
        assert!(rivals.due(now).is_empty(), "the test runs");
        rivals.tested(now, &fern(), &replied.iter().copied().collect())
    }

    #[test]
    fn a_life_is_refused_while_the_one_that_is_believed_replies() {
        let mut rivals = contest();
        assert!(!rivals.is_refused(&fern(), SECOND), "not before the first test");
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST));
        assert!(rivals.is_refused(&fern(), SECOND));
        assert_eq!(rivals.gone(&fern(), Incarnation(1)), None, "somebody else's token");
        assert_eq!(rivals.gone(&fern(), FIRST), Some(SECOND), "it takes its place at once");
        assert_eq!(rivals.next(), Duration::MAX);
        assert_eq!(rivals.gone(&fern(), SECOND), None);
    }

    /// It was told once, and a host that did not hear that ran beside the first one for ever.
    #[test]
    fn a_life_that_is_refused_is_told_so_until_one_of_the_two_is_gone() {
        let mut rivals = contest();
        for _ in 0..100 {
            assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(FIRST));
        }
        assert_eq!(test(&mut rivals, &[FIRST]), Verdict::Wait);
        assert_eq!(rivals.next(), START + TEST_EVERY * 101);
        assert_eq!(rivals.gone(&fern(), SECOND), None);
        assert_eq!(rivals.next(), Duration::MAX);
    }

    #[test]
    fn a_life_is_believed_if_the_one_before_does_not_reply_twice() {
        let mut rivals = contest();
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Wait, "a reply may be lost");
        assert_eq!(rivals.next(), START, "it is tested again at once");
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Believe(SECOND));
        // A life that is on its way may reply later than its token is seen.
        let mut rivals = contest();
        assert_eq!(test(&mut rivals, &[]), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[]), Verdict::Believe(SECOND));
    }

    /// Nobody asked it again, so that both ran for ever.
    #[test]
    fn a_life_that_was_replaced_and_replies_again_is_told_so() {
        let mut rivals = contest();
        test(&mut rivals, &[SECOND]);
        test(&mut rivals, &[SECOND]);
        assert_eq!(test(&mut rivals, &[SECOND]), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[FIRST, SECOND]), Verdict::Refuse(SECOND));
        assert_eq!(rivals.gone(&fern(), SECOND), Some(FIRST), "it replied, and takes its place");
    }

    #[test]
    fn an_earlier_life_that_does_not_reply_takes_nobodys_place() {
        let mut rivals = Rivals::default();
        rivals.appeared(START, &fern(), SECOND, FIRST);
        assert_eq!(test(&mut rivals, &[]), Verdict::Wait);
        assert_eq!(test(&mut rivals, &[]), Verdict::Wait);
        assert_eq!(rivals.gone(&fern(), SECOND), None);
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

    #[test]
    fn others_decide_who_stops_and_the_later_one_does_where_they_cannot() {
        assert!(must_stop(SECOND, FIRST, &[7, 7, 0]) && !must_stop(FIRST, SECOND, &[7, 7, 0]));
        // The first one hung, and was replaced; now it is back.
        assert!(must_stop(FIRST, SECOND, &[9, 9]) && !must_stop(SECOND, FIRST, &[9, 9]));
        for undecided in [&[][..], &[0, 0], &[7, 9], &[5]] {
            assert!(must_stop(SECOND, FIRST, undecided), "{undecided:?}");
            assert!(!must_stop(FIRST, SECOND, undecided), "{undecided:?}");
        }
    }
}
