//! Where the value of a setting comes from.

use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The default.
    Default,
    /// A line of a file, from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}, line {line}", path.display()),
            Self::Environment(variable) => write!(f, "environment, {variable}"),
            Self::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}
