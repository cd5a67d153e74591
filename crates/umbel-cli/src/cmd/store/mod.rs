//! `umbel store`: the durable catalogue from the terminal.
//!
//! Every command opens the folder, does one thing and closes it in good order. A folder that
//! another process has open is refused; one without a store is made into one only by `put`
//! and `load`.

mod load;
mod long;
mod stat;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use umbel_store::{Batch, Options, Scan, Store};

use crate::output::{JsonKey, json_line, part, print};

/// Keep a durable catalogue of keys and small values in a directory
#[derive(Args)]
#[command(after_help = "Examples:
  umbel store put catalogue layer/4f53 host-7
  umbel store get catalogue layer/4f53
  umbel store load catalogue records.tsv
  umbel store stat catalogue --json")]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    action: Action,
    /// Print JSON instead of text; a scan prints an object a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Set a key's value; makes the store if there is none
    #[command(after_help = "Example:\n  umbel store put catalogue layer/4f53 host-7")]
    Put {
        /// Folder of the store
        dir: PathBuf,
        /// Key, at most 65535 bytes
        key: OsString,
        /// Value, at most 1 MiB
        value: OsString,
    },
    /// Print a key's value; exit 1 if the key is absent
    #[command(after_help = "Example:\n  umbel store get catalogue layer/4f53")]
    Get {
        /// Folder of the store
        dir: PathBuf,
        /// Key
        key: OsString,
    },
    /// Remove keys; absent ones are passed over
    #[command(after_help = "Example:\n  umbel store delete catalogue layer/4f53 layer/9a10")]
    Delete {
        /// Folder of the store
        dir: PathBuf,
        /// Keys
        #[arg(required = true)]
        keys: Vec<OsString>,
    },
    /// Print records in key order, one a line, key and value with a tab between
    #[command(
        after_help = "Examples:\n  umbel store scan catalogue --prefix layer/\n  umbel store scan catalogue --from a --to m > records.tsv"
    )]
    Scan(ScanArgs),
    /// Put the records of a file or of standard input: lines of key, tab, value
    #[command(after_help = "Example:\n  umbel store load catalogue records.tsv")]
    Load(load::Load),
    /// Merge all changes into a new master; one that was interrupted goes on where it was
    #[command(after_help = "Example:\n  umbel store integrate catalogue")]
    Integrate {
        /// Folder of the store
        dir: PathBuf,
    },
    /// Copy the store while it stays as it is
    #[command(
        after_help = "Examples:\n  umbel store backup catalogue /backup/catalogue\n  umbel store backup catalogue /backup/catalogue --incremental"
    )]
    Backup {
        /// Folder of the store
        dir: PathBuf,
        /// Folder of the backup: empty, or with --incremental an earlier backup
        to: PathBuf,
        /// Copy only what changed since the master was made
        #[arg(long)]
        incremental: bool,
    },
    /// Make a store from a backup, checking everything on the way
    #[command(after_help = "Example:\n  umbel store restore /backup/catalogue catalogue")]
    Restore {
        /// Folder of the backup
        from: PathBuf,
        /// Folder for the store: empty or not there yet
        dir: PathBuf,
    },
    /// Read everything and check it
    #[command(after_help = "Example:\n  umbel store verify catalogue")]
    Verify {
        /// Folder of the store
        dir: PathBuf,
    },
    /// What the store holds, and how its filter fares against the formula
    #[command(after_help = "Example:\n  umbel store stat catalogue --json")]
    Stat(stat::StatArgs),
}

#[derive(Args)]
struct ScanArgs {
    /// Folder of the store
    dir: PathBuf,
    /// Only keys that start so
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
        let told = match self.action {
            Action::Put { dir, key, value } => return put(&dir, key, value),
            Action::Get { dir, key } => return get(&dir, key, self.json),
            Action::Scan(scan) => return scan.run(self.json),
            Action::Stat(stat) => return stat.run(self.json),
            Action::Delete { dir, keys } => delete(&dir, keys)?,
            Action::Load(load) => load.run()?,
            Action::Integrate { dir } => long::integrate(&dir)?,
            Action::Backup { dir, to, incremental } => long::backup(&dir, &to, incremental)?,
            Action::Restore { from, dir } => long::restore(&from, &dir)?,
            Action::Verify { dir } => long::verify(&dir)?,
        };
        let Told { text, json } = told;
        print(&if self.json { format!("{json}\n") } else { format!("{text}\n") })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a command did, for people and for scripts.
struct Told {
    text: String,
    json: Value,
}

/// Opens a store that is there.
fn open(dir: &std::path::Path) -> anyhow::Result<Store> {
    open_with(dir, Options::new().create(false).background(false))
}

fn open_with(dir: &std::path::Path, options: Options) -> anyhow::Result<Store> {
    Store::open(dir, options).with_context(|| format!("cannot open {}", dir.display()))
}

fn put(dir: &std::path::Path, key: OsString, value: OsString) -> anyhow::Result<ExitCode> {
    let (key, value) = (key.into_encoded_bytes(), value.into_encoded_bytes());
    // Checked before a folder is made for nothing.
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
    let Some(value) = open(dir)?.get(&key)? else {
        return Ok(ExitCode::from(1));
    };
    write_lines(|out| {
        if json {
            return write_json(out, &key, &value);
        }
        out.write_all(&part(&value))?;
        out.write_all(b"\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn delete(dir: &std::path::Path, keys: Vec<OsString>) -> anyhow::Result<Told> {
    let store = open(dir)?;
    let mut batch = Batch::new();
    let asked = keys.len();
    for key in keys {
        batch.delete(&key.into_encoded_bytes());
    }
    let deleted = store.write(batch)?.deleted;
    Ok(Told {
        text: format!("deleted {deleted} of {asked}"),
        json: json!({ "deleted": deleted, "asked": asked }),
    })
}

impl ScanArgs {
    fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let store = open(&self.dir)?;
        let scan = match self.prefix {
            Some(prefix) => store.scan_prefix(&prefix.into_encoded_bytes())?,
            None => {
                let from = self.from.map(OsString::into_encoded_bytes).unwrap_or_default();
                match self.to.map(OsString::into_encoded_bytes) {
                    Some(to) => store.scan(&from[..]..&to[..])?,
                    None => store.scan(&from[..]..)?,
                }
            }
        };
        print_records(scan, json)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn print_records(scan: Scan, json: bool) -> anyhow::Result<()> {
    let mut damaged = Ok(());
    write_lines(|out| {
        for record in scan {
            match record {
                Ok((key, value)) if json => write_json(out, &key, &value)?,
                Ok((key, value)) => {
                    out.write_all(&part(&key))?;
                    out.write_all(b"\t")?;
                    out.write_all(&part(&value))?;
                    out.write_all(b"\n")?;
                }
                Err(error) => damaged = Err(error),
            }
        }
        Ok(())
    })?;
    Ok(damaged?)
}

/// A record as a line of JSON.
fn write_json(out: &mut impl io::Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    let record = json!({ "key": JsonKey::of(key), "value": JsonKey::of(value) });
    writeln!(out, "{}", json_line(&record)?)
}

/// Writes to standard output as bytes; a reader that has seen enough is no error.
fn write_lines(
    write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'_>>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
