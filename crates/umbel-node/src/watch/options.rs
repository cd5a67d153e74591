//! Which files of a directory count, and what their keys are.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// What the key of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyForm {
    /// Its path below the directory, with `/` between the parts.
    #[default]
    Path,
    /// Its name, whatever directory it is in.
    Basename,
    /// Its name without what follows the last `.`.
    Stem,
}

impl fmt::Display for KeyForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "path",
            Self::Basename => "basename",
            Self::Stem => "stem",
        })
    }
}

impl FromStr for KeyForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "path" => Ok(Self::Path),
            "basename" => Ok(Self::Basename),
            "stem" => Ok(Self::Stem),
            _ => Err("'path', 'basename' or 'stem' is needed".to_owned()),
        }
    }
}

/// Which files of a directory count, and what their keys are.
///
/// Patterns have `*` (any bytes, `/` too) and `?` (one byte). One with a `/` in it is compared with
/// the path below the directory, any other with the file's name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Only files that fit one of these; without any, all.
    pub include: Vec<String>,
    /// No file that fits one of these.
    pub exclude: Vec<String>,
    /// Files that were changed more recently are not counted yet.
    pub min_age: Duration,
    /// What keys are.
    pub key: KeyForm,
    /// Whether temporary files count, too: names that begin with `.` or end with `~`, `.tmp`,
    /// `.temp`, `.part`, `.partial`, `.swp`, `.lock` or a dot and ten digits, as nginx names them.
    pub temporary: bool,
}

impl WatchOptions {
    /// The key of a file, from its path below the directory; `None` if it does not count.
    #[must_use]
    pub fn key_of(&self, path: &Path) -> Option<Vec<u8>> {
        let name = path.file_name()?;
        let fits = |pattern: &String| {
            let text = if pattern.contains('/') { path.as_os_str() } else { name };
            matches(pattern.as_bytes(), text.as_bytes())
        };
        let is_included = self.include.is_empty() || self.include.iter().any(fits);
        if !is_included || self.exclude.iter().any(fits) {
            return None;
        }
        if !self.temporary && is_temporary(name.as_bytes()) {
            return None;
        }
        Some(match self.key {
            KeyForm::Path => path.as_os_str().as_bytes().to_vec(),
            KeyForm::Basename => name.as_bytes().to_vec(),
            KeyForm::Stem => path.file_stem().map(OsStr::as_bytes).unwrap_or_default().to_vec(),
        })
    }
}

const TEMPORARY: [&[u8]; 7] = [b"~", b".tmp", b".temp", b".part", b".partial", b".swp", b".lock"];

fn is_temporary(name: &[u8]) -> bool {
    let of_nginx = name.len() > 11
        && name[name.len() - 11] == b'.'
        && name[name.len() - 10..].iter().all(u8::is_ascii_digit);
    name.starts_with(b".") || of_nginx || TEMPORARY.iter().any(|end| name.ends_with(end))
}

/// Whether a text fits a pattern. When a byte does not fit, the last `*` takes one more: linear in
/// the text for each star.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[place] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    (at, place) = (star_at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_files() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*.png", "cat.png", true),
            ("*.png", "cat.png.gz", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab ab a", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn keys_are_paths_names_or_stems() {
        let key = |key, path: &str| {
            let options = WatchOptions { key, ..WatchOptions::default() };
            options.key_of(Path::new(path)).map(|key| String::from_utf8(key).unwrap())
        };
        assert_eq!(key(KeyForm::Path, "a/b.png").as_deref(), Some("a/b.png"));
        assert_eq!(key(KeyForm::Basename, "a/b.png").as_deref(), Some("b.png"));
        assert_eq!(key(KeyForm::Stem, "a/b.tar.gz").as_deref(), Some("b.tar"));
    }

    #[test]
    fn temporary_files_are_ignored_unless_wanted() {
        let hash = "b7f54b2df7773722d382f4809d65029c";
        let of_nginx = format!("{hash}.0000000012");
        for name in [".hidden", "a~", "a.tmp", "a.part", "a.swp", &of_nginx] {
            let mut options = WatchOptions::default();
            assert_eq!(options.key_of(Path::new(name)), None, "{name}");
            options.temporary = true;
            assert!(options.key_of(Path::new(name)).is_some(), "{name}");
        }
        for name in [hash, "a.1", "a.12345", "tmp"] {
            assert!(WatchOptions::default().key_of(Path::new(name)).is_some(), "{name}");
        }
    }

    #[test]
    fn patterns_with_a_slash_are_compared_with_paths() {
        let options = WatchOptions {
            include: vec!["sha256/*".to_owned(), "*.png".to_owned()],
            exclude: vec!["cat*".to_owned()],
            ..WatchOptions::default()
        };
        for (path, counts) in
            [("sha256/aa/bb", true), ("x/dog.png", true), ("x/cat.png", false), ("x/y", false)]
        {
            assert_eq!(options.key_of(Path::new(path)).is_some(), counts, "{path}");
        }
    }
}
