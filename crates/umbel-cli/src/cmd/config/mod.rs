//! `umbel config`: writes, checks and shows the configuration of a host.

mod certs;
mod user;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use umbel::text::for_terminal;
use umbel_node::settings::{Draft, Layer, template};
use umbel_node::{Settings, Transform};

use super::serve::Configuration;
use crate::lines::name;
use crate::output::print;

/// Write, check and show the configuration of a host
#[derive(Args)]
#[command(after_help = "\
Examples:
  umbel config init umbel.toml --name cache-1
  umbel config check umbel.toml
  umbel config show --config umbel.toml
  umbel config user add alice --permissions read,write
  umbel config certs --hosts cache-1,cache-2,cache-3")]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Init(Init),
    Check(Check),
    Show(Box<Show>),
    User(user::UserCommand),
    Certs(certs::Certs),
    Key(MakeKey),
}

impl Config {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.action {
            Action::Init(init) => init.run(),
            Action::Check(check) => check.run(),
            Action::Show(show) => show.run(),
            Action::User(user) => user.run(),
            Action::Certs(certs) => certs.run(),
            Action::Key(key) => key.run(),
        }
    }
}

/// Write a file with every key, its default and what it is for
#[derive(Args)]
#[command(after_help = "Example:\n  umbel config init umbel.toml --name cache-1")]
struct Init {
    /// File to write, which must not exist yet; '-': standard output
    #[arg(default_value = "umbel.toml")]
    file: PathBuf,
    /// Name of the host
    #[arg(long, default_value = "host-1")]
    name: String,
    /// Directory of its catalogue, relative to the file
    #[arg(long, value_name = "DIR", default_value = "umbel-data")]
    data: String,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Init {
    fn run(&self) -> anyhow::Result<ExitCode> {
        // Reject an invalid name.
        Settings::in_memory(&self.name)?;
        let text = template(&self.name, &self.data);
        if self.file.as_os_str() == "-" {
            print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let made = OpenOptions::new().write(true).create_new(true).open(&self.file);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{}: it is there already, and is left as it is", name(&self.file))
            }
            made => made.and_then(|mut file| file.write_all(text.as_bytes())),
        }
        .with_context(|| name(&self.file))?;
        let file = name(&self.file);
        print(&match self.json {
            true => format!("{}\n", serde_json::json!({ "file": file })),
            false => format!("{file} is written: umbel serve --config {file}\n"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Check a configuration file, as a host does when it starts
#[derive(Args)]
#[command(after_help = "Example:\n  umbel config check umbel.toml")]
struct Check {
    /// File to check
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Check {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let settings = Draft::new().with(Layer::file(&self.file)?)?.settings();
        let settings = settings.with_context(|| name(&self.file))?;
        let (file, host, cluster) = (name(&self.file), settings.name, settings.cluster);
        print(&match self.json {
            true => {
                let (host, cluster) = (host.as_str(), cluster.as_str());
                format!(
                    "{}\n",
                    serde_json::json!({ "file": file, "name": host, "cluster": cluster })
                )
            }
            false => format!("{file} is valid: host {host} of cluster {cluster}\n"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Show which keys a transform makes from names
#[derive(Args)]
#[command(after_help = "\
Example:
  umbel config key 'template:/{key}|md5' cat.png")]
struct MakeKey {
    /// Steps md5, sha256, path and template:TEXT, with | between them
    transform: Transform,
    /// Names that clients ask for
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl MakeKey {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let key = |name: &String| {
            String::from_utf8_lossy(&self.transform.key(name.as_bytes())).into_owned()
        };
        let keys: Vec<String> = self.names.iter().map(key).collect();
        print(&match self.json {
            true => format!("{}\n", serde_json::to_string(&keys)?),
            false => keys.iter().map(|key| format!("{}\n", for_terminal(key))).collect(),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Show the effective configuration and where each value comes from; takes the flags of umbel serve
#[derive(Args)]
#[command(after_help = "Example:\n  umbel config show --config umbel.toml --json")]
struct Show {
    #[command(flatten)]
    configuration: Configuration,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    key: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    from: String,
}

impl Show {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let rows: Vec<Row> = self
            .configuration
            .draft()?
            .shown()
            .into_iter()
            .map(|shown| Row { key: shown.key, value: shown.value, from: shown.origin.to_string() })
            .collect();
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&rows)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let value = |row: &Row| for_terminal(row.value.as_deref().unwrap_or("-")).into_owned();
        let width = |text: &dyn Fn(&Row) -> usize| rows.iter().map(text).max().unwrap_or(0);
        let keys = width(&|row| row.key.len());
        let values = width(&|row| value(row).chars().count());
        let line = |row: &Row| {
            format!("{:<keys$}  {:<values$}  {}\n", row.key, value(row), for_terminal(&row.from))
        };
        print(&rows.iter().map(line).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}
