//! The underlying network: a square of rows and columns in which every host has a place.
//!
//! A message between two hosts of the overlay passes as many links of the underlying network as
//! there are rows and columns between their places.

use crate::random::Random;

/// Where each host is.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    width: u32,
    of: Vec<u32>,
}

impl Places {
    /// Hosts in the order of their numbers, except `moved` of them, which exchange places at
    /// random. Links of a grid (`Topology::Grid`) between hosts that did not move are links of the
    /// underlying network.
    pub(crate) fn new(nodes: usize, moved: usize, random: &mut Random) -> Self {
        let mut of: Vec<u32> = (0..nodes as u32).collect();
        let mut chosen = of.clone();
        shuffle(&mut chosen, random);
        chosen.truncate(moved);
        let mut places = chosen.clone();
        shuffle(&mut places, random);
        for (host, place) in chosen.into_iter().zip(places) {
            of[host as usize] = place;
        }
        Self { width: (nodes as f64).sqrt().ceil() as u32, of }
    }

    /// Number of links of the underlying network between two hosts.
    pub(crate) fn distance(&self, a: u32, b: u32) -> u64 {
        let at = |host: u32| {
            let place = self.of[host as usize];
            (place % self.width, place / self.width)
        };
        let ((ax, ay), (bx, by)) = (at(a), at(b));
        u64::from(ax.abs_diff(bx) + ay.abs_diff(by))
    }
}

/// Mean distance of two different hosts at random places of a full square of `width` rows: twice the mean
/// distance of two rows, (w² - 1) / 3w, without the pairs of a host with itself.
pub(crate) fn mean_distance(width: f64) -> f64 {
    2.0 * width / 3.0
}

fn shuffle(values: &mut [u32], random: &mut Random) {
    for i in (1..values.len()).rev() {
        values.swap(i, random.below(i + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::{Graph, Topology};

    #[test]
    fn a_grid_of_hosts_in_their_places_has_links_of_length_one() {
        let places = Places::new(100, 0, &mut Random::of_trial(1, "places", 0));
        let graph = Graph::new(Topology::Grid, 100, 4, 1).unwrap();
        for node in 0..100 {
            assert!(graph.neighbours(node).iter().all(|other| places.distance(node, *other) == 1));
        }
        assert_eq!((places.distance(0, 99), places.distance(7, 7)), (18, 0));
    }

    #[test]
    fn every_place_is_taken_once_and_the_mean_distance_is_the_formula() {
        let places = Places::new(100, 100, &mut Random::of_trial(1, "places", 0));
        let mut taken = places.of.clone();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..100));
        let pairs = (0..100).flat_map(|a| (0..100).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let sum: u64 = pairs.map(|(a, b)| places.distance(a, b)).sum();
        assert!((sum as f64 / 9900.0 - mean_distance(10.0)).abs() < 1e-9);
    }
}
