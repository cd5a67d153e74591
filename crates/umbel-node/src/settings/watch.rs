//! Directories that a host watches: the `[[watch]]` tables of a file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use umbel::replica::Name;

use super::{Origin, SettingsError, value};
use crate::watch::{KeyForm, Tree, WatchOptions};

/// A directory whose files are the keys of an own set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchedDirectory {
    /// The set that is kept equal to the directory.
    pub set: Name,
    /// The directory.
    pub dir: PathBuf,
    /// Which of its files count, and what their keys are.
    pub options: WatchOptions,
    /// Interval between scans of the whole directory.
    pub every: Duration,
    /// Whether a directory without files empties the set.
    pub allow_empty: bool,
    /// Whether the HTTP port serves its files.
    pub serve: bool,
}

/// The values of one table, each already validated.
pub(super) type Values = BTreeMap<&'static str, Vec<String>>;

impl WatchedDirectory {
    /// The directory with its options.
    #[must_use]
    pub fn tree(&self) -> Tree {
        Tree::new(self.dir.clone(), self.options.clone())
    }

    /// Reads the values of a table.
    ///
    /// # Errors
    /// If the set or the directory is not given.
    pub(super) fn read(values: &Values, origin: &Origin) -> Result<Self, SettingsError> {
        let text = |key| values.get(key).and_then(|values| values.first()).map(String::as_str);
        let list = |key| values.get(key).cloned().unwrap_or_default();
        let needed = |key| {
            text(key).ok_or_else(|| SettingsError::Value {
                origin: origin.clone(),
                key,
                range: "a value is needed".to_owned(),
                given: "nothing".to_owned(),
            })
        };
        SettingsError::all(["watch.set", "watch.dir"].map(needed))?;
        let key = text("watch.key").map(|text| parsed(text, value::key_form)).unwrap_or_default();
        let serve = text("watch.serve").is_some_and(|text| parsed(text, value::flag));
        if serve && key != KeyForm::Path {
            return Err(SettingsError::Value {
                origin: origin.clone(),
                key: "watch.serve",
                range: "key = 'path' is needed for files that are served".to_owned(),
                given: format!("'{key}'"),
            });
        }
        Ok(Self {
            serve,
            set: parsed(needed("watch.set")?, value::set_name),
            dir: parsed(needed("watch.dir")?, value::path),
            options: WatchOptions {
                include: list("watch.include"),
                exclude: list("watch.exclude"),
                min_age: text("watch.min_age")
                    .map_or(Duration::ZERO, |t| parsed(t, value::min_age)),
                key,
                temporary: text("watch.temporary").is_some_and(|text| parsed(text, value::flag)),
            },
            every: text("watch.every").map_or(EVERY, |text| parsed(text, value::seconds)),
            allow_empty: text("watch.allow_empty").is_some_and(|text| parsed(text, value::flag)),
        })
    }

    /// Refuses a second directory for one set: each would remove the other's keys.
    pub(super) fn check_all(all: &[(Self, Origin)]) -> Result<(), SettingsError> {
        SettingsError::all(all.iter().enumerate().map(|(place, (watch, origin))| {
            match all[..place].iter().find(|(other, _)| other.set == watch.set) {
                None => Ok(()),
                Some(_) => Err(SettingsError::Value {
                    origin: origin.clone(),
                    key: "watch.set",
                    range: "one directory per set is permitted".to_owned(),
                    given: format!("a second one for '{}'", watch.set),
                }),
            }
        }))
    }
}

/// A value that was checked when the table was read.
fn parsed<T>(text: &str, parse: fn(&str) -> Result<T, String>) -> T {
    parse(text).expect("checked when the table was read")
}

/// Interval between scans, unless the table has another one.
const EVERY: Duration = Duration::from_secs(600);

impl fmt::Display for WatchedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WatchOptions { include, exclude, min_age, key, temporary } = &self.options;
        write!(f, "{} = {}, key {key}, every {:?}", self.set, self.dir.display(), self.every)?;
        for (what, patterns) in [("include", include), ("exclude", exclude)] {
            if !patterns.is_empty() {
                write!(f, ", {what} {}", patterns.join(" "))?;
            }
        }
        if !min_age.is_zero() {
            write!(f, ", min_age {min_age:?}")?;
        }
        let flags =
            [("temporary", *temporary), ("allow_empty", self.allow_empty), ("serve", self.serve)];
        for (what, is_set) in flags {
            if is_set {
                write!(f, ", {what}")?;
            }
        }
        Ok(())
    }
}
