//! `umbel config user`: who may log in to a host.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use umbel_node::access::{Permissions, Users};

use crate::lines;
use crate::output::print;
use crate::whole_file::write_private;

/// Add, remove and list the users of a host
#[derive(Args)]
#[command(after_help = "\
A password is asked for at the terminal, or read as a line of standard input; it is never an
argument, which everybody on the machine could see. Only its hash is written. A running host
applies the change within seconds.

Examples:
  umbel config user add alice --permissions read,write
  umbel config user add metrics --permissions read --token --no-password
  umbel config user token alice
  umbel config user list
  umbel config user remove alice")]
pub(super) struct UserCommand {
    #[command(subcommand)]
    action: Action,
    /// File of users: the value of 'users' in the configuration
    #[arg(
        long = "users",
        value_name = "FILE",
        env = "UMBEL_USERS",
        default_value = "users.toml",
        global = true
    )]
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Add a user
    #[command(
        after_help = "Examples:\n  umbel config user add alice --permissions read,write\n  umbel config user add metrics --permissions read --token --no-password"
    )]
    Add(Add),
    /// Remove a user
    #[command(after_help = "Example:\n  umbel config user remove alice")]
    Remove {
        /// Name of the user
        name: String,
    },
    /// Create a token for HTTP and print it; it is not shown again
    #[command(after_help = "Example:\n  umbel config user token alice")]
    Token {
        /// Name of the user
        name: String,
    },
    /// List users and their permissions
    #[command(after_help = "Example:\n  umbel config user list --json")]
    List,
}

#[derive(Args)]
struct Add {
    /// Name of the user
    name: String,
    /// Permissions of the user, separated by commas: read, write, admin
    #[arg(long, value_name = "LIST")]
    permissions: Permissions,
    /// Create a token for HTTP too and print it; it is not shown again
    #[arg(long)]
    token: bool,
    /// The user logs in with tokens only
    #[arg(long, requires = "token")]
    no_password: bool,
}

impl UserCommand {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.action {
            Action::Add(add) => self.add(add),
            Action::Remove { name } => self.remove(name),
            Action::Token { name } => self.token(name),
            Action::List => self.list(),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    fn add(&self, add: &Add) -> anyhow::Result<()> {
        let mut users = self.read(true)?;
        // Reject an invalid user before asking for a password.
        users.clone().add(&add.name, add.permissions, None)?;
        let password = if add.no_password { None } else { Some(ask_password(&add.name)?) };
        users.add(&add.name, add.permissions, password.as_deref())?;
        let token = if add.token { Some(users.add_token(&add.name)?) } else { None };
        self.write(&users)?;
        let (name, may) = (&add.name, add.permissions);
        self.print_result(
            &json!({ "user": name, "permissions": may.to_string(), "token": token }),
            &format!("user {name} may {may}{}", token_line(token.as_deref())),
        )
    }

    fn remove(&self, name: &str) -> anyhow::Result<()> {
        let mut users = self.read(false)?;
        users.remove(name)?;
        self.write(&users)?;
        self.print_result(
            &json!({ "user": name, "removed": true }),
            &format!("user {name} is removed"),
        )
    }

    fn token(&self, name: &str) -> anyhow::Result<()> {
        let mut users = self.read(false)?;
        let token = users.add_token(name)?;
        self.write(&users)?;
        let line = format!("user {name} has one more token{}", token_line(Some(&token)));
        self.print_result(&json!({ "user": name, "token": token }), &line)
    }

    fn list(&self) -> anyhow::Result<()> {
        let users = self.read(false)?;
        if self.json {
            let rows: Vec<_> = users
                .iter()
                .map(|(name, user)| {
                    json!({
                        "user": name,
                        "permissions": user.permissions().to_string(),
                        "password": user.has_password(),
                        "tokens": user.tokens(),
                    })
                })
                .collect();
            return print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
        }
        let width = users.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, user): (&str, &umbel_node::access::User)| {
            let password = if user.has_password() { "password" } else { "no password" };
            let (may, tokens) = (user.permissions().to_string(), user.tokens());
            let noun = if tokens == 1 { "token" } else { "tokens" };
            format!("{name:<width$}  {may:<16}  {password}, {tokens} {noun}\n")
        };
        print(&users.iter().map(line).collect::<String>())
    }

    fn read(&self, may_be_new: bool) -> anyhow::Result<Users> {
        if may_be_new && !self.file.exists() {
            return Ok(Users::default());
        }
        Ok(Users::read(&self.file)?)
    }

    fn write(&self, users: &Users) -> anyhow::Result<()> {
        write_private(&self.file, users.to_toml().as_bytes()).with_context(|| file_name(&self.file))
    }

    fn print_result(&self, json: &serde_json::Value, text: &str) -> anyhow::Result<()> {
        print(&if self.json { format!("{json}\n") } else { format!("{text}\n") })
    }
}

fn file_name(path: &Path) -> String {
    lines::name(path)
}

fn token_line(token: Option<&str>) -> String {
    token.map_or_else(String::new, |token| format!("\ntoken, not shown again: {token}"))
}

/// Reads the password: at a terminal twice and without echo, otherwise as one line of standard
/// input.
fn ask_password(user: &str) -> anyhow::Result<Vec<u8>> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let mut line = String::new();
        input.lock().read_line(&mut line).context("standard input")?;
        let password = line.trim_end_matches(['\r', '\n']);
        if password.is_empty() {
            bail!("a password is needed: a line of standard input");
        }
        return Ok(password.as_bytes().to_vec());
    }
    let term = console::Term::stderr();
    let ask = |what: &str| -> anyhow::Result<String> {
        term.write_str(what)?;
        Ok(term.read_secure_line()?)
    };
    let password = ask(&format!("password of {user}: "))?;
    if password != ask("the same again: ")? {
        bail!("these were two passwords; nothing has changed");
    }
    Ok(password.into_bytes())
}
