//! The key files of a command, read in batches.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use crate::lines::{Source, read_lines, split, total_bytes};
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
    /// Hands all keys to `work`, batch by batch, in order.
    ///
    /// A missing, unreadable or keyless file is an error; where that can be seen without
    /// reading, it is found before the first batch.
    pub(super) fn read(
        &self,
        progress: &Progress,
        mut work: impl FnMut(&[&[u8]]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Tally> {
        let sources = self.sources();
        let stdin = sources.iter().filter(|source| matches!(source, Source::Stdin)).count();
        ensure!(stdin <= 1, "standard input ('-') is named {stdin} times: it can be read once");
        progress.expect_bytes(total_bytes(&sources)?);
        for source in &sources {
            ensure!(source.bytes()? != Some(0), "{}: there are no keys in it", source.name());
        }
        let mut tally = Tally::default();
        for source in sources {
            let before = tally.keys;
            read_lines(source.open()?, &source.name(), |lines| {
                progress.advance(lines.len());
                work(&split(lines, &mut tally))
            })?;
            ensure!(tally.keys > before, "{}: there are no keys in it", source.name());
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
