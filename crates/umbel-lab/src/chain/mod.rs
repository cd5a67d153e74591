//! Routes requests to the worker that holds the longest prefix, in simulated time.
//!
//! A [`Trace`] of requests is served three times by a [`Pool`] of workers with caches: by a router
//! that knows every cache exactly and at once, by one that knows nothing, and by one that queries
//! umbel's replicas, which are published, sent and counted by the engines that real hosts run
//! (`mesh`). Messages may be lost, and the router and a worker may restart.
//!
//! Always true: the same setting and trace give the same outcome. A request is routed by what the
//! router believes; hits are counted by the real contents of the caches.

mod mesh;
mod pool;
mod trace;

use std::time::Duration;

use serde::Serialize;
use umbel::design::chain::{ChainDesign, ChainPromise};
use umbel::replica::{Policy, SetPlan};

pub use mesh::Mesh;
use mesh::TICK;
pub use pool::{Change, Pool, Served};
pub use trace::{Blocks, Request, Trace, TraceError, fold};

/// Workers, their caches, and the faults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Workers.
    pub workers: usize,
    /// Capacity of each cache, in parts of texts.
    pub cache_parts: usize,
    /// Blocks per part.
    pub blocks_per_part: usize,
    /// What the set promises.
    pub promise: ChainPromise,
    /// The update policy of the replicas.
    pub policy: Policy,
    /// Share of messages that are lost.
    pub loss: f64,
    /// Whether the router restarts after half of the time, and a worker after three quarters.
    pub restarts: bool,
    /// Seed of all randomness.
    pub seed: u64,
}

/// Results of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Hit rate with umbel's replicas: the share of parts that the chosen worker had.
    pub hit_rate: f64,
    /// The same with exact and fresh knowledge.
    pub exact_hit_rate: f64,
    /// The same without knowledge.
    pub blind_hit_rate: f64,
    /// Time until a request was computed, in parts of the time that one takes.
    pub delay_ms: f64,
    /// The same with exact and fresh knowledge.
    pub exact_delay_ms: f64,
    /// Bytes sent to the router, per second.
    pub bytes_per_second: f64,
    /// Bytes sent to the router per block added or removed, including announcements.
    pub bytes_per_change: f64,
    /// Memory of the router's replicas per block that a worker has.
    pub bits_per_block: f64,
    /// Blocks that workers have in the end.
    pub blocks: u64,
    /// Number of depths queried, over all workers and requests.
    pub depths: u64,
    /// Share of depths that are too large by more than the step, compared with the real contents of
    /// the caches at that moment. Stale replicas count too.
    pub too_large: f64,
    /// Share of depths that are too small by more than the step, because of blocks not published
    /// yet.
    pub too_small: f64,
    /// Results after each restart.
    pub restarts: Vec<Restart>,
}

/// Results after a restart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Restart {
    /// Which host restarted.
    pub host: &'static str,
    /// Seconds until the router had what every worker had published.
    pub seconds_until_current: f64,
    /// Bytes sent to the router until then.
    pub bytes_until_current: u64,
    /// Hit rate from the fifth second to the end, or to the next restart.
    pub hit_rate: f64,
    /// The same with exact and fresh knowledge.
    pub exact_hit_rate: f64,
}

/// Time after a restart before hit rates are counted.
const RECOVERY_MS: f64 = 5000.0;

/// Why a setting cannot be run.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingError(String);

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

/// Runs a trace through all three routers. `on_request` is called for every request of each.
///
/// # Errors
/// If there is no worker or no block, or the set's promise cannot be kept.
pub fn run(
    trace: &Trace,
    setting: &Setting,
    mut on_request: impl FnMut(),
) -> Result<Outcome, SettingError> {
    let failed = |error: &dyn std::fmt::Display| SettingError(error.to_string());
    if setting.workers == 0 || setting.cache_parts == 0 || setting.blocks_per_part == 0 {
        return Err(SettingError("there must be workers, parts and blocks".to_owned()));
    }
    let design = setting.promise.design().map_err(|error| failed(&error))?;
    let exact = known(trace, setting, &mut on_request, |pool, worker, request| {
        pool.depth(worker, request) as f64
    });
    let blind = known(trace, setting, &mut on_request, |_, _, _| 0.0);
    let mut world = World::new(trace, setting, design).map_err(|error| failed(&error))?;
    for request in trace.requests() {
        world.serve(request).map_err(|error| failed(&error))?;
        on_request();
    }
    Ok(world.outcome(&exact, &blind))
}

/// Results without umbel: sums at the end, and at the marks of the restarts.
struct Known {
    end: Served,
    marks: Vec<Served>,
}

/// Serves a trace, with the depths that `depth` returns for a pool.
fn known(
    trace: &Trace,
    setting: &Setting,
    on_request: &mut impl FnMut(),
    depth: impl Fn(&Pool, usize, &Request) -> f64,
) -> Known {
    let mut pool = Pool::new(trace, setting.workers, setting.cache_parts, setting.seed);
    let mut restarts = Restarts::of(trace, setting);
    let mut depths = vec![0.0; setting.workers];
    for request in trace.requests() {
        if restarts.is_due(request.at) == Some(Who::Worker) {
            pool.restart(0);
        }
        restarts.mark(request.at, pool.served());
        for (worker, known) in depths.iter_mut().enumerate() {
            *known = depth(&pool, worker, request);
        }
        pool.route(request, |worker| depths[worker]);
        on_request();
    }
    Known { end: pool.served(), marks: restarts.marks }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Router,
    Worker,
}

/// The restarts of a setting, and the sums at the start and the end of the time that each is
/// counted.
struct Restarts {
    at: Vec<(f64, Who)>,
    next: usize,
    /// Moments at which sums are taken: after each restart, and before the next one.
    moments: Vec<f64>,
    marks: Vec<Served>,
}

impl Restarts {
    fn of(trace: &Trace, setting: &Setting) -> Self {
        let end = trace.milliseconds();
        let at = match setting.restarts {
            true => vec![(end * 0.5, Who::Router), (end * 0.75, Who::Worker)],
            false => Vec::new(),
        };
        let moments = match setting.restarts {
            true => vec![end * 0.5 + RECOVERY_MS, end * 0.75, end * 0.75 + RECOVERY_MS],
            false => Vec::new(),
        };
        Self { at, next: 0, moments, marks: Vec::new() }
    }

    /// Which host restarts before a request at this time, if any.
    fn is_due(&mut self, at: f64) -> Option<Who> {
        let (when, who) = *self.at.get(self.next)?;
        (at >= when).then(|| {
            self.next += 1;
            who
        })
    }

    fn mark(&mut self, at: f64, served: Served) {
        while self.moments.get(self.marks.len()).is_some_and(|moment| at >= *moment) {
            self.marks.push(served);
        }
    }
}

/// The hit rates after the two restarts.
fn rates_after(marks: &[Served], end: Served) -> Option<[f64; 2]> {
    let [router, before, worker] = marks else { return None };
    Some([before.since(router).hit_rate(), end.since(worker).hit_rate()])
}

/// The run with umbel's replicas.
struct World<'a> {
    trace: &'a Trace,
    design: ChainDesign,
    blocks: Blocks,
    pool: Pool,
    mesh: Mesh,
    restarts: Restarts,
    /// Time and bytes at the restart, while the router is not current after it.
    behind: Option<(f64, u64)>,
    /// Seconds and bytes until the router was current, per restart.
    recovered: Vec<(f64, u64)>,
    depths: Vec<u32>,
    asked: u64,
    too_large: u64,
    too_small: u64,
}

impl<'a> World<'a> {
    fn new(
        trace: &'a Trace,
        setting: &Setting,
        design: ChainDesign,
    ) -> Result<Self, umbel::params::ParamError> {
        let plan = SetPlan {
            chains: Some(setting.promise),
            capacity: Some((setting.cache_parts * setting.blocks_per_part) as u64),
            policy: setting.policy,
            ..SetPlan::default()
        };
        Ok(Self {
            trace,
            design,
            blocks: Blocks::new(trace, setting.blocks_per_part, fold),
            pool: Pool::new(trace, setting.workers, setting.cache_parts, setting.seed),
            mesh: Mesh::new(setting.workers, plan, setting.loss, setting.seed)?,
            restarts: Restarts::of(trace, setting),
            behind: None,
            recovered: Vec::new(),
            depths: vec![0; setting.workers],
            asked: 0,
            too_large: 0,
            too_small: 0,
        })
    }

    fn serve(&mut self, request: &Request) -> Result<(), umbel::params::ParamError> {
        self.pass_until(request.at);
        if let Some(who) = self.restarts.is_due(request.at) {
            match who {
                Who::Router => self.mesh.restart_router(),
                Who::Worker => {
                    self.pool.restart(0);
                    self.mesh.restart_worker(0)?;
                }
            }
            self.behind = Some((request.at, self.mesh.bytes()));
        }
        self.restarts.mark(request.at, self.pool.served());
        let keys = |part: &u32| self.blocks.keys(self.trace, *part);
        let chain: Vec<_> =
            request.parts.iter().flat_map(keys).map(|key| self.mesh.hash(key)).collect();
        self.mesh.depths(&chain, self.design.search(), &mut self.depths);
        self.compare(request);
        let per_part = self.blocks.per_part() as f64;
        let change = self.pool.route(request, |worker| f64::from(self.depths[worker]) / per_part);
        let keys = |parts: &[u32]| -> Vec<u64> {
            parts.iter().flat_map(|part| self.blocks.keys(self.trace, *part)).collect()
        };
        let (removed, added) = (keys(&change.removed), keys(&request.parts[change.held..]));
        self.mesh.change(change.worker, &removed, &added);
        Ok(())
    }

    /// Advances the time, and checks whether the router has caught up.
    fn pass_until(&mut self, at: f64) {
        let until = Duration::from_secs_f64(at / 1000.0);
        let Some((since, bytes)) = self.behind else { return self.mesh.advance(until) };
        let mut now = Duration::from_secs_f64(since / 1000.0);
        while now < until {
            now = (now + TICK).min(until);
            self.mesh.advance(now);
            if self.mesh.is_current() {
                let seconds = now.as_secs_f64() - since / 1000.0;
                self.recovered.push((seconds, self.mesh.bytes() - bytes));
                self.behind = None;
                return self.mesh.advance(until);
            }
        }
    }

    /// Compares the depths with the caches.
    fn compare(&mut self, request: &Request) {
        let step = self.design.step;
        for (worker, depth) in self.depths.iter().enumerate() {
            let held = (self.pool.depth(worker, request) * self.blocks.per_part()) as u32;
            self.asked += 1;
            self.too_large += u64::from(*depth > held.saturating_add(step));
            self.too_small += u64::from(depth.saturating_add(step) < held);
        }
    }

    fn outcome(&self, exact: &Known, blind: &Known) -> Outcome {
        let (served, seconds) = (self.pool.served(), self.trace.milliseconds() / 1000.0);
        let blocks = (self.pool.held() * self.blocks.per_part()) as u64;
        let share = |count: u64| count as f64 / self.asked.max(1) as f64;
        Outcome {
            hit_rate: served.hit_rate(),
            exact_hit_rate: exact.end.hit_rate(),
            blind_hit_rate: blind.end.hit_rate(),
            delay_ms: served.mean_delay_ms(),
            exact_delay_ms: exact.end.mean_delay_ms(),
            bytes_per_second: self.mesh.bytes() as f64 / seconds.max(1e-3),
            bytes_per_change: self.mesh.bytes() as f64 / self.mesh.changes().max(1) as f64,
            bits_per_block: self.mesh.memory_bytes() as f64 * 8.0 / blocks.max(1) as f64,
            blocks,
            depths: self.asked,
            too_large: share(self.too_large),
            too_small: share(self.too_small),
            restarts: self.restarted(exact).unwrap_or_default(),
        }
    }

    /// The results after each restart; `None` if the trace ends too early.
    fn restarted(&self, exact: &Known) -> Option<Vec<Restart>> {
        let rates = rates_after(&self.restarts.marks, self.pool.served())?;
        let exact = rates_after(&exact.marks, exact.end)?;
        let each = ["router", "worker"].into_iter().zip(rates).zip(exact).zip(&self.recovered);
        let restart = |(((host, hit_rate), exact_hit_rate), recovered): (_, &(f64, u64))| Restart {
            host,
            seconds_until_current: recovered.0,
            bytes_until_current: recovered.1,
            hit_rate,
            exact_hit_rate,
        };
        Some(each.map(restart).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> Setting {
        Setting {
            workers: 12,
            cache_parts: 300,
            blocks_per_part: 8,
            promise: ChainPromise { step: 8, over_estimate: 1e-7, max_length: 4096 },
            policy: "interval:1s".parse().unwrap(),
            loss: 0.0,
            restarts: false,
            seed: 1,
        }
    }

    #[test]
    fn replicas_route_as_well_as_exact_knowledge() {
        let trace = Trace::synthetic(1500, 3);
        let outcome = run(&trace, &setting(), || {}).unwrap();
        assert!(outcome.exact_hit_rate > outcome.blind_hit_rate + 0.1, "{outcome:?}");
        assert!((outcome.hit_rate - outcome.exact_hit_rate).abs() < 0.02, "{outcome:?}");
        assert!(outcome.too_large < 1e-3, "{outcome:?}");
        assert!(outcome.bits_per_block < 40.0, "{outcome:?}");
        assert_eq!(outcome, run(&trace, &setting(), || {}).unwrap());
    }

    #[test]
    fn a_router_recovers_from_loss_and_restarts() {
        let trace = Trace::synthetic(1500, 3);
        let faults = Setting { loss: 0.01, restarts: true, ..setting() };
        let outcome = run(&trace, &faults, || {}).unwrap();
        assert_eq!(outcome.restarts.len(), 2, "{outcome:?}");
        for restart in &outcome.restarts {
            assert!((restart.hit_rate - restart.exact_hit_rate).abs() < 0.04, "{outcome:?}");
            assert!(restart.seconds_until_current < 30.0, "{outcome:?}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let trace = Trace::synthetic(10, 1);
        let without_workers = Setting { workers: 0, ..setting() };
        assert!(run(&trace, &without_workers, || {}).is_err());
        let promise = ChainPromise { step: 1, ..setting().promise };
        assert!(run(&trace, &Setting { promise, ..setting() }, || {}).is_err());
    }
}
