//! One run of `redis-benchmark`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// What is sent how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Connections at a time.
    pub(crate) connections: u32,
    /// Commands sent before replies are waited for.
    pub(crate) pipeline: u32,
    /// In all.
    pub(crate) requests: u64,
    /// `__rand_int__` is below this.
    pub(crate) keys: u64,
}

/// What came out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Requests a second.
    pub(crate) per_second: f64,
    /// The 99th percentile of a request's time; of a pipeline's, if there is one.
    pub(crate) p99_ms: f64,
}

/// Runs `redis-benchmark` once.
pub(crate) fn benchmark(port: u16, load: &Load, command: &[&str]) -> anyhow::Result<Measured> {
    run(port, None, load, command)
}

/// Runs it once, over TLS if an authority is named.
pub(crate) fn run(
    port: u16,
    authority: Option<&Path>,
    load: &Load,
    command: &[&str],
) -> anyhow::Result<Measured> {
    let mut benchmark = Command::new("redis-benchmark");
    if let Some(authority) = authority {
        benchmark.arg("--tls").arg("--cacert").arg(authority);
    }
    benchmark.args(["--csv", "-h", "127.0.0.1", "-p", &port.to_string()]);
    benchmark.args(["-c", &load.connections.to_string(), "-P", &load.pipeline.to_string()]);
    benchmark.args(["-n", &load.requests.to_string(), "-r", &load.keys.to_string()]);
    let output = benchmark
        .args(command)
        .output()
        .context("redis-benchmark is missing: install it (Debian: apt-get install redis-tools)")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || printed.contains("-ERR") {
        bail!("redis-benchmark failed: {printed}{}", String::from_utf8_lossy(&output.stderr));
    }
    // "test","rps","avg","min","p50","p95","p99","max"; the command itself may hold commas.
    let line = printed.lines().last().unwrap_or_default();
    let mut fields = line.rsplit(',').map(|field| field.trim_matches('"').parse::<f64>());
    let p99_ms = fields.nth(1).and_then(Result::ok);
    let per_second = fields.nth(4).and_then(Result::ok);
    match (per_second, p99_ms) {
        (Some(per_second), Some(p99_ms)) => Ok(Measured { per_second, p99_ms }),
        _ => bail!("cannot read redis-benchmark's line {line}"),
    }
}

/// Processor time that a process has taken so far, in seconds, to a hundredth.
pub(crate) fn processor(process: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may hold anything; user and system time are the 14th and 15th.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// The middle one.
pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
