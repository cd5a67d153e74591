//! Seeds on the command line: a number that is stored in the file, or a secret that is not.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use umbel::codec::Decoder;
use umbel::{HashId, KeyHasher, Seed};

use super::file::name;
use super::number;

/// How a new filter hashes its keys.
#[derive(Args)]
pub(super) struct HasherArgs {
    /// Seed of the hash, 42 or 0x2a, stored in the filter: no later command needs it
    #[arg(long, value_name = "S", value_parser = number::seed, conflicts_with = "seed_file", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// File whose bytes are the secret seed: the filter keeps only a fingerprint, and add,
    /// remove and query need the file again
    #[arg(long, value_name = "FILE")]
    seed_file: Option<PathBuf>,
    /// Hash of the keys [default: xxh3, the fastest; with --seed-file siphash-1-3, since only
    /// a keyed hash makes a secret worth keeping]
    #[arg(long, value_name = "HASH", value_parser = hash_names())]
    hash: Option<HashId>,
}

impl HasherArgs {
    pub(super) fn hasher(&self) -> anyhow::Result<KeyHasher> {
        if let Some(path) = &self.seed_file {
            let hash = self.hash.unwrap_or(HashId::SipHash13);
            return Ok(KeyHasher::secret(hash, read_secret(path)?));
        }
        let seed = self.seed.map(Seed::from_number).unwrap_or_default();
        Ok(KeyHasher::new(self.hash.unwrap_or_default(), seed))
    }
}

/// What a command that hashes keys needs for a filter whose seed is secret.
#[derive(Args)]
pub(super) struct SecretArgs {
    /// File whose bytes are the secret seed, for a filter that was built with one
    #[arg(long, value_name = "FILE")]
    seed_file: Option<PathBuf>,
}

impl SecretArgs {
    /// A decoder that knows the secret, if there is one.
    pub(super) fn decoder(&self) -> anyhow::Result<Decoder> {
        let decoder = Decoder::new();
        Ok(match &self.seed_file {
            Some(path) => decoder.seed(read_secret(path)?),
            None => decoder,
        })
    }
}

/// Maximum length of a secret: a longer file was named by mistake.
const LONGEST_SECRET: u64 = 1 << 20;

/// Every byte of the file is part of the secret, including a trailing newline: files made by
/// `openssl rand` work like files made by hand, and none is changed silently.
fn read_secret(path: &Path) -> anyhow::Result<Seed> {
    let mut secret = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST_SECRET + 1).read_to_end(&mut secret))
        .with_context(|| format!("the seed file {}", name(path)))?;
    ensure!(!secret.is_empty(), "{}: the seed file is empty", name(path));
    ensure!(secret.len() as u64 <= LONGEST_SECRET, "{}: a seed file has at most 1 MiB", name(path));
    Ok(Seed::from_secret(&secret))
}

fn hash_names() -> impl TypedValueParser<Value = HashId> {
    PossibleValuesParser::new(["xxh3", "siphash-1-3"]).try_map(|name| name.parse::<HashId>())
}
