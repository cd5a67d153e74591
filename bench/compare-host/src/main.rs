//! A host's port for Redis clients beside redis-server: `redis-benchmark` against both, in one
//! interleaved run on one machine.
//!
//! Questions are asked about 100,000 keys that are there; writes are of random keys, nearly all
//! new. Medians of all rounds are shown, rows that umbel loses too. A ratio is the median of those
//! of neighbouring runs, whose order changes from round to round: a shared machine's speed
//! changes by the second.

mod items;
mod measure;
mod servers;
mod tls;

use anyhow::{Context, bail};

use measure::{Load, Measured};
use servers::{Rival, host};

const HELP: &str = "\
usage: compare-host [--tls | --items N] [--rounds N] [--requests N]

  --tls          a host with TLS beside one without, and redis-server the same way
  --items N      what items of Bloom and cuckoo filters take, of N items
  --rounds N     how often every row is measured, interleaved (default 7)
  --requests N   of a row with pipelining (default 300000); fewer without, and of
                 rows that wait for the disk

Needs redis-server and redis-benchmark (Debian: apt-get install redis-server redis-tools).";

/// One thing that is compared: what umbel is asked, what redis-server is asked.
struct Row {
    name: &'static str,
    goal: Option<f64>,
    mine: (Server, &'static [&'static str]),
    theirs: (Server, &'static [&'static str]),
    keys: u64,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Memory,
    Durable,
    Redis,
    RedisDurable,
}

/// Keys that questions are asked about.
const ASKED: u64 = 100_000;
/// Keys that writes choose from: nearly all are new.
const WRITTEN: u64 = 1_000_000_000;

const ROWS: &[Row] = &[
    Row {
        name: "UMBEL.WHO / GET",
        goal: Some(0.8),
        mine: (Server::Memory, &["UMBEL.WHO", "asked", "key:__rand_int__"]),
        theirs: (Server::Redis, &["GET", "key:__rand_int__"]),
        keys: ASKED,
    },
    Row {
        name: "UMBEL.ADD, in memory / SET",
        goal: Some(0.8),
        mine: (Server::Memory, &["UMBEL.ADD", "written", "new:__rand_int__"]),
        theirs: (Server::Redis, &["SET", "new:__rand_int__", "1"]),
        keys: WRITTEN,
    },
    Row {
        name: "UMBEL.ADD, durable / SET",
        goal: None,
        mine: (Server::Durable, &["UMBEL.ADD", "written", "new:__rand_int__"]),
        theirs: (Server::Redis, &["SET", "new:__rand_int__", "1"]),
        keys: WRITTEN,
    },
    Row {
        name: "UMBEL.ADD, durable / SET, appendfsync always",
        goal: None,
        mine: (Server::Durable, &["UMBEL.ADD", "written", "new:__rand_int__"]),
        theirs: (Server::RedisDurable, &["SET", "new:__rand_int__", "1"]),
        keys: WRITTEN,
    },
    Row {
        name: "BF.EXISTS / GET",
        goal: None,
        mine: (Server::Memory, &["BF.EXISTS", "asked", "key:__rand_int__"]),
        theirs: (Server::Redis, &["GET", "key:__rand_int__"]),
        keys: ASKED,
    },
    Row {
        name: "BF.ADD, in memory / SET",
        goal: None,
        mine: (Server::Memory, &["BF.ADD", "filter", "new:__rand_int__"]),
        theirs: (Server::Redis, &["SET", "new:__rand_int__", "1"]),
        keys: WRITTEN,
    },
    Row {
        name: "BF.ADD, durable / SET, appendfsync always",
        goal: None,
        mine: (Server::Durable, &["BF.ADD", "filter", "new:__rand_int__"]),
        theirs: (Server::RedisDurable, &["SET", "new:__rand_int__", "1"]),
        keys: WRITTEN,
    },
];

fn main() -> anyhow::Result<()> {
    let own: Vec<String> = std::env::args().skip(1).collect();
    if own.first().is_some_and(|first| first == "--item-bytes") {
        return items::measure(&own[1..]);
    }
    let Options { rounds, requests, tls, items } = arguments()?;
    if tls {
        return tls::compare(rounds, requests);
    }
    if let Some(items) = items {
        return items::compare(items);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let (_memory, memory) = runtime.block_on(host(None))?;
    let (_durable, durable) = runtime.block_on(host(Some(folder.path())))?;
    let redis = Rival::start(&["--appendonly", "no"])?;
    let redis_durable = Rival::start(&["--appendonly", "yes", "--appendfsync", "always"])?;
    let port = |server| match server {
        Server::Memory => memory,
        Server::Durable => durable,
        Server::Redis => redis.port,
        Server::RedisDurable => redis_durable.port,
    };
    for (server, command) in [
        (Server::Memory, &["UMBEL.ADD", "asked", "key:__rand_int__"][..]),
        (Server::Redis, &["SET", "key:__rand_int__", "1"]),
    ] {
        let load = Load { connections: 1, pipeline: 64, requests: 20 * ASKED, keys: ASKED };
        measure::benchmark(port(server), &load, command)?;
    }
    println!("requests a second and 99th percentile, median of {rounds} rounds\n");
    println!(
        "{:<46} {:>5} {:>4} {:>11} {:>11} {:>6} {:>9} {:>9}",
        "", "conns", "pipe", "umbel", "redis", "ratio", "umbel p99", "redis p99"
    );
    let mut missed = 0;
    for (connections, pipeline) in [(1, 32), (50, 32), (1, 1), (50, 1)] {
        let requests = if pipeline == 1 { requests / 8 } else { requests };
        for (row, compared) in
            ROWS.iter().zip(measure_rows(rounds, connections, pipeline, requests, port)?)
        {
            let Compared { mine, theirs, ratio } = compared;
            let verdict = match row.goal {
                Some(goal) if ratio < goal => {
                    missed += 1;
                    format!("  below {goal}")
                }
                _ => String::new(),
            };
            println!(
                "{:<46} {connections:>5} {pipeline:>4} {:>11.0} {:>11.0} {ratio:>6.2} {:>6.2} ms {:>6.2} ms{verdict}",
                row.name, mine.per_second, theirs.per_second, mine.p99_ms, theirs.p99_ms,
            );
        }
    }
    println!("\n{missed} of 8 goals (0.8 of redis-server's throughput) missed");
    Ok(())
}

/// A row's medians.
struct Compared {
    mine: Measured,
    theirs: Measured,
    ratio: f64,
}

/// Every row in turn, as often as there are rounds.
fn measure_rows(
    rounds: usize,
    connections: u32,
    pipeline: u32,
    requests: u64,
    port: impl Fn(Server) -> u16,
) -> anyhow::Result<Vec<Compared>> {
    let mut pairs: Vec<Vec<(Measured, Measured)>> = ROWS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (row, pairs) in ROWS.iter().zip(&mut pairs) {
            let requests = if row.mine.0 == Server::Durable { requests / 20 } else { requests };
            let load = Load { connections, pipeline, requests, keys: row.keys };
            let run = |(server, command)| measure::benchmark(port(server), &load, command);
            pairs.push(if round % 2 == 0 {
                (run(row.mine)?, run(row.theirs)?)
            } else {
                let theirs = run(row.theirs)?;
                (run(row.mine)?, theirs)
            });
        }
    }
    Ok(pairs.iter().map(|pairs| compare(pairs)).collect())
}

fn compare(pairs: &[(Measured, Measured)]) -> Compared {
    let of = |number: fn(&(Measured, Measured)) -> f64| measure::median(pairs.iter().map(number));
    Compared {
        mine: Measured {
            per_second: of(|pair| pair.0.per_second),
            p99_ms: of(|pair| pair.0.p99_ms),
        },
        theirs: Measured {
            per_second: of(|pair| pair.1.per_second),
            p99_ms: of(|pair| pair.1.p99_ms),
        },
        ratio: of(|(mine, theirs)| mine.per_second / theirs.per_second),
    }
}

/// What is measured.
struct Options {
    rounds: usize,
    requests: u64,
    tls: bool,
    items: Option<u64>,
}

fn arguments() -> anyhow::Result<Options> {
    let (mut rounds, mut requests, mut tls, mut items) = (7, 300_000, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{name} takes a number"));
        match &*name {
            "--rounds" => rounds = value()?.parse().context("--rounds takes a number")?,
            "--requests" => requests = value()?.parse().context("--requests takes a number")?,
            "--items" => items = Some(value()?.parse().context("--items takes a number")?),
            "--tls" => tls = true,
            "--help" | "-h" => {
                println!("{HELP}");
                std::process::exit(0);
            }
            _ => bail!("unknown option '{name}'\n\n{HELP}"),
        }
    }
    if rounds == 0 || requests < 1000 || items.is_some_and(|items| items < 1000) {
        bail!("at least 1 round, 1000 requests and 1000 items");
    }
    Ok(Options { rounds, requests, tls, items })
}
