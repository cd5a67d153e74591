//! Keys or names of a command: given as arguments, or as lines of a file or of standard input.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::client::check_key;
use crate::lines::{Source, key_of, read_lines};
use crate::progress::Progress;

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct Keys {
    /// Keys; a single '-' reads standard input, one key per line
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    /// File of keys, one per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Keys {
    pub(super) fn listed(&self) -> Listed<'_> {
        Listed { words: &self.keys, file: self.file.as_deref(), validate: check_key }
    }
}

/// Names of a command, in the same way.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct Names {
    /// Names such as /a/b; a single '-' reads standard input, one name per line
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
    /// File of names, one per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Names {
    pub(super) fn listed(&self) -> Listed<'_> {
        Listed { words: &self.names, file: self.file.as_deref(), validate: check_name }
    }
}

/// The keys or names given to a command, and how to validate each.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    words: &'a [OsString],
    file: Option<&'a Path>,
    validate: Validator,
}

/// Rejects an invalid key or name.
type Validator = fn(&[u8]) -> anyhow::Result<()>;

impl<'a> Listed<'a> {
    fn source(self) -> Option<Source<'a>> {
        match (self.file, self.words) {
            (Some(file), _) => Some(Source::of(file)),
            (None, [only]) if only == "-" => Some(Source::Stdin),
            _ => None,
        }
    }

    /// Finds invalid keys before anything is sent, where possible: in a file, and in keys given as
    /// arguments.
    pub(super) fn check(self) -> anyhow::Result<()> {
        match self.source() {
            Some(source) => check_lines(source, self.validate),
            None => self.words.iter().try_for_each(|key| (self.validate)(key.as_encoded_bytes())),
        }
    }

    /// Reads every key.
    pub(super) fn read(
        self,
        progress: &Progress,
        each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self.source() {
            Some(source) => read_valid(source, progress, self.validate, each),
            None => self.words.iter().try_for_each(|key| each(key.as_encoded_bytes())),
        }
    }
}

/// Rejects an invalid name before anything is sent.
fn check_name(name: &[u8]) -> anyhow::Result<()> {
    let text = str::from_utf8(name).ok().context("a name must be UTF-8")?;
    let excerpt: String = text.chars().take(80).collect();
    let shown = || format!("'{}'", umbel::text::for_terminal(&excerpt));
    text.parse::<umbel::prefix::Name>().map(drop).with_context(shown)
}

/// Finds lines that are not valid keys, if the source can be read twice.
pub(super) fn check(source: Source<'_>) -> anyhow::Result<()> {
    check_lines(source, check_key)
}

fn check_lines(source: Source<'_>, validate: Validator) -> anyhow::Result<()> {
    if source.bytes()?.is_some() {
        read_valid(source, &Progress::none(), validate, &mut |_| Ok(()))?;
    }
    Ok(())
}

/// Reads the key of every line that is not empty.
pub(super) fn read(
    source: Source<'_>,
    progress: &Progress,
    each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    read_valid(source, progress, check_key, each)
}

fn read_valid(
    source: Source<'_>,
    progress: &Progress,
    validate: Validator,
    each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    progress.expect_bytes(source.bytes()?);
    let (name, mut number) = (source.name(), 0_u64);
    read_lines(source.open()?, &name, |lines| {
        progress.advance(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            number += 1;
            let key = key_of(line);
            if !key.is_empty() {
                validate(key).with_context(|| format!("{name}, line {number}"))?;
                each(key)?;
            }
        }
        Ok(())
    })?;
    progress.finish();
    Ok(())
}

/// Rejects an empty listing unless allowed: one that would empty a set is usually a mistake.
pub(super) fn refuse_nothing(keys: u64, allowed: bool, what: &str) -> anyhow::Result<()> {
    ensure!(
        keys > 0 || allowed,
        "{what}: there is nothing in it, and the set would be emptied; \
         if that is meant, say --allow-empty"
    );
    Ok(())
}
