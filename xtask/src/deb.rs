//! `cargo xtask deb`: a Debian package, checked by lintian, installed and removed.
//!
//! Built with `dpkg-deb` from the files in `contrib/debian`: cargo-deb would have to be compiled
//! first, and the package has nothing that needs it. CI packs the binary that the tests use, which
//! takes seconds; a release is packed from an optimised one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::components;
use crate::containers::{is_root, tested_binary};
use crate::dist::{self, VERSION, empty, io, target};
use crate::{command, ensure_installed, install, installed, step};

/// Builds the package of a release and tests it.
pub(crate) fn run() -> Result<(), String> {
    let package = pack(&dist::build()?, "xz")?;
    lint(&package)?;
    try_out(&package)?;
    let folder = package.parent().unwrap_or(Path::new("."));
    let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
    dist::checksums(folder, &[name])?;
    let bytes = std::fs::metadata(&package).map_err(io(&package))?.len();
    println!("{}: {:.1} MB", package.display(), bytes as f64 / 1e6);
    Ok(())
}

/// The same with the binary of the tests, which must have been built, packed quickly.
pub(crate) fn quick() -> Result<(), String> {
    let package = pack(&tested_binary(), QUICKLY)?;
    lint(&package)?;
    try_out(&package)
}

/// As [`quick`] for CI, without lintian, which takes most of the time; skipped where a tool is
/// missing or the machine does not permit it.
pub(crate) fn short() -> Result<(), String> {
    let missing = [("dpkg-deb", "dpkg"), ("unshare", "util-linux")]
        .into_iter()
        .find(|(program, package)| !installed(program) && !install(package));
    if let Some((program, package)) = missing {
        println!("== Debian package: skipped, {program} is missing (Debian: {package})");
        return Ok(());
    }
    try_out(&pack(&tested_binary(), QUICKLY)?)
}

/// A compression that takes little time.
const QUICKLY: &str = "gzip -z1";

/// The machine's architecture, as Debian calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Builds the package from a binary.
fn pack(binary: &Path, compression: &str) -> Result<PathBuf, String> {
    ensure_installed("dpkg-deb", "dpkg")?;
    ensure_installed("gzip", "gzip")?;
    let deb = target().join("deb");
    let root = deb.join("root");
    empty(&root)?;
    let place = |path: &str| -> Result<PathBuf, String> {
        let path = root.join(path);
        let folder = path.parent().unwrap_or(&root);
        std::fs::create_dir_all(folder).map_err(io(folder))?;
        Ok(path)
    };
    let own = place("usr/bin/umbel")?;
    dist::strip(binary, &own)?;
    for (shell, path) in [
        ("bash", "usr/share/bash-completion/completions/umbel"),
        ("zsh", "usr/share/zsh/vendor-completions/_umbel"),
        ("fish", "usr/share/fish/vendor_completions.d/umbel.fish"),
    ] {
        dist::completions(&own, shell, &place(path)?)?;
    }
    let pages = place("usr/share/man/man1/page")?;
    let pages = pages.parent().unwrap_or(&root);
    dist::man_pages(&own, pages)?;
    compress_all(pages)?;
    copy("contrib/umbel.service", &place("usr/lib/systemd/system/umbel.service")?)?;
    documents(&root)?;
    control(&root, &dist::glibc(&own)?)?;
    let package = deb.join(format!("umbel_{VERSION}-1_{}.deb", architecture()));
    let made = format!("dpkg-deb --root-owner-group -Z{compression} --build");
    step("package", command(&format!("{made} {} {}", root.display(), package.display())))?;
    Ok(package)
}

fn copy(from: &str, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(drop).map_err(io(Path::new(from)))
}

/// Everything below `usr/share/doc/umbel`.
fn documents(root: &Path) -> Result<(), String> {
    let folder = root.join("usr/share/doc/umbel");
    std::fs::create_dir_all(&folder).map_err(io(&folder))?;
    let licence = read("LICENSE-MIT")?;
    // In the form of a copyright file: indented, with a dot in empty lines.
    let indented = licence.lines().skip_while(|line| !line.starts_with("Permission"));
    let indented = indented.map(|line| match line.trim() {
        "" => " .".to_owned(),
        line => format!(" {line}"),
    });
    let indented = indented.collect::<Vec<_>>().join("\n");
    let copyright = read("contrib/debian/copyright")?.replace("@MIT@", &indented);
    write(&folder.join("copyright"), &copyright)?;
    let date = Command::new("date").arg("-R").output().map_err(|error| format!("date: {error}"))?;
    let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
    let changes = read("contrib/debian/changelog")?;
    let changes = changes.replace("@VERSION@", VERSION).replace("@DATE@", &date);
    let notices = components::notices(&components::of_the_binary()?);
    for (name, text) in [
        ("changelog.Debian", changes),
        ("changelog", read("CHANGELOG.md")?),
        ("third-party-licences", notices),
    ] {
        write(&folder.join(name), &text)?;
        compress(&folder.join(name))?;
    }
    dist::copy_documents(&folder)?;
    let examples = folder.join("examples");
    for example in EXAMPLES {
        let from = Path::new("contrib").join(example);
        dist::copy_tree(&from, &examples.join(example))?;
    }
    copy("contrib/compose.yaml", &examples.join("compose.yaml"))?;
    // Documents link to contrib/, which Debian calls examples/.
    let link = folder.join("contrib");
    std::os::unix::fs::symlink("examples", &link).map_err(io(&link))
}

/// The folders of `contrib` that are installed as examples.
const EXAMPLES: [&str; 6] = ["build-cache", "grafana", "kubernetes", "nginx", "oci", "prometheus"];

/// The control file and the scripts.
fn control(root: &Path, glibc: &str) -> Result<(), String> {
    let folder = root.join("DEBIAN");
    std::fs::create_dir_all(&folder).map_err(io(&folder))?;
    let text = read("contrib/debian/control")?
        .replace("@VERSION@", VERSION)
        .replace("@ARCHITECTURE@", architecture())
        .replace("@GLIBC@", glibc)
        .replace("@KIB@", &(size(root)? / 1024).to_string());
    write(&folder.join("control"), &text)?;
    make_plain(root)?;
    for script in ["postinst", "prerm", "postrm"] {
        let path = folder.join(script);
        copy(&format!("contrib/debian/{script}"), &path)?;
        set_mode(&path, 0o755)?;
    }
    Ok(())
}

fn size(folder: &Path) -> Result<u64, String> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let path = entry.map_err(io(folder))?.path();
        let found = std::fs::symlink_metadata(&path).map_err(io(&path))?;
        bytes += if found.is_dir() { size(&path)? } else { found.len() };
    }
    Ok(bytes)
}

/// Gives everything the modes that packages have, whatever the umask is.
fn make_plain(folder: &Path) -> Result<(), String> {
    set_mode(folder, 0o755)?;
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let path = entry.map_err(io(folder))?.path();
        if path.is_symlink() {
            continue;
        }
        match (path.is_dir(), path.ends_with("usr/bin/umbel")) {
            (true, _) => make_plain(&path)?,
            (false, is_program) => set_mode(&path, if is_program { 0o755 } else { 0o644 })?,
        }
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(io(path))
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(io(Path::new(path)))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(io(path))
}

fn compress_all(folder: &Path) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        compress(&entry.map_err(io(folder))?.path())?;
    }
    Ok(())
}

/// Without a time in it, so that the same files make the same package.
fn compress(path: &Path) -> Result<(), String> {
    let status = Command::new("gzip").args(["-9n"]).arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("gzip {} failed", path.display())),
    }
}

fn lint(package: &Path) -> Result<(), String> {
    ensure_installed("lintian", "lintian")?;
    let lintian = "lintian --allow-root --fail-on error";
    step("lintian", command(&format!("{lintian} {}", package.display())))
}

/// Installs, runs, upgrades, removes and purges the package in a copy of this system that is thrown
/// away.
fn try_out(package: &Path) -> Result<(), String> {
    if !is_root() {
        println!("== install and remove: skipped, it needs root");
        return Ok(());
    }
    for (program, package) in
        [("ip", "iproute2"), ("adduser", "adduser"), ("systemd-analyze", "systemd")]
    {
        ensure_installed(program, package)?;
    }
    let folder = target().join("deb/system");
    empty(&folder)?;
    let mut test = Command::new("unshare");
    test.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "xtask/deb-test.sh"]);
    test.arg(package).arg(&folder);
    step("install, run, upgrade, remove, purge", test)
}
