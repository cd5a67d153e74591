//! Keys or names of a command: said one by one, or the lines of a file or of standard input.

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
        Listed { words: &self.keys, file: self.file.as_deref(), sound: check_key }
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
        Listed { words: &self.names, file: self.file.as_deref(), sound: check_name }
    }
}

/// What a command was given, and what each of it must be.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    words: &'a [OsString],
    file: Option<&'a Path>,
    sound: Sound,
}

/// Refuses what is no key, or no name.
type Sound = fn(&[u8]) -> anyhow::Result<()>;

impl<'a> Listed<'a> {
    fn source(self) -> Option<Source<'a>> {
        match (self.file, self.words) {
            (Some(file), _) => Some(Source::of(file)),
            (None, [only]) if only == "-" => Some(Source::Stdin),
            _ => None,
        }
    }

    /// Finds bad keys before anything is sent, where that can be done: in a file, and in
    /// keys that are named one by one.
    pub(super) fn check(self) -> anyhow::Result<()> {
        match self.source() {
            Some(source) => check_lines(source, self.sound),
            None => self.words.iter().try_for_each(|key| (self.sound)(key.as_encoded_bytes())),
        }
    }

    /// Hands over every key.
    pub(super) fn read(
        self,
        progress: &Progress,
        each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self.source() {
            Some(source) => read_sound(source, progress, self.sound, each),
            None => self.words.iter().try_for_each(|key| each(key.as_encoded_bytes())),
        }
    }
}

/// Refuses a name before anybody is asked.
fn check_name(name: &[u8]) -> anyhow::Result<()> {
    let text = str::from_utf8(name).ok().context("a name must be UTF-8")?;
    let excerpt: String = text.chars().take(80).collect();
    let shown = || format!("'{}'", umbel::text::for_terminal(&excerpt));
    text.parse::<umbel::prefix::Name>().map(drop).with_context(shown)
}

/// Finds lines that are no keys, if the source can be read twice.
pub(super) fn check(source: Source<'_>) -> anyhow::Result<()> {
    check_lines(source, check_key)
}

fn check_lines(source: Source<'_>, sound: Sound) -> anyhow::Result<()> {
    if source.bytes()?.is_some() {
        read_sound(source, &Progress::none(), sound, &mut |_| Ok(()))?;
    }
    Ok(())
}

/// Hands over the key of every line that is not empty.
pub(super) fn read(
    source: Source<'_>,
    progress: &Progress,
    each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    read_sound(source, progress, check_key, each)
}

fn read_sound(
    source: Source<'_>,
    progress: &Progress,
    sound: Sound,
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
                sound(key).with_context(|| format!("{name}, line {number}"))?;
                each(key)?;
            }
        }
        Ok(())
    })?;
    progress.finish();
    Ok(())
}

/// A listing that would empty a set is more often a mistake than meant.
pub(super) fn refuse_nothing(keys: u64, allowed: bool, what: &str) -> anyhow::Result<()> {
    ensure!(
        keys > 0 || allowed,
        "{what}: there is nothing in it, and the set would be emptied; \
         if that is meant, say --allow-empty"
    );
    Ok(())
}
