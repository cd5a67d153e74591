//! `umbel store`: reads and changes a durable catalogue from the terminal.
//!
//! Every command opens the folder, does one thing and closes it cleanly. A folder that another
//! process has open for writing is rejected; only `put` and `load` create a store where there is
//! none.
//! `get`, `scan`, `verify` and `stat` write nothing.

mod load;
mod long;
mod records;
mod stat;
mod tuning;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::Value;
use umbel_store::{Options, Reader, Scan, Store};

use crate::output::{part, print};
use long::How;
pub(crate) use long::{bytes_bar, follow};
use records::Format;

/// Keep a durable catalogue of keys and small values in a directory
#[derive(Args)]
#[command(after_help = "Examples:
  umbel store put catalogue layer/4f53 host-7
  umbel store get catalogue layer/4f53
  umbel store load catalogue records.tsv
  umbel store stat catalogue --json

To see what the filter of paper 2 saves for your own records: load them, integrate, load changes
with little memory, and compare the statistics with and without the filter.
  umbel store load catalogue records.tsv && umbel store integrate catalogue
  umbel store load catalogue changes.tsv --memory-budget 1M
  umbel store stat catalogue
  umbel store stat catalogue --no-filter

Every command reads all changes that are not integrated yet when it opens the store: about
0.4 s per million. `umbel store integrate` merges them; a store with a master alone opens at
once, however large it is. Reading commands write nothing, and work on write-protected media.")]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    action: Action,
    /// Print JSON instead of text; a scan prints an object a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Set a key's value; the store is created if it does not exist
    #[command(after_help = "Example:\n  umbel store put catalogue layer/4f53 host-7")]
    Put {
        /// Directory of the store
        dir: PathBuf,
        /// Key, at most 65535 bytes
        key: OsString,
        /// Value, at most 1 MiB
        value: OsString,
    },
    /// Print a key's value; exit 1 if the key is absent
    #[command(after_help = "Example:\n  umbel store get catalogue layer/4f53")]
    Get {
        /// Directory of the store
        dir: PathBuf,
        /// Key
        key: OsString,
    },
    /// Remove keys; keys that are not in the store are ignored
    #[command(
        after_help = "Examples:\n  umbel store delete catalogue layer/4f53 layer/9a10\n  umbel store delete catalogue --file gone.txt\n  umbel store scan catalogue --prefix old/ --json | umbel store delete catalogue --file - --format json"
    )]
    Delete(load::Delete),
    /// Print records in key order, one a line, key and value with a tab between
    ///
    /// What is printed can be loaded again. A key with a tab or a line break in it, and a value
    /// with a line break in it, cannot be written as a line of text: they are an error that
    /// ends the scan, and --json prints them. On a terminal such characters are escaped.
    #[command(
        after_help = "Examples:\n  umbel store scan catalogue --prefix layer/\n  umbel store scan catalogue --from a --to m > records.tsv\n  umbel store scan catalogue --json > records.jsonl"
    )]
    Scan(ScanArgs),
    /// Put the records of a file or of standard input, as `scan` prints them
    ///
    /// Lines of key, tab, value, or of JSON. A line ends with `\n` or `\r\n`; a value may have tabs
    /// in it. If a line is not a record, nothing is changed.
    #[command(
        after_help = "Examples:\n  umbel store load catalogue records.tsv\n  umbel store scan old --json | umbel store load catalogue"
    )]
    Load(load::Load),
    /// Merge all changes into a new master; an interrupted merge continues where it stopped
    #[command(after_help = "Example:\n  umbel store integrate catalogue")]
    Integrate {
        /// Directory of the store
        dir: PathBuf,
    },
    /// Copy the store into a backup
    ///
    /// Every file is copied; file systems that can share blocks between files (btrfs, XFS) do so.
    /// Damage to the store does not reach the backup.
    #[command(
        after_help = "Examples:\n  umbel store backup catalogue /backup/catalogue\n  umbel store backup catalogue /backup/catalogue --incremental"
    )]
    Backup {
        /// Directory of the store
        dir: PathBuf,
        /// Directory of the backup: empty, or with --incremental an earlier backup
        to: PathBuf,
        /// Copy only what changed since the master was made
        #[arg(long)]
        incremental: bool,
        /// Hard-link files that never change instead of copying them, where that can be done: it
        /// takes no space, but a damaged byte is damaged in store and backup
        #[arg(long, conflicts_with = "incremental")]
        link: bool,
    },
    /// Create a store from a backup and verify everything
    #[command(after_help = "Example:\n  umbel store restore /backup/catalogue catalogue")]
    Restore {
        /// Directory of the backup
        from: PathBuf,
        /// Directory for the store: must be empty or not exist yet
        dir: PathBuf,
    },
    /// Read and verify everything
    #[command(after_help = "Example:\n  umbel store verify catalogue")]
    Verify {
        /// Directory of the store
        dir: PathBuf,
    },
    /// Show what the store holds and how its filter compares with the formula
    #[command(after_help = "Example:\n  umbel store stat catalogue --json")]
    Stat(stat::StatArgs),
}

#[derive(Args)]
struct ScanArgs {
    /// Directory of the store
    dir: PathBuf,
    /// Only keys with this prefix
    #[arg(long, conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    /// Only keys from this one on
    #[arg(long)]
    from: Option<OsString>,
    /// Only keys before this one
    #[arg(long)]
    to: Option<OsString>,
}

impl StoreCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let outcome = match self.action {
            Action::Put { dir, key, value } => return put(&dir, key, value),
            Action::Get { dir, key } => return get(&dir, key, self.json),
            Action::Scan(scan) => return scan.run(self.json),
            Action::Stat(stat) => return stat.run(self.json),
            Action::Delete(delete) => delete.run()?,
            Action::Load(load) => load.run()?,
            Action::Integrate { dir } => long::integrate(&dir)?,
            Action::Backup { dir, to, incremental, link } => {
                let how = match (incremental, link) {
                    (true, _) => How::Add,
                    (false, true) => How::Link,
                    (false, false) => How::Copy,
                };
                long::backup(&dir, &to, how)?
            }
            Action::Restore { from, dir } => long::restore(&from, &dir)?,
            Action::Verify { dir } => long::verify(&dir)?,
        };
        let Outcome { text, json } = outcome;
        print(&if self.json { format!("{json}\n") } else { format!("{text}\n") })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Result of a command, as text for people and as JSON for scripts.
struct Outcome {
    text: String,
    json: Value,
}

/// Opens an existing store.
fn open(dir: &std::path::Path) -> anyhow::Result<Store> {
    open_with(dir, Options::new().create(false).background(false))
}

fn open_with(dir: &std::path::Path, options: Options) -> anyhow::Result<Store> {
    Store::open(dir, options).with_context(|| format!("cannot open {}", dir.display()))
}

/// Opens an existing store for reading only.
fn read(dir: &std::path::Path) -> anyhow::Result<Reader> {
    Reader::open(dir).with_context(|| format!("cannot open {}", dir.display()))
}

fn put(dir: &std::path::Path, key: OsString, value: OsString) -> anyhow::Result<ExitCode> {
    let (key, value) = (key.into_encoded_bytes(), value.into_encoded_bytes());
    // Check before a folder is created.
    anyhow::ensure!(
        key.len() <= umbel_store::MAX_KEY,
        "a key has at most {} bytes, not {}",
        umbel_store::MAX_KEY,
        key.len()
    );
    let store = open_with(dir, Options::new().background(false))?;
    store.put(&key, &value)?;
    Ok(ExitCode::SUCCESS)
}

fn get(dir: &std::path::Path, key: OsString, json: bool) -> anyhow::Result<ExitCode> {
    let key = key.into_encoded_bytes();
    let store = read(dir)?;
    let Some(value) = store.snapshot().get(&key)? else {
        return Ok(ExitCode::from(1));
    };
    write_lines(|out| {
        if json {
            return records::print(out, Format::Json, &key, &value);
        }
        out.write_all(&part(&value))?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

impl ScanArgs {
    fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let store = read(&self.dir)?;
        let snapshot = store.snapshot();
        let scan = match self.prefix {
            Some(prefix) => snapshot.scan_prefix(&prefix.into_encoded_bytes())?,
            None => {
                let from = self.from.map(OsString::into_encoded_bytes).unwrap_or_default();
                match self.to.map(OsString::into_encoded_bytes) {
                    Some(to) => snapshot.scan(&from[..]..&to[..])?,
                    None => snapshot.scan(&from[..]..)?,
                }
            }
        };
        print_records(scan, if json { Format::Json } else { Format::Text })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn print_records(scan: Scan, format: Format) -> anyhow::Result<()> {
    write_lines(|out| {
        for record in scan {
            let (key, value) = record?;
            records::print(out, format, &key, &value)?;
        }
        Ok(())
    })
}

/// Writes bytes to standard output; a closed pipe is not an error. Lines before an error are still
/// printed.
fn write_lines(
    write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'_>>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = write(&mut out);
    let flushed = out.flush().map_err(anyhow::Error::new);
    match written.and(flushed) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        outcome => outcome,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
