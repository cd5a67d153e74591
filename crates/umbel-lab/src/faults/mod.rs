//! Seeded worlds of faults: loss, duplication, reordering, delay, partition, false deaths,
//! crashes and restarts with and without memory, bit-flipped messages.
//!
//! What must hold in every one of them: a host never has bits that a home did not publish; and
//! after the faults stop, every host gets what the homes within its range published last (in a
//! mesh, all homes). In an overlay also: queries end in time, name no host that never held the key,
//! and find what is within range once the faults have stopped. One mesh in 64 is a world of loads,
//! with a limit on bytes and time (`loads`). A world that fails is identified by its seed, and can
//! be run again alone.

mod links;
mod loads;
mod network;
mod queries;
mod subject;
mod world;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::Engine;
use umbel::overlay::Overlay;

use loads::LoadWorld;
use subject::Subject;
use world::World;

/// Number and size of worlds.
#[derive(Debug, Clone, Copy)]
pub struct WorldPlan {
    /// Seed of the first world; the others follow.
    pub seed: u64,
    /// Number of worlds.
    pub worlds: u64,
    /// Hosts in each.
    pub hosts: usize,
    /// Steps of faults in each, a fifth of a second long.
    pub steps: u64,
    /// What happens in them.
    pub kind: WorldKind,
}

/// What happens in a world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorldKind {
    /// Every host knows every other; one world in 64 is one of [`WorldKind::Loads`].
    #[default]
    Mesh,
    /// Every host knows every other, without loads.
    Plain,
    /// One home loads many keys, and others follow.
    Loads,
    /// Hosts know their neighbours only.
    Overlay,
}

impl Default for WorldPlan {
    fn default() -> Self {
        Self { seed: 1, worlds: 100, hosts: 4, steps: 150, kind: WorldKind::Mesh }
    }
}

/// What happened in all worlds together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Worlds run.
    pub worlds: u64,
    /// Steps of faults.
    pub steps: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages lost, at random or in a partition.
    pub dropped: u64,
    /// Messages that arrived twice.
    pub duplicated: u64,
    /// Messages that were overtaken.
    pub reordered: u64,
    /// Messages with a flipped bit.
    pub corrupted: u64,
    /// Hosts that crashed.
    pub crashes: u64,
    /// Network partitions.
    pub partitions: u64,
    /// Queries that ended, in overlays.
    pub queries: u64,
    /// Parts of updates that receivers fetched, in worlds of loads: one per short update that was
    /// missed, several per long one.
    pub parts: u64,
    /// Promises broken.
    pub violations: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.worlds += other.worlds;
        self.steps += other.steps;
        self.messages += other.messages;
        self.dropped += other.dropped;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.crashes += other.crashes;
        self.partitions += other.partitions;
        self.queries += other.queries;
        self.parts += other.parts;
        self.violations += other.violations;
    }
}

/// A world in which a promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed that replays it.
    pub seed: u64,
    /// The broken promises.
    pub violations: Vec<String>,
}

/// Runs all worlds on all cores; calls `done` after each world. The outcome does not depend on the
/// number of cores.
///
/// # Panics
/// If an engine panics or breaks a promise that it checks itself: a bug.
pub fn run(plan: &WorldPlan, done: impl Fn() + Sync) -> (Tally, Vec<Failure>) {
    let next = AtomicU64::new(0);
    let outcome = Mutex::new((Tally::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= plan.worlds {
                        break;
                    }
                    let seed = plan.seed.wrapping_add(index);
                    let (tally, failure) = match plan.kind {
                        WorldKind::Overlay => one::<Overlay<MemoryCatalogue>>(seed, plan),
                        WorldKind::Loads => one_load(seed),
                        WorldKind::Mesh if seed.is_multiple_of(LOADS) => one_load(seed),
                        _ => one::<Engine<MemoryCatalogue>>(seed, plan),
                    };
                    let mut outcome = outcome.lock().expect("no world panics while it reports");
                    outcome.0.add(&tally);
                    outcome.1.extend(failure);
                    done();
                }
            });
        }
    });
    let (tally, mut failures) = outcome.into_inner().expect("no world panics while it reports");
    failures.sort_by_key(|failure| failure.seed);
    (tally, failures)
}

/// One mesh in this many is a world of loads.
const LOADS: u64 = 64;

/// Runs the world of loads of one seed.
fn one_load(seed: u64) -> (Tally, Option<Failure>) {
    let mut world = LoadWorld::new(seed);
    world.run();
    let LoadWorld { mut tally, violations, .. } = world;
    tally.violations = violations.len() as u64;
    let failed = !violations.is_empty();
    (tally, failed.then_some(Failure { seed, violations }))
}

/// Runs the world of one seed.
fn one<P: Subject>(seed: u64, plan: &WorldPlan) -> (Tally, Option<Failure>) {
    let mut world = World::<P>::new(seed, plan);
    world.run(plan.steps);
    let mut tally = world.tally;
    tally.violations = world.violations.len() as u64;
    let failed = !world.violations.is_empty();
    (tally, failed.then(|| Failure { seed, violations: world.violations.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plan: &WorldPlan, replay: &str) -> Tally {
        let (tally, failures) = run(plan, || {});
        assert_eq!(failures, [], "replay with umbel lab faults --seeds 1 --seed SEED{replay}");
        assert_eq!((tally.worlds, tally.violations), (plan.worlds, 0));
        for (what, count) in [
            ("dropped", tally.dropped),
            ("duplicated", tally.duplicated),
            ("reordered", tally.reordered),
            ("corrupted", tally.corrupted),
            ("crashes", tally.crashes),
            ("partitions", tally.partitions),
        ] {
            assert!(count > 100, "{what}: {count}, too few to show anything");
        }
        tally
    }

    #[test]
    fn no_promise_is_broken_in_any_world() {
        check(&WorldPlan { seed: 1, worlds: 300, ..WorldPlan::default() }, "");
    }

    #[test]
    fn receivers_follow_a_load_within_few_images() {
        let kind = WorldKind::Loads;
        let (tally, failures) = run(&WorldPlan { worlds: 6, kind, ..WorldPlan::default() }, || {});
        assert_eq!(failures, []);
        assert!(tally.worlds == 6 && tally.crashes == 0 && tally.dropped > 0, "{tally:?}");
        assert!(tally.parts > 20, "{tally:?}: too few updates are long or lost to show anything");
    }

    #[test]
    fn no_promise_is_broken_in_any_overlay() {
        let kind = WorldKind::Overlay;
        let plan = WorldPlan { worlds: 150, hosts: 6, kind, ..WorldPlan::default() };
        let tally = check(&plan, " --hosts 6 --overlay");
        assert!(tally.queries > 1000, "{} queries, too few to show anything", tally.queries);
    }

    #[test]
    fn the_same_seed_gives_the_same_world() {
        for kind in [WorldKind::Mesh, WorldKind::Overlay] {
            let plan = WorldPlan { seed: 9, worlds: 4, steps: 60, kind, ..WorldPlan::default() };
            assert_eq!(run(&plan, || {}), run(&plan, || {}));
        }
    }
}
