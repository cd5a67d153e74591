//! Redis's glob patterns: `*`, `?`, `[abc]`, `[^a-c]`, `\*`.
//!
//! A pattern is compiled once. Matching keeps one bit for each position in the pattern that the
//! text may have reached, so that each byte of the text costs a few word operations, whatever the
//! pattern.

/// Maximum length of a pattern, in bytes.
pub(super) const MAX_PATTERN: usize = 1024;

/// A compiled pattern.
///
/// Bit `i` of a state is set if the text so far matches the first `i` parts.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Number of words of a state.
    words: usize,
    /// Number of parts, stars not counted.
    parts: usize,
    /// For each byte, a bit set of the parts that it matches, of `words` words.
    fits: Vec<u64>,
    /// The positions that follow a star: a state keeps these bits.
    stars: Vec<u64>,
}

/// The pattern is longer than [`MAX_PATTERN`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Pattern {
    pub(super) fn new(pattern: &[u8]) -> Result<Self, TooLong> {
        if pattern.len() > MAX_PATTERN {
            return Err(TooLong);
        }
        let words = pattern.len() / 64 + 1;
        let mut compiled =
            Self { words, parts: 0, fits: vec![0; words * 256], stars: vec![0; words] };
        let mut rest = pattern;
        while !rest.is_empty() {
            rest = compiled.add(rest);
        }
        Ok(compiled)
    }

    /// Compiles the first part of the remaining pattern; returns what follows it.
    fn add<'a>(&mut self, pattern: &'a [u8]) -> &'a [u8] {
        let (word, bit) = (self.parts / 64, 1u64 << (self.parts % 64));
        let mut class = [false; 256];
        let rest = match pattern {
            [b'*', rest @ ..] => {
                self.stars[word] |= bit;
                return rest;
            }
            [b'?', rest @ ..] => {
                class = [true; 256];
                rest
            }
            [b'[', rest @ ..] => read_class(rest, &mut class),
            [b'\\', plain, rest @ ..] | [plain, rest @ ..] => {
                class[usize::from(*plain)] = true;
                rest
            }
            [] => return pattern,
        };
        for byte in (0..256).filter(|byte| class[*byte]) {
            self.fits[byte * self.words + word] |= bit;
        }
        self.parts += 1;
        rest
    }

    /// Whether the whole text matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let mut state = vec![0u64; self.words];
        state[0] = 1;
        for byte in text {
            let fits = &self.fits[usize::from(*byte) * self.words..][..self.words];
            let mut carry = 0;
            for ((state, fits), star) in state.iter_mut().zip(fits).zip(&self.stars) {
                let moved = *state & fits;
                *state = (moved << 1) | carry | (*state & star);
                carry = moved >> 63;
            }
        }
        state[self.parts / 64] & (1 << (self.parts % 64)) != 0
    }
}

/// Parses a character class after its opening bracket; a class without a closing bracket extends to
/// the end of the pattern, as in Redis. Returns what follows it.
fn read_class<'a>(pattern: &'a [u8], class: &mut [bool; 256]) -> &'a [u8] {
    let (is_negated, mut pattern) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    loop {
        pattern = match pattern {
            [] => break,
            [b']', rest @ ..] => {
                pattern = rest;
                break;
            }
            [b'\\', escaped, rest @ ..] => {
                class[usize::from(*escaped)] = true;
                rest
            }
            [from, b'-', to, rest @ ..] => {
                let range = usize::from(*from.min(to))..=usize::from(*from.max(to));
                class[range].fill(true);
                rest
            }
            [plain, rest @ ..] => {
                class[usize::from(*plain)] = true;
                rest
            }
        }
    }
    if is_negated {
        class.iter_mut().for_each(|byte| *byte = !*byte);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern.as_bytes()).unwrap().matches(text.as_bytes())
    }

    #[test]
    fn patterns_mean_what_they_mean_in_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*a*b*", "xxaxxbxx", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("[abc", "a", true),
            (r"[\]]", "]", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_few() {
        assert!(!fits(&"*a".repeat(500), &"a".repeat(499)));
        assert!(fits(&"*a".repeat(500), &"a".repeat(500)));
    }

    #[test]
    fn a_class_without_an_end_is_read_once_and_long_patterns_are_refused() {
        let open = format!("*[{}", "a-".repeat(500));
        let pattern = Pattern::new(open.as_bytes()).unwrap();
        assert_eq!(pattern.parts, 1);
        assert!(pattern.matches(&[b"b".repeat(100_000), b"a".to_vec()].concat()));
        assert_eq!(Pattern::new(&[b'*'; MAX_PATTERN + 1]).unwrap_err(), TooLong);
        assert!(Pattern::new(&[b'?'; MAX_PATTERN]).unwrap().matches(&[b'x'; MAX_PATTERN]));
        assert!(!Pattern::new(&[b'?'; MAX_PATTERN]).unwrap().matches(&[b'x'; MAX_PATTERN - 1]));
    }

    /// The definition, as a slow reference.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            ([b'?', rest @ ..], [_, later @ ..]) => naive(rest, later),
            ([plain, rest @ ..], [byte, later @ ..]) => plain == byte && naive(rest, later),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,8}", text in "[ab]{0,8}") {
            prop_assert_eq!(fits(&pattern, &text), naive(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn any_pattern_ends(pattern in prop::collection::vec(any::<u8>(), 0..40),
                            text in prop::collection::vec(any::<u8>(), 0..40)) {
            Pattern::new(&pattern).unwrap().matches(&text);
        }
    }
}
