//! `cargo xtask test` is the whole CI: the same steps on a laptop and on a build machine.
//!
//! Each step is one command line that a developer can also run separately; the first that fails
//! ends the run and is named at the end. What a step needs beyond Rust is installed first if
//! possible (on Debian, as root); otherwise the message says exactly what to install.

mod components;
mod containers;
mod deb;
mod dist;
mod documents;
mod fuzz;
mod modules;
mod options;
mod python;
mod redis_py;
mod screenshots;

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use options::{number, numbers};

const HELP: &str = "\
usage: cargo xtask <command>

  test    everything CI runs: format, links of documents, module cycles, clippy, tests, doc tests, docs, benches once, packages, the
          Debian package, the container image, the manifests for Kubernetes, the Python package
  documents
          checks that every link between the documents leads to a file and a heading
  modules which modules of a crate use which: names of crates (default all); fails on cycles
  crash   kills a process that writes to a store, again and again: --cycles N (default 1000)
  worlds  seeded worlds of faults against the replica protocol: --seeds N (default 10000), --seed S of the first (default 1)
  model   the locks of sets and banks under schedules of a scheduler: --schedules N of each kind (default 20000)
  clients the clients that tests use: redis-tools, redis-server; redis-py, ioredis, node-redis and schemathesis below target/
  python  the Python package: builds its wheel, and runs its tests in a virtual environment below target/
  redis-py redis-py's own tests of Bloom and cuckoo filters, in RESP2 and RESP3 (from the package index)
  mesh    a secured mesh of twenty processes that grows by one while it runs
  traffic what hosts cost on the wire, in a mesh and through routers: --hosts N (default 5, 20 and 50; needs root)
  sets    three hosts with many sets each: --sets N (default 10000; needs root)
  load    how others follow a load: --keys N (default 5000000) beside --busy N programs that compute (default 0; needs root)
  stopped what a receiver needs that was stopped: --keys N (default 1000000) --seconds S (default 60; needs root)
  links   hosts that hang, and clusters that start at once: --rounds N of each kind (default 20; needs root)
  dist    a release archive below target/dist: the stripped binary, completions, man pages, documents, licences of
          third parties; beside it a bill of materials (CycloneDX) and checksums
  deb     a Debian package below target/deb, checked by lintian, installed, run, upgraded and purged in an overlay (needs root)
  deb-quick, image-quick
          the same and `image` with the binary of the tests instead of an optimised one, as CI does
  image   the files of the container image below target/image, and a host that runs in them (needs root)
  kubernetes
          validates the manifests for Kubernetes, and starts hosts with their variables (needs root)
  hostile a member that turns hostile, with and without certificates: --minutes M of each (default 5), --seed S
  soak    clients at full speed while hosts are killed, stopped, starved and cut off, their disks filled and their
          clocks moved: --minutes M (default 5), --seed S (all of it with root only)
  checker asks hosts for keys that it knows meanwhile: --minutes M (default 5), --seed S (all of it with root only)
  otel    tests of the export of traces, which other builds do not compile
  screenshots
          the quick report of the lab and pictures of it at 1200 and 390 pixels, below target/report (needs chromium)
  dashboard-screenshots
          pictures of every view of a live dashboard, light and dark, wide and narrow, below target/dashboard (needs chromium)
  fuzz    all fuzz targets: --minutes M together (default 18), --seed S (needs a C++ compiler)
  help    this text";

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("test") => options::none().and_then(|()| test()),
        Some("modules") => modules::print(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("documents") => options::none().and_then(|()| documents::check()),
        Some("clients") => options::none().and_then(|()| clients()),
        Some("screenshots") => options::none().and_then(|()| screenshots::run()),
        Some("dashboard-screenshots") => options::none().and_then(|()| screenshots::dashboard()),
        Some("otel") => options::none().and_then(|()| otel()),
        Some("python") => options::none().and_then(|()| python::run()),
        Some("redis-py") => options::none().and_then(|()| redis_py::run()),
        Some("dist") => options::none().and_then(|()| dist::run()),
        Some("image") => options::none().and_then(|()| containers::image()),
        Some("kubernetes") => with_tested_binary(containers::kubernetes),
        Some("image-quick") => with_tested_binary(containers::image_short),
        Some("deb-quick") => with_tested_binary(deb::quick),
        Some("deb") => options::none().and_then(|()| deb::run()),
        Some("mesh") => options::none().and_then(|()| mesh()),
        Some("traffic") => traffic(),
        Some("sets") => sets(),
        Some("load") => load(),
        Some("stopped") => stopped(),
        Some("links") => number(("--rounds", 20, 1..=MANY)).and_then(links),
        Some("crash") => number(("--cycles", 1000, 1..=MANY)).and_then(crash),
        Some("worlds") => worlds(),
        Some("model") => number(("--schedules", 20_000, 1..=MANY)).and_then(model),
        Some("hostile") => seeded("a hostile member", "cluster::hostile", "UMBEL_HOSTILE"),
        Some("soak") => disturbed("soak", "cluster::soak", "UMBEL_SOAK"),
        Some("checker") => disturbed("checker", "cluster::checker", "UMBEL_CHECKER"),
        Some("fuzz") => {
            let seed = ("--seed", seed_of_the_clock(), 0..=u64::MAX);
            numbers(&[("--minutes", 18, MINUTES), seed])
                .and_then(|[minutes, seed]| fuzz::run(minutes, seed))
        }
        Some("help") | None => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!("unknown command '{other}'\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Upper limit for rounds, worlds or keys: more than any machine can process.
const MANY: u64 = 1_000_000_000;
/// Up to a month.
const MINUTES: RangeInclusive<u64> = 1..=43_200;

fn seed_of_the_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs())
}

/// Packs the crates that would be published; cargo determines the order. Not compiled again here.
const PACKAGES: &str = "package --quiet --no-verify --allow-dirty --package umbel --package umbel-store \
     --package umbel-kv --package umbel-lab --package umbel-node --package umbel-cli";

/// Runs a step with the binary of the tests. It is not built here: without the tests it would have
/// other features of its dependencies, and everything would be compiled again.
fn with_tested_binary(run: fn() -> Result<(), String>) -> Result<(), String> {
    options::none()?;
    if !containers::tested_binary().exists() {
        return Err("build the tests first: cargo test --workspace --no-run".to_owned());
    }
    run()
}

/// Everything CI runs, quick checks first.
fn test() -> Result<(), String> {
    let start = Instant::now();
    ensure_installed("cc", "gcc")?;
    clients()?;
    browser();
    step("format", cargo("fmt --all --check"))?;
    println!("== links between documents (cargo xtask documents)");
    documents::check()?;
    println!("== modules: no cycles (cargo xtask modules)");
    modules::check()?;
    step("clippy", cargo("clippy --workspace --all-targets --quiet -- --deny warnings"))?;
    if installed("cargo-nextest") {
        // Tests of clusters wait more than they compute.
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = cores + cores.div_ceil(2);
        let tests = format!("nextest run --workspace --no-fail-fast --test-threads {threads}");
        step("tests", cargo(&tests))?;
    } else {
        // The library of umbel-model has the sources of `umbel`, whose unit tests ran already.
        let tests = "test --workspace --exclude umbel-model --lib --bins --tests --examples";
        step("tests", cargo(tests))?;
        step("tests of the model", cargo("test --package umbel-model --test model"))?;
    }
    step("doc tests", cargo("test --workspace --exclude umbel-model --doc --quiet"))?;
    let mut docs = cargo("doc --workspace --exclude umbel-model --no-deps --quiet");
    docs.env("RUSTDOCFLAGS", "--deny warnings");
    step("docs", docs)?;
    step("benches, once each", cargo("test --workspace --exclude umbel-model --benches --quiet"))?;
    step("packages", cargo(PACKAGES))?;
    deb::short()?;
    containers::image_short()?;
    containers::kubernetes()?;
    python::run_if_possible()?;
    if installed("cargo-deny") {
        step("licences and duplicates", cargo("deny check licenses bans sources"))?;
    } else {
        println!("== licences and duplicates: skipped, cargo-deny is not installed");
    }
    println!("== all passed in {} s", start.elapsed().as_secs());
    Ok(())
}

/// The long version of the store's kill test; CI runs a short one.
fn crash(cycles: u64) -> Result<(), String> {
    let mut kill =
        cargo("test --release --package umbel-store --test integration -- --nocapture kill::");
    kill.env("UMBEL_KILL_CYCLES", cycles.to_string());
    step("kill -9", kill)
}

/// The long version of the lab's worlds of faults; CI runs a few hundred worlds.
fn worlds() -> Result<(), String> {
    let [seeds, seed] = numbers(&[("--seeds", 10_000, 1..=MANY), ("--seed", 1, 0..=u64::MAX)])?;
    let faults = format!("lab faults --seeds {seeds} --seed {seed}");
    step("worlds of faults", cargo(&format!("run --release --locked --bin umbel -- {faults}")))
}

/// The long version of the model of locks; CI runs some hundred schedules, the same ones each time.
fn model(schedules: u64) -> Result<(), String> {
    let mut model = cargo("test --package umbel-model -- --nocapture");
    model.env("UMBEL_MODEL", schedules.to_string());
    step("schedules of threads", model)
}

/// Runs tests of clusters for some minutes, with a given seed or one taken from the clock; the
/// tests print it. CI runs them for seconds, with a fixed seed.
fn seeded(name: &str, tests: &str, variable: &str) -> Result<(), String> {
    let seed = ("--seed", seed_of_the_clock(), 0..=u64::MAX);
    let [minutes, seed] = numbers(&[("--minutes", 5, MINUTES), seed])?;
    let mut run = cargo("test --workspace --test integration -- --nocapture --test-threads 1");
    run.arg(tests).env(format!("{variable}_SEED"), seed.to_string());
    run.env(format!("{variable}_SECONDS"), (minutes * 60).to_string());
    step(name, run)
}

/// As [`seeded`], for tests that disturb hosts. Installs, if possible, what changes the hosts'
/// clocks; without it, the tests print what they skip.
fn disturbed(name: &str, tests: &str, variable: &str) -> Result<(), String> {
    ensure_installed("unshare", "util-linux")?;
    ensure_installed("ip", "iproute2")?;
    if !Path::new("/usr/lib/x86_64-linux-gnu/faketime").exists() {
        install("libfaketime");
    }
    seeded(name, tests, variable)
}

/// Tests of the export of traces. Not part of CI: the feature compiles umbel-node and all that is
/// built on it once more.
fn otel() -> Result<(), String> {
    let tests = cargo(
        "test --package umbel-cli --package umbel-node --features umbel-cli/otel -- traces:: otel:: config::",
    );
    step("export of traces", tests)
}

/// The cluster test with a large mesh; CI runs one of four hosts.
fn mesh() -> Result<(), String> {
    let twenty = "cluster::secured::a_secured_mesh_of_twenty_grows_by_one_while_it_runs";
    let test = format!("test --workspace --test integration -- --ignored {twenty}");
    step("a mesh of twenty", cargo(&test))
}

/// Measures the network traffic of hosts.
fn traffic() -> Result<(), String> {
    let hosts = number(("--hosts", 0, 2..=1000))?;
    let hosts = (hosts > 0).then(|| ("UMBEL_TRAFFIC", hosts.to_string()));
    in_own_network("cluster::traffic", hosts)
}

/// Measures the cost of many sets.
fn sets() -> Result<(), String> {
    let sets = number(("--sets", 10_000, 1..=1_000_000))?;
    in_own_network("cluster::sets::many", [("UMBEL_SETS", sets.to_string())])
}

/// Measures how other hosts follow a bulk load; CI loads a few keys.
fn load() -> Result<(), String> {
    let [keys, busy] = numbers(&[("--keys", 5_000_000, 1..=MANY), ("--busy", 0, 0..=1000)])?;
    let numbers = [("UMBEL_LOAD_KEYS", keys), ("UMBEL_LOAD_BUSY", busy)];
    in_own_network("cluster::load", numbers.map(|(name, number)| (name, number.to_string())))
}

/// Measures what a receiver needs to catch up after it was stopped; CI stops it for seconds.
fn stopped() -> Result<(), String> {
    let [keys, seconds] =
        numbers(&[("--keys", 1_000_000, 1_000..=MANY), ("--seconds", 60, 1..=86_400)])?;
    let numbers = [("UMBEL_STOPPED_KEYS", keys), ("UMBEL_STOPPED_SECONDS", seconds)];
    in_own_network("cluster::stopped", numbers.map(|(name, number)| (name, number.to_string())))
}

/// The long version of the tests of links; CI runs a few rounds.
fn links(rounds: u64) -> Result<(), String> {
    in_own_network("cluster::healing", Some(("UMBEL_ROUNDS", rounds.to_string())))
}

/// Runs cluster tests that CI omits, in a network namespace with nothing else in it, with hosts
/// compiled as for a release.
fn in_own_network<'a>(
    tests: &str,
    variables: impl IntoIterator<Item = (&'a str, String)>,
) -> Result<(), String> {
    ensure_installed("unshare", "util-linux")?;
    ensure_installed("ip", "iproute2")?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| String::from("target"));
    step("the binary", cargo("build --release --locked --bin umbel"))?;
    let test = "test --workspace --test integration";
    step("the measurement", cargo(&format!("{test} --no-run")))?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| String::from("cargo"));
    let mut measure = Command::new("unshare");
    let script = format!(
        "ip link set lo up && exec {cargo} {test} -- --ignored --nocapture --test-threads 1 {tests}"
    );
    measure.args(["--net", "sh", "-c", &script]);
    let binary =
        std::path::absolute(format!("{target}/release/umbel")).map_err(|e| e.to_string())?;
    // Cargo with other settings would compile the tests again, beside what is measured.
    measure.env("UMBEL_BINARY", binary).envs(compiler_settings()).envs(variables);
    without_own_variables(&mut measure);
    step(tests, measure)
}

/// Installs what the tests of the port for Redis clients need.
fn clients() -> Result<(), String> {
    ensure_installed("redis-cli", "redis-tools")?;
    ensure_installed("redis-server", "redis-server")?;
    python_tool("redis-py", "redis", redis_py::VERSION)?;
    redis_py::install_if_possible();
    node_clients();
    python_tool("openapi-spec-validator", "openapi-spec-validator", "0.9.0")?;
    python_tool("schemathesis", "schemathesis", "4.32.5")
}

/// Installs Redis clients for Node.js below target/; without them, the test that uses them is
/// skipped.
fn node_clients() {
    let folder = "target/node-clients";
    if Path::new(folder).join("node_modules/redis").exists() {
        return;
    }
    let packages = "ioredis@6.0.0 redis@6.3.1";
    let npm = format!("npm install --silent --no-audit --no-fund --prefix {folder} {packages}");
    if let Err(message) = step("ioredis and node-redis", command(&npm)) {
        println!("== the tests of ioredis and node-redis are skipped: {message}");
    }
}

/// Installs what the tests of the dashboard, of alert rules and of recipes need; without it they print a
/// message.
fn browser() {
    let wanted = [
        ("chromedriver", "chromium-driver"),
        ("promtool", "prometheus"),
        ("nginx", "nginx-light"),
        ("skopeo", "skopeo"),
        ("ccache", "ccache"),
        ("curl", "curl"),
    ];
    for (program, package) in wanted {
        if !installed(program) && !install(package) {
            println!(
                "== {program} is missing (Debian: {package}): the tests that use it are skipped"
            );
        }
    }
}

/// Installs this version of a Python package, in its own folder below target/.
fn python_tool(folder: &str, package: &str, version: &str) -> Result<(), String> {
    let works = |program: &str, arguments: &str| {
        let output = Command::new(program).args(arguments.split(' ')).output();
        output.is_ok_and(|output| output.status.success())
    };
    let python = format!("target/{folder}/bin/python");
    if works(&python, &format!("-m pip show --quiet {package}")) {
        return Ok(());
    }
    println!("== installing {package} into target/{folder}");
    ensure_installed("python3", "python3")?;
    let venv = format!("-m venv --clear target/{folder}");
    if !works("python3", &venv) {
        install("python3-venv");
        step(&format!("a folder for {package}"), command(&format!("python3 {venv}")))?;
    }
    step(package, command(&format!("{python} -m pip install --quiet {package}=={version}")))
}

fn command(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn cargo(arguments: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments.split(' '));
    command.envs(compiler_settings());
    without_own_variables(&mut command);
    command
}

/// Removes the variables that cargo set for this program. Build scripts that watch them would run
/// again, and whatever depends on them be compiled again, whenever `cargo xtask` and `cargo` take
/// turns.
fn without_own_variables(command: &mut Command) {
    let is_own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_own) {
            command.env_remove(&name);
        }
    }
}

/// Environment variables for cargo in CI. A clean clone gains nothing from incremental
/// compilation, which splits crates into many more units. The fewer units, the less work there is
/// in all: two keep two cores busy.
fn compiler_settings() -> Vec<(&'static str, &'static str)> {
    match std::env::var_os("CI") {
        Some(_) => vec![("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "2")],
        None => Vec::new(),
    }
}

/// Runs one step and prints how long it took.
fn step(name: &str, mut command: Command) -> Result<(), String> {
    let line = command_line(&command);
    println!("== {name}: {line}");
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{name} could not start: {error}"))?;
    if !status.success() {
        return Err(format!("{name} failed; run it alone with {line}"));
    }
    println!("== {name}: passed in {} s", start.elapsed().as_secs());
    Ok(())
}

/// A command as a person would type it: with the variables that are set for it, without those that
/// are removed.
fn command_line(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={value:?} ", name.to_string_lossy()))
    });
    let program = command.get_program().to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy()));
    variables.chain([program]).chain(arguments).collect()
}

fn installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// Installs a Debian package for a missing program, or says what to install.
fn ensure_installed(program: &str, package: &str) -> Result<(), String> {
    if installed(program) {
        return Ok(());
    }
    println!("== installing {package}, which has {program}");
    if install(package) && installed(program) {
        Ok(())
    } else {
        Err(format!("{program} is missing: install it (Debian: apt-get install {package})"))
    }
}

/// Installs a Debian package, if this is Debian and we have permission; returns whether it did.
fn install(package: &str) -> bool {
    let apt = |arguments: &str| {
        Command::new("apt-get").args(arguments.split(' ')).status().is_ok_and(|s| s.success())
    };
    installed("apt-get")
        && (apt(&format!("install --yes {package}"))
            || (apt("update") && apt(&format!("install --yes {package}"))))
}
