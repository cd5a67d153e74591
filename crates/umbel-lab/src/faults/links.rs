//! Which hosts of a world are linked, and how far filters travel there.

use umbel::route::{EntryKind, Plan};

use crate::random::Random;

/// The links of a world. In a mesh every host is linked to every other.
#[derive(Debug)]
pub(super) struct Links {
    /// Hops from each host to each other.
    hops: Vec<Vec<usize>>,
    plan: Plan,
}

impl Links {
    /// A mesh: every host is linked to every other.
    pub(super) fn all(hosts: usize) -> Self {
        let hops = (0..hosts).map(|a| (0..hosts).map(|b| usize::from(a != b)).collect());
        Self { hops: hops.collect(), plan: plan(EntryKind::Cubf, 1, hosts) }
    }

    /// A tree of all hosts plus some further links, for entries of any kind.
    pub(super) fn any(hosts: usize, random: &mut Random) -> Self {
        let mut hops = vec![vec![hosts; hosts]; hosts];
        let mut link = |a: usize, b: usize| (hops[a][b], hops[b][a]) = (1, 1);
        (1..hosts).for_each(|host| link(host, random.below(host)));
        for _ in 0..hosts / 2 {
            link(random.below(hosts), random.below(hosts));
        }
        (0..hosts).for_each(|host| hops[host][host] = 0);
        for middle in 0..hosts {
            for a in 0..hosts {
                for b in 0..hosts {
                    hops[a][b] = hops[a][b].min(hops[a][middle] + hops[middle][b]);
                }
            }
        }
        let kind = EntryKind::ALL[random.below(EntryKind::ALL.len())];
        let depth = 1 + random.below(4) as u8;
        Self { hops, plan: plan(kind, depth, hosts) }
    }

    /// The plan that all hosts use.
    pub(super) const fn plan(&self) -> Plan {
        self.plan
    }

    /// The neighbours of a host.
    pub(super) fn of(&self, host: usize) -> impl Iterator<Item = usize> {
        (0..self.hops.len()).filter(move |other| self.hops[host][*other] == 1)
    }

    /// Whether a host receives a home's filter: whether it is another host within range.
    pub(super) fn reaches(&self, host: usize, home: usize) -> bool {
        host != home && self.hops[host][home] <= self.plan.depth.into()
    }
}

/// Entries with room for the filters of all hosts, each with all keys of a world.
fn plan(kind: EntryKind, depth: u8, hosts: usize) -> Plan {
    Plan { kind, depth, items: 400, filters: 2 * hosts as u64, false_positive: 0.01 }
}
