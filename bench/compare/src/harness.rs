//! Interleaved rounds, thread CPU time, minima: what is left of a measurement on a machine
//! that others share.
//!
//! Every case of a table runs once a round, one after the other, so that a slow phase of the
//! machine meets all of them; the smallest time of each counts.

use std::hint::black_box;

use cpu_time::ThreadTime;

/// One row of a table: a name, how many operations a run does, and the run itself.
pub(crate) struct Case<'a> {
    name: String,
    operations: usize,
    run: Box<dyn FnMut() -> u64 + 'a>,
    best: f64,
}

/// Cases that are measured side by side.
pub(crate) struct Table<'a> {
    title: String,
    cases: Vec<Case<'a>>,
    warm: bool,
}

/// What one case must be to another: `case` costs at most `limit` times `reference`.
pub(crate) struct Goal {
    case: &'static str,
    reference: &'static str,
    limit: f64,
}

impl Goal {
    /// `case` costs at most `limit` times what `reference` costs.
    pub(crate) const fn at_most(case: &'static str, limit: f64, reference: &'static str) -> Self {
        Self { case, reference, limit }
    }

    /// `case` is at least `times` as fast as `reference`.
    pub(crate) const fn faster(case: &'static str, times: f64, reference: &'static str) -> Self {
        Self { case, reference, limit: 1.0 / times }
    }
}

impl<'a> Table<'a> {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), cases: Vec::new(), warm: false }
    }

    /// Runs every case once more in each round before it is timed: it finds in the caches what
    /// it leaves there itself, not what the case before it left.
    pub(crate) fn warmed(title: impl Into<String>) -> Self {
        Self { warm: true, ..Self::new(title) }
    }

    /// Adds a case; `run` does `operations` operations and returns something that depends on
    /// all of them.
    pub(crate) fn case(
        &mut self,
        name: impl Into<String>,
        operations: usize,
        run: impl FnMut() -> u64 + 'a,
    ) {
        let name = name.into();
        self.cases.push(Case { name, operations, run: Box::new(run), best: f64::INFINITY });
    }

    /// Runs all cases `rounds` times, interleaved, and prints nanoseconds an operation and
    /// the ratio to the first case; then the goals, met or missed.
    pub(crate) fn measure(mut self, rounds: usize, goals: &[Goal]) -> Vec<(String, f64)> {
        for _ in 0..rounds {
            for case in &mut self.cases {
                if self.warm {
                    black_box((case.run)());
                }
                let start = ThreadTime::now();
                black_box((case.run)());
                let nanoseconds = start.elapsed().as_nanos() as f64 / case.operations as f64;
                case.best = case.best.min(nanoseconds);
            }
        }
        println!("\n## {}\n", self.title);
        println!("| case | ns | to the first |\n|---|---:|---:|");
        let first = self.cases[0].best;
        for Case { name, best, .. } in &self.cases {
            println!("| {name} | {best:.2} | {:.3} |", best / first);
        }
        let results: Vec<_> = self.cases.into_iter().map(|case| (case.name, case.best)).collect();
        goals.iter().for_each(|goal| judge(goal, &results));
        results
    }
}

fn judge(goal: &Goal, results: &[(String, f64)]) {
    let Goal { case, reference, limit } = goal;
    let best = |wanted: &str| {
        results.iter().find(|(name, _)| name == wanted).map_or(f64::NAN, |(_, best)| *best)
    };
    let ratio = best(case) / best(reference);
    if ratio.is_nan() {
        println!("* not compared: {case} with {reference}, which is not in this run");
        return;
    }
    let verdict = if ratio <= *limit { "met" } else { "MISSED" };
    if *limit < 1.0 {
        let (wanted, reached) = (1.0 / limit, 1.0 / ratio);
        println!(
            "* {verdict}: {case} is {reached:.2} times as fast as {reference} (goal {wanted:.2})"
        );
    } else {
        println!("* {verdict}: {case} costs {ratio:.2} times {reference} (goal {limit:.2})");
    }
}

/// A stream of well-mixed numbers (SplitMix64): the same for every case and every run.
pub(crate) struct Mix(pub(crate) u64);

impl Iterator for Mix {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some(mixed ^ (mixed >> 31))
    }
}
