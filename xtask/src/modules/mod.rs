//! Builds the module graph of every crate from its source text; cycles among modules are an error.
//!
//! A cycle means that none of its modules can be understood, tested or moved without all of the
//! others. The check also reports source files that no `mod` names: with one test binary per crate,
//! such a file would silently not be tested.

mod graph;
mod source;
mod tree;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use graph::Level;
use tree::Tree;

/// Cycles that exist today: crate, parent and modules. Do not add any; remove those that are
/// resolved.
const KNOWN: &[(&str, &str, &[&str])] = &[
    ("umbel", "crate::codec", &["any", "body", "frame"]),
    ("umbel", "crate::filter", &["estimate", "standard"]),
    ("umbel", "crate::prefix", &["ip", "kind"]),
    ("umbel", "crate::route", &["entry", "table", "union"]),
    ("umbel", "crate::route", &["heard", "message", "parts", "router"]),
];

/// Prints the graphs of the named crates, or of all; cycles are an error.
pub(crate) fn print(names: &[String]) -> Result<(), String> {
    let crates = crates()?;
    if let Some(name) = names.iter().find(|name| !crates.iter().any(|one| one.name == **name)) {
        return Err(format!("there is no crate '{name}' in this workspace"));
    }
    for one in crates.iter().filter(|one| names.is_empty() || names.contains(&one.name)) {
        for root in one.roots() {
            let tree = one.tree(&root)?;
            println!("{} ({})", one.name, root.display());
            for (parent, level) in graph::levels(&tree) {
                for (module, uses) in &level.uses {
                    let uses: Vec<&str> = uses.keys().map(String::as_str).collect();
                    let arrow = if uses.is_empty() { "" } else { " → " };
                    println!("  {parent}::{module}{arrow}{}", uses.join(", "));
                }
            }
        }
    }
    check()
}

/// Fails if modules of any crate form an unknown cycle, or a source file is not a module.
pub(crate) fn check() -> Result<(), String> {
    let mut problems = Vec::new();
    let mut found_known = BTreeSet::new();
    for one in crates()? {
        let mut files = BTreeSet::new();
        for root in one.roots() {
            let tree = one.tree(&root)?;
            for (parent, level) in graph::levels(&tree) {
                for knot in level.knots() {
                    let known = KNOWN.iter().position(|(of, at, modules)| {
                        *of == one.name
                            && *at == parent
                            && knot.is_subset(&modules.iter().copied().collect())
                    });
                    match known {
                        Some(known) => drop(found_known.insert(known)),
                        None => problems.push(describe(&one.name, &parent, &level, &knot)),
                    }
                }
            }
            files.extend(tree.files);
        }
        for file in one.sources()? {
            if !files.contains(&file) {
                problems.push(format!("no module names the file {}", file.display()));
            }
        }
    }
    for (index, (of, at, modules)) in KNOWN.iter().enumerate() {
        if !found_known.contains(&index) {
            let modules = modules.join(", ");
            problems.push(format!(
                "{of}: the modules {modules} of {at} are no cycle any more: remove them from KNOWN in \
                 xtask/src/modules/mod.rs"
            ));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Describes a cycle as a path, with a source location for each step.
fn describe(name: &str, parent: &str, level: &Level, knot: &BTreeSet<&str>) -> String {
    let cycles = knot.iter().map(|module| level.cycle(module));
    let cycle = cycles.min_by_key(Vec::len).unwrap_or_default();
    let all: Vec<&str> = knot.iter().copied().collect();
    let mut text = format!("{name}: modules of {parent} form a cycle: {}", cycle.join(" → "));
    if all.len() + 1 > cycle.len() {
        text += &format!(" (part of a larger one: {})", all.join(", "));
    }
    for step in cycle.windows(2) {
        let place = &level.uses[step[0]][step[1]];
        text += &format!(
            "\n  {} → {}: {}:{} uses {}",
            step[0], step[1], place.file, place.line, place.path
        );
    }
    text
}

/// A crate of the workspace.
struct Crate {
    name: String,
    folder: PathBuf,
}

/// All crates, in the order of their folders.
fn crates() -> Result<Vec<Crate>, String> {
    let mut folders = vec![PathBuf::from("xtask")];
    for parent in ["crates", "bench"] {
        for entry in std::fs::read_dir(parent).map_err(|error| format!("{parent}: {error}"))? {
            folders.push(entry.map_err(|error| error.to_string())?.path());
        }
    }
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    let name =
        |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(folders.into_iter().map(|folder| Crate { name: name(&folder), folder }).collect())
}

impl Crate {
    /// The root files of module trees.
    fn roots(&self) -> Vec<PathBuf> {
        let roots = ["src/lib.rs", "src/main.rs", "tests/main.rs"];
        let roots = roots.iter().map(|root| self.folder.join(root));
        // Each file in `src/bin` is a binary of its own.
        let binaries = std::fs::read_dir(self.folder.join("src/bin")).into_iter().flatten();
        let binaries = binaries.filter_map(|file| Some(file.ok()?.path()));
        roots.chain(binaries).filter(|root| root.is_file()).collect()
    }

    fn tree(&self, root: &Path) -> Result<Tree, String> {
        Tree::new(root, &|file| std::fs::read_to_string(file).ok())
    }

    /// All source files that must be modules. Without `tests/main.rs`, each file in `tests` is a
    /// binary of its own.
    fn sources(&self) -> Result<Vec<PathBuf>, String> {
        // umbel-model has no folder `src`: it uses the sources of umbel.
        let mut open = vec![self.folder.join("src")];
        open.retain(|folder| folder.is_dir());
        if self.folder.join("tests/main.rs").is_file() {
            open.push(self.folder.join("tests"));
        }
        let mut found = Vec::new();
        while let Some(folder) = open.pop() {
            let message = |error: std::io::Error| format!("{}: {error}", folder.display());
            for entry in std::fs::read_dir(&folder).map_err(message)? {
                let path = entry.map_err(message)?.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    found.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }
}
