//! `umbel store load`: many records at once.
//!
//! A file is read twice: first to see that every line is sound, so that a bad one changes
//! nothing. Standard input can be read only once; there a bad line ends the load, and the
//! message says how many lines before it are in.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use umbel_store::{Batch, Durability, MAX_KEY, MAX_VALUE, Options, Store};

use super::Told;
use super::long::bytes_bar;

#[derive(Args)]
pub(super) struct Load {
    /// Folder of the store; made if there is none
    dir: PathBuf,
    /// File to read; standard input if it is missing or `-`
    file: Option<PathBuf>,
}

impl Load {
    pub(super) fn run(self) -> anyhow::Result<Told> {
        let file = self.file.as_ref().filter(|file| file.as_os_str() != "-");
        let loaded = match file {
            Some(file) => {
                let open = || {
                    let name = file.display();
                    File::open(file).with_context(|| format!("cannot read {name}"))
                };
                let length = open()?.metadata().map_or(0, |metadata| metadata.len());
                let bar = bytes_bar("checking", length);
                Lines::new(BufReader::with_capacity(1 << 20, bar.wrap_read(open()?)))
                    .each(|_, _| Ok(()))?;
                bar.finish_and_clear();
                let bar = bytes_bar("loading", length);
                let loaded =
                    self.load(BufReader::with_capacity(1 << 20, bar.wrap_read(open()?)))?;
                bar.finish_and_clear();
                loaded
            }
            None => {
                let bar = bytes_bar("loading", 0);
                let loaded = self.load(BufReader::new(bar.wrap_read(io::stdin().lock())))?;
                bar.finish_and_clear();
                loaded
            }
        };
        Ok(Told { text: format!("loaded {loaded} records"), json: json!({ "loaded": loaded }) })
    }

    fn load(&self, input: impl BufRead) -> anyhow::Result<u64> {
        // One sync at the end is enough: nobody is told before.
        let options = Options::new().durability(Durability::Interval(Duration::from_secs(5)));
        let store = super::open_with(&self.dir, options)?;
        let (mut batch, mut loaded) = (Batch::new(), 0);
        let outcome = Lines::new(input).each(|key, value| {
            batch.put(key, value);
            if batch.len() >= BATCH {
                loaded += write(&store, &mut batch)?;
            }
            Ok(())
        });
        loaded += write(&store, &mut batch)?;
        store.sync()?;
        outcome.with_context(|| format!("{loaded} records are loaded, then"))?;
        Ok(loaded)
    }
}

fn write(store: &Store, batch: &mut Batch) -> anyhow::Result<u64> {
    let len = batch.len() as u64;
    store.write(std::mem::take(batch))?;
    Ok(len)
}

/// Lines of key, tab, value.
struct Lines<R> {
    input: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Self { input, number: 0 }
    }

    fn each(
        mut self,
        mut take: impl FnMut(&[u8], &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            self.number += 1;
            let number = self.number;
            let read = (&mut self.input).take(LONGEST).read_until(b'\n', &mut line);
            if read.with_context(|| format!("line {number}"))? == 0 {
                return Ok(());
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let Some(tab) = text.iter().position(|&byte| byte == b'\t') else {
                bail!("line {number} has no tab between key and value");
            };
            let (key, value) = (&text[..tab], &text[tab + 1..]);
            ensure!(key.len() <= MAX_KEY, "line {number}: the key has over {MAX_KEY} bytes");
            ensure!(
                value.len() <= MAX_VALUE,
                "line {number}: the value has over {MAX_VALUE} bytes"
            );
            take(key, value)?;
        }
    }
}

/// Records written at once.
const BATCH: usize = 1000;
/// No sound line is longer: a longer one is not read to its end.
const LONGEST: u64 = (MAX_KEY + MAX_VALUE + 2) as u64;
