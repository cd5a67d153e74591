//! `umbel kv hash`: prints the canonical hashes of a text's blocks.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use umbel_kv::canonical;
use umbel_node::ChainQuery;

use crate::lines::{Source, read_lines};
use crate::output::print;

/// Print the canonical hashes of a text's blocks, one number per line
#[derive(Args)]
#[command(after_help = "\
Tokens are numbers, separated by white space or commas. Tokens after the last whole block are
left out. docs/routing.md says what is hashed, byte by byte.

Examples:
  umbel kv hash --block-size 4 11 27 4001 9 8 7 6 5
  umbel kv hash --block-size 16 --adapter sql --file tokens.txt | umbel chain kv --numbers -")]
pub(crate) struct Hash {
    /// Tokens per block, as configured in the engine
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    block_size: u32,
    /// Name of the adapter
    #[arg(long)]
    adapter: Option<String>,
    /// Salt of the cache
    #[arg(long)]
    salt: Option<String>,
    /// Tokens; a single '-' reads standard input
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    tokens: Vec<String>,
    /// File of tokens
    #[arg(long)]
    file: Option<PathBuf>,
}

impl Hash {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut tokens = Vec::new();
        let source = match (&self.file, &self.tokens[..]) {
            (Some(file), _) => Some(Source::of(file)),
            (None, [only]) if only == "-" => Some(Source::Stdin),
            _ => None,
        };
        match source {
            Some(source) => {
                let name = source.name();
                read_lines(source.open()?, &name, |lines| read(lines, &mut tokens))
                    .with_context(|| name.clone())?;
            }
            None => self.tokens.iter().try_for_each(|word| read(word.as_bytes(), &mut tokens))?,
        }
        for text in self.adapter.iter().chain(&self.salt) {
            ensure!((1..=0xffff).contains(&text.len()), "a name or salt has 1 to 65535 bytes");
        }
        let extra = canonical::extra(self.adapter.as_deref(), self.salt.as_deref());
        let chain = canonical::chain(&tokens, self.block_size as usize, &extra);
        let max = ChainQuery::MAX_KEYS;
        if chain.len() > max {
            crate::note(&format!("hosts answer chains of at most {max} blocks"));
        }
        print(&chain.iter().map(|hash| format!("{hash}\n")).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read(bytes: &[u8], tokens: &mut Vec<u32>) -> anyhow::Result<()> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    for word in bytes.split(is_space).filter(|word| !word.is_empty()) {
        let Some(token) = str::from_utf8(word).ok().and_then(|word| word.parse().ok()) else {
            let shown = umbel::text::bytes_for_terminal(&word[..word.len().min(80)]);
            bail!("'{shown}': a token is a whole number from 0 to 2^32 - 1");
        };
        tokens.push(token);
    }
    Ok(())
}
