//! Keys of a command: named one by one, or the lines of a file or of standard input.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::client::check_key;
use crate::lines::{Source, key_of, read_lines};
use crate::progress::Progress;

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct Keys {
    /// Keys; a single '-' stands for standard input, one key a line
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    /// File of keys, one a line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Keys {
    fn source(&self) -> Option<Source<'_>> {
        match (&self.file, &self.keys[..]) {
            (Some(file), _) => Some(Source::of(file)),
            (None, [only]) if only == "-" => Some(Source::Stdin),
            _ => None,
        }
    }

    /// Finds bad keys before anything is sent, where that can be done: in a file, and in
    /// keys that are named one by one.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self.source() {
            Some(source) => check(source),
            None => self.keys.iter().try_for_each(|key| check_key(key.as_encoded_bytes())),
        }
    }

    /// Hands over every key.
    pub(super) fn read(
        &self,
        progress: &Progress,
        each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self.source() {
            Some(source) => read(source, progress, each),
            None => self.keys.iter().try_for_each(|key| each(key.as_encoded_bytes())),
        }
    }
}

/// Finds lines that are no keys, if the source can be read twice.
pub(super) fn check(source: Source<'_>) -> anyhow::Result<()> {
    if source.bytes()?.is_some() {
        read(source, &Progress::none(), &mut |_| Ok(()))?;
    }
    Ok(())
}

/// Hands over the key of every line that is not empty.
pub(super) fn read(
    source: Source<'_>,
    progress: &Progress,
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
                check_key(key).with_context(|| format!("{name}, line {number}"))?;
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
