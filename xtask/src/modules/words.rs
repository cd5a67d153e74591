//! A lexer: splits Rust source text into words and signs, without comments and white space.
//!
//! It understands just enough of the language to find `mod`, `use` and paths. Text that is not Rust
//! gives some list of words, never a panic.

/// A piece of source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword, or a number.
    Word(String),
    /// The contents of a string literal, escapes as written.
    Text(String),
    /// `::`
    PathSeparator,
    /// Any other character.
    Sign(char),
}

/// A piece of source text and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(found) if found == word)
    }

    pub(crate) fn is_sign(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// All tokens of a source file, in order.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut found = Vec::new();
    while let Some(first) = reader.rest.chars().next() {
        let line = reader.line;
        if let Some(kind) = reader.next_kind(first) {
            found.push(Token { kind, line });
        }
    }
    found
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    /// Takes the next `length` bytes, which must end between two characters.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Reads past the next token; `None` for comments and white space.
    fn next_kind(&mut self, first: char) -> Option<Kind> {
        if first.is_whitespace() {
            self.take(first.len_utf8());
            None
        } else if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            None
        } else if self.rest.starts_with("/*") {
            self.take(block_comment(self.rest));
            None
        } else if let Some((before, length)) = string(self.rest) {
            let literal = self.take(length);
            Some(Kind::Text(literal[before..].trim_matches(['"', '#']).to_owned()))
        } else if first == '\'' {
            self.take(quote(self.rest));
            None
        } else if first.is_alphanumeric() || first == '_' {
            let raw = if self.rest.starts_with("r#") { 2 } else { 0 };
            let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
            let length = self.rest[raw..].find(is_end).map_or(self.rest.len(), |end| raw + end);
            Some(Kind::Word(self.take(length.max(1))[raw..].to_owned()))
        } else if self.rest.starts_with("::") {
            self.take(2);
            Some(Kind::PathSeparator)
        } else {
            self.take(first.len_utf8());
            Some(Kind::Sign(first))
        }
    }
}

/// Length of a block comment, which may contain nested ones.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The lengths of a string literal's prefix and of the whole literal, if the text starts with one.
fn string(text: &str) -> Option<(usize, usize)> {
    let prefix = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let is_raw = match &text[..prefix] {
        "" | "b" | "c" => false,
        "r" | "br" | "cr" => true,
        _ => return None,
    };
    let hashes = if is_raw { text[prefix..].chars().take_while(|c| *c == '#').count() } else { 0 };
    let begin = prefix + hashes;
    if !text[begin..].starts_with('"') {
        return None;
    }
    let body = &text[begin + 1..];
    let end = if is_raw {
        let closing = format!("\"{}", "#".repeat(hashes));
        body.find(&closing).map(|end| end + closing.len())
    } else {
        end_of_escaped(body, '"')
    };
    Some((prefix, end.map_or(text.len(), |end| begin + 1 + end)))
}

/// Where a literal with escapes ends: after its closing quote.
fn end_of_escaped(body: &str, closing: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == closing {
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// Length of a token that starts with a single quote: a character, or the quote of a lifetime.
fn quote(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    let (Some((_, first)), Some((at, second))) = (characters.next(), characters.next()) else {
        return 1;
    };
    if first == '\\' {
        end_of_escaped(&text[1..], '\'').map_or(1, |end| end + 1)
    } else if second == '\'' {
        at + 1
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let kinds = tokens(text).into_iter().map(|token| token.kind);
        kinds
            .filter_map(|kind| if let Kind::Word(word) = kind { Some(word) } else { None })
            .collect()
    }

    #[test]
    fn comments_strings_and_characters_hide_their_words() {
        let text = "a // b\n/* c /* d */ e */ f \"g \\\" h\" r#\"i \" j\"# 'k' '\\'' b'l' &'m n";
        assert_eq!(words(text), ["a", "f", "b", "m", "n"]);
    }

    #[test]
    fn lines_are_counted_through_comments_and_strings() {
        let found = tokens("/*\n\n*/ \"\n\" last");
        assert_eq!(found.last().map(|token| token.line), Some(4));
    }

    #[test]
    fn raw_names_lose_their_prefix() {
        assert_eq!(words("r#type raw"), ["type", "raw"]);
    }

    #[test]
    fn text_that_ends_early_is_read_to_its_end() {
        for text in ["\"", "r#\"", "/*", "'", "'\\", "r#", "b'", "/* /* */", "é'é"] {
            assert!(tokens(text).len() <= 3, "{text}");
        }
    }
}
