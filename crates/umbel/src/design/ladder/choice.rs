//! When a set climbs the ladder, and when it descends.
//!
//! A set climbs as soon as it holds more keys than its rung takes, or will hold more by the time a
//! longer filter is built. It descends when it has held fewer than 70 % of what the rung below
//! takes for ten minutes. The two limits differ by a factor of 2.8, so that a size that varies by a
//! tenth does not move the set. Two climbs within a minute indicate a bulk load: the next climb
//! goes two rungs up at once, because folding back is cheap.
//!
//! Keys can be reserved, which makes room only at the home: its own filter is at least on the rung
//! for the reserved keys ([`RungChoice::filter_rung`]), so that it need not be rebuilt as they are
//! added. The replicas at other hosts are on the rung that the present keys need: a set with room
//! for ten million keys that holds ten costs them only what ten keys cost. A bulk load into such a
//! set climbs no higher than the reserved rung, as long as the keys fit there.
//!
//! If a rung has room for fewer keys only because more hosts are planned, the climb waits up to a
//! minute, a different time at every home, so that not all climb at the same moment.
//!
//! Always true: [`RungChoice::ask`] does not move the set, it changes only timers, counts and a
//! cache. The caller moves the filter, then calls [`RungChoice::moved`]. `now` never goes back.

use std::time::Duration;

use super::{Ladder, Rung};
use crate::params::Shape;

/// How long a set must be small before it descends.
const LOW_FOR: Duration = Duration::from_secs(600);
/// Two climbs within this time indicate a bulk load.
const LOAD: Duration = Duration::from_secs(60);
/// The fewest rungs that a set climbs at a time during a bulk load.
const LOAD_STEPS: u32 = 2;
/// Upper bound for the time to build a filter, per key, on a busy machine.
const BUILD_SECONDS_PER_KEY: f64 = 2e-6;
/// How long additions are counted to measure their rate.
const PACE: Duration = Duration::from_secs(1);

/// What a set should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Build the filter again on this higher rung, from the keys.
    Climb(Rung),
    /// Fold the filter to this lower rung.
    Descend(Rung),
}

/// What a set must store for a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its rung.
    pub rung: Rung,
    /// The hosts that it was planned for.
    pub hosts: u32,
}

/// The rung of one set on its ladder, and the decision when to change it.
#[derive(Debug, Clone)]
pub struct RungChoice {
    ladder: Ladder,
    hosts: u32,
    rung: Rung,
    /// The shape of the present rung.
    shape: Shape,
    /// The rung for the reserved keys, and the number of keys that it has room for.
    reserved: Rung,
    reserved_takes: u64,
    /// The most keys for the present rung, and the number of keys below which the rung is too high.
    takes: u64,
    low: u64,
    /// Until this time, a higher number of planned hosts alone is no reason to climb; with the
    /// number of keys that the rung had room for before.
    lenient: Option<(Duration, u64)>,
    low_since: Option<Duration>,
    climbed: Option<Duration>,
    pace: Pace,
    /// Cache: the last rung found for more keys than the present one has room for.
    fitting: Option<Fitting>,
}

/// The lowest rung for some range of numbers of keys.
#[derive(Debug, Clone, Copy)]
struct Fitting {
    rung: Rung,
    /// The most keys for this rung, and for the rung below.
    takes: u64,
    below: u64,
}

/// How fast a set grows.
#[derive(Debug, Clone, Default)]
struct Pace {
    /// When counting began, and the number of keys then.
    began: Option<(Duration, u64)>,
    /// Keys added per second, as last measured.
    per_second: f64,
    /// Number of keys at the last call.
    last: u64,
}

impl Pace {
    /// The expected number of keys when a filter of all of them has been built, if keys are added
    /// at the same rate. At most twice as many; no more than now if none was added since the last
    /// call.
    fn soon(&mut self, now: Duration, keys: u64) -> u64 {
        let (since, before) = *self.began.get_or_insert((now, keys));
        if now >= since + PACE {
            let seconds = now.saturating_sub(since).as_secs_f64();
            self.per_second = keys.saturating_sub(before) as f64 / seconds;
            self.began = Some((now, keys));
        }
        if keys <= std::mem::replace(&mut self.last, keys) {
            return keys;
        }
        let growth = (self.per_second * BUILD_SECONDS_PER_KEY).min(1.0);
        keys.saturating_add((keys as f64 * growth) as u64)
    }
}

impl RungChoice {
    /// A set that starts with `keys` keys, with room for `reserved` ones at its home. If it was on
    /// the rung `before`, it stays there unless that is too low or too high.
    #[must_use]
    pub fn new(ladder: Ladder, hosts: u32, keys: u64, reserved: u64, before: Option<Rung>) -> Self {
        let rung_for = |keys| ladder.rung_for(keys, hosts).unwrap_or(Rung::HIGHEST);
        let fits = |rung: &Rung| {
            keys <= ladder.takes(*rung, hosts) && keys >= low_limit(ladder, *rung, hosts)
        };
        let rung = before.filter(fits).unwrap_or_else(|| rung_for(keys));
        let mut choice = Self {
            ladder,
            hosts,
            rung,
            shape: ladder.shape(rung),
            reserved: rung_for(reserved),
            reserved_takes: 0,
            takes: 0,
            low: 0,
            lenient: None,
            low_since: None,
            climbed: None,
            pace: Pace::default(),
            fitting: None,
        };
        choice.stand_on(rung);
        choice
    }

    /// The ladder.
    #[must_use]
    pub const fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// What to remember for a restart.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        Standing { rung: self.rung, hosts: self.hosts }
    }

    /// The rung of the set: the one that its keys need, and that other hosts hold.
    #[must_use]
    pub const fn rung(&self) -> Rung {
        self.rung
    }

    /// The shape of the set's rung.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The rung of the filter at the home, which has room for the reserved keys.
    #[must_use]
    pub fn filter_rung(&self) -> Rung {
        self.filter_rung_at(self.rung)
    }

    /// The rung of the filter at the home if the set is on this rung.
    #[must_use]
    pub fn filter_rung_at(&self, rung: Rung) -> Rung {
        rung.max(self.reserved)
    }

    /// Hosts that the rung is planned for.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Keys that the set may hold before it climbs.
    #[must_use]
    pub const fn takes(&self) -> u64 {
        self.takes
    }

    /// Keys that the filter at the home can hold before it is rebuilt on a higher rung.
    #[must_use]
    pub fn filter_takes(&self) -> u64 {
        self.takes.max(self.reserved_takes)
    }

    /// Whether the set, with `keys` keys, should move to another rung. Takes only a few
    /// comparisons. Rungs are searched once, when the set outgrows its rung, however often this is
    /// called before it moves: for a set that has no memory for a longer filter, it is called at
    /// every change.
    pub fn ask(&mut self, now: Duration, keys: u64) -> Option<Move> {
        let soon = match self.pace.soon(now, keys) {
            // The reserved number of keys tells how large a bulk load will be.
            soon if keys <= self.reserved_takes => soon.min(self.reserved_takes),
            soon => soon,
        };
        if soon > self.takes {
            self.low_since = None;
            let waits = |(until, takes): (Duration, u64)| now < until && soon <= takes;
            if self.rung == Rung::HIGHEST || self.lenient.is_some_and(waits) {
                return None;
            }
            let fitting = self.fitting(soon);
            return Some(Move::Climb(fitting.max(self.at_least(now, fitting))));
        }
        if keys >= self.low {
            self.low_since = None;
            return None;
        }
        let since = *self.low_since.get_or_insert(now);
        (now >= since + LOW_FOR).then(|| Move::Descend(self.fold_to(keys)))
    }

    /// The lowest rung that has room for this many keys, or the highest rung.
    fn fitting(&mut self, keys: u64) -> Rung {
        let known = self.fitting.filter(|known| known.below < keys && keys <= known.takes);
        if let Some(known) = known {
            return known.rung;
        }
        let takes = |rung| self.ladder.takes(rung, self.hosts);
        let found = self.ladder.rung_for(keys, self.hosts).map(|rung| (rung, takes(rung)));
        let (rung, takes_keys) = found.unwrap_or((Rung::HIGHEST, u64::MAX));
        let below = match rung {
            Rung::HIGHEST if takes_keys == u64::MAX => takes(rung),
            _ => rung.below().map_or(0, takes),
        };
        self.fitting = Some(Fitting { rung, takes: takes_keys, below });
        rung
    }

    /// The lowest rung to climb to, if the rung `needed` is needed.
    fn at_least(&self, now: Duration, needed: Rung) -> Rung {
        let is_load = self.climbed.is_some_and(|climbed| now < climbed + LOAD);
        let at_least = self.rung.above(if is_load { LOAD_STEPS } else { 1 });
        match needed <= self.reserved {
            true => at_least.min(self.reserved),
            false => at_least,
        }
    }

    /// When to call [`Self::ask`] again if no key is added or removed before.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let lenient = self.lenient.map(|(until, _)| until);
        let low = self.low_since.map(|since| since + LOW_FOR);
        lenient.into_iter().chain(low).min()
    }

    /// Records that the set is on another rung from now on.
    pub fn moved(&mut self, now: Duration, rung: Rung) {
        if rung > self.rung {
            self.climbed = Some(now);
        }
        self.stand_on(rung);
    }

    /// Changes the numbers of planned hosts and reserved keys. If more hosts alone make a climb
    /// necessary, it is delayed by `wait`.
    pub fn plan(&mut self, now: Duration, hosts: u32, reserved: u64, wait: Duration) {
        let before = self.takes;
        self.hosts = hosts;
        self.reserved = self.ladder.rung_for(reserved, hosts).unwrap_or(Rung::HIGHEST);
        self.stand_on(self.rung);
        if self.takes < before {
            self.lenient = Some((now + wait, before));
        }
    }

    /// Ends the waiting time of [`Self::plan`] if it is over.
    pub fn expire(&mut self, now: Duration) {
        self.lenient = self.lenient.filter(|(until, _)| now < *until);
    }

    fn stand_on(&mut self, rung: Rung) {
        self.rung = rung;
        self.shape = self.ladder.shape(rung);
        self.takes = self.ladder.takes(rung, self.hosts);
        self.reserved_takes = self.ladder.takes(self.reserved, self.hosts);
        self.low = low_limit(self.ladder, rung, self.hosts);
        self.fitting = None;
        self.lenient = None;
        self.low_since = None;
    }

    /// The lowest rung of which the keys take at most 70 % of the room.
    fn fold_to(&self, keys: u64) -> Rung {
        let roomy = |rung: &Rung| keys <= seventy_percent(self.ladder.takes(*rung, self.hosts));
        Rung::all().find(roomy).unwrap_or(Rung::HIGHEST).min(self.rung)
    }
}

/// Fewer keys than this make a rung too high.
fn low_limit(ladder: Ladder, rung: Rung, hosts: u32) -> u64 {
    rung.below().map_or(0, |below| seventy_percent(ladder.takes(below, hosts)))
}

const fn seventy_percent(keys: u64) -> u64 {
    keys / 10 * 7 + keys % 10 * 7 / 10
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::params::Rate;

    fn ladder() -> Ladder {
        Ladder::new(Rate::new(0.01).unwrap())
    }

    fn rung(exponent: u32) -> Rung {
        Rung::new(exponent).unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn obey(choice: &mut RungChoice, now: Duration, keys: u64) -> Option<Move> {
        let step = choice.ask(now, keys);
        if let Some(Move::Climb(to) | Move::Descend(to)) = step {
            choice.moved(now, to);
        }
        step
    }

    #[test]
    fn a_set_climbs_rung_by_rung_and_by_twos_under_load() {
        let mut choice = RungChoice::new(ladder(), 32, 0, 0, None);
        assert_eq!(choice.rung(), Rung::LOWEST);
        let above = choice.takes() + 1;
        assert_eq!(obey(&mut choice, seconds(1), above), Some(Move::Climb(rung(11))));
        let above = choice.takes() + 1;
        assert_eq!(obey(&mut choice, seconds(60), above), Some(Move::Climb(rung(13))));
        let above = choice.takes() + 1;
        assert_eq!(obey(&mut choice, seconds(120), above), Some(Move::Climb(rung(14))));
        let many = ladder().takes(rung(20), 32) * 8 / 10;
        assert_eq!(obey(&mut choice, seconds(121), many), Some(Move::Climb(rung(20))));
    }

    /// 100,000 keys a second, and a fifth more by the time that a filter is built.
    #[test]
    fn a_set_that_grows_fast_climbs_before_it_is_full() {
        let mut choice = RungChoice::new(ladder(), 32, 0, 0, None);
        choice.moved(seconds(0), rung(24));
        let takes = choice.takes();
        assert_eq!(choice.ask(seconds(100), takes - 200_000), None);
        assert_eq!(choice.ask(seconds(101), takes - 100_000), Some(Move::Climb(rung(25))));
        assert_eq!(choice.ask(seconds(102), takes - 100_000), None, "it grows no more");
        assert_eq!(choice.ask(seconds(100_000), takes - 10), None, "it grows slowly");
    }

    #[test]
    fn what_is_reserved_is_room_at_the_home_alone_and_ends_a_load() {
        let reserved = ladder().takes(rung(15), 32);
        let mut choice = RungChoice::new(ladder(), 32, 0, reserved, None);
        assert_eq!((choice.rung(), choice.filter_rung()), (Rung::LOWEST, rung(15)));
        for (second, full, to) in [(1, 10, 11), (2, 11, 13), (3, 13, 15), (4, 15, 17)] {
            let above = ladder().takes(rung(full), 32) + 1;
            let step = obey(&mut choice, seconds(second), above);
            assert_eq!(step, Some(Move::Climb(rung(to))));
        }
        assert_eq!(choice.filter_rung(), rung(17));
        let mut choice = RungChoice::new(ladder(), 32, 0, reserved, None);
        choice.moved(seconds(0), rung(14));
        let above = choice.takes() + 1;
        assert_eq!(obey(&mut choice, seconds(1), above), Some(Move::Climb(rung(15))), "not 16");
    }

    #[test]
    fn a_set_descends_after_ten_minutes() {
        let reserved = ladder().takes(rung(15), 32);
        let mut choice = RungChoice::new(ladder(), 32, 0, reserved, None);
        choice.moved(seconds(0), rung(20));
        assert_eq!(choice.ask(seconds(10), 5), None);
        assert_eq!(choice.next_timeout(), Some(seconds(610)));
        assert_eq!(choice.ask(seconds(609), 5), None);
        assert_eq!(choice.ask(seconds(609), choice.takes()), None, "the time starts anew");
        assert_eq!(choice.ask(seconds(700), 5), None);
        assert_eq!(obey(&mut choice, seconds(1300), 5), Some(Move::Descend(rung(10))));
        assert_eq!(choice.filter_rung(), rung(15));
        assert_eq!(choice.ask(seconds(9000), 0), None);
        assert_eq!(choice.next_timeout(), None);
    }

    #[test]
    fn a_restart_keeps_its_rung_unless_it_is_too_low_or_too_high() {
        let restarted = |keys, before| RungChoice::new(ladder(), 32, keys, 0, Some(before)).rung();
        let takes = |exponent| ladder().takes(rung(exponent), 32);
        assert_eq!(restarted(takes(14), rung(14)), rung(14));
        assert_eq!(restarted(takes(14) + 1, rung(14)), rung(15));
        assert_eq!(restarted(takes(13) * 8 / 10, rung(14)), rung(14));
        assert_eq!(restarted(takes(13) * 6 / 10, rung(14)), rung(13));
        assert_eq!(restarted(0, rung(14)), Rung::LOWEST);
    }

    #[test]
    fn more_hosts_make_a_full_rung_climb_after_its_own_wait() {
        let keys = ladder().takes(rung(16), 32);
        let mut choice = RungChoice::new(ladder(), 32, keys, 0, None);
        choice.plan(seconds(100), 64, 0, seconds(37));
        assert_eq!(choice.ask(seconds(100), keys), None);
        assert_eq!(choice.next_timeout(), Some(seconds(137)));
        assert_eq!(
            choice.ask(seconds(101), keys + 1),
            Some(Move::Climb(rung(17))),
            "keys do not wait"
        );
        assert_eq!(choice.ask(seconds(137), keys), Some(Move::Climb(rung(17))));
        choice.expire(seconds(137));
        assert_eq!(choice.next_timeout(), None);
        // Fewer hosts: nobody moves.
        choice.plan(seconds(200), 16, 0, seconds(37));
        assert_eq!(choice.ask(seconds(200), keys), None);
    }

    /// This failed when every call of `ask` searched the rungs: a set that cannot get a longer
    /// filter calls it at every change.
    #[test]
    fn a_set_that_cannot_climb_searches_the_rungs_once() {
        let mut choice = RungChoice::new(ladder(), 32, 0, 0, None);
        let takes = |exponent| ladder().takes(rung(exponent), 32);
        let ask = |choice: &mut RungChoice, keys| choice.ask(seconds(0), keys);
        assert_eq!(ask(&mut choice, takes(14)), Some(Move::Climb(rung(14))));
        let fitting = takes(13) + 1..=takes(14);
        let before = super::super::searches();
        for keys in fitting {
            assert_eq!(ask(&mut choice, keys), Some(Move::Climb(rung(14))));
        }
        assert_eq!(super::super::searches(), before);
        assert_eq!(ask(&mut choice, takes(14) + 1), Some(Move::Climb(rung(15))));
        assert_eq!(ask(&mut choice, takes(12) + 1), Some(Move::Climb(rung(13))));
        assert_eq!(ask(&mut choice, u64::MAX), Some(Move::Climb(Rung::HIGHEST)));
        assert_eq!(ask(&mut choice, takes(40)), Some(Move::Climb(Rung::HIGHEST)));
        assert_eq!(ask(&mut choice, takes(39)), Some(Move::Climb(rung(39))));
        // With more hosts a rung has room for fewer keys.
        choice.plan(seconds(0), 1024, 0, Duration::ZERO);
        assert_eq!(ask(&mut choice, takes(14)), Some(Move::Climb(rung(15))));
    }

    /// A size that varies by a tenth around any mean: at most one climb a day.
    #[test]
    fn noise_does_not_make_a_set_swing() {
        let (mut state, mut worst) = (1u64, 0);
        for mean in [50, 60, 100, 200, 400, 700, 1000, 2000, 3650, 3800, 5000, 7000] {
            let mut choice = RungChoice::new(ladder(), 32, mean, 0, None);
            let (mut climbs, mut level) = (0, 0.0f64);
            // Ten days in steps of a minute; the noise is correlated over an hour.
            for minute in 0..14_400u64 {
                let uniform = |state: &mut u64| {
                    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
                };
                let normal: f64 = (0..12).map(|_| uniform(&mut state)).sum();
                level = level * (59.0 / 60.0) + normal * (1.0 - (59.0f64 / 60.0).powi(2)).sqrt();
                let keys = (mean as f64 * (1.0 + 0.1 * level)).max(0.0) as u64;
                let step = obey(&mut choice, seconds(60 * minute), keys);
                climbs += u64::from(matches!(step, Some(Move::Climb(_))));
            }
            worst = worst.max(climbs);
        }
        assert!(worst <= 10, "{worst} climbs in ten days");
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        /// Whatever happens: no set stands on a rung that does not take its keys, and none stays
        /// for long on one that is three rungs too high.
        #[test]
        fn a_set_always_fits_its_rung(
            sizes in prop::collection::vec((0u64..200_000, 0u64..2000), 1..60), hosts in 1u32..2000,
        ) {
            let (mut choice, mut now) = (RungChoice::new(ladder(), hosts, 0, 0, None), seconds(0));
            for (keys, wait) in sizes {
                obey(&mut choice, now, keys);
                prop_assert!(keys <= choice.takes());
                prop_assert_eq!(choice.ask(now, keys), None, "one move is enough");
                now += seconds(wait);
                let step = obey(&mut choice, now, keys);
                prop_assert!(!matches!(step, Some(Move::Climb(_))));
                prop_assert!(keys <= choice.takes());
                if wait >= 600 && choice.rung() > Rung::LOWEST {
                    prop_assert!(keys * 3 + 3 >= choice.takes(), "{} of {}", keys, choice.takes());
                }
            }
        }
    }
}
