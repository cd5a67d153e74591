//! All modules of a crate as a tree, and resolution of paths to modules.
//!
//! A path is resolved through children and imports, so that a re-exported name counts as the module
//! that defines it. Paths that lead out of the crate are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Child, Source};

/// Index of a module in its tree.
pub(crate) type Id = usize;

/// One module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) parent: Option<Id>,
    pub(crate) file: PathBuf,
    pub(crate) source: Source,
    children: BTreeMap<String, Id>,
}

/// The modules of one crate; the first is its root.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) modules: Vec<Module>,
    /// Files that some module names, including those for tests only.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Tree {
    /// Reads the tree below the file `root`; `read` returns the text of a file, if it exists.
    pub(crate) fn new(
        root: &Path,
        read: &impl Fn(&Path) -> Option<String>,
    ) -> Result<Self, String> {
        let mut tree = Self { modules: Vec::new(), files: BTreeSet::new() };
        let text = read(root).ok_or_else(|| format!("{} is missing", root.display()))?;
        tree.files.insert(root.to_owned());
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        tree.insert("crate", None, root, &folder, Source::parse(&text), read)?;
        Ok(tree)
    }

    /// Adds a module and all below it; `folder` is where the files of its children are.
    fn insert(
        &mut self,
        name: &str,
        parent: Option<Id>,
        file: &Path,
        folder: &Path,
        mut source: Source,
        read: &impl Fn(&Path) -> Option<String>,
    ) -> Result<Id, String> {
        let id = self.modules.len();
        let children = std::mem::take(&mut source.children);
        self.modules.push(Module {
            name: name.to_owned(),
            parent,
            file: file.to_owned(),
            source,
            children: BTreeMap::new(),
        });
        for Child { name, inline, path, is_for_tests } in children {
            let below = folder.join(&name);
            let (file, source) = match inline {
                Some(source) => (file.to_owned(), source),
                None => {
                    let beside = file.parent().unwrap_or(Path::new(""));
                    let candidates = match path {
                        Some(path) => vec![beside.join(path)],
                        None => vec![folder.join(format!("{name}.rs")), below.join("mod.rs")],
                    };
                    let found = candidates.iter().find_map(|file| Some((file, read(file)?)));
                    let (file, text) = found.ok_or_else(|| {
                        format!("no file for module {name} of {}", file.display())
                    })?;
                    self.files.insert(file.clone());
                    (file.clone(), Source::parse(&text))
                }
            };
            if is_for_tests {
                self.insert_files_for_tests(&file, &below, source, read);
                continue;
            }
            let child = self.insert(&name, Some(id), &file, &below, source, read)?;
            self.modules[id].children.insert(name, child);
        }
        Ok(id)
    }

    /// Records the files of a module that is for tests only.
    fn insert_files_for_tests(
        &mut self,
        file: &Path,
        folder: &Path,
        source: Source,
        read: &impl Fn(&Path) -> Option<String>,
    ) {
        let modules = self.modules.len();
        // Ignore a missing file: the compiler reports it.
        let _ = self.insert("tests", None, file, folder, source, read);
        self.modules.truncate(modules);
    }

    /// The path of a module below `ancestor`, or of the crate.
    pub(crate) fn name(&self, id: Id) -> String {
        let mut names = vec![self.modules[id].name.as_str()];
        let mut at = id;
        while let Some(parent) = self.modules[at].parent {
            names.push(&self.modules[parent].name);
            at = parent;
        }
        names.reverse();
        names.join("::")
    }

    /// The modules from the root to this one.
    pub(crate) fn ancestors(&self, id: Id) -> Vec<Id> {
        let mut all: Vec<Id> =
            std::iter::successors(Some(id), |at| self.modules[*at].parent).collect();
        all.reverse();
        all
    }

    /// All modules that a path in module `from` passes through, including the last.
    pub(crate) fn follow(&self, from: Id, names: &[String]) -> Vec<Id> {
        let mut way = Vec::new();
        self.walk(from, names, true, &mut way, &mut BTreeSet::new());
        way
    }

    /// Follows a path; returns the module it ends at, if all its names are modules.
    /// `seen` stops cyclic imports.
    fn walk(
        &self,
        from: Id,
        names: &[String],
        is_first: bool,
        way: &mut Vec<Id>,
        seen: &mut BTreeSet<(Id, String)>,
    ) -> Option<Id> {
        let Some((name, rest)) = names.split_first() else { return Some(from) };
        let next = match name.as_str() {
            "crate" if is_first => Some(0),
            "self" if is_first => Some(from),
            "super" => Some(self.modules[from].parent?),
            _ => self.modules[from].children.get(name).copied(),
        };
        let next = match next {
            Some(next) => next,
            None => self.walk_imported(from, name, is_first, way, seen)?,
        };
        way.push(next);
        self.walk(next, rest, name == "self" || name == "super" && is_first, way, seen)
    }

    /// Resolves a name that is not a child: an import, something behind `*`, or an item.
    fn walk_imported(
        &self,
        from: Id,
        name: &String,
        is_first: bool,
        way: &mut Vec<Id>,
        seen: &mut BTreeSet<(Id, String)>,
    ) -> Option<Id> {
        let source = &self.modules[from].source;
        if source.items.contains(name) || !seen.insert((from, name.clone())) {
            if !is_first {
                way.push(from);
            }
            return None;
        }
        if let Some(import) = source.imports.iter().find(|import| import.name == *name) {
            return self.walk(from, &import.path.names, true, way, seen);
        }
        for import in source.imports.iter().filter(|import| import.name == "*") {
            let mut to_module = Vec::new();
            let Some(module) = self.walk(from, &import.path.names, true, &mut to_module, seen)
            else {
                continue;
            };
            let mut beyond = Vec::new();
            let found = self.walk(module, std::slice::from_ref(name), false, &mut beyond, seen);
            if found.is_some() || !beyond.is_empty() {
                way.extend(to_module);
                way.extend(beyond);
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate of these files.
    pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
        let read = |path: &Path| {
            files
                .iter()
                .find(|(name, _)| Path::new(name) == path)
                .map(|(_, text)| (*text).to_owned())
        };
        Tree::new(Path::new("lib.rs"), &read).expect("a tree")
    }

    fn ends(tree: &Tree, from: &str, path: &str) -> Option<String> {
        let from = (0..tree.modules.len()).find(|id| tree.name(*id) == from).expect("a module");
        let names: Vec<String> = path.split("::").map(str::to_owned).collect();
        tree.follow(from, &names).last().map(|id| tree.name(*id))
    }

    #[test]
    fn paths_lead_to_the_module_that_defines_the_name() {
        let tree = tree(&[
            ("lib.rs", "mod a; mod b; pub use a::Thing; use std::fmt;"),
            ("a/mod.rs", "mod inner; pub use inner::*; pub use self::inner::Other as Else;"),
            ("a/inner.rs", "pub struct Thing; pub struct Other;"),
            ("b.rs", "use crate::a; struct Mine;"),
        ]);
        let inner = Some("crate::a::inner".to_owned());
        for path in
            ["crate::Thing", "super::Thing::new", "a::Else", "crate::a::Thing", "a::inner::X"]
        {
            assert_eq!(ends(&tree, "crate::b", path), inner, "{path}");
        }
        assert_eq!(ends(&tree, "crate::b", "self::Mine"), Some("crate::b".to_owned()));
        assert_eq!(ends(&tree, "crate::b", "crate::fmt::Debug"), Some("crate".to_owned()));
        for path in ["std::fmt", "Vec::new", "Thing"] {
            assert_eq!(ends(&tree, "crate::b", path), None, "{path}");
        }
    }

    #[test]
    fn imports_that_lead_to_themselves_end() {
        let tree = tree(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::*; pub use crate::b::X;"),
            ("b.rs", "pub use crate::a::*; pub use crate::a::X;"),
        ]);
        assert!(ends(&tree, "crate::a", "crate::b::X").is_some());
        assert!(ends(&tree, "crate::a", "crate::b::Nothing").is_some());
    }

    #[test]
    fn files_of_tests_are_named_and_are_no_modules() {
        let tree = tree(&[
            ("lib.rs", "#[cfg(test)] mod tests;"),
            ("tests.rs", "mod more;"),
            ("tests/more.rs", ""),
        ]);
        assert_eq!((tree.modules.len(), tree.files.len()), (1, 3));
    }
}
