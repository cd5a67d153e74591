//! `umbel store load` and `delete`: many records at once.
//!
//! A file is read twice: first to check that every line is valid, so that an invalid one changes
//! nothing. Standard input can be read only once; there an invalid line ends the command, and the
//! message says how many lines before it were processed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use umbel_store::{Applied, Batch, Durability, Options, Store};

use super::Outcome;
use super::long::bytes_bar;
use super::records::{Format, Lines};
use super::tuning::Tuning;

#[derive(Args)]
pub(super) struct Load {
    /// Directory of the store; created if it does not exist
    dir: PathBuf,
    /// File to read; standard input if it is missing or `-`
    file: Option<PathBuf>,
    /// What the lines are [default: json if the first one is an object, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    tuning: Tuning,
}

impl Load {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let file = self.file.as_deref().unwrap_or(Path::new("-"));
        let loaded = twice(
            file,
            "loading",
            |input| Lines::new(input, self.format).each_record(|_, _| Ok(())),
            |input| self.load(input),
        )?;
        Ok(Outcome { text: format!("loaded {loaded} records"), json: json!({ "loaded": loaded }) })
    }

    fn load(&self, input: Box<dyn BufRead>) -> anyhow::Result<u64> {
        let mut writer = Writer::open(&self.dir, self.tuning.apply(Options::new()))?;
        let outcome = Lines::new(input, self.format).each_record(|key, value| {
            writer.batch.put(key, value);
            writer.write_if_full()
        });
        let loaded = writer.finish()?.changes;
        outcome.with_context(|| format!("{loaded} records are loaded, then"))?;
        Ok(loaded)
    }
}

#[derive(Args)]
#[command(
    override_usage = "umbel store delete [OPTIONS] <DIR> <KEY>...\n       umbel store delete [OPTIONS] <DIR> --file <FILE>"
)]
pub(super) struct Delete {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    which: Which,
    /// What the lines of the file are: keys, or objects with a key
    #[arg(long, value_enum, default_value = "text", requires = "file")]
    format: Format,
}

/// The keys that are deleted.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// Keys
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    /// Delete the keys of a file, one per line, or of standard input if it is `-`
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Delete {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let done = match &self.which.file {
            Some(file) => twice(
                file,
                "deleting",
                |input| Lines::new(input, Some(self.format)).each_key(|_| Ok(())),
                |input| self.delete(input),
            )?,
            None => {
                let store = super::open(&self.dir)?;
                let mut batch = Batch::new();
                for key in &self.which.keys {
                    batch.delete(key.as_encoded_bytes());
                }
                Done { changes: self.which.keys.len() as u64, deleted: store.write(batch)?.deleted }
            }
        };
        let Done { changes: asked, deleted } = done;
        Ok(Outcome {
            text: format!("deleted {deleted} of {asked}"),
            json: json!({ "deleted": deleted, "asked": asked }),
        })
    }

    fn delete(&self, input: Box<dyn BufRead>) -> anyhow::Result<Done> {
        let mut writer = Writer::open(&self.dir, Options::new().create(false))?;
        let outcome = Lines::new(input, Some(self.format)).each_key(|key| {
            writer.batch.delete(key);
            writer.write_if_full()
        });
        let done = writer.finish()?;
        outcome.with_context(|| format!("{} keys are deleted, then", done.deleted))?;
        Ok(done)
    }
}

/// Calls `work` with the lines of a file, after `check` has read them all, or of standard input.
fn twice<T>(
    file: &Path,
    doing: &'static str,
    check: impl FnOnce(Box<dyn BufRead>) -> anyhow::Result<()>,
    work: impl FnOnce(Box<dyn BufRead>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if file.as_os_str() == "-" {
        let bar = bytes_bar(doing, 0);
        let done = work(Box::new(BufReader::new(bar.wrap_read(io::stdin().lock()))))?;
        bar.finish_and_clear();
        return Ok(done);
    }
    let open = || {
        let name = file.display();
        File::open(file).with_context(|| format!("cannot read {name}"))
    };
    let length = open()?.metadata().map_or(0, |metadata| metadata.len());
    let lines = |doing| -> anyhow::Result<_> {
        let bar = bytes_bar(doing, length);
        Ok((Box::new(BufReader::with_capacity(1 << 20, bar.wrap_read(open()?))), bar))
    };
    let (input, bar) = lines("checking")?;
    check(input)?;
    bar.finish_and_clear();
    let (input, bar) = lines(doing)?;
    let done = work(input)?;
    bar.finish_and_clear();
    Ok(done)
}

/// Result of a command.
#[derive(Default)]
struct Done {
    /// Lines, each of which is a change.
    changes: u64,
    /// Keys that existed and were removed.
    deleted: u64,
}

/// Writes changes in batches.
struct Writer {
    store: Store,
    batch: Batch,
    done: Done,
}

impl Writer {
    fn open(dir: &Path, options: Options) -> anyhow::Result<Self> {
        // One sync at the end is enough: nothing is acknowledged before.
        let options = options.durability(Durability::Interval(Duration::from_secs(5)));
        let store = super::open_with(dir, options)?;
        Ok(Self { store, batch: Batch::new(), done: Done::default() })
    }

    fn write_if_full(&mut self) -> anyhow::Result<()> {
        if self.batch.len() >= BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let changes = self.batch.len() as u64;
        let Applied { deleted, .. } = self.store.write(std::mem::take(&mut self.batch))?;
        self.done.changes += changes;
        self.done.deleted += deleted;
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Done> {
        self.write()?;
        self.store.sync()?;
        Ok(self.done)
    }
}

/// Records written at once.
const BATCH: usize = 1000;
