//! The dependency graph among the children of one module, and its cycles.
//!
//! A module and everything below it count as one node: a child may use its parent's items, because
//! that is how one module is divided into files. Two siblings that use each other are a cycle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::tree::{Id, Tree};

/// The first place where one module uses another.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// The children of one module, and which of them use which.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) uses: BTreeMap<String, BTreeMap<String, Place>>,
}

/// The levels of a crate, by the name of the parent.
pub(crate) fn levels(tree: &Tree) -> BTreeMap<String, Level> {
    let mut levels: BTreeMap<String, Level> = BTreeMap::new();
    for (id, module) in tree.modules.iter().enumerate() {
        if let Some(parent) = module.parent {
            let level = levels.entry(tree.name(parent)).or_default();
            level.uses.entry(module.name.clone()).or_default();
        }
        for used in &module.source.used {
            for to in tree.follow(id, &used.names) {
                let Some((parent, from, to)) = siblings(tree, id, to) else { continue };
                let level = levels.entry(tree.name(parent)).or_default();
                let place = Place {
                    file: module.file.display().to_string(),
                    line: used.line,
                    path: used.names.join("::"),
                };
                let (from, to) = (&tree.modules[from].name, &tree.modules[to].name);
                let uses = level.uses.entry(from.clone()).or_default();
                uses.entry(to.clone()).or_insert(place);
            }
        }
    }
    levels
}

/// The closest common ancestor, and its children that contain either module; `None` if one module
/// contains the other.
fn siblings(tree: &Tree, from: Id, to: Id) -> Option<(Id, Id, Id)> {
    let (from, to) = (tree.ancestors(from), tree.ancestors(to));
    let apart = from.iter().zip(&to).position(|(from, to)| from != to)?;
    Some((from[apart - 1], from[apart], to[apart]))
}

impl Level {
    /// All modules that a module uses, directly or indirectly.
    fn reached(&self, from: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for to in self.uses.get(at).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(to.as_str()) {
                    open.push(to);
                }
            }
        }
        reached
    }

    /// Sets of modules that all use each other, directly or indirectly.
    pub(crate) fn knots(&self) -> Vec<BTreeSet<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.uses.keys().map(|name| (name.as_str(), self.reached(name))).collect();
        let mut knots: Vec<BTreeSet<&str>> = Vec::new();
        for (name, uses) in &reached {
            let knot: BTreeSet<&str> =
                uses.iter().filter(|to| reached[*to].contains(name)).copied().collect();
            if knot.contains(name) && !knots.contains(&knot) {
                knots.push(knot);
            }
        }
        knots
    }

    /// The shortest path from a module back to itself.
    pub(crate) fn cycle<'a>(&'a self, from: &'a str) -> Vec<&'a str> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            for to in self.uses.get(at).into_iter().flat_map(BTreeMap::keys) {
                if came_from.contains_key(to.as_str()) {
                    continue;
                }
                came_from.insert(to, at);
                if to == from {
                    let mut way = vec![from, at];
                    while way[way.len() - 1] != from {
                        way.push(came_from[way[way.len() - 1]]);
                    }
                    way.reverse();
                    return way;
                }
                open.push_back(to);
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn level(files: &[(&str, &str)]) -> Level {
        let read = |path: &Path| {
            files
                .iter()
                .find(|(name, _)| Path::new(name) == path)
                .map(|(_, text)| (*text).to_owned())
        };
        let tree = Tree::new(Path::new("lib.rs"), &read).expect("a tree");
        levels(&tree).remove("crate").expect("the root has children")
    }

    #[test]
    fn a_cycle_is_found_through_a_re_export_and_shown_shortest_first() {
        let level = level(&[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use c::C;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::C; pub struct B;"),
            ("c/mod.rs", "mod deep; pub struct C;"),
            ("c/deep.rs", "fn f() -> crate::a::A { crate::a::A }"),
            ("d.rs", "use super::{a, b};"),
        ]);
        assert_eq!(level.knots(), [BTreeSet::from(["a", "b", "c"])]);
        assert_eq!(level.cycle("a"), ["a", "b", "c", "a"]);
        let place = &level.uses["c"]["a"];
        assert_eq!((place.file.as_str(), place.line), ("c/deep.rs", 1));
    }

    #[test]
    fn children_may_use_their_parent_and_siblings_one_way() {
        let level = level(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod x; use x::X; pub struct A;"),
            ("a/x.rs", "use super::A; pub struct X;"),
            ("b.rs", "use crate::a::A; #[cfg(test)] mod tests { use crate::a; }"),
        ]);
        assert!(level.knots().is_empty());
        assert!(level.uses["b"].contains_key("a") && level.uses["a"].is_empty());
    }
}
