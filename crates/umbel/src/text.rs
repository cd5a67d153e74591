//! Text from outside, made safe to show.
//!
//! Names, keys, addresses and messages come from clients, other hosts and files. Shown as they
//! are, they could move a terminal's cursor, begin a log line that no program wrote, or reverse
//! the order in which people read what follows. [`for_terminal`] and [`for_log`] escape exactly
//! the characters that can do so ([`is_unsafe`]); all other text stays as it is.
//!
//! Neither is an encoding: a backslash stays a backslash, so that escaped text cannot be turned
//! back. Scripts read JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character changes how the text around it is shown: control characters (newlines,
/// tabs and the beginning of escape sequences among them), line and paragraph separators, and
/// marks that change the direction of writing.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text for people's eyes, on one line: unsafe characters as Rust writes them.
///
/// ```
/// use umbel::text::for_terminal;
///
/// assert_eq!(for_terminal("naïve \\ text"), "naïve \\ text");
/// assert_eq!(for_terminal("a\u{1b}[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\nc\\u{202e}d");
/// ```
#[must_use]
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    escaped(text, |c, safe| safe.extend(c.escape_default()))
}

/// Bytes for people's eyes: as text, with a replacement character for what is not UTF-8.
#[must_use]
pub fn bytes_for_terminal(bytes: &[u8]) -> String {
    for_terminal(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Text for one line of a log: unsafe characters as JSON writes them, so that a line that is
/// JSON stays so.
///
/// ```
/// use umbel::text::for_log;
///
/// assert_eq!(for_log("cluster\n2026 INFO all is well"), "cluster\\u000a2026 INFO all is well");
/// ```
#[must_use]
pub fn for_log(text: &str) -> Cow<'_, str> {
    escaped(text, |c, safe| write!(safe, "\\u{:04x}", u32::from(c)).expect("strings take all"))
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) { escape(c, &mut safe) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_unsafe_is_left_whatever_comes() {
        let all: String = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
        for safe in [for_terminal(&all), for_log(&all)] {
            assert!(!safe.contains(is_unsafe));
        }
        for c in ['\0', '\t', '\r', '\u{7f}', '\u{9b}', '\u{2028}', '\u{200f}', '\u{2067}'] {
            assert!(is_unsafe(c), "{c:?}");
        }
        for c in ['a', ' ', '\\', 'ü', '\u{5d0}', '\u{200d}', '\u{1f33f}'] {
            assert!(!is_unsafe(c), "{c:?}");
        }
        assert_eq!(bytes_for_terminal(b"a\xff\x1b"), "a\u{fffd}\\u{1b}");
    }
}
