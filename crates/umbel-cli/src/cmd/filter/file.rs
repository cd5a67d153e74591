//! Filter files: read and checked as a whole, written completely or not at all.
//!
//! Always true: a file is replaced by renaming a complete one over it, so that a reader sees the
//! old file or the new one, also after a crash or on a full disk. Only umbel files with the same
//! kind of content are ever replaced, so that a key file or a base named by mistake survives.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use umbel::Mismatch;
use umbel::codec::{AnyFilter, DecodeError, Decoder, DeltaError, Kind};

use super::memory::{MemoryLimit, too_large};
pub(super) use crate::lines::name;
use crate::whole_file;

/// Reads a filter that will be queried, with a decoder that may know its secret seed.
pub(in crate::cmd) fn read_filter(
    path: &Path,
    decoder: Decoder,
    limit: MemoryLimit,
) -> anyhow::Result<AnyFilter> {
    decode(&read_bytes(path, limit)?, path, decoder, limit)
}

/// Reads a filter to inspect or combine: its seed may stay unknown.
pub(in crate::cmd) fn read_any(path: &Path, limit: MemoryLimit) -> anyhow::Result<AnyFilter> {
    read_filter(path, Decoder::new().accept_locked(), limit)
}

/// Decodes the filter in the bytes of a file.
pub(in crate::cmd) fn decode(
    bytes: &[u8],
    path: &Path,
    decoder: Decoder,
    limit: MemoryLimit,
) -> anyhow::Result<AnyFilter> {
    if Content::of(bytes) == Some(Content::Table) {
        bail!("{}: this is a table of prefixes: umbel prefix reads it", name(path));
    }
    decoder.limit(limit.of_file(bytes.len())).filter(bytes).map_err(|error| explain(error, path))
}

/// Reads the bytes of a file.
pub(in crate::cmd) fn read_bytes(path: &Path, limit: MemoryLimit) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| name(path))?;
    let is_directory = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    ensure!(!is_directory, "{}: this is a directory, not a file", name(path));
    // An encoded filter is hardly longer than the filter in memory: a file beyond the limit cannot
    // be used.
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

/// Adds the name of the file to the error and, where possible, what to do about it.
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
        DecodeError::WrongSeed(wrong) => {
            anyhow!("{file}: {wrong}: name the file of the first with --seed-file")
        }
        DecodeError::Checksum { .. } | DecodeError::Truncated => {
            anyhow!("{file}: {error}: take another copy of it")
        }
        error => anyhow!("{file}: {error}"),
    }
}

/// Adds advice to errors about filters that cannot be combined.
pub(super) fn alike(error: anyhow::Error) -> anyhow::Error {
    let is_mismatch =
        error.is::<Mismatch>() || matches!(error.downcast_ref(), Some(DeltaError::Mismatch(_)));
    if is_mismatch {
        return anyhow!(
            "{error}: build both with the same --items and --false-positive, or the same --bits \
             and --hashes, and the same seed"
        );
    }
    error
}

/// Kind of content of an umbel file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum Content {
    Filter,
    Delta,
    Table,
}

impl Content {
    /// Number of bytes needed to recognise the content.
    const TELLING: u64 = 6;

    /// The content of a file that starts with these bytes, if it is an umbel file of a known kind.
    pub(in crate::cmd) fn of(start: &[u8]) -> Option<Self> {
        // The magic bytes, the version, the kind (docs/wire.md).
        match start.strip_prefix(b"UMBL")? {
            [_, 0x01..=0x0F, ..] => Some(Self::Filter),
            [_, 0x10..=0x1F, ..] => Some(Self::Delta),
            [_, 0x20..=0x22, ..] => Some(Self::Table),
            _ => None,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Filter => "a filter",
            Self::Delta => "a delta",
            Self::Table => "a table of prefixes",
        })
    }
}

/// Where a result will be written, checked before the work begins.
#[derive(Debug)]
pub(in crate::cmd) struct Target {
    path: PathBuf,
    replaced: Option<Metadata>,
}

impl Target {
    /// Checks that a file with this content may be written there.
    pub(in crate::cmd) fn new(path: &Path, content: Content) -> anyhow::Result<Self> {
        ensure!(path.as_os_str() != "-", "'-' names no file to write: /dev/stdout does");
        let real = behind_links(path)?;
        let replaced = match fs::metadata(&real) {
            Ok(metadata) if metadata.is_dir() => bail!("{}: this is a directory", name(path)),
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| name(path)),
        };
        if replaced.as_ref().is_some_and(Metadata::is_file) {
            check_replaced(&real, content).with_context(|| name(path))?;
        }
        let parent = whole_file::parent(&real);
        ensure!(parent.is_dir(), "{}: there is no directory {}", name(path), name(parent));
        Ok(Self { path: real, replaced })
    }

    /// Whether this path names the same, existing file.
    pub(super) fn is_same(&self, path: &Path) -> bool {
        self.replaced.is_some()
            && fs::canonicalize(path).is_ok_and(|path| path == self.path)
            && self.is_file()
    }

    /// Whether the target is replaced by renaming; pipes and devices are written to instead.
    pub(in crate::cmd) fn is_file(&self) -> bool {
        self.replaced.as_ref().is_none_or(Metadata::is_file)
    }

    /// Writes the file completely or not at all.
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

/// Resolves symbolic links: a link stays a link, and the file it points to is created or replaced.
fn behind_links(path: &Path) -> anyhow::Result<PathBuf> {
    /// Maximum number of links that Linux follows.
    const MAX_LINKS: usize = 40;
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(real);
    }
    // A pipe such as /dev/stdout exists, but has no canonical path.
    if fs::metadata(path).is_ok() {
        return Ok(path.to_owned());
    }
    // Nothing exists there, or a link to a file that does not exist yet.
    let mut real = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&real) {
            Ok(next) => real = whole_file::parent(&real).join(next),
            Err(_) => return Ok(real),
        }
    }
    bail!("{}: too many symbolic links", name(path))
}

/// Checks that a file may be replaced: it is empty, or an umbel file with the same kind of content.
fn check_replaced(path: &Path, content: Content) -> anyhow::Result<()> {
    let mut start = Vec::new();
    File::open(path)?.take(Content::TELLING).read_to_end(&mut start)?;
    ensure!(
        start.is_empty() || start.starts_with(b"UMBL"),
        "the file is there already and is not an umbel file: it is not overwritten"
    );
    match Content::of(&start) {
        Some(other) if other != content => {
            bail!("the file is there already and is {other}: it is not overwritten by {content}")
        }
        _ => Ok(()),
    }
}
