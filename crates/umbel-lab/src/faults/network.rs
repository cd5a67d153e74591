//! A network that loses, duplicates, delays, reorders and corrupts messages, and can be
//! partitioned, all from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::Tally;
use crate::random::Random;

/// How unreliable a network is: probabilities in 1/1000, and the longest delay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) lost: u64,
    pub(super) repeated: u64,
    pub(super) corrupted: u64,
    pub(super) delay_ms: u64,
}

impl Weather {
    /// Everything arrives, once, at once.
    pub(super) const CALM: Self = Self { lost: 0, repeated: 0, corrupted: 0, delay_ms: 1 };

    /// A random degree of unreliability, from mild to severe.
    pub(super) fn any(random: &mut Random) -> Self {
        let strength = random.below(4) as u64;
        Self {
            lost: strength * random.below(100) as u64,
            repeated: strength * random.below(60) as u64,
            corrupted: strength * random.below(20) as u64,
            delay_ms: 1 + strength * random.below(900) as u64,
        }
    }
}

/// A message in flight, ordered by arrival time.
type Flight = Reverse<(Duration, u64, usize, usize, Vec<u8>)>;

/// Messages in flight between hosts, which are numbers here.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) weather: Weather,
    /// On which side of a partition each host is.
    sides: Vec<u8>,
    flights: BinaryHeap<Flight>,
    sent: u64,
    /// The latest arrival of anything sent so far, to detect messages that are overtaken.
    last_arrival: Vec<Duration>,
}

impl Network {
    pub(super) fn new(hosts: usize, weather: Weather) -> Self {
        Self {
            weather,
            sides: vec![0; hosts],
            flights: BinaryHeap::new(),
            sent: 0,
            last_arrival: vec![Duration::ZERO; hosts * hosts],
        }
    }

    /// Partitions the network in two.
    pub(super) fn cut(&mut self, random: &mut Random) {
        self.sides.iter_mut().for_each(|side| *side = random.below(2) as u8);
    }

    pub(super) fn heal(&mut self) {
        self.sides.fill(0);
    }

    pub(super) fn connects(&self, a: usize, b: usize) -> bool {
        self.sides[a] == self.sides[b]
    }

    /// Sends a message, which may be lost, duplicated, delayed or corrupted.
    pub(super) fn send(
        &mut self,
        now: Duration,
        (from, to): (usize, usize),
        bytes: &[u8],
        random: &mut Random,
        tally: &mut Tally,
    ) {
        tally.messages += 1;
        let mut chance = |per_mille: u64| (random.below(1000) as u64) < per_mille;
        if !self.connects(from, to) || chance(self.weather.lost) {
            tally.dropped += 1;
            return;
        }
        let copies = if chance(self.weather.repeated) { 2 } else { 1 };
        tally.duplicated += copies - 1;
        let corrupt = chance(self.weather.corrupted);
        for _ in 0..copies {
            let mut bytes = bytes.to_vec();
            if corrupt && !bytes.is_empty() {
                tally.corrupted += 1;
                let bit = random.below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let delay = 1 + random.below(self.weather.delay_ms as usize) as u64;
            let arrival = now + Duration::from_millis(delay);
            let last = &mut self.last_arrival[from * self.sides.len() + to];
            if arrival < *last {
                tally.reordered += 1;
            }
            *last = arrival.max(*last);
            self.sent += 1;
            self.flights.push(Reverse((arrival, self.sent, from, to, bytes)));
        }
    }

    /// The next message that has arrived by `now`: time, sender, receiver and bytes.
    pub(super) fn arrived(&mut self, now: Duration) -> Option<(Duration, usize, usize, Vec<u8>)> {
        self.flights.peek().filter(|Reverse((arrival, ..))| *arrival <= now)?;
        let Reverse((arrival, _, from, to, bytes)) = self.flights.pop()?;
        Some((arrival, from, to, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bug: every call for arrived messages lost the next message that had not arrived yet. That
    /// was one per step of a world, at any reliability, also for hosts that should have been well
    /// connected.
    #[test]
    fn a_message_on_its_way_arrives_however_often_it_is_asked_for() {
        let mut network = Network::new(2, Weather { delay_ms: 100, ..Weather::CALM });
        let (mut random, mut tally) = (Random::of_trial(1, "network", 0), Tally::default());
        for number in 0..50 {
            network.send(Duration::ZERO, (0, 1), &[number], &mut random, &mut tally);
        }
        let mut arrived = Vec::new();
        for millis in 0..=100 {
            while let Some((arrival, from, to, bytes)) =
                network.arrived(Duration::from_millis(millis))
            {
                assert_eq!((arrival, from, to), (Duration::from_millis(millis), 0, 1));
                arrived.push(bytes[0]);
            }
        }
        arrived.sort_unstable();
        assert_eq!((arrived, tally.dropped), ((0..50).collect(), 0));
    }
}
