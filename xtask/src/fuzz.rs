//! Runs all fuzz targets, one after the other, and counts their executions.
//!
//! Neither cargo-fuzz nor a nightly toolchain is needed: the compiler flags that libFuzzer requires
//! are below, and `RUSTC_BOOTSTRAP` lets a stable compiler accept the only unstable one among them
//! (`-Zsanitizer=address`). Only the fuzz targets are compiled so, in a separate target directory.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Compiler flags: comparisons and coverage are recorded; memory errors end a run.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Zsanitizer=address";
/// Maximum length of an input, and of one allocation: two thousand times as long, because the index
/// of a store allocates 4 MiB at a time.
const MAX_INPUT: &str = "-max_len=4096";
const MAX_PIECE: &str = "-malloc_limit_mb=8";
/// Memory limit of a process; most of it is used by the sanitizer and the fuzzer themselves.
const MAX_MEMORY: &str = "-rss_limit_mb=512";
/// Freed memory that the sanitizer keeps to detect use after free: small, so that it does not use
/// up the limit above.
const SANITIZER: &str = "quarantine_size_mb=16:malloc_context_size=4";

/// The golden files are inputs of targets that read frames.
const GOLDEN: &str = "crates/umbel/tests/golden/v1";
const READ_FRAMES: [&str; 3] = ["apply_delta", "decode_filter", "decode_prefixes"];

/// Runs every target for its share of the time, starting from its seeds and from the corpus of
/// earlier runs. If a target fails, the others still run.
pub(crate) fn run(minutes: u64, seed: u64) -> Result<(), String> {
    let names = targets()?;
    let folder = build()?;
    let seconds = (minutes * 60 / names.len().max(1) as u64).max(1);
    let (mut total, mut failed) = (0, Vec::new());
    for name in &names {
        let start = Instant::now();
        let command = command(&folder, name, seconds, seed)?;
        println!("== {name}: {command:?}");
        let (executions, passed) = watch(name, command)?;
        let took = start.elapsed().as_secs_f64();
        println!(
            "== {name}: {executions} executions in {took:.0} s, {:.0} per second",
            executions as f64 / took
        );
        total += executions;
        if !passed {
            failed.push(name.as_str());
        }
    }
    println!("== {total} executions of {} targets, seed {seed}", names.len());
    if failed.is_empty() {
        return Ok(());
    }
    let inputs = "inputs are in fuzz/artifacts/; run a target alone with its input as the argument";
    Err(format!("failed: {}; {inputs} ({folder}/TARGET INPUT)", failed.join(", ")))
}

fn targets() -> Result<Vec<String>, String> {
    let files = std::fs::read_dir("fuzz/fuzz_targets")
        .map_err(|error| format!("fuzz/fuzz_targets: {error}"))?;
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Compiles all targets, and returns their folder.
fn build() -> Result<String, String> {
    crate::ensure_installed("c++", "g++")?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder =
        std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| String::from("target")) + "/fuzz";
    let mut build = crate::cargo("build --release --bins --manifest-path fuzz/Cargo.toml");
    build.args(["--target", &target, "--target-dir", &folder]);
    build.env("RUSTFLAGS", FLAGS).env("RUSTC_BOOTSTRAP", "1");
    crate::step("fuzz targets", build).map_err(|error| {
        format!(
            "{error}\nfuzz targets need Linux, a C++ compiler, a Rust toolchain with AddressSanitizer \
             (rustup's have it, stable or nightly) and libfuzzer-sys from crates.io"
        )
    })?;
    Ok(format!("{folder}/{target}/release"))
}

fn command(folder: &str, name: &str, seconds: u64, seed: u64) -> Result<Command, String> {
    let mut command = Command::new(format!("{folder}/{name}"));
    let (found, artifacts) = (format!("fuzz/corpus/{name}"), format!("fuzz/artifacts/{name}/"));
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    }
    command.args(
        [&found, &format!("fuzz/seeds/{name}")]
            .iter()
            .filter(|seeds| std::path::Path::new(seeds.as_str()).exists()),
    );
    command.args(READ_FRAMES.contains(&name).then_some(GOLDEN));
    // libFuzzer's seed has 32 bits, and 0 means a random seed.
    command.arg(format!("-seed={}", seed % u64::from(u32::MAX) + 1));
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={artifacts}"));
    command.args([MAX_INPUT, MAX_PIECE, MAX_MEMORY, "-timeout=20", "-print_final_stats=1"]);
    command.env("ASAN_OPTIONS", SANITIZER);
    Ok(command)
}

/// Runs a target and forwards its output. Returns its number of executions, and whether it found
/// nothing.
fn watch(name: &str, mut command: Command) -> Result<(u64, bool), String> {
    let started = command.stderr(Stdio::piped()).spawn();
    let mut process = started.map_err(|error| format!("{name} could not start: {error}"))?;
    let mut executions = 0;
    for line in BufReader::new(process.stderr.take().expect("it is piped")).split(b'\n') {
        let line = line.map_err(|error| format!("{name}: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        executions = executions_in(&line).unwrap_or(executions);
        // Do not print new inputs: there are thousands.
        if !line.contains("\tNEW ") && !line.contains("\tREDUCE ") {
            eprintln!("{line}");
        }
    }
    let status = process.wait().map_err(|error| format!("{name}: {error}"))?;
    Ok((executions, status.success()))
}

/// The number of executions so far, if a line of libFuzzer contains it: `#4096 pulse …` while it
/// runs, and a separate line at the end.
fn executions_in(line: &str) -> Option<u64> {
    match line.strip_prefix("stat::number_of_executed_units:") {
        Some(number) => number.trim().parse().ok(),
        None => line.strip_prefix('#')?.split('\t').next()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_from_reports() {
        assert_eq!(executions_in("#65536\tpulse  cov: 12 ft: 13 corp: 4/9b"), Some(65536));
        assert_eq!(executions_in("stat::number_of_executed_units: 1234567"), Some(1_234_567));
        for line in ["", "#", "#x\t", "stat::peak_rss_mb: 3", "    #3 0x55 in main"] {
            assert_eq!(executions_in(line), None, "{line}");
        }
    }
}
