//! Extracts from a source file or an inline module: the modules it contains, what it imports and
//! defines, and which paths it uses. Code for tests only (`#[cfg(test)]`) is omitted.

use std::collections::BTreeSet;

use super::words::{Kind, Token, tokens};

/// A path as written, with its line number.
#[derive(Clone, Debug)]
pub(crate) struct UsedPath {
    pub(crate) names: Vec<String>,
    pub(crate) line: usize,
}

/// A name that `use` brings into a module; `*` for all names.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) name: String,
    pub(crate) path: UsedPath,
}

/// A module inside another.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    /// Its contents, unless they are in a file of their own.
    pub(crate) inline: Option<Source>,
    /// The file that a `#[path]` names.
    pub(crate) path: Option<String>,
    /// Whether it is for tests only. Such files are read only to know that a `mod` names them.
    pub(crate) is_for_tests: bool,
}

/// The contents of a module.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) children: Vec<Child>,
    pub(crate) imports: Vec<Import>,
    /// Names of types, functions, traits, constants and macros.
    pub(crate) items: BTreeSet<String>,
    /// Paths and single names, imports included.
    pub(crate) used: Vec<UsedPath>,
}

impl Source {
    pub(crate) fn parse(text: &str) -> Self {
        let tokens = tokens(text);
        let mut parser = Parser { tokens: &tokens, at: 0 };
        let mut source = Self::default();
        parser.module(&mut source);
        source
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

/// Relevant attributes of an item.
#[derive(Default)]
struct Attributes {
    is_for_tests: bool,
    path: Option<String>,
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        match self.peek(ahead).map(|token| &token.kind) {
            Some(Kind::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is_sign(&self, ahead: usize, sign: char) -> bool {
        self.peek(ahead).is_some_and(|token| token.is_sign(sign))
    }

    /// Reads a module's contents, up to the brace that closes it or the end of the file.
    fn module(&mut self, source: &mut Source) {
        let mut depth = 0;
        while self.peek(0).is_some() {
            if self.is_sign(0, '}') && depth == 0 {
                self.at += 1;
                return;
            }
            let attributes = self.attributes();
            if self.word(0) == Some("pub") && self.is_sign(1, '(') {
                self.at += 1;
                self.skip_group('(', ')');
            } else if self.word(0) == Some("mod") && self.word(1).is_some() && depth == 0 {
                self.child(source, attributes);
            } else if attributes.is_for_tests {
                self.skip_item(depth > 0);
            } else if self.word(0) == Some("use") {
                self.import(source, depth == 0);
            } else {
                self.note_item(source, depth == 0);
                depth += i32::from(self.is_sign(0, '{')) - i32::from(self.is_sign(0, '}'));
                self.path(source);
            }
        }
    }

    /// Reads all attributes at the current position.
    fn attributes(&mut self) -> Attributes {
        let mut attributes = Attributes::default();
        while self.is_sign(0, '#') {
            let inner = usize::from(self.is_sign(1, '!'));
            if !self.is_sign(1 + inner, '[') {
                break;
            }
            let begin = self.at + inner + 2;
            self.at += inner + 1;
            self.skip_group('[', ']');
            let inside = &self.tokens[begin.min(self.at)..self.at];
            let words = inside.iter().take(4).collect::<Vec<_>>();
            match words.as_slice() {
                [cfg, open, test, close]
                    if cfg.is_word("cfg")
                        && open.is_sign('(')
                        && test.is_word("test")
                        && close.is_sign(')') =>
                {
                    attributes.is_for_tests = true;
                }
                [path, equals, Token { kind: Kind::Text(text), .. }, ..]
                    if path.is_word("path") && equals.is_sign('=') =>
                {
                    attributes.path = Some(text.clone());
                }
                _ => {}
            }
        }
        attributes
    }

    /// Skips a group: from the next token, the opening sign, to its closing sign.
    fn skip_group(&mut self, open: char, close: char) {
        let mut depth = 0;
        while let Some(token) = self.peek(0) {
            depth += i32::from(token.is_sign(open)) - i32::from(token.is_sign(close));
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips an item: up to its semicolon or past its braces. Inside braces it may also be a field
    /// or an argument, which ends with a comma or before the closing brace.
    fn skip_item(&mut self, is_inside: bool) {
        while self.peek(0).is_some() {
            if self.is_sign(0, '{') {
                return self.skip_group('{', '}');
            }
            if is_inside && self.is_sign(0, '}') {
                return;
            }
            if self.is_sign(0, '(') {
                self.skip_group('(', ')');
            } else if self.is_sign(0, '[') {
                self.skip_group('[', ']');
            } else if is_inside && self.is_sign(0, ',') {
                self.at += 1;
                return;
            } else {
                self.at += 1;
                if self.tokens[self.at - 1].is_sign(';') {
                    return;
                }
            }
        }
    }

    fn child(&mut self, source: &mut Source, attributes: Attributes) {
        let name = self.word(1).unwrap_or_default().to_owned();
        let is_inline = self.is_sign(2, '{');
        self.at += 3;
        let inline = is_inline.then(|| {
            let mut inside = Source::default();
            self.module(&mut inside);
            inside
        });
        let Attributes { is_for_tests, path } = attributes;
        source.children.push(Child { name, inline, path, is_for_tests });
    }

    /// Reads `use` with its tree; `keep` if it is in the module itself and not in a function.
    fn import(&mut self, source: &mut Source, keep: bool) {
        self.at += 1;
        let first = source.imports.len();
        self.import_tree(&mut Vec::new(), source);
        let used: Vec<_> =
            source.imports[first..].iter().map(|import| import.path.clone()).collect();
        source.used.extend(used);
        if !keep {
            source.imports.truncate(first);
        }
    }

    fn import_tree(&mut self, prefix: &mut Vec<String>, source: &mut Source) {
        let depth = prefix.len();
        while let Some(token) = self.peek(0) {
            let line = token.line;
            match token.kind.clone() {
                Kind::Word(word) => {
                    self.at += 1;
                    prefix.push(word);
                    if self.peek(0).is_some_and(|token| token.kind == Kind::PathSeparator) {
                        continue;
                    }
                    // `a::{self}` is `a`.
                    if prefix.len() > 1 && prefix.last().is_some_and(|last| last == "self") {
                        prefix.pop();
                    }
                    let mut name = prefix.last().cloned().unwrap_or_default();
                    if self.word(0) == Some("as") {
                        name = self.word(1).unwrap_or_default().to_owned();
                        self.at += 2;
                    }
                    source
                        .imports
                        .push(Import { name, path: UsedPath { names: prefix.clone(), line } });
                    break;
                }
                Kind::Sign('*') => {
                    self.at += 1;
                    let path = UsedPath { names: prefix.clone(), line };
                    source.imports.push(Import { name: "*".to_owned(), path });
                    break;
                }
                Kind::Sign('{') => {
                    self.at += 1;
                    while !self.is_sign(0, '}') && self.peek(0).is_some() {
                        let before = self.at;
                        self.import_tree(prefix, source);
                        // Skip commas, and anything that is not an import.
                        if self.is_sign(0, ',') || self.at == before {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                Kind::PathSeparator => self.at += 1,
                _ => break,
            }
        }
        prefix.truncate(depth);
    }

    /// Records an item that a module defines.
    fn note_item(&mut self, source: &mut Source, is_at_top: bool) {
        const KINDS: [&str; 8] =
            ["struct", "enum", "union", "trait", "type", "const", "static", "fn"];
        if !is_at_top {
            return;
        }
        let name = match self.word(0) {
            Some("macro_rules") => self.word(2),
            Some(kind) if KINDS.contains(&kind) => self.word(1),
            _ => None,
        };
        if let Some(name) = name {
            source.items.insert(name.to_owned());
        }
    }

    /// Reads one path, one name or one sign.
    fn path(&mut self, source: &mut Source) {
        let Some(line) = self.peek(0).map(|token| token.line) else { return };
        let is_member = self.at > 0
            && matches!(self.tokens[self.at - 1].kind, Kind::Sign('.') | Kind::PathSeparator);
        let mut names = Vec::new();
        while let Some(name) = self.word(0) {
            names.push(name.to_owned());
            self.at += 1;
            let goes_on = self.peek(0).is_some_and(|token| token.kind == Kind::PathSeparator)
                && self.word(1).is_some();
            if !goes_on {
                break;
            }
            self.at += 1;
        }
        if names.is_empty() {
            self.at += 1;
        } else if !is_member {
            source.used.push(UsedPath { names, line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let all = Source::parse(text).imports;
        all.iter()
            .map(|import| format!("{}={}", import.name, import.path.names.join("::")))
            .collect()
    }

    #[test]
    fn trees_of_imports_are_unfolded() {
        let text = "pub(crate) use crate::a::{self, b::{C, D as E}, f::*}; use ::std::fmt;";
        let all =
            ["a=crate::a", "C=crate::a::b::C", "E=crate::a::b::D", "*=crate::a::f", "fmt=std::fmt"];
        assert_eq!(imports(text), all);
    }

    #[test]
    fn imports_of_functions_are_used_and_not_kept() {
        let source = Source::parse("fn f() { use crate::a::B; B::c(); }");
        assert!(source.imports.is_empty() && source.items.contains("f"));
        assert!(source.used.iter().any(|path| path.names == ["crate", "a", "B"]));
    }

    #[test]
    fn code_for_tests_is_left_out() {
        let text = "#[cfg(test)]\nuse crate::a::A;\n#[cfg(test)]\nfn f(x: [u8; 2]) { crate::b::c() }\n#[cfg(test)]\nmod tests;\n\
                    struct After(crate::d::D);";
        let source = Source::parse(text);
        assert!(source.imports.is_empty());
        let paths: Vec<_> = source.used.iter().filter(|path| path.names.len() > 1).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        assert_eq!(paths[0].names, ["crate", "d", "D"]);
        assert!(source.children[0].is_for_tests);
    }

    #[test]
    fn modules_are_found_inline_in_files_and_by_path() {
        let source = Source::parse(
            "mod a; pub mod b { use super::a::X; mod c; } #[path = \"x/y.rs\"] mod d; struct E;",
        );
        let names: Vec<_> = source.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "d"]);
        let inside = source.children[1].inline.as_ref().expect("inline");
        assert_eq!((inside.imports.len(), inside.children.len()), (1, 1));
        assert_eq!(source.children[2].path.as_deref(), Some("x/y.rs"));
        assert!(source.items.contains("E"));
    }
}
