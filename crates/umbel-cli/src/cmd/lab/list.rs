//! `umbel lab list`: lists the experiments.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use umbel_lab::EXPERIMENTS;

use crate::output;

/// List the experiments
#[derive(Args)]
#[command(after_help = "Example:\n  umbel lab list --json")]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    source: &'static str,
    title: &'static str,
}

impl List {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let all = EXPERIMENTS.iter();
        let listed: Vec<Listed> =
            all.map(|e| Listed { name: e.name(), source: e.source(), title: e.title() }).collect();
        let text = if self.json {
            format!("{}\n", serde_json::to_string_pretty(&listed)?)
        } else {
            aligned(&listed)
        };
        output::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn aligned(listed: &[Listed]) -> String {
    let width = |of: fn(&Listed) -> &str| listed.iter().map(|l| of(l).len()).max().unwrap_or(0);
    let (names, titles) = (width(|listed| listed.name), width(|listed| listed.title));
    let line = |Listed { name, source, title }: &Listed| {
        format!("{name:<names$}  {title:<titles$}  {source}\n")
    };
    listed.iter().map(line).collect()
}
