//! The values from one source: a file, the environment, or flags.
//!
//! Always true: every key exists and every value is in its range, so that a mistake is found even
//! if a stronger layer overrides it.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::WATCH_KEYS;
use super::watch::{Values, WatchedDirectory};
use super::{KEYS, Key, Kind, Origin, SettingsError};

/// The values of a key, and where they were given. A key that is not a list has exactly one.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) values: Vec<String>,
    pub(super) origin: Origin,
}

/// The values from one source.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    pub(super) given: BTreeMap<&'static str, Given>,
    /// The `[[watch]]` tables of a file.
    pub(super) watches: Vec<(WatchedDirectory, Origin)>,
}

impl Layer {
    /// An empty layer of flags; fill it with [`set`](Self::set).
    #[must_use]
    pub fn flags() -> Self {
        Self::default()
    }

    /// Sets a key, as a flag does.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Unknown`] or [`SettingsError::Value`]; nothing was set.
    pub fn set<T: Into<String>>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), SettingsError> {
        let flag = |key: &Key| Origin::Flag(key.flag());
        match Key::named(key) {
            Some(key) => self.put(key, values.into_iter().map(Into::into).collect(), flag(key)),
            None => Err(unknown(key, Origin::Flag(key.to_owned()), Key::name_of)),
        }
    }

    /// Whether it sets a key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// Reads the environment: `UMBEL_CLUSTER`, `UMBEL_SET_CAPACITY` and so on. Empty variables are
    /// ignored. Unknown variables that begin with `UMBEL_` may belong to another program
    /// (Kubernetes creates some for every service), and are refused only if they look like a
    /// mistyped key.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Unknown`] or [`SettingsError::Value`], or several of them.
    pub fn environment(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let mut layer = Self::default();
        let put = |(variable, text): (String, String)| layer.put_variable(&variable, &text);
        SettingsError::all(variables.into_iter().map(put).collect::<Vec<_>>())?;
        layer.alone()
    }

    fn put_variable(&mut self, variable: &str, text: &str) -> Result<(), SettingsError> {
        let Some(name) = variable.strip_prefix("UMBEL_") else { return Ok(()) };
        let origin = Origin::Environment(variable.to_owned());
        match KEYS.iter().find(|key| key.variable() == variable) {
            Some(_) if text.is_empty() => Ok(()),
            Some(key) => self.put(key, split(key, text), origin),
            None if CLIENT_VARIABLES.contains(&variable) => Ok(()),
            None if name.contains("SERVICE_") || name.contains("PORT") => Ok(()),
            None => match unknown(&name.to_lowercase(), origin, Key::variable) {
                error @ SettingsError::Unknown { meant: Some(_), .. } => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Reads a TOML file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not TOML; otherwise every unknown key and every value out
    /// of its range.
    pub fn file(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Read { path: path.to_owned(), source })?;
        Self::toml(path, &text)
    }

    /// Reads TOML text; `path` is used in messages, and relative paths in the text start at its
    /// directory.
    ///
    /// # Errors
    ///
    /// As [`file`](Self::file).
    pub fn toml(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let line = |offset: usize| 1 + text[..offset].matches('\n').count();
        let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line(span.start)),
            message: error.message().replace('\n', "; "),
        })?;
        let mut layer = Self::default();
        layer.table("", table.get_ref(), &|offset| Origin::File(path.to_owned(), line(offset)))?;
        layer.alone()
    }

    fn table(
        &mut self,
        prefix: &str,
        table: &DeTable<'_>,
        origin: &impl Fn(usize) -> Origin,
    ) -> Result<(), SettingsError> {
        let put = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            self.put_entry(prefix, key, value.get_ref(), origin)
        };
        SettingsError::all(table.iter().map(put).collect::<Vec<_>>())
    }

    fn put_entry(
        &mut self,
        prefix: &str,
        key: &Spanned<impl AsRef<str>>,
        value: &DeValue<'_>,
        origin: &impl Fn(usize) -> Origin,
    ) -> Result<(), SettingsError> {
        let origin_here = origin(key.span().start);
        let name = format!("{prefix}{}", key.get_ref().as_ref());
        let section = format!("{name}.");
        match (Key::named(&name), value) {
            (Some(key), value) => {
                let values = values_of(key, value, &origin_here)?;
                self.put(key, values, origin_here)
            }
            (None, value) if name == "watch" => self.put_watches(value, &origin_here, origin),
            (None, DeValue::Table(inner))
                if KEYS.iter().any(|key| key.name.starts_with(&section)) =>
            {
                self.table(&section, inner, origin)
            }
            (None, _) => Err(unknown(&name, origin_here, Key::name_of)),
        }
    }

    /// Reads the `[[watch]]` tables.
    fn put_watches(
        &mut self,
        value: &DeValue<'_>,
        origin_here: &Origin,
        origin: &impl Fn(usize) -> Origin,
    ) -> Result<(), SettingsError> {
        let wrong = || SettingsError::Value {
            origin: origin_here.clone(),
            key: "watch",
            range: "tables are needed, each headed [[watch]]".to_owned(),
            given: format!("a TOML {}", value.type_str()),
        };
        let DeValue::Array(tables) = value else { return Err(wrong()) };
        let mut read = |table: &Spanned<DeValue<'_>>| {
            let DeValue::Table(inner) = table.get_ref() else { return Err(wrong()) };
            let begin = origin(table.span().start);
            let values = watch_values(inner, origin)?;
            self.watches.push((WatchedDirectory::read(&values, &begin)?, begin));
            Ok(())
        };
        SettingsError::all(tables.iter().map(&mut read).collect::<Vec<_>>())?;
        WatchedDirectory::check_all(&self.watches)
    }

    fn put(
        &mut self,
        key: &'static Key,
        values: Vec<String>,
        origin: Origin,
    ) -> Result<(), SettingsError> {
        let values = checked(key, values, &origin)?;
        self.given.insert(key.name, Given { values, origin });
        Ok(())
    }

    /// Checks that one source does not set two keys that exclude each other.
    pub(super) fn alone(self) -> Result<Self, SettingsError> {
        let memory = self.given.get("memory").filter(|given| given.values == ["true"]);
        if let Some((memory, _)) = memory.zip(self.given.get("data")) {
            let origin = memory.origin.clone();
            return Err(SettingsError::Both { origin, one: "data", other: "memory" });
        }
        if let (Some(_), Some(file)) = (self.given.get("hash_key"), self.given.get("hash_key_file"))
        {
            let origin = file.origin.clone();
            return Err(SettingsError::Both { origin, one: "hash_key", other: "hash_key_file" });
        }
        if let (Some(_), Some(links)) = (self.given.get("peers"), self.given.get("links")) {
            let origin = links.origin.clone();
            return Err(SettingsError::Both { origin, one: "peers", other: "links" });
        }
        Ok(self)
    }
}

impl Key {
    fn name_of(&self) -> String {
        self.name.to_owned()
    }
}

/// Environment variables of the client commands and of the command line itself.
const CLIENT_VARIABLES: [&str; 7] = [
    "UMBEL_AT",
    "UMBEL_CONFIG",
    "UMBEL_USER",
    "UMBEL_PASSWORD",
    "UMBEL_PASSWORD_FILE",
    "UMBEL_TLS",
    "UMBEL_CA",
];

fn unknown(written: &str, origin: Origin, called: fn(&Key) -> String) -> SettingsError {
    let meant = Key::nearest(&written.replace('-', "_")).map(called);
    SettingsError::Unknown { origin, key: written.to_owned(), meant }
}

/// The values of one `[[watch]]` table.
fn watch_values(
    table: &DeTable<'_>,
    origin: &impl Fn(usize) -> Origin,
) -> Result<Values, SettingsError> {
    let mut values = Values::new();
    let mut put = |(written, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let here = origin(written.span().start);
        let name = format!("watch.{}", AsRef::<str>::as_ref(written.get_ref()));
        let Some(key) = WATCH_KEYS.iter().find(|key| key.name == name) else {
            let meant = Key::nearest_of(WATCH_KEYS, &name).map(Key::name_of);
            return Err(SettingsError::Unknown { origin: here, key: name, meant });
        };
        let given = values_of(key, value.get_ref(), &here)?;
        values.insert(key.name, checked(key, given, &here)?);
        Ok(())
    };
    SettingsError::all(table.iter().map(&mut put).collect::<Vec<_>>())?;
    Ok(values)
}

/// The values of a key as texts.
fn values_of(
    key: &'static Key,
    value: &DeValue<'_>,
    origin: &Origin,
) -> Result<Vec<String>, SettingsError> {
    texts(value)
        .filter(|_| key.kind == Kind::Many || !value.is_array())
        .ok_or_else(|| wrong_kind(key, value, origin.clone()))
}

/// The values of a key, if all are in its range; paths in a file become relative to it.
fn checked(
    key: &'static Key,
    values: Vec<String>,
    origin: &Origin,
) -> Result<Vec<String>, SettingsError> {
    for value in &values {
        (key.check)(value).map_err(|range| SettingsError::Value {
            origin: origin.clone(),
            key: key.name,
            range,
            given: shown(key, value),
        })?;
    }
    Ok(match origin {
        Origin::File(file, _) if key.kind == Kind::Path => beside(file, values),
        _ => values,
    })
}

fn wrong_kind(key: &'static Key, value: &DeValue<'_>, origin: Origin) -> SettingsError {
    let range = match key.kind {
        Kind::Many => "a list of texts is needed",
        Kind::Switch => "true or false is needed",
        _ => "one value is needed",
    };
    let given = format!("a TOML {}", value.type_str());
    SettingsError::Value { origin, key: key.name, range: range.to_owned(), given }
}

/// Paths in a file are relative to the file's directory.
fn beside(file: &Path, paths: Vec<String>) -> Vec<String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let whole = |path: String| folder.join(path).to_string_lossy().into_owned();
    paths.into_iter().map(whole).collect()
}

/// A value as shown in messages.
fn shown(key: &Key, value: &str) -> String {
    match key.kind {
        Kind::Secret => "what was given".to_owned(),
        _ => format!("'{value}'"),
    }
}

fn split(key: &Key, text: &str) -> Vec<String> {
    match key.kind {
        Kind::Many => text.split(',').map(|part| part.trim().to_owned()).collect(),
        _ => vec![text.to_owned()],
    }
}

/// The values as text, if they have a simple type.
fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    let text = match value {
        DeValue::String(text) => text.clone().into_owned(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(values) => {
            return values.iter().map(Spanned::get_ref).map(one_text).collect();
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    };
    Some(vec![text])
}

fn one_text(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}
