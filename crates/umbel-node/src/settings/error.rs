//! Why a configuration was refused.

use std::io;
use std::path::PathBuf;

use super::Origin;

/// Why a configuration was refused: one line that says where, what, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file that is not there or cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that is not TOML.
    #[error("{}, line {line}: {message}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A key that does not exist.
    #[error("{origin}: there is no key '{key}'{}", suggestion(meant))]
    Unknown {
        /// Where it stands.
        origin: Origin,
        /// What was written.
        key: String,
        /// What was most likely meant.
        meant: Option<String>,
    },
    /// A value out of its range.
    #[error("{origin}: {}: {range}, not {given}", .key.replace('.', " "))]
    Value {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// What the value may be.
        range: String,
        /// What it was, in quotes; secrets are not told.
        given: String,
    },
    /// Two values that exclude each other.
    #[error("{origin}: give '{one}' or '{other}', not both")]
    Both {
        /// Where the second stands.
        origin: Origin,
        /// The first key.
        one: &'static str,
        /// The second key.
        other: &'static str,
    },
    /// A value that has no default and was not given.
    #[error("{0}")]
    Missing(&'static str),
    /// A port beyond this machine that was not permitted, or not with the well-known hash key.
    #[error("{0}")]
    Exposed(String),
    /// Two mistakes or more, none of them of this kind.
    #[error("{}", in_one_line(.0))]
    Several(Vec<SettingsError>),
}

impl SettingsError {
    /// Every mistake, in the order in which they were found.
    pub fn mistakes(&self) -> impl Iterator<Item = &Self> {
        match self {
            Self::Several(all) => all.iter(),
            one => std::slice::from_ref(one).iter(),
        }
    }

    /// What all these results come to: an error names every mistake among them.
    ///
    /// # Errors
    ///
    /// The mistake, or [`SettingsError::Several`].
    pub fn all<T>(results: impl IntoIterator<Item = Result<T, Self>>) -> Result<(), Self> {
        let mut mistakes = Vec::new();
        for error in results.into_iter().filter_map(Result::err) {
            match error {
                Self::Several(several) => mistakes.extend(several),
                one => mistakes.push(one),
            }
        }
        match mistakes.len() {
            0 => Ok(()),
            1 => Err(mistakes.remove(0)),
            _ => Err(Self::Several(mistakes)),
        }
    }
}

fn in_one_line(mistakes: &[SettingsError]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn suggestion(meant: &Option<String>) -> String {
    meant.as_ref().map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}
