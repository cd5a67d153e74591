//! Several hosts, each with its own filter and replicas of all the others.
//!
//! A host is wrong about a random key when its own filter claims it, a replica claims it,
//! or a replica denies what its home claims (papers 1 and 3, equations 14 to 16, counted
//! instead of multiplied).

use umbel::{Digest, Shape};

use crate::home::{Home, Keys};
use crate::random::Random;
use crate::spread::Spread;

/// Up to 8 hosts of one shape.
pub(crate) struct Hosts {
    homes: Vec<Home>,
    asked: Vec<Digest>,
    /// For each asked key, the replicas that claim it.
    claimed: Vec<u8>,
}

impl Hosts {
    /// Hosts of new keys, all published; `asked` keys are drawn to be asked.
    pub(crate) fn new(
        (count, items): (usize, u64),
        shape: Shape,
        keys: &mut Keys,
        asked: usize,
    ) -> Self {
        assert!(count <= 8, "a byte holds one bit a host");
        let homes: Vec<Home> = (0..count).map(|_| Home::new(shape, keys, items)).collect();
        let asked = keys.draw_many(asked);
        let claimed = asked.iter().map(|key| mask(&homes, |home| home.replica_claims(*key)));
        Self { claimed: claimed.collect(), homes, asked }
    }

    /// Adds new keys to every host.
    pub(crate) fn add(&mut self, keys: &mut Keys, count: u64) {
        self.homes.iter_mut().for_each(|home| home.add(keys, count));
    }

    /// Removes members of every host.
    pub(crate) fn remove(&mut self, random: &mut Random, count: u64) {
        self.homes.iter_mut().for_each(|home| home.remove(random, count));
    }

    /// The mean over the hosts of something.
    pub(crate) fn mean(&self, of: impl Fn(&Home) -> f64) -> f64 {
        Spread::of(self.homes.iter().map(of)).mean
    }

    /// The share of asked keys about which a host is wrong, on average.
    pub(crate) fn wrong(&self) -> f64 {
        let wrong: u64 = self
            .asked
            .iter()
            .zip(&self.claimed)
            .map(|(key, replicas)| {
                let homes = mask(&self.homes, |home| home.claims(*key));
                u64::from(wrong_hosts(self.homes.len(), homes, *replicas))
            })
            .sum();
        wrong as f64 / (self.asked.len() * self.homes.len()) as f64
    }
}

fn mask(homes: &[Home], claims: impl Fn(&Home) -> bool) -> u8 {
    homes.iter().enumerate().fold(0, |mask, (i, home)| mask | u8::from(claims(home)) << i)
}

/// How many hosts are wrong about a key that these homes and these replicas claim: host `i`
/// if home `i` claims it, or if the home or the replica of any other host does.
fn wrong_hosts(hosts: usize, homes: u8, replicas: u8) -> u32 {
    let either = homes | replicas;
    if either == 0 {
        return 0;
    }
    let wrong = |host: &usize| homes >> host & 1 == 1 || either & !(1 << host) != 0;
    (0..hosts).filter(wrong).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_wrong_by_its_own_filter_or_anything_of_the_others() {
        assert_eq!(wrong_hosts(5, 0, 0), 0);
        // Its own filter counts, its own replica at the others does not.
        assert_eq!(wrong_hosts(5, 0b00001, 0), 5);
        assert_eq!(wrong_hosts(5, 0, 0b00001), 4);
        assert_eq!(wrong_hosts(5, 0, 0b00011), 5);
        assert_eq!(wrong_hosts(1, 0, 1), 0);
    }

    #[test]
    fn fresh_hosts_are_wrong_as_often_as_the_formula_says() {
        let mut random = Random::of_trial(3, "hosts", 0);
        let mut keys = Keys::new(&mut random);
        let shape = crate::home::shape(12_000, 6);
        let hosts = Hosts::new((5, 1500), shape, &mut keys, 20_000);
        let formula =
            umbel::model::any_of(umbel::model::standard::false_positive(shape, 1500), 5.0);
        assert!((hosts.wrong() / formula - 1.0).abs() < 0.1, "{} for {formula}", hosts.wrong());
        assert_eq!(hosts.mean(Home::miss), 0.0);
    }
}
