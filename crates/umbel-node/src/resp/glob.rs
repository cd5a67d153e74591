//! Patterns as Redis has them: `*`, `?`, `[abc]`, `[^a-c]`, `\*`.

/// Whether all of `text` fits `pattern`. Takes at most `pattern × text` steps, whatever
/// pattern a client sends.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where to go on if what follows the last star does not fit: one byte later.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            retry = Some((rest, text));
            continue;
        }
        match (text, one(pattern, text.first().copied())) {
            ([], _) if pattern.is_empty() => return true,
            ([_, later @ ..], Some(rest)) => (pattern, text) = (rest, later),
            _ => match retry {
                Some((after_star, [_, later @ ..])) => {
                    retry = Some((after_star, later));
                    (pattern, text) = (after_star, later);
                }
                _ => return false,
            },
        }
    }
}

/// What follows the pattern's first part, if that fits the byte.
fn one(pattern: &[u8], byte: Option<u8>) -> Option<&[u8]> {
    let byte = byte?;
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
    }
}

/// A class of bytes, its opening bracket left out; one without an end goes on to the last
/// byte, as in Redis.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (negated, mut pattern) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        pattern = match pattern {
            [] => break,
            [b']', rest @ ..] => {
                pattern = rest;
                break;
            }
            [b'\\', escaped, rest @ ..] => {
                found |= *escaped == byte;
                rest
            }
            [from, b'-', to, rest @ ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                rest
            }
            [plain, rest @ ..] => {
                found |= *plain == byte;
                rest
            }
        }
    }
    (found != negated).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes())
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
    }

    /// The definition, slowly.
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
            matches(&pattern, &text);
        }
    }
}
