//! The crates that are compiled into the binary, their licences, and two lists of them: the notices
//! that their licences require, and a software bill of materials.
//!
//! Everything comes from `cargo metadata` and `Cargo.lock`. Tools for this exist (cargo-about,
//! cargo-cyclonedx); they would have to be compiled first, which takes longer than the release.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// A crate in the binary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Component {
    name: String,
    version: String,
    /// An SPDX expression.
    licence: String,
    repository: Option<String>,
    /// SHA-256 of the published crate; `None` for crates of this workspace.
    checksum: Option<String>,
    folder: PathBuf,
}

/// The crates of the binary for this machine's platform, without those that only build it.
///
/// # Errors
/// If cargo fails, or a crate states no licence.
pub(crate) fn of_the_binary() -> Result<Vec<Component>, String> {
    let metadata = metadata()?;
    let checksums = checksums()?;
    let used = used(&metadata)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let mut components = Vec::new();
    for package in packages {
        if used.contains(text(package, "id")?) {
            components.push(component(package, &checksums)?);
        }
    }
    components.sort();
    Ok(components)
}

fn metadata() -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &platform])
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("cargo metadata: no {key} in {value}"))
}

/// The identities of the crates that `umbel-cli` is linked with.
fn used(metadata: &Value) -> Result<BTreeSet<String>, String> {
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata has no graph")?;
    let mut graph = BTreeMap::new();
    for node in nodes {
        graph.insert(text(node, "id")?, node);
    }
    let root = graph.keys().find(|id| id.contains("umbel-cli")).ok_or("no umbel-cli")?;
    let (mut found, mut waiting) = (BTreeSet::new(), vec![(*root).to_owned()]);
    while let Some(id) = waiting.pop() {
        if !found.insert(id.clone()) {
            continue;
        }
        let node = graph.get(id.as_str()).ok_or_else(|| format!("no {id} in the graph"))?;
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            // Neither for builds nor for tests.
            if kinds.into_iter().any(|kind| kind["kind"].is_null()) {
                waiting.push(text(dependency, "pkg")?.to_owned());
            }
        }
    }
    Ok(found)
}

fn component(
    package: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Component, String> {
    let (name, version) = (text(package, "name")?.to_owned(), text(package, "version")?.to_owned());
    let manifest = Path::new(text(package, "manifest_path")?);
    // Before SPDX expressions, `/` meant OR.
    let licence = package["license"].as_str().ok_or_else(|| format!("{name} has no licence"))?;
    Ok(Component {
        licence: licence.replace(" / ", " OR ").replace('/', " OR "),
        repository: package["repository"].as_str().map(str::to_owned),
        checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
        folder: manifest.parent().unwrap_or(manifest).to_owned(),
        name,
        version,
    })
}

/// The checksums in `Cargo.lock`, by name and version.
fn checksums() -> Result<BTreeMap<(String, String), String>, String> {
    let lock =
        std::fs::read_to_string("Cargo.lock").map_err(|error| format!("Cargo.lock: {error}"))?;
    let value = |part: &str, key: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let entry = |part: &str| {
        Some(((value(part, "name")?, value(part, "version")?), value(part, "checksum")?))
    };
    Ok(lock.split("[[package]]").filter_map(entry).collect())
}

/// A software bill of materials, in the form of `CycloneDX` 1.5.
pub(crate) fn bill_of_materials(version: &str, components: &[Component]) -> String {
    let is_own = |component: &&Component| component.name != "umbel-cli";
    let listed: Vec<Value> = components.iter().filter(is_own).map(Component::json).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/umbel-cli@{version}"),
                "name": "umbel",
                "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": listed,
    });
    format!("{bill:#}\n")
}

impl Component {
    fn json(&self) -> Value {
        let reference = format!("pkg:cargo/{}@{}", self.name, self.version);
        let mut component = json!({
            "type": "library",
            "bom-ref": reference,
            "purl": reference,
            "name": self.name,
            "version": self.version,
            "licenses": [{ "expression": self.licence }],
        });
        if let Some(checksum) = &self.checksum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        if let Some(repository) = &self.repository {
            component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
        }
        component
    }

    /// The texts of its licences, notices and copyright files.
    fn texts(&self) -> Vec<String> {
        let is_text = |name: &str| {
            let name = name.to_ascii_uppercase();
            ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
                .iter()
                .any(|start| name.starts_with(start))
        };
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_text))
            .map(|entry| entry.path())
            .collect();
        paths.sort();
        let read = |path: &PathBuf| std::fs::read(path).ok();
        let texts = paths.iter().filter_map(read);
        texts
            .map(|text| String::from_utf8_lossy(&text).replace('\r', "").trim().to_owned())
            .collect()
    }
}

/// The notices: every crate with its licence, then every text once, after the crates that have it.
pub(crate) fn notices(components: &[Component]) -> String {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut notices = String::from(
        "Crates that are compiled into umbel, and their licences. The texts follow.\n\
         A crate without a text of its own is distributed under the standard text of its licence.\n\n",
    );
    for component in components.iter().filter(|component| component.checksum.is_some()) {
        let title = format!("{} {}", component.name, component.version);
        notices += &format!("{title}: {}\n", component.licence);
        for text in component.texts() {
            by_text.entry(text).or_default().push(title.clone());
        }
    }
    for (text, titles) in by_text {
        notices += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(78), titles.join(", "));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_the_binary_has_a_licence_and_those_of_others_a_checksum() {
        // Tests run in the crate's folder, the commands in the workspace's.
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("a folder");
        let components = of_the_binary().expect("cargo metadata");
        let named = |name: &str| components.iter().find(|component| component.name == name);
        for used in ["umbel", "umbel-store", "umbel-node", "zenoh", "tokio", "clap", "rustls"] {
            assert!(named(used).is_some(), "{used}");
        }
        for unused in ["proptest", "criterion", "assert_cmd", "xtask"] {
            assert!(named(unused).is_none(), "{unused} is for tests");
        }
        assert!(
            components.iter().all(|one| one.checksum.is_some() || one.name.starts_with("umbel"))
        );
        let bill: Value =
            serde_json::from_str(&bill_of_materials("0.1.0", &components)).expect("JSON");
        assert_eq!(bill["components"].as_array().map(Vec::len), Some(components.len() - 1));
        let notices = notices(&components);
        assert!(notices.contains("zenoh ") && notices.contains("Permission is hereby granted"));
    }
}
