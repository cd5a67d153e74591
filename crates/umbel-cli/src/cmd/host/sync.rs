//! `umbel sync`: makes a set equal to what a cache really holds.
//!
//! First the host's keys are written down, then the listing is read and its keys are added,
//! then those written down that the listing lacks are removed. In this order a key that is
//! added while this runs is never removed for being unknown to an older listing.
//!
//! Always true: memory holds 16 bytes a listed key, its 128-bit hash (a stale key would be
//! kept for a chance of one in 10^24 with 10^14 keys); the host's keys wait in a temporary
//! file that has no name and goes with the process.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use redis::Value;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::keys::{self, refuse_nothing};
use super::{Options, set_name};
use crate::client::{
    Asked, Client, check_key, flags, no_such_set, stream, text, texts, wrong_answer,
};
use crate::lines::{self, Source};
use crate::output::{count, print};
use crate::progress::Progress;

/// Make a set equal to a listing of what the cache holds
#[derive(Args)]
#[command(
    override_usage = "umbel sync [OPTIONS] <SET> <--dir <DIR>|--file <FILE>|->",
    after_help = "\
The keys of a directory are the relative paths of its files, separated by /.
With --every, a pass that fails is reported on standard error, and the next pass tries again.

Examples:
  umbel sync images --dir /var/cache/layers --every 60
  umbel sync http --file listing.txt
  redis-cli --scan | umbel sync sessions -"
)]
pub(crate) struct Sync {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    listing: ListingArgs,
    /// Repeat at this interval, such as 60 or 5m
    #[arg(long, value_name = "DURATION", value_parser = crate::values::seconds)]
    every: Option<f64>,
    /// Let an empty listing empty the set
    #[arg(long)]
    allow_empty: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct ListingArgs {
    /// Directory whose files are the keys
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// File of keys, one per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// '-': standard input, one key per line
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
}

impl ListingArgs {
    fn listing(&self) -> Listing<'_> {
        match (&self.dir, &self.file) {
            (Some(dir), _) => Listing::Dir(dir),
            (None, Some(file)) => Listing::Lines(Source::of(file)),
            (None, None) => Listing::Lines(Source::Stdin),
        }
    }
}

/// What the set shall be.
#[derive(Clone, Copy)]
enum Listing<'a> {
    Dir(&'a Path),
    Lines(Source<'a>),
}

/// What a pass did.
#[derive(Serialize)]
struct Synced<'a> {
    set: &'a str,
    listed: u64,
    added: u64,
    removed: u64,
}

impl Sync {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let listing = self.listing.listing();
        let once = matches!(listing, Listing::Lines(Source::Stdin));
        ensure!(
            !once || self.every.is_none(),
            "standard input can be read only once: --every needs --dir or --file"
        );
        self.report(&self.pass(listing)?)?;
        let Some(every) = self.every.map(Duration::from_secs_f64) else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut next = Instant::now();
        loop {
            // A pass that took longer than the interval is followed by a whole pause.
            next = (next + every).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            match self.pass(listing) {
                Ok(synced) => self.report(&synced)?,
                Err(error) => crate::complain(&format!("{error:#}")),
            }
        }
    }

    fn report(&self, synced: &Synced<'_>) -> anyhow::Result<()> {
        if self.options.json {
            return print(&format!("{}\n", serde_json::to_string(synced)?));
        }
        let Synced { set, listed, added, removed } = synced;
        let (listed, added, removed) = (count(*listed), count(*added), count(*removed));
        print(&format!("{set}: {listed} keys listed, {added} added, {removed} removed\n"))
    }

    fn pass(&self, listing: Listing<'_>) -> anyhow::Result<Synced<'_>> {
        listing.check()?;
        let held = Held::of(&mut self.options.at.connect()?, &self.set)?;
        let (listed, added) = self.add(listing)?;
        let removed = self.remove(held, &listed, listing)?;
        Ok(Synced { set: &self.set, listed: listed.keys, added, removed })
    }

    fn add(&self, listing: Listing<'_>) -> anyhow::Result<(Listed, u64)> {
        let mut listed = Listed::new();
        let added = self.change("UMBEL.ADD", |each| {
            listing.read(&Progress::new("adding"), &mut |key| {
                listed.note(key);
                each(key)
            })
        })?;
        refuse_nothing(listed.keys, self.allow_empty, &listing.name())?;
        listed.sort();
        Ok((listed, added))
    }

    fn remove(&self, held: Held, listed: &Listed, listing: Listing<'_>) -> anyhow::Result<u64> {
        self.change("UMBEL.REM", |each| {
            held.read(|key| {
                let gone = !listed.contains(key) && !listing.has_again(key);
                if gone { each(key) } else { Ok(()) }
            })
        })
    }

    /// Sends keys, and counts those that made a difference.
    fn change<R>(&self, command: &str, read: R) -> anyhow::Result<u64>
    where
        R: FnOnce(&mut dyn FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> + Send,
    {
        let at = &self.options.at;
        let mut changed = 0;
        stream(at, &Asked::new(&[command, &self.set]), read, |batch, answer| {
            let flags =
                flags(answer, batch.len()).ok_or_else(|| wrong_answer(at.address(), answer))?;
            changed += flags.filter(|flag| *flag).count() as u64;
            Ok(())
        })?;
        Ok(changed)
    }
}

impl Listing<'_> {
    fn name(self) -> String {
        match self {
            Self::Dir(dir) => lines::name(dir),
            Self::Lines(source) => source.name(),
        }
    }

    /// What can be seen to be wrong before anything changes.
    fn check(self) -> anyhow::Result<()> {
        match self {
            Self::Dir(dir) => {
                let metadata = dir.metadata().with_context(|| lines::name(dir))?;
                ensure!(metadata.is_dir(), "{}: this is no folder", lines::name(dir));
                Ok(())
            }
            Self::Lines(source) => keys::check(source),
        }
    }

    fn read(
        self,
        progress: &Progress,
        each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Dir(dir) => walk(dir, &mut Vec::new(), each),
            Self::Lines(source) => keys::read(source, progress, each),
        }
    }

    /// Whether a key that was not listed is there by now. Only a folder can be asked.
    fn has_again(self, key: &[u8]) -> bool {
        match (self, str::from_utf8(key)) {
            (Self::Dir(dir), Ok(path)) => dir.join(path).is_file(),
            _ => false,
        }
    }
}

/// Every file below `dir`, as the path from where the walk began.
fn walk(
    dir: &Path,
    prefix: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(dir).with_context(|| lines::name(dir))?;
    for entry in entries {
        let entry = entry.with_context(|| lines::name(dir))?;
        let kind = entry.file_type().with_context(|| lines::name(&entry.path()))?;
        let before = prefix.len();
        prefix.extend_from_slice(entry.file_name().as_encoded_bytes());
        if kind.is_dir() {
            prefix.push(b'/');
            walk(&entry.path(), prefix, each)?;
        } else {
            check_key(prefix).with_context(|| lines::name(&entry.path()))?;
            each(prefix)?;
        }
        prefix.truncate(before);
    }
    Ok(())
}

/// The hashes of all listed keys.
struct Listed {
    keys: u64,
    hashes: Vec<u128>,
    seed: u64,
}

impl Listed {
    fn new() -> Self {
        // Of this process alone: nobody can have made keys that collide.
        Self { keys: 0, hashes: Vec::new(), seed: RandomState::new().hash_one(0) }
    }

    fn note(&mut self, key: &[u8]) {
        self.keys += 1;
        self.hashes.push(xxh3_128_with_seed(key, self.seed));
    }

    fn sort(&mut self) {
        self.hashes.sort_unstable();
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.hashes.binary_search(&xxh3_128_with_seed(key, self.seed)).is_ok()
    }
}

/// The keys that the host holds, in a file without a name.
struct Held {
    file: File,
    keys: u64,
}

impl Held {
    /// Writes down what the host holds. A set that is not there holds nothing.
    fn of(client: &mut Client, set: &str) -> anyhow::Result<Self> {
        let file = tempfile::tempfile().context("cannot make a temporary file")?;
        let mut out = BufWriter::with_capacity(1 << 16, &file);
        let (mut cursor, mut keys) = (b"0".to_vec(), 0);
        loop {
            let words: [&[u8]; 5] = [b"UMBEL.KEYS", set.as_bytes(), &cursor, b"COUNT", b"1000"];
            let answer = match client.ask(&words) {
                Err(error) if no_such_set(&error) => break,
                answer => answer?,
            };
            let Some((next, page)) = page(&answer) else {
                return Err(wrong_answer(client.address(), &answer));
            };
            for key in page {
                let length = u32::try_from(key.len()).context("a key has over 4 GiB")?;
                let written =
                    out.write_all(&length.to_le_bytes()).and_then(|()| out.write_all(key));
                written.context("cannot write to a temporary file")?;
                keys += 1;
            }
            if next == b"0" {
                break;
            }
            cursor = next.to_vec();
        }
        out.flush().context("cannot write to a temporary file")?;
        drop(out);
        Ok(Self { file, keys })
    }

    fn read(mut self, mut each: impl FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let cannot = "cannot read a temporary file";
        self.file.rewind().context(cannot)?;
        let mut input = BufReader::with_capacity(1 << 16, self.file);
        let mut key = Vec::new();
        for _ in 0..self.keys {
            let mut length = [0; 4];
            input.read_exact(&mut length).context(cannot)?;
            key.resize(u32::from_le_bytes(length) as usize, 0);
            input.read_exact(&mut key).context(cannot)?;
            each(&key)?;
        }
        Ok(())
    }
}

/// The next cursor, and some keys.
fn page(answer: &Value) -> Option<(&[u8], Vec<&[u8]>)> {
    match answer {
        Value::Array(parts) => match &parts[..] {
            [cursor, keys] => Some((text(cursor)?, texts(keys)?)),
            _ => None,
        },
        _ => None,
    }
}
