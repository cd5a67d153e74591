//! Section 3.2: updates triggered by the home, or by whoever holds a replica.
//!
//! The paper: the update of a replica "can be triggered by either the home node i or the node j. Since
//! many nodes hold the replica of `B_i`, it is more efficient to let the home node i to initiate the updating process of all
//! replicas", "otherwise, the procedure of checking whether an updating is needed would be performed by all
//! other nodes, wasting both network and CPU resources".
//!
//! Ours: a home of 500 elements, 8 bits each, of which two are replaced per second for 300 seconds;
//! an update is due at an overall rate of 3 % (equation 13). The home checks after every change
//! and sends the update to all; or every host asks the home every 1, 10 or 60 seconds, which
//! replies with the update if it is due. A question and its reply are two messages.
//!
//! Left open: how a receiver would check; it cannot know the dirty bits without asking.

use umbel::model::stale::Weights;

use super::{formula, replica, setting, simulated};
use crate::Experiment;
use crate::home::{Home, Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zhu-triggers",
    source: "Zhu and Jiang, papers 1 and 3, section 3.2",
    title: "Updates triggered by the home, or by receivers that ask",
    find,
};

const START: u64 = 500;
const HASHES: u32 = 6;
const SECONDS: u64 = 300;
const DUE: f64 = 0.03;
const HOSTS: [u64; 2] = [5, 50];
/// Seconds between requests to the home; `None` if the home itself triggers updates.
const WAYS: [(&str, Option<u64>); 4] = [
    ("home", None),
    ("asked every 1 s", Some(1)),
    ("asked every 10 s", Some(10)),
    ("asked every 60 s", Some(60)),
];

/// Of one replica: messages and checks per second, members denied on average.
#[derive(Clone, Copy)]
struct Cost {
    messages: f64,
    checks: f64,
    miss: f64,
}

struct Row {
    hosts: u64,
    way: &'static str,
    asked: f64,
    messages: Spread,
    checks: Spread,
    miss: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|mut random| {
        let mut keys = Keys::new(&mut random);
        WAYS.map(|(_, every)| follow(every, &mut keys, &mut random))
    });
    let mut rows = Vec::new();
    for hosts in HOSTS {
        let others = hosts as f64 - 1.0;
        for (i, (way, every)) in WAYS.into_iter().enumerate() {
            let of = |value: &dyn Fn(&Cost) -> f64| Spread::of(trials.iter().map(|t| value(&t[i])));
            rows.push(Row {
                hosts,
                way,
                asked: every.map_or(0.0, |every| 2.0 * others / every as f64),
                messages: of(&|cost| others * cost.messages),
                // The home checks once for all.
                checks: of(&|cost| {
                    if every.is_some() { others * cost.checks } else { cost.checks }
                }),
                miss: of(&|cost| 100.0 * cost.miss),
            });
        }
    }
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn follow(every: Option<u64>, keys: &mut Keys, random: &mut Random) -> Cost {
    let shape = shape(8 * START, HASHES);
    let mut home = Home::new(shape, keys, START);
    let offset = every.map_or(0, |every| random.below(every as usize) as u64);
    let (mut messages, mut checks, mut miss) = (0_u64, 0_u64, 0.0);
    let is_due =
        |home: &Home| replica(shape, home.items(), home.dirty()).overall(Weights::default()) > DUE;
    for second in 0..SECONDS {
        for _ in 0..2 {
            home.remove(random, 1);
            home.add(keys, 1);
            if every.is_none() {
                checks += 1;
                if is_due(&home) {
                    home.publish();
                    messages += 1;
                }
            }
        }
        if every.is_some_and(|every| (second + offset).is_multiple_of(every)) {
            checks += 1;
            messages += 2;
            if is_due(&home) {
                home.publish();
            }
        }
        miss += home.miss();
    }
    let per_second = |count: u64| count as f64 / SECONDS as f64;
    Cost { messages: per_second(messages), checks: per_second(checks), miss: miss / SECONDS as f64 }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("hosts"),
        setting("trigger"),
        formula("questions_and_replies_per_second", 2),
        simulated("messages_per_second", 3),
        simulated("checks_per_second", 2),
        simulated("mean_miss_percent", 2),
    ]);
    for row in rows {
        table.push([
            row.hosts.into(),
            row.way.into(),
            row.asked.into(),
            row.messages.mean.into(),
            row.checks.mean.into(),
            row.miss.mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let at = |hosts, way: &str| {
        rows.iter().find(|row| (row.hosts, row.way) == (hosts, way)).expect("a row")
    };
    let (home, asked) = (at(50, "home"), at(50, "asked every 1 s"));
    let better = rows.iter().filter(|row| {
        let home = at(row.hosts, "home");
        row.way != "home"
            && row.messages.mean <= home.messages.mean
            && row.miss.mean <= home.miss.mean + 3.0 * home.miss.standard_error()
    });
    vec![
        Claim::paper(
            "it is more efficient to let the home node i to initiate the updating process of all replicas",
            "ways to ask that take no more messages and leave no more members unknown",
        )
        .unit("rows")
        .stated(0.0)
        .simulated(better.count() as f64, seeds)
        .note(format!(
            "50 hosts: {:.2} messages per second and {:.1} % of the members denied by the home; \
             asked every second {:.0} and {:.1} %, every minute {:.2} and {:.1} %",
            home.messages.mean,
            home.miss.mean,
            asked.messages.mean,
            asked.miss.mean,
            at(50, "asked every 60 s").messages.mean,
            at(50, "asked every 60 s").miss.mean
        ))
        .within(0.0),
        Claim::paper(
            "wasting both network and CPU resources",
            "50 hosts that ask every second: messages over those of a home that decides",
        )
        .unit("times")
        .stated(1.0)
        .simulated(asked.messages.mean / home.messages.mean, seeds)
        .above(),
        Claim::paper(
            "the procedure of checking whether an updating is needed would be performed by all other nodes",
            "50 hosts that ask every second: checks per second, those of the home stated",
        )
        .unit("checks per second")
        .stated(home.checks.mean)
        .simulated(asked.checks.mean, seeds)
        .above(),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |title: &str, y, of: fn(&Row) -> f64| {
        let mut panel = Panel::new(title, "who triggers updates", y)
            .categories(WAYS.map(|(way, _)| way.to_owned()).to_vec());
        for (colour, hosts) in HOSTS.into_iter().enumerate() {
            let of_hosts = rows.iter().filter(move |row| row.hosts == hosts);
            let points = (0_u32..).zip(of_hosts).map(|(i, row)| (f64::from(i), of(row))).collect();
            panel = panel.dots(&format!("{hosts} hosts"), colour, points);
        }
        panel
    };
    Plot::of([
        panel("Messages", "messages per second", |row| row.messages.mean).log(),
        panel("Staleness", "members denied, %", |row| row.miss.mean),
    ])
}
