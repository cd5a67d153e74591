//! `umbel kv`: the blocks of an inference engine's KV cache as a set. One subcommand per file.

mod follow;
mod hash;
mod host_sink;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Keep the KV cache blocks of an inference engine as a set, so that routers find prefixes
#[derive(Args)]
#[command(after_help = "\
Engines: vLLM and SGLang, with KV cache events over ZeroMQ. docs/routing.md is the guide.

Examples:
  umbel kv follow kv --events tcp://127.0.0.1:5557 --replay tcp://127.0.0.1:5558
  umbel kv hash --block-size 16 --file tokens.txt | umbel chain kv --numbers -")]
pub(crate) struct Kv {
    #[command(subcommand)]
    command: Command,
}

/// What can be done about blocks.
#[derive(Subcommand)]
enum Command {
    Follow(follow::Follow),
    Hash(hash::Hash),
}

impl Kv {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Follow(follow) => follow.run(),
            Command::Hash(hash) => hash.run(),
        }
    }
}
