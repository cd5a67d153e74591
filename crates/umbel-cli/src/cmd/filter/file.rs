//! Filter files: read whole and checked, written whole or not at all.
//!
//! Always true: a file is replaced by renaming a complete one over it, so that a reader,
//! a full disk or a crash sees the old file or the new one; and only umbel files are ever
//! replaced, so that a key file named by mistake survives.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use umbel::codec::{AnyFilter, DecodeError, Decoder, Kind};
use umbel::params::ParamError;

use super::memory::{MemoryLimit, too_large};
pub(super) use crate::lines::name;
use crate::whole_file;

/// Reads a filter to be asked by key, with a decoder that may know its secret seed.
pub(in crate::cmd) fn read_filter(
    path: &Path,
    decoder: Decoder,
    limit: MemoryLimit,
) -> anyhow::Result<AnyFilter> {
    decode(&read_bytes(path, limit)?, path, decoder, limit)
}

/// Reads a filter to be looked at or joined: its seed may stay unknown.
pub(in crate::cmd) fn read_any(path: &Path, limit: MemoryLimit) -> anyhow::Result<AnyFilter> {
    read_filter(path, Decoder::new().accept_locked(), limit)
}

/// Turns the bytes of a file into the filter that they hold.
pub(in crate::cmd) fn decode(
    bytes: &[u8],
    path: &Path,
    decoder: Decoder,
    limit: MemoryLimit,
) -> anyhow::Result<AnyFilter> {
    decoder.limit(limit.get()).filter(bytes).map_err(|error| explain(error, path))
}

/// Reads the bytes of a file.
pub(in crate::cmd) fn read_bytes(path: &Path, limit: MemoryLimit) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| name(path))?;
    // A coded filter is hardly longer than the filter: a file beyond the limit is no use.
    let longest = limit.get().saturating_add(4096);
    file.take(longest).read_to_end(&mut bytes).with_context(|| name(path))?;
    ensure!(
        (bytes.len() as u64) < longest,
        "{}: {}",
        name(path),
        too_large(bytes.len() as u64, limit.get())
    );
    Ok(bytes)
}

/// Names the file, and what to do about the error where something can be done.
pub(in crate::cmd) fn explain(error: DecodeError, path: &Path) -> anyhow::Error {
    let file = name(path);
    match error {
        DecodeError::Kind { found: Kind::Delta, .. } => anyhow!(
            "{file}: this is a delta, not a filter: umbel filter apply turns the filter that it \
             was made against into the next one"
        ),
        DecodeError::TooLarge { needed, limit } => anyhow!("{file}: {}", too_large(needed, limit)),
        DecodeError::Locked(fingerprint) => anyhow!(
            "{file}: the filter was made with a secret seed ({fingerprint}): name its file with \
             --seed-file"
        ),
        DecodeError::Param(error @ ParamError::Memory(_)) => anyhow!("{file}: {error}"),
        error => anyhow!("{file}: {error}"),
    }
}

/// Where a result will be written, checked before the work begins.
#[derive(Debug)]
pub(in crate::cmd) struct Target {
    path: PathBuf,
    replaced: Option<Metadata>,
}

impl Target {
    /// Checks that a file may be written there.
    pub(in crate::cmd) fn new(path: &Path) -> anyhow::Result<Self> {
        // A link stays a link, and the file that it leads to is replaced.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let replaced = match fs::metadata(&real) {
            Ok(metadata) if metadata.is_dir() => bail!("{}: this is a directory", name(path)),
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| name(path)),
        };
        if replaced.as_ref().is_some_and(Metadata::is_file) {
            ensure!(
                is_umbel_or_empty(&real).with_context(|| name(path))?,
                "{}: the file is there already and is not an umbel file: it is not overwritten",
                name(path)
            );
        }
        let parent = whole_file::parent(&real);
        ensure!(parent.is_dir(), "{}: there is no directory {}", name(path), name(parent));
        Ok(Self { path: real, replaced })
    }

    /// Whether a rename replaces what is there; pipes and devices are written to instead.
    pub(in crate::cmd) fn is_file(&self) -> bool {
        self.replaced.as_ref().is_none_or(Metadata::is_file)
    }

    /// Writes the file: all of it, or nothing.
    pub(in crate::cmd) fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let written = if self.is_file() {
            whole_file::write(&self.path, bytes, self.replaced.as_ref())
        } else {
            self.stream(bytes)
        };
        written.with_context(|| format!("{}: not written", name(&self.path)))
    }

    fn stream(&self, bytes: &[u8]) -> std::io::Result<()> {
        OpenOptions::new().write(true).open(&self.path)?.write_all(bytes)
    }
}

fn is_umbel_or_empty(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == b"UMBL")
}
