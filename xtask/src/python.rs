//! Builds the Python package and runs its tests, in a virtual environment below target/.

use std::path::Path;

use crate::{cargo, command, installed, python_tool, step};

const FOLDER: &str = "python";
const MATURIN: &str = "1.16.0";
const PYTEST: &str = "pytest==9.2.0";
const MANIFEST: &str = "python/Cargo.toml";

/// Builds the wheel as the tests of the workspace are built, installs it and runs its tests.
pub(crate) fn run() -> Result<(), String> {
    install()?;
    test()
}

/// For CI: skips the tests where the package index cannot be reached.
pub(crate) fn run_if_possible() -> Result<(), String> {
    match install() {
        Ok(()) => test(),
        Err(message) => {
            println!("== tests of the Python package: skipped, {message}");
            Ok(())
        }
    }
}

/// Installs what builds and tests the package.
fn install() -> Result<(), String> {
    python_tool(FOLDER, "maturin", MATURIN)?;
    let crates = cargo(&format!("fetch --quiet --locked --manifest-path {MANIFEST}"));
    step("crates of the Python package", crates)?;
    if Path::new(&format!("target/{FOLDER}/bin/pytest")).exists() {
        return Ok(());
    }
    step("pytest", command(&format!("target/{FOLDER}/bin/python -m pip install --quiet {PYTEST}")))
}

fn test() -> Result<(), String> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| String::from("target"));
    if installed("rustfmt") {
        step(
            "format of the Python package",
            cargo(&format!("fmt --check --manifest-path {MANIFEST}")),
        )?;
    }
    let wheels = format!("target/{FOLDER}/wheels");
    if Path::new(&wheels).exists() {
        std::fs::remove_dir_all(&wheels).map_err(|error| format!("{wheels}: {error}"))?;
    }
    let maturin = format!("target/{FOLDER}/bin/maturin");
    let mut build =
        command(&format!("{maturin} build --quiet --manifest-path {MANIFEST} --out {wheels}"));
    // Another profile and other features than the workspace has.
    build.env("CARGO_TARGET_DIR", format!("{target}/{FOLDER}/build"));
    step("the wheel", build)?;
    let python = format!("target/{FOLDER}/bin/python");
    let install = "-m pip install --quiet --no-index --no-deps --force-reinstall --find-links";
    step("installing the wheel", command(&format!("{python} {install} {wheels} umbel")))?;
    let mut tests =
        command(&format!("{python} -m pytest --quiet -p no:cacheprovider python/tests"));
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    // Compares files and numbers with the command's, if the workspace's tests have built it.
    let binary = std::path::absolute(format!("{target}/debug/umbel"));
    if let Some(binary) = binary.ok().filter(|binary| binary.exists()) {
        tests.env("UMBEL_BINARY", binary);
    }
    step("tests of the Python package", tests)
}
