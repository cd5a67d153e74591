//! `cargo xtask dist`: a release archive with everything that a package would install, a bill of
//! materials beside it, and their checksums.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::components;
use crate::{cargo, command, ensure_installed, step};

/// The version of this workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// Makes an empty folder.
pub(crate) fn empty(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(io(folder))?;
    }
    std::fs::create_dir_all(folder).map_err(io(folder))
}

/// Compiles the binary as for a release; returns where it is.
pub(crate) fn build() -> Result<PathBuf, String> {
    step("binary", cargo("build --release --locked --bin umbel"))?;
    Ok(target().join("release/umbel"))
}

/// Copies the binary without its symbols.
pub(crate) fn strip(binary: &Path, to: &Path) -> Result<(), String> {
    ensure_installed("strip", "binutils")?;
    std::fs::copy(binary, to).map_err(io(binary))?;
    step("strip", command(&format!("strip {}", to.display())))
}

/// Writes the completions of a shell, as the binary prints them.
pub(crate) fn completions(binary: &Path, shell: &str, to: &Path) -> Result<(), String> {
    let made = Command::new(binary).args(["completions", shell]).output().map_err(io(binary))?;
    if !made.status.success() {
        return Err(format!("no completions for {shell}"));
    }
    std::fs::write(to, made.stdout).map_err(io(to))
}

/// Writes all pages of the manual.
pub(crate) fn man_pages(binary: &Path, to: &Path) -> Result<(), String> {
    step("man pages", command(&format!("{} man --out {}", binary.display(), to.display())))
}

/// The oldest glibc that has every function which the binary calls, such as `2.34`.
pub(crate) fn glibc(binary: &Path) -> Result<String, String> {
    ensure_installed("objdump", "binutils")?;
    let listed = Command::new("objdump").arg("-T").arg(binary).output().map_err(io(binary))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let versions = listed.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>()
    });
    let newest = versions.max().ok_or("the binary needs no glibc")?;
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// Writes the checksums of files in one folder beside them, as `sha256sum --check` reads them.
pub(crate) fn checksums(folder: &Path, files: &[String]) -> Result<(), String> {
    let made = Command::new("sha256sum").current_dir(folder).args(files).output();
    let made = made.map_err(|error| format!("sha256sum: {error}"))?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    let file = folder.join("SHA256SUMS");
    std::fs::write(&file, made.stdout).map_err(io(&file))
}

/// Builds a release archive for this machine's platform.
pub(crate) fn run() -> Result<(), String> {
    let built = build()?;
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let (dist, name) = (target().join("dist"), format!("umbel-{VERSION}-{arch}-{os}"));
    let folder = dist.join(&name);
    empty(&folder)?;
    for part in ["bin", "share/man/man1", "share/completions"] {
        let part = folder.join(part);
        std::fs::create_dir_all(&part).map_err(io(&part))?;
    }
    let binary = folder.join("bin/umbel");
    strip(&built, &binary)?;
    for (shell, file) in [("bash", "umbel.bash"), ("zsh", "_umbel"), ("fish", "umbel.fish")] {
        completions(&binary, shell, &folder.join("share/completions").join(file))?;
    }
    man_pages(&binary, &folder.join("share/man/man1"))?;
    copy_documents(&folder)?;
    copy_tree(Path::new("contrib"), &folder.join("contrib"))?;
    copy_licences(&folder)?;
    let crates = components::of_the_binary()?;
    let notices = folder.join("THIRD-PARTY-LICENCES");
    std::fs::write(&notices, components::notices(&crates)).map_err(io(&notices))?;
    let glibc = glibc(&binary)?;
    let platform = folder.join("PLATFORM");
    let text = format!("{arch}-{os}, glibc {glibc} or newer\n");
    std::fs::write(&platform, text).map_err(io(&platform))?;

    let (archive, bill) = (format!("{name}.tar.gz"), format!("{name}.cdx.json"));
    let (dist_text, archive_text) = (dist.display(), dist.join(&archive));
    let pack = "--owner 0 --group 0 --sort name -czf";
    let pack = format!("tar -C {dist_text} {pack} {} {name}", archive_text.display());
    step("archive", command(&pack))?;
    let bill_of_materials = components::bill_of_materials(VERSION, &crates);
    std::fs::write(dist.join(&bill), bill_of_materials).map_err(io(&dist))?;
    checksums(&dist, &[archive.clone(), bill.clone()])?;
    println!("{}: glibc {glibc} or newer, {} crates", archive_text.display(), crates.len());
    println!("{}", dist.join(bill).display());
    println!("{}", dist.join("SHA256SUMS").display());
    Ok(())
}

/// What documents link to, besides `docs` and `contrib`.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "python/README.md",
    "crates/umbel-kv/examples/router.rs",
    "crates/umbel-node/tests/redis_py_suite.py",
];

/// A secret that containers share: made by whoever tries them, in the folder of their examples.
const SECRET: &str = "hash-key";

/// Copies the documents, and what they link to outside `contrib`.
pub(crate) fn copy_documents(folder: &Path) -> Result<(), String> {
    copy_tree(Path::new("docs"), &folder.join("docs"))?;
    for document in DOCUMENTS {
        let to = folder.join(document);
        let parent = to.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(io(parent))?;
        std::fs::copy(document, &to).map_err(io(Path::new(document)))?;
    }
    Ok(())
}

fn copy_licences(folder: &Path) -> Result<(), String> {
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        std::fs::copy(file, folder.join(file)).map_err(io(Path::new(file)))?;
    }
    Ok(())
}

/// Copies a directory, without a secret in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(io(to))?;
    for entry in std::fs::read_dir(from).map_err(io(from))? {
        let entry = entry.map_err(io(from))?;
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else if entry.file_name() != SECRET {
            std::fs::copy(entry.path(), &to).map_err(io(&to))?;
        }
    }
    Ok(())
}
