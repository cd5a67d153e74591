//! Network topologies: which hosts are linked, from a seed.
//!
//! Always true: links go both ways, no host is linked to itself or twice to another, and neighbours
//! are in the order of their numbers.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;

/// A kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Each host is linked to the one before and the one after.
    Line,
    /// A square of rows and columns.
    Grid,
    /// Every host has the same number of links, to random hosts.
    RandomRegular,
    /// Hosts with many links get more (Barabási and Albert).
    ScaleFree,
    /// A ring of links to near hosts, a tenth of them rewired to random hosts (Watts and Strogatz).
    SmallWorld,
}

impl Topology {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Line, Self::Grid, Self::RandomRegular, Self::ScaleFree, Self::SmallWorld];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Grid => "grid",
            Self::RandomRegular => "random-regular",
            Self::ScaleFree => "scale-free",
            Self::SmallWorld => "small-world",
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Topology {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|topology| topology.name() == name);
        named.ok_or_else(|| {
            format!("'{name}' is none of line, grid, random-regular, scale-free, small-world")
        })
    }
}

/// Links between hosts; hosts are numbers.
#[derive(Debug, Clone)]
pub struct Graph {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Graph {
    /// A network of this kind; `degree` is the mean number of links, if the kind does not determine
    /// it.
    ///
    /// # Errors
    /// In one line, if there is no such network.
    pub fn new(topology: Topology, nodes: usize, degree: usize, seed: u64) -> Result<Self, String> {
        if nodes < 2 {
            return Err(String::from("a network has at least two nodes"));
        }
        let mut random = Random::of_trial(seed, topology.name(), nodes as u64);
        let links = match topology {
            Topology::Line => (1..nodes).map(|node| (node - 1, node)).collect(),
            Topology::Grid => grid(nodes),
            Topology::RandomRegular => random_regular(nodes, degree, &mut random)?,
            Topology::ScaleFree => scale_free(nodes, degree, &mut random)?,
            Topology::SmallWorld => small_world(nodes, degree, &mut random)?,
        };
        Ok(Self::of(nodes, &links))
    }

    /// The network of these links.
    #[must_use]
    pub fn of(nodes: usize, links: &[(usize, usize)]) -> Self {
        let mut both: Vec<(u32, u32)> = links
            .iter()
            .flat_map(|(a, b)| [(*a as u32, *b as u32), (*b as u32, *a as u32)])
            .collect();
        both.sort_unstable();
        both.dedup();
        let starts =
            (0..=nodes).map(|node| both.partition_point(|(from, _)| (*from as usize) < node));
        Self { starts: starts.collect(), neighbours: both.into_iter().map(|(_, to)| to).collect() }
    }

    /// Number of hosts.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of links, each counted in both directions.
    #[must_use]
    pub fn directed_links(&self) -> usize {
        self.neighbours.len()
    }

    /// The hosts to which a host is linked.
    #[must_use]
    pub fn neighbours(&self, node: u32) -> &[u32] {
        &self.neighbours[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// The position of a host's first link among all links.
    pub(super) fn first_link(&self, node: u32) -> usize {
        self.starts[node as usize]
    }

    /// The position of `to` among the neighbours of `from`.
    pub(super) fn link(&self, from: u32, to: u32) -> usize {
        self.neighbours(from).binary_search(&to).expect("links go both ways")
    }

    /// For each host, the number of its connected component and the size of that component.
    pub(super) fn parts(&self) -> Vec<(u32, usize)> {
        let mut part = vec![u32::MAX; self.nodes()];
        let mut sizes = Vec::new();
        for start in 0..self.nodes() as u32 {
            if part[start as usize] != u32::MAX {
                continue;
            }
            let number = sizes.len() as u32;
            let (mut open, mut size) = (vec![start], 0);
            part[start as usize] = number;
            while let Some(node) = open.pop() {
                size += 1;
                for next in self.neighbours(node) {
                    if part[*next as usize] == u32::MAX {
                        part[*next as usize] = number;
                        open.push(*next);
                    }
                }
            }
            sizes.push(size);
        }
        part.into_iter().map(|number| (number, sizes[number as usize])).collect()
    }
}

type Links = Vec<(usize, usize)>;

fn grid(nodes: usize) -> Links {
    let width = (nodes as f64).sqrt().ceil() as usize;
    let right = (0..nodes).filter(|node| node % width + 1 < width && node + 1 < nodes);
    let down = (0..nodes).filter(|node| node + width < nodes);
    right.map(|node| (node, node + 1)).chain(down.map(|node| (node, node + width))).collect()
}

/// Ends of links are paired at random; pairs that are not valid links are repaired by exchanging
/// ends with random others.
fn random_regular(nodes: usize, degree: usize, random: &mut Random) -> Result<Links, String> {
    if degree == 0 || degree >= nodes || !(nodes * degree).is_multiple_of(2) {
        return Err(format!(
            "there is no network of {nodes} nodes with {degree} links each: the product must be even and a node has fewer links than there are nodes"
        ));
    }
    let mut ends: Vec<usize> = (0..nodes * degree).map(|end| end / degree).collect();
    for i in (1..ends.len()).rev() {
        ends.swap(i, random.below(i + 1));
    }
    for _ in 0..1000 {
        let bad = repeated(&ends);
        if bad.is_empty() {
            return Ok(ends.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect());
        }
        for pair in bad {
            let other = random.below(ends.len());
            ends.swap(2 * pair + 1, other);
        }
    }
    Err(format!("no network of {nodes} nodes with {degree} links each was found"))
}

/// Pairs that link a node to itself, or repeat a link.
fn repeated(ends: &[usize]) -> Vec<usize> {
    let key = |pair: &usize| {
        let (a, b) = (ends[2 * pair], ends[2 * pair + 1]);
        (a.min(b), a.max(b))
    };
    let mut pairs: Vec<usize> = (0..ends.len() / 2).collect();
    pairs.sort_unstable_by_key(|pair| (key(pair), *pair));
    let mut bad: Vec<usize> =
        pairs.windows(2).filter(|two| key(&two[0]) == key(&two[1])).map(|two| two[1]).collect();
    bad.extend((0..ends.len() / 2).filter(|pair| ends[2 * pair] == ends[2 * pair + 1]));
    bad.sort_unstable();
    bad.dedup();
    bad
}

/// Each new node is linked to `degree / 2` others, chosen with probability proportional to their
/// number of links.
fn scale_free(nodes: usize, degree: usize, random: &mut Random) -> Result<Links, String> {
    let each = degree / 2;
    if each == 0 || each >= nodes {
        return Err(format!("a scale-free network needs a degree from 2 to {}", 2 * (nodes - 1)));
    }
    // The first nodes are all linked to each other.
    let mut links: Links = (0..=each).flat_map(|a| (0..a).map(move |b| (b, a))).collect();
    let mut ends: Vec<usize> = links.iter().flat_map(|(a, b)| [*a, *b]).collect();
    for node in each + 1..nodes {
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < each {
            let other = ends[random.below(ends.len())];
            if !chosen.contains(&other) {
                chosen.push(other);
            }
        }
        for other in chosen {
            links.push((other, node));
            ends.extend([other, node]);
        }
    }
    Ok(links)
}

/// A ring in which every node is linked to the nearest `degree` nodes; one link in ten is rewired.
fn small_world(nodes: usize, degree: usize, random: &mut Random) -> Result<Links, String> {
    let each = degree / 2;
    if each == 0 || 2 * each >= nodes {
        return Err(format!("a small world needs a degree from 2 to below {nodes}"));
    }
    let mut links = Vec::new();
    for node in 0..nodes {
        for step in 1..=each {
            let near = (node + step) % nodes;
            let far = random.below(nodes);
            let astray = random.below(10) == 0 && far != node;
            links.push((node, if astray { far } else { near }));
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_links_that_they_should() {
        for topology in Topology::ALL {
            let graph = Graph::new(topology, 500, 4, 1).unwrap();
            assert_eq!(graph.nodes(), 500, "{topology}");
            for node in 0..500 {
                let neighbours = graph.neighbours(node);
                assert!(neighbours.is_sorted_by(|a, b| a < b) && !neighbours.contains(&node));
                for other in neighbours {
                    assert!(graph.neighbours(*other).contains(&node), "{topology}");
                }
                assert!(topology != Topology::RandomRegular || neighbours.len() == 4);
            }
            let parts = graph.parts();
            assert!(parts.iter().all(|(_, size)| *size == 500), "{topology}: one network");
            let mean = graph.directed_links() as f64 / 500.0;
            let wanted = if topology == Topology::Line { 2.0 } else { 4.0 };
            assert!((mean - wanted).abs() < 0.25, "{topology}: {mean}");
            assert_eq!(topology.to_string().parse(), Ok(topology));
        }
        let hub = |topology| {
            let graph = Graph::new(topology, 500, 4, 1).unwrap();
            (0..500).map(|node| graph.neighbours(node).len()).max().unwrap()
        };
        assert!(hub(Topology::ScaleFree) > 4 * hub(Topology::SmallWorld));
    }

    #[test]
    fn networks_that_are_none_are_refused() {
        assert!(Graph::new(Topology::Line, 1, 4, 1).is_err());
        assert!(Graph::new(Topology::RandomRegular, 5, 3, 1).is_err());
        assert!(Graph::new(Topology::RandomRegular, 4, 4, 1).is_err());
        assert!(Graph::new(Topology::ScaleFree, 10, 1, 1).is_err());
        assert!(Graph::new(Topology::SmallWorld, 4, 4, 1).is_err());
        assert!("star".parse::<Topology>().unwrap_err().contains("small-world"));
    }
}
