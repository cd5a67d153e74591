//! Real clients of Redis against the port: redis-cli, redis-py, ioredis and node-redis, and redis-py's own tests of
//! filters.
//!
//! `cargo xtask test` installs them; without redis-cli and redis-py these tests fail and say what to do.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::runtime::Runtime;
use umbel_node::resp::{Limits, Server};
use umbel_node::{Host, LocalNetwork};

/// A host with a port, for as long as the runtime lives.
fn port() -> (SocketAddr, Runtime) {
    let runtime = Runtime::new().expect("in a test");
    let start = Host::builder().name("here").local(&LocalNetwork::new()).start();
    let host = runtime.block_on(start).expect("in a test");
    let guard = runtime.enter();
    let server =
        Server::bind(([127, 0, 0, 1], 0).into(), host, Limits::default()).expect("in a test");
    let address = server.local_addr();
    runtime.spawn(server.run(std::future::pending()));
    drop(guard);
    (address, runtime)
}

/// Runs a client with this input and gives what it printed.
fn run(command: &mut Command, input: &str, missing: &str) -> String {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap_or_else(|error| panic!("{error}: {missing}"));
    child.stdin.take().expect("in a test").write_all(input.as_bytes()).expect("in a test");
    let output = child.wait_with_output().expect("in a test");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

fn redis_cli(address: SocketAddr, options: &[&str], input: &str) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &address.port().to_string()]).args(options);
    run(
        &mut command,
        input,
        "redis-cli is missing: install it (Debian: apt-get install redis-tools)",
    )
}

fn redis_py(address: SocketAddr, protocol: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/redis-py/bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/redis_clients.py");
    let mut command = Command::new(python);
    command.arg(script).args([&address.port().to_string(), protocol]);
    let missing = "redis-py is missing: run `cargo xtask clients`, or in the workspace's root \
                   `python3 -m venv target/redis-py && target/redis-py/bin/pip install redis`";
    run(&mut command, "", missing)
}

/// Runs redis-py's own tests of filters. Where the package index cannot be reached, they are not
/// installed and skipped, except with `UMBEL_REDIS_PY=all`.
fn redis_pys_tests(protocol: &str) {
    let is_required = std::env::var("UMBEL_REDIS_PY").is_ok_and(|which| which == "all");
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/redis-py-suite");
    let source = suite.join("redis-8.1.0");
    if !source.join("tests").exists() {
        assert!(!is_required, "{} is missing", source.display());
        println!("skipped: redis-py's tests are not installed (cargo xtask redis-py)");
        return;
    }
    let (address, _runtime) = port();
    let url = format!("redis://{address}/0");
    let mut command = Command::new(suite.join("bin/python"));
    command.args(["-m", "pytest", "-q", "-p", "redis_py_suite", "-p", "no:cacheprovider"]);
    command.args(["--redis-url", &url, "--redis-mod-url", &url, "--protocol", protocol]);
    command.args(["tests/test_bloom.py", "tests/test_asyncio/test_bloom.py"]);
    command.env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(source);
    let printed =
        run(&mut command, "", "redis-py's tests are broken: remove target/redis-py-suite");
    let last = printed.lines().last().unwrap_or_default();
    println!("RESP{protocol}: {last}");
    assert!(last.starts_with("25 passed, "), "{printed}");
}

#[test]
fn redis_pys_own_tests_of_filters_pass_in_resp2() {
    redis_pys_tests("2");
}

#[test]
fn redis_pys_own_tests_of_filters_pass_in_resp3() {
    redis_pys_tests("3");
}

#[test]
fn redis_py_is_served_in_resp2() {
    let (address, _runtime) = port();
    assert_eq!(redis_py(address, "2"), "all well\n");
}

#[test]
fn redis_py_is_served_in_resp3() {
    let (address, _runtime) = port();
    assert_eq!(redis_py(address, "3"), "all well\n");
}

#[test]
fn ioredis_and_node_redis_are_served() {
    let modules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/node-clients/node_modules");
    let has_node = Command::new("node").arg("--version").output().is_ok();
    if !has_node || !modules.join("redis").exists() {
        println!("skipped: node, ioredis or node-redis is missing (cargo xtask clients)");
        return;
    }
    let (address, _runtime) = port();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node_clients.cjs");
    let mut command = Command::new("node");
    command.arg(script).arg(address.port().to_string()).env("NODE_PATH", modules);
    assert_eq!(run(&mut command, "", "node does not run"), "all well\n");
}

#[test]
fn redis_cli_is_served_in_both_protocols() {
    let (address, _runtime) = port();
    let add = redis_cli(
        address,
        &[],
        "UMBEL.ADD images apple \"two words\"\nUMBEL.WHO images apple pear\n",
    );
    assert_eq!(add, "1\n1\nhere\n\n");
    let error = redis_cli(address, &[], "UMBEL.INFO none\nPING\n");
    assert_eq!(error, "ERR no such set 'none'\n\nPONG\n");
    let three =
        redis_cli(address, &["-3", "--json", "UMBEL.WHO", "images", "two words", "pear"], "");
    assert_eq!(three, "[[\"here\"],[]]\n");
    let info = redis_cli(address, &["-3", "--json", "UMBEL.INFO", "images"], "");
    assert!(info.starts_with('{') && info.contains("\"items\":2"), "{info}");
}

#[test]
fn redis_cli_scans_and_loads_in_bulk() {
    let (address, _runtime) = port();
    let load: String = (0..10_000).map(|i| format!("UMBEL.ADD numbers {i}\r\n")).collect();
    let loaded = redis_cli(address, &["--pipe"], &load);
    assert!(loaded.contains("errors: 0, replies: 10000"), "{loaded}");
    assert_eq!(redis_cli(address, &["--scan"], ""), "numbers\n");
    assert_eq!(redis_cli(address, &["UMBEL.HAS", "numbers", "9999", "10000"], ""), "1\n0\n");
}

#[test]
fn redis_cli_works_with_filters() {
    let (address, _runtime) = port();
    let session = "BF.RESERVE seen 0.01 2 NONSCALING\nBF.ADD seen apple\nBF.MADD seen apple pear plum\n\
                   BF.EXISTS seen pear\nBF.INFO seen\nTYPE seen\nUMBEL.WHO seen pear\nCF.ADD visits apple\n\
                   CF.ADD visits apple\nCF.COUNT visits apple\nCF.DEL visits apple\nBF.CARD visits\n\
                   SELECT 2\nBF.ADD seen fig\nDBSIZE\nFLUSHDB\nDBSIZE\nCMS.QUERY sketch a\n";
    let printed = redis_cli(address, &[], session);
    let size = printed.lines().skip_while(|line| *line != "Size").nth(1).unwrap_or_default();
    let expected = format!(
        "OK\n1\n0\n1\nERR non scaling filter is full\n\n1\nCapacity\n2\nSize\n{size}\nNumber of filters\n1\n\
         Number of items inserted\n2\nExpansion rate\n\nMBbloom--\nhere\n1\n1\n2\n1\n\
         WRONGTYPE Operation against a key holding the wrong kind of value\n\nOK\n1\n1\nOK\n0\n\
         ERR 'CMS.QUERY' is not supported: umbel holds sets of keys, and no count-min sketches\n\n"
    );
    assert_eq!(printed, expected);
    assert!(size.parse::<u64>().is_ok_and(|size| size > 0), "{size}");
    let json = redis_cli(address, &["-3", "--json", "BF.INFO", "seen", "EXPANSION"], "");
    assert_eq!(json, "{\"Expansion rate\":null}\n");
    let json = redis_cli(address, &["-3", "--json", "BF.MEXISTS", "seen", "apple", "fig"], "");
    assert_eq!(json, "[true,false]\n");
}

/// Every error text that clients of RedisBloom and their tests compare, in one session.
#[test]
fn redis_cli_shows_the_errors_of_redis_bloom() {
    let (address, _runtime) = port();
    let made = "BF.RESERVE b 0.01 1 NONSCALING\nBF.ADD b a\nCF.RESERVE c 4 EXPANSION 0\n\
                CF.INSERT c ITEMS a a a a\nSET s text\n";
    assert_eq!(redis_cli(address, &[], made), "OK\n1\nOK\n1\n1\n1\n1\nOK\n");
    let four: String = (0..128).map(|item| format!(" {item}")).collect();
    let grown = redis_cli(address, &[], &format!("CF.INSERT g CAPACITY 4 ITEMS{four}\n"));
    assert_eq!(grown, "1\n".repeat(128));
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let capacity = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
    for (command, error) in [
        ("BF.RESERVE n x 10", "ERR bad error rate"),
        ("BF.RESERVE n 1 10", "ERR error rate must be in the range (0.000000, 1.000000)"),
        ("BF.RESERVE n 0.1 x", "ERR bad capacity"),
        ("BF.RESERVE n 0.1 0", "ERR capacity must be in the range [1, 1073741824]"),
        ("BF.RESERVE n 0.1 10 EXPANSION", "ERR no expansion"),
        ("BF.RESERVE n 0.1 10 EXPANSION x", "ERR bad expansion"),
        ("BF.RESERVE n 0.1 10 EXPANSION 40000", "ERR expansion must be in the range [0, 32768]"),
        ("BF.RESERVE n 0.1 10 NONSCALING EXPANSION 2", "Nonscaling filters cannot expand"),
        ("BF.RESERVE b 0.1 10", "ERR item exists"),
        ("BF.RESERVE s 0.1 10", wrong_type),
        ("BF.INFO n", "ERR not found"),
        ("BF.INFO c", wrong_type),
        ("BF.INFO b COLOUR", "Invalid information value"),
        ("BF.ADD b other", "ERR non scaling filter is full"),
        ("BF.INSERT n COLOUR ITEMS a", "Unknown argument received"),
        ("BF.INSERT n NOCREATE ITEMS a", "ERR not found"),
        ("BF.LOADCHUNK n 1 data", "ERR received bad data"),
        ("BF.LOADCHUNK b 0 data", "ERR invalid offset - no link found"),
        ("CF.DEL n a", "Not found"),
        ("CF.INFO n", "ERR not found"),
        ("CF.ADD c b", "Filter is full"),
        ("CF.ADD g more", "Maximum expansions reached"),
        ("CF.ADD b a", wrong_type),
        ("CF.RESERVE n 3", capacity),
        ("CF.RESERVE c 10", "ERR item exists"),
    ] {
        let printed = redis_cli(address, &[], &format!("{command}\nDBSIZE\n"));
        assert_eq!(printed, format!("{error}\n\n3\n"), "{command}");
    }
    let asked =
        "BF.EXISTS n a\nBF.EXISTS s a\nBF.EXISTS c a\nBF.CARD n\nTYPE b\nTYPE c\nCF.EXISTS b a\n";
    assert_eq!(redis_cli(address, &[], asked), "0\n0\n0\n0\nMBbloom--\nMBbloomCF\n0\n");
}
