//! `umbel man`: writes the manual, one page per command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::lines::name;
use crate::output::{count, print};

/// Print the manual page, or write all pages to a directory
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel man | man -l -
  umbel man --out /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Directory for all pages, one per command; created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut command = crate::command();
        command.build();
        match &self.out {
            None => print(&String::from_utf8(page(&command)?)?)?,
            Some(dir) => {
                std::fs::create_dir_all(dir).with_context(|| name(dir))?;
                let written = write(&command, dir)?;
                print(&format!("{} pages in {}\n", count(written), name(dir)))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of a command and of all its subcommands.
fn write(command: &Command, dir: &Path) -> anyhow::Result<u64> {
    let shown = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = dir.join(format!("{shown}.1"));
    std::fs::write(&path, page(command)?).with_context(|| name(&path))?;
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.map(|below| write(below, dir)).sum::<anyhow::Result<u64>>().map(|pages| pages + 1)
}

fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    Page::new(command.clone()).render(&mut text)?;
    Ok(text)
}
