//! Reads the key files of a command in batches.
//!
//! Always true: no umbel file is read as a key file, and no file is both read for keys and written.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Args;

use super::file::{Content, Target};
use crate::lines::{Source, name, read_lines, split, total_bytes};
use crate::progress::Progress;

pub(super) use crate::lines::Tally;

/// Where keys come from.
#[derive(Args)]
pub(super) struct KeyArgs {
    /// Key files, one key of at most 16 MiB a line; standard input if none is named, or for '-'
    #[arg(value_name = "KEYS")]
    files: Vec<PathBuf>,
}

impl KeyArgs {
    /// Calls `work` with all keys, batch by batch, in order.
    ///
    /// A missing, unreadable or keyless file is an error; if that can be detected without reading,
    /// it is reported before the first batch.
    pub(super) fn read(
        &self,
        progress: &Progress,
        work: impl FnMut(&[&[u8]]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        for source in self.sources() {
            ensure!(source.bytes()? != Some(0), "{}: there are no keys in it", source.name());
        }
        self.read_each(progress, work, |source, keys| {
            ensure!(keys > 0, "{}: there are no keys in it", source.name());
            Ok(())
        })
    }

    /// As [`Self::read`], but it is no error if there are no keys.
    pub(super) fn read_or_none(
        &self,
        progress: &Progress,
        work: impl FnMut(&[&[u8]]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        self.read_each(progress, work, |_, _| Ok(()))
    }

    /// Checks that the file to be written is not one of those that are read.
    pub(super) fn check_apart_from(&self, target: &Target) -> anyhow::Result<()> {
        if let Some(path) = self.files.iter().find(|path| target.is_same(path)) {
            bail!("{}: the file is read and written by the same command", name(path));
        }
        Ok(())
    }

    fn read_each(
        &self,
        progress: &Progress,
        mut work: impl FnMut(&[&[u8]]) -> anyhow::Result<()>,
        mut check: impl FnMut(Source<'_>, u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        let sources = self.sources();
        let stdin = sources.iter().filter(|source| matches!(source, Source::Stdin)).count();
        ensure!(stdin <= 1, "standard input ('-') is named {stdin} times: it can be read once");
        progress.expect_bytes(total_bytes(&sources)?);
        let mut tally = Tally::default();
        for source in sources {
            let (before, mut is_start) = (tally.keys, true);
            read_lines(source.open()?, &source.name(), |lines| {
                if std::mem::take(&mut is_start) {
                    refuse_umbel_file(source, lines)?;
                }
                progress.advance(lines.len());
                work(&split(lines, &mut tally))
            })?;
            check(source, tally.keys - before)?;
        }
        progress.finish();
        Ok(tally)
    }

    fn sources(&self) -> Vec<Source<'_>> {
        if self.files.is_empty() {
            return vec![Source::Stdin];
        }
        self.files.iter().map(|path| Source::of(path)).collect()
    }
}

/// Rejects input that starts like an umbel file.
fn refuse_umbel_file(source: Source<'_>, start: &[u8]) -> anyhow::Result<()> {
    match Content::of(start) {
        Some(content) => bail!("{}: this is {content}, not a key file", source.name()),
        None => Ok(()),
    }
}
