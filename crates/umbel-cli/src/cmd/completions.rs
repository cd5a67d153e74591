//! `umbel completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::output::print;

/// Print shell completions
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel completions bash > ~/.local/share/bash-completion/completions/umbel
  umbel completions zsh > ~/.zfunc/_umbel
  umbel completions fish > ~/.config/fish/completions/umbel.fish")]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "umbel", &mut text);
        print(&String::from_utf8(text)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
