//! `umbel demo`: runs real hosts on this machine, and measures whether they keep their promises.
//!
//! It starts host processes of this same binary, linked to each other ([`cluster`]); adds and
//! removes objects at each of them ([`churn`]); asks every host for a sample of every other host's
//! objects, and for objects that no host has ([`measure`]); kills one of them and starts it again
//! ([`outage`]); and shows the results ([`view`]).
//! Everything is removed when the demo ends, however it ends ([`cluster`]).

mod churn;
mod cluster;
mod measure;
mod offline;
mod outage;
mod signals;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use umbel::design::ladder::{Ladder, Rung};

use churn::Objects;
use cluster::Cluster;
use measure::{Measured, Measuring};
use offline::Offline;
use signals::Stop;
use view::View;

use crate::output::print;
use crate::values;

/// Run real hosts on this machine and show whether they keep their promises
#[derive(Args)]
#[command(after_help = "\
Starts host processes, adds and removes objects at each of them, asks every host for a
sample of every other host's objects and for objects that nobody has, and shows how often
the answers are wrong, how fresh the replicas are, and what that costs. After half of the time,
or 20 seconds, one host is killed and restarted. A summary at the end says what was promised,
measured and sent. All files and processes are removed. --offline needs no host: it shows
filters and a lookup over many at once.

Examples:
  umbel demo
  umbel demo --hosts 9 --minutes 2 --json
  umbel demo --offline --hosts 1024")]
pub(crate) struct Demo {
    /// Hosts: 2 to 32, or 1 to 4096 simulated ones with --offline [default: 5, or 1024]
    #[arg(long)]
    hosts: Option<u64>,
    /// How long [default: until Ctrl-C; half a minute if standard output is not a terminal]
    #[arg(long, value_name = "MINUTES", value_parser = minutes, conflicts_with = "offline")]
    minutes: Option<f64>,
    /// Objects of each host, or keys in the filter with --offline [default: as many as nearly fill
    /// a filter of 32 KiB, about 19000, or 1000000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    keys: Option<u64>,
    /// Objects added to and removed from each host per second
    #[arg(long, value_name = "OBJECTS", default_value_t = 100, conflicts_with = "offline",
          value_parser = clap::value_parser!(u64).range(0..=100_000))]
    churn: u64,
    /// Promised false positive rate
    #[arg(long, value_name = "RATE", default_value = "0.01", value_parser = values::rate)]
    false_positive: umbel::Rate,
    /// Filters and bank only, without hosts
    #[arg(long)]
    offline: bool,
    /// Print one JSON object at the end instead of text
    #[arg(long)]
    json: bool,
}

/// Number of keys that nearly fill a filter of 32 KiB, so that the measured rate comes close to the
/// promised one: a half-empty filter is hardly ever wrong.
fn nearly_full(rate: umbel::Rate, hosts: u32) -> u64 {
    let rung = Rung::new(18).expect("there is a rung of 2^18 bits");
    Ladder::new(rate).takes(rung, hosts) * 19 / 20
}

fn minutes(text: &str) -> Result<f64, String> {
    let range = "a number of minutes from 0.05 to 10000 is needed";
    let given = values::real(text).filter(|minutes| (0.05..=10_000.0).contains(minutes));
    given.ok_or_else(|| range.to_owned())
}

/// The set that all hosts have.
const SET: &str = "objects";

/// The update policy's target: at most one in a hundred members may be missed.
const MISS_TARGET: f64 = 0.01;

impl Demo {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        if self.offline {
            let hosts = self.hosts.unwrap_or(1024);
            ensure!((1..=4096).contains(&hosts), "--hosts: 1 to 4096 of them can be simulated");
            let (keys, false_positive) = (self.keys.unwrap_or(1_000_000), self.false_positive);
            return Offline { keys, false_positive, hosts, json: self.json }.run();
        }
        let hosts = self.hosts.unwrap_or(5);
        ensure!((2..=32).contains(&hosts), "--hosts: 2 to 32 of them can be started");
        let keys = self.keys.unwrap_or_else(|| nearly_full(self.false_positive, hosts as u32));
        ensure!(keys <= 1_000_000, "--keys: a host has at most 1000000 objects here");
        let summary = self.show(hosts as usize, keys)?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&summary)?))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, hosts: usize, keys: u64) -> anyhow::Result<Measured> {
        let stop = Stop::on_signals()?;
        let mut view = View::new(self.json);
        view.status(&format!("starting {hosts} hosts"))?;
        let mut cluster = Cluster::start(hosts, &stop)?;
        let objects: Arc<[Objects]> = cluster.hosts().map(Objects::of).collect();
        self.load(&mut cluster, &objects, keys, &stop, &mut view)?;
        let started = Instant::now();
        let until = self.length().map(|length| started + length);
        let outage_at = started + self.length().map_or(OUTAGE, |length| length / 2);
        let mut measuring = Measuring::new(&cluster, &objects, self.false_positive)?;
        std::thread::scope(|scope| {
            // Leaving this block in any way ends the churn.
            let _ending = stop.guard();
            for objects in &objects[..] {
                let stop = stop.clone();
                scope.spawn(move || objects.churn(self.churn, &stop));
            }
            while !stop.is_set() && until.is_none_or(|until| Instant::now() < until) {
                cluster.check()?;
                measuring.round()?;
                view.show(&measuring.measured(started.elapsed()), &cluster, &objects)?;
                if measuring.outage.is_none() && Instant::now() >= outage_at {
                    let (cluster, measuring) = (&mut cluster, &mut measuring);
                    measuring.outage =
                        outage::run(cluster, &objects, measuring, &stop, &mut view, started)?;
                }
                stop.wait(ROUND);
            }
            let measured = measuring.measured(started.elapsed());
            view.summary(&measured)?;
            Ok(measured)
        })
    }

    /// Reserves the set at all hosts, adds the first objects, and waits until all hosts know of
    /// them.
    fn load(
        &self,
        cluster: &mut Cluster,
        objects: &[Objects],
        keys: u64,
        stop: &Stop,
        view: &mut View,
    ) -> anyhow::Result<()> {
        view.status(&format!("adding {keys} objects to each"))?;
        for host in objects {
            host.reserve(self.false_positive, keys, objects.len())?;
            host.add(keys)?;
        }
        view.status("waiting until every host has heard of every other")?;
        let deadline = Instant::now() + CONVERGED;
        while !measure::converged(cluster, objects)? {
            cluster.check()?;
            if stop.is_set() {
                bail!("stopped before all hosts had heard of each other");
            }
            ensure!(
                Instant::now() < deadline,
                "the hosts have not heard of each other within {} s",
                CONVERGED.as_secs()
            );
            stop.wait(Duration::from_millis(200));
        }
        Ok(())
    }

    fn length(&self) -> Option<Duration> {
        let default = || (!std::io::stdout().is_terminal()).then_some(0.5);
        self.minutes.or_else(default).map(|minutes| Duration::from_secs_f64(60.0 * minutes))
    }
}

/// When a host is killed, if the demo has no end.
const OUTAGE: Duration = Duration::from_secs(20);

/// Interval between measurements.
const ROUND: Duration = Duration::from_millis(500);

/// Timeout for the hosts to find each other.
const CONVERGED: Duration = Duration::from_secs(60);

/// Adds the name of the host to an error.
fn at<T>(outcome: anyhow::Result<T>, name: &str) -> anyhow::Result<T> {
    outcome.with_context(|| name.to_owned())
}
