//! Runs redis-py's own tests of Bloom and cuckoo filters against a host.
//!
//! The tests are taken from its source distribution, fetched from the package index into target/.
//! crates/umbel-node/tests/redis_py_suite.py lists which of them are skipped, and why.

use std::path::Path;

use crate::{cargo, command, python_tool, step};

/// The version of redis-py that the tests use.
pub(crate) const VERSION: &str = "8.1.0";
const FOLDER: &str = "redis-py-suite";
const PYTEST: &str = "pytest==9.2.0 pytest-asyncio==1.5.0 pytest-timeout==2.4.0";

/// Runs all of them, with and without asyncio, in both protocols.
pub(crate) fn run() -> Result<(), String> {
    install()?;
    let mut tests =
        cargo("test --workspace --exclude umbel-model --test integration -- --nocapture");
    tests.arg("redis_clients::redis_pys_own_tests").env("UMBEL_REDIS_PY", "all");
    step("redis-py's own tests", tests)
}

/// For CI: skips the tests if they cannot be fetched from the package index.
pub(crate) fn install_if_possible() {
    if let Err(message) = install() {
        println!("== redis-py's own tests: skipped, {message}");
    }
}

/// Fetches redis-py, its tests and pytest.
fn install() -> Result<(), String> {
    let tests = format!("target/{FOLDER}/redis-{VERSION}/tests");
    if Path::new(&tests).exists() {
        return Ok(());
    }
    python_tool(FOLDER, "redis", VERSION)?;
    let python = format!("target/{FOLDER}/bin/python");
    let pip = |arguments: &str| command(&format!("{python} -m pip {arguments}"));
    step("pytest", pip(&format!("install --quiet {PYTEST}")))?;
    let source = format!("download --quiet --no-deps --no-binary redis --dest target/{FOLDER}");
    step("redis-py's source", pip(&format!("{source} redis=={VERSION}")))?;
    let archive = format!("target/{FOLDER}/redis-{VERSION}.tar.gz");
    let unpack = format!("{python} -m tarfile -e {archive} target/{FOLDER}");
    step("redis-py's tests", command(&unpack))
}
