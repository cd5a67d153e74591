//! `umbel sync`: makes a set equal to what a cache really holds.
//!
//! First the host's keys are saved, then the listing is read and its keys are added, then saved
//! keys that the listing lacks are removed. In this order, a key that is added while this runs is
//! never removed because an older listing does not have it.
//!
//! Always true: memory contains 16 bytes per listed key, its 128-bit hash (with 10^14 keys, a stale
//! key would be kept with a probability of 10^-24); the host's keys are saved in a temporary file
//! that has no name and disappears with the process.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Serialize;
use umbel_node::watch::{Synced, Tree};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::files::FileArgs;
use super::keys::{self, refuse_nothing};
use super::list::for_each_page;
use super::{Options, set_name};
use crate::client::{Asked, Client, check_key, flags, no_such_set, stream, wrong_answer};
use crate::lines::{self, Source};
use crate::output::{count, print};
use crate::progress::Progress;

/// Make a set equal to a listing of what the cache holds
#[derive(Args)]
#[command(
    override_usage = "umbel sync [OPTIONS] <SET> <--dir <DIR>|--file <FILE>|->",
    after_help = "\
The keys of a directory are the relative paths of its files, separated by /, or their names
(--key). Temporary files and symbolic links out of the directory are ignored.
With --every, a pass that fails is reported on standard error, and the next pass tries again.

Examples:
  umbel sync images --dir /var/cache/layers --every 60
  umbel sync blobs --dir /var/lib/registry --include '*/data' --min-age 5s
  umbel sync http --file listing.txt
  redis-cli --scan | umbel sync sessions -"
)]
pub(crate) struct Sync {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    listing: ListingArgs,
    #[command(flatten)]
    files: FileArgs,
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
    fn listing(&self, files: &FileArgs) -> Listing<'_> {
        match (&self.dir, &self.file) {
            (Some(dir), _) => Listing::Dir(files.tree(dir)),
            (None, Some(file)) => Listing::Lines(Source::of(file)),
            (None, None) => Listing::Lines(Source::Stdin),
        }
    }
}

/// The listing that the set is made equal to.
pub(super) enum Listing<'a> {
    Dir(Tree),
    Lines(Source<'a>),
}

/// Result of one pass, as it is printed.
#[derive(Serialize)]
struct Report<'a> {
    set: &'a str,
    listed: u64,
    added: u64,
    removed: u64,
}

impl Sync {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        ensure!(
            self.listing.dir.is_some() || self.files.is_default(),
            "--include, --exclude, --min-age, --key and --temporary choose files: they need --dir"
        );
        let listing = self.listing.listing(&self.files);
        let once = matches!(listing, Listing::Lines(Source::Stdin));
        ensure!(
            !once || self.every.is_none(),
            "standard input can be read only once: --every needs --dir or --file"
        );
        let Self { set, options, allow_empty, .. } = self;
        let target = Target { set, options, allow_empty: *allow_empty };
        target.report(target.pass(&listing)?)?;
        let Some(every) = self.every.map(Duration::from_secs_f64) else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut next = Instant::now();
        loop {
            // If a pass took longer than the interval, start the next one at once.
            next = (next + every).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            match target.pass(&listing) {
                Ok(synced) => target.report(synced)?,
                Err(error) => crate::complain(&format!("{error:#}")),
            }
        }
    }
}

/// The set that becomes equal to a listing.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) set: &'a str,
    pub(super) options: &'a Options,
    pub(super) allow_empty: bool,
}

impl Target<'_> {
    pub(super) fn report(&self, synced: Synced) -> anyhow::Result<()> {
        let (set, Synced { listed, added, removed }) = (self.set, synced);
        if self.options.json {
            let report = Report { set, listed, added, removed };
            return print(&format!("{}\n", serde_json::to_string(&report)?));
        }
        let (listed, added, removed) = (count(listed), count(added), count(removed));
        print(&format!("{set}: {listed} keys listed, {added} added, {removed} removed\n"))
    }

    pub(super) fn pass(&self, listing: &Listing<'_>) -> anyhow::Result<Synced> {
        listing.check()?;
        let held = KeyList::of(&mut self.options.at.connect()?, self.set)?;
        // An empty listing and an empty set agree: a cache may be empty at first.
        let may_be_empty = self.allow_empty || held.keys == 0;
        let (listed, added) = self.add(listing, may_be_empty)?;
        let removed = self.remove(held, &listed, listing)?;
        Ok(Synced { listed: listed.keys, added, removed })
    }

    fn add(&self, listing: &Listing<'_>, may_be_empty: bool) -> anyhow::Result<(Listed, u64)> {
        let mut listed = Listed::new();
        let added = self.change("UMBEL.ADD", |each| {
            listing.read(&Progress::new("adding"), &mut |key| {
                listed.note(key);
                each(key)
            })
        })?;
        refuse_nothing(listed.keys, may_be_empty, &listing.name())?;
        listed.sort();
        Ok((listed, added))
    }

    fn remove(&self, held: KeyList, listed: &Listed, listing: &Listing<'_>) -> anyhow::Result<u64> {
        self.change("UMBEL.REM", |each| {
            held.read(|key| {
                let gone = !listed.contains(key) && !listing.has_again(key);
                if gone { each(key) } else { Ok(()) }
            })
        })
    }

    /// Sends keys, and counts those that changed the set.
    pub(super) fn change<R>(&self, command: &str, read: R) -> anyhow::Result<u64>
    where
        R: FnOnce(&mut dyn FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> + Send,
    {
        let at = &self.options.at;
        let mut changed = 0;
        stream(at, &Asked::new(&[command, self.set]), read, |batch, answer| {
            let flags =
                flags(answer, batch.len()).ok_or_else(|| wrong_answer(at.address(), answer))?;
            changed += flags.filter(|flag| *flag).count() as u64;
            Ok(())
        })?;
        Ok(changed)
    }
}

impl Listing<'_> {
    fn name(&self) -> String {
        match self {
            Self::Dir(tree) => lines::name(tree.root()),
            Self::Lines(source) => source.name(),
        }
    }

    /// Finds errors that can be detected before anything changes.
    fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Dir(tree) => tree.check().with_context(|| lines::name(tree.root())),
            Self::Lines(source) => keys::check(*source),
        }
    }

    fn read(
        &self,
        progress: &Progress,
        each: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Dir(tree) => tree
                .scan(&mut |key, path| {
                    check_key(key).with_context(|| lines::name(&tree.root().join(path)))?;
                    each(key)
                })
                .with_context(|| lines::name(tree.root())),
            Self::Lines(source) => keys::read(*source, progress, each),
        }
    }

    /// Whether a key that was not listed is there by now. Only a directory can be asked, and only if
    /// keys are paths.
    fn has_again(&self, key: &[u8]) -> bool {
        match self {
            Self::Dir(tree) => tree.has(key),
            Self::Lines(_) => false,
        }
    }
}

/// The hashes of all listed keys.
struct Listed {
    keys: u64,
    hashes: Vec<u128>,
    seed: u64,
}

impl Listed {
    fn new() -> Self {
        // A random seed per process: nobody can choose keys that collide.
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
struct KeyList {
    file: File,
    keys: u64,
}

impl KeyList {
    /// Saves the keys that the host holds. A set that does not exist has no keys.
    fn of(client: &mut Client, set: &str) -> anyhow::Result<Self> {
        let file = tempfile::tempfile().context("cannot make a temporary file")?;
        let mut out = BufWriter::with_capacity(1 << 16, &file);
        let mut keys = 0;
        let written = for_each_page(client, set, |page| {
            for key in page {
                let length = u32::try_from(key.len()).context("a key has over 4 GiB")?;
                let written =
                    out.write_all(&length.to_le_bytes()).and_then(|()| out.write_all(key));
                written.context("cannot write to a temporary file")?;
                keys += 1;
            }
            Ok(())
        });
        match written {
            Err(error) if no_such_set(&error) => {}
            written => written?,
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
