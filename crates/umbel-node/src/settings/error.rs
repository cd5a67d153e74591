//! Errors in a configuration.

use std::io;
use std::path::PathBuf;

use super::Origin;

/// Why a configuration was refused: one line with the location, the problem and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file that does not exist or cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file that is not TOML.
    #[error("{}, line {line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// An unknown key.
    #[error("{origin}: there is no key '{key}'{}", suggestion(meant))]
    Unknown {
        /// Where it was given.
        origin: Origin,
        /// The key as it was written.
        key: String,
        /// The key that was most likely meant.
        meant: Option<String>,
    },
    /// A value out of its range.
    #[error("{origin}: {}: {range}, not {given}", .key.replace('.', " "))]
    Value {
        /// Where it was given.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// The permitted values.
        range: String,
        /// The given value, in quotes; secrets are hidden.
        given: String,
    },
    /// Two keys that exclude each other.
    #[error("{origin}: give '{one}' or '{other}', not both")]
    Both {
        /// Where the second was given.
        origin: Origin,
        /// The first key.
        one: &'static str,
        /// The second key.
        other: &'static str,
    },
    /// A key without a default was not given.
    #[error("{0}")]
    Missing(&'static str),
    /// A port reachable from other machines that was not permitted, or not with the well-known hash
    /// key.
    #[error("{0}")]
    Exposed(String),
    /// Two or more errors, none of them of this kind.
    #[error("{}", in_one_line(.0))]
    Several(Vec<SettingsError>),
}

impl SettingsError {
    /// All errors, in the order in which they were found.
    pub fn mistakes(&self) -> impl Iterator<Item = &Self> {
        match self {
            Self::Several(all) => all.iter(),
            one => std::slice::from_ref(one).iter(),
        }
    }

    /// Combines the results; the error lists every mistake.
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
