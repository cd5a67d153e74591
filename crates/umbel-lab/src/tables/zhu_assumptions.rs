//! Section 5, assumptions 1 and 2: what becomes of lookups where neither holds.
//!
//! The paper: "Each item is randomly accessed. This assumption may not be realistic in some real
//! workloads"; "each local node deletes or adds items at a constant rate. In fact, the deletion and
//! addition rate changes dynamically". Further studies are left to others.
//!
//! Ours: four hosts of 1000 keys replace 2 of them per second each, steadily or as 40 keys at once
//! every 20 seconds, and ask for keys that others hold: any of them alike, or with some chance one of
//! the last ten that were added. The policies keep 1 % of *keys* unpublished at most; the columns say
//! which share of *lookups* of held keys is missed, without and with a bound of a second in time.
//!
//! Left open: real workloads. `umbel lab policies --requests FILE --rate R` replays a trace.

use super::{setting, simulated};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::policies::habits::Habits;
use crate::policies::{Setting, replay};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zhu-assumptions",
    source: "Zhu and Jiang, paper 1, section 5, assumptions 1 and 2",
    title: "Lookups missed where fresh items are asked for most, and changes come in bursts",
    find,
};

const HABITS: Habits = Habits {
    hosts: 4,
    items: 1000,
    changes: 2,
    burst_seconds: 1,
    lookups: 20,
    fresh_percent: 0,
    seconds: 60,
};

/// Seconds between bursts of changes; 1 means no bursts.
const BURSTS: [u32; 2] = [1, 20];
/// Percentage of lookups for one of the ten newest keys.
const FRESH: [u32; 4] = [0, 10, 50, 90];
/// By keys alone, and bounded in time.
const POLICIES: [&str; 2] = ["miss:0.01", "miss:0.01,longest=1s"];
/// The miss target of both policies, in percent of keys.
const TARGET: f64 = 1.0;

struct Row {
    burst_seconds: u32,
    fresh_percent: u32,
    /// By policy: members that the copies deny, and lookups that are missed, in percent.
    miss: [Spread; 2],
    missed: [Spread; 2],
}

/// The same two of one trial, as shares.
struct Counts {
    miss: [f64; 2],
    missed: [f64; 2],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(trial);
    let mut rows = Vec::new();
    for burst_seconds in BURSTS {
        for fresh_percent in FRESH {
            let i = rows.len();
            let spread = |value: fn(&Counts) -> f64| Spread::of_row(&trials, i, value).percent();
            rows.push(Row {
                burst_seconds,
                fresh_percent,
                miss: [spread(|counts| counts.miss[0]), spread(|counts| counts.miss[1])],
                missed: [spread(|counts| counts.missed[0]), spread(|counts| counts.missed[1])],
            });
        }
    }
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn trial(mut random: Random) -> Vec<Counts> {
    let settings = BURSTS.into_iter().flat_map(|burst| FRESH.map(|fresh| (burst, fresh)));
    let row = |(burst_seconds, fresh_percent)| {
        let habits = Habits { burst_seconds, fresh_percent, ..HABITS };
        let history = habits.history(Random::of_key(random.next(), 0));
        let outcomes = POLICIES.map(|policy| {
            let policy = policy.parse().expect("a policy");
            replay(&history, &Setting::default(), policy, &|| {}).expect("there is memory")
        });
        Counts {
            miss: outcomes.each_ref().map(|outcome| outcome.mean_miss),
            missed: outcomes.each_ref().map(|outcome| outcome.lookups_missed.unwrap_or(0.0)),
        }
    };
    settings.map(row).collect()
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let at = |burst, fresh| {
        let is = |row: &&Row| (row.burst_seconds, row.fresh_percent) == (burst, fresh);
        rows.iter().find(is).expect("every setting has a row")
    };
    let claim = |what: &str, missed: &Spread, note: &str| {
        Claim::ours(format!(
            "a policy that keeps 1 % of keys misses at most 1 % of lookups: {what}"
        ))
        .stated(TARGET)
        .simulated(missed.mean, seeds)
        .note(note)
        .judged(missed.mean <= TARGET)
    };
    vec![
        claim("both assumptions hold", &at(1, 0).missed[0], ""),
        claim("changes in bursts (assumption 2 broken)", &at(20, 0).missed[0], ""),
        claim(
            "half of the lookups ask for one of a host's ten newest keys (assumption 1 broken)",
            &at(1, 50).missed[0],
            "the keys that are not published yet are among those that are asked for most",
        ),
        claim(
            "the same, each key published within a second",
            &at(1, 50).missed[1],
            "a quarter of what is missed without the bound in time: lookups within the second",
        ),
        claim(
            "both assumptions broken, each key published within a second",
            &at(20, 50).missed[1],
            "a burst is published soon after it began, the rest of it a second later",
        ),
    ]
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("burst_seconds"),
        setting("fresh_percent"),
        simulated("miss_percent", 3),
        simulated("lookups_missed_percent", 2),
        simulated("bounded_miss_percent", 3),
        simulated("bounded_lookups_missed_percent", 2),
    ]);
    for row in rows {
        table.push([
            row.burst_seconds.into(),
            row.fresh_percent.into(),
            row.miss[0].mean.into(),
            row.missed[0].mean.into(),
            row.miss[1].mean.into(),
            row.missed[1].mean.into(),
        ]);
    }
    table
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |burst: u32| {
        let title = match burst {
            1 => "changes come steadily".to_owned(),
            _ => format!("changes come every {burst} s"),
        };
        let mut panel = Panel::new(title, "lookups of fresh keys, %", "lookups missed, %");
        for (number, policy) in POLICIES.into_iter().enumerate() {
            let of_burst = rows.iter().filter(|row| row.burst_seconds == burst);
            let point = |row: &Row| (f64::from(row.fresh_percent), row.missed[number].mean);
            panel = panel.dots(policy, number, of_burst.map(point).collect());
        }
        panel
    };
    Plot::of(BURSTS.map(panel))
}
