//! `cargo xtask image` and `cargo xtask kubernetes`: what can be tested of containers without an
//! engine that runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::{self, empty, target};
use crate::{command, ensure_installed, python_tool, step};

/// Makes the files of the container image from an optimised binary, and runs a host in them.
pub(crate) fn image() -> Result<(), String> {
    run_image(&dist::build()?)
}

/// The same with the binary of the tests, which must have been built.
pub(crate) fn image_short() -> Result<(), String> {
    run_image(&tested_binary())
}

/// The binary that the tests use.
pub(crate) fn tested_binary() -> PathBuf {
    target().join("debug/umbel")
}

fn run_image(binary: &Path) -> Result<(), String> {
    ensure_installed("strip", "binutils")?;
    if !is_root() {
        println!("== container image: skipped, it needs root");
        return Ok(());
    }
    let folder = target().join("image");
    empty(&folder)?;
    let (binary, image) = (binary.display(), folder.display());
    step("files of the image", command(&format!("sh contrib/image-root.sh {binary} {image}")))?;
    step("size of the image", command(&format!("du --summarize --bytes {image}")))?;
    step("a host in the image", isolated("sh", &["xtask/image-test.sh", &image.to_string()])?)
}

/// Validates the manifests and starts hosts with their variables. Uses the binary of the tests, which
/// must have been built.
pub(crate) fn kubernetes() -> Result<(), String> {
    python_tool("kubernetes-validate", "kubernetes-validate", "1.37.0")?;
    let folder = target().join("kubernetes");
    empty(&folder)?;
    let python = "target/kubernetes-validate/bin/python";
    let (binary, folder) = (tested_binary(), folder.display().to_string());
    let arguments = ["xtask/kubernetes-test.py", &binary.display().to_string(), &folder];
    let test = match is_root() {
        true => isolated(python, &arguments)?,
        false => {
            let mut test = Command::new(python);
            test.args(arguments);
            test
        }
    };
    step("manifests for Kubernetes", test)
}

/// A command in namespaces of its own, which ends with all that it started.
fn isolated(program: &str, arguments: &[&str]) -> Result<Command, String> {
    ensure_installed("unshare", "util-linux")?;
    ensure_installed("ip", "iproute2")?;
    let mut command = Command::new("unshare");
    let up = "ip link set lo up && exec \"$0\" \"$@\"";
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c", up, program]).args(arguments);
    Ok(command)
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| String::from_utf8_lossy(&id.stdout).trim() == "0")
}
