//! `umbel keys` and `umbel delete`: list the keys of a set, and delete a set.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use redis::Value;

use super::ask::Printer;
use super::everyone::everyone;
use super::{Options, set_name};
use crate::client::{Client, page, wrong_answer};
use crate::output::{checked, ended_by_reader, print};

/// Print the keys of a set that the host itself holds
#[derive(Args)]
#[command(after_help = "\
Keys are printed one per line, in no particular order. Keys that are added or removed while the
command runs may or may not be printed. With --json: {\"keys\": [...], \"count\": 2}; a key that is
not UTF-8 is an object {\"hex\": \"ff00\"}.

Examples:
  umbel keys images
  umbel keys images --at cache-2:7440 > keys.txt")]
pub(crate) struct KeysCommand {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    options: Options,
}

impl KeysCommand {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut client = self.options.at.connect()?;
        let mut printer = Printer::listing(self.options.json, "keys");
        let printed = for_each_page(&mut client, &self.set, |keys| {
            checked(keys.iter().try_for_each(|key| printer.key(key)))?;
            checked(printer.flush())
        });
        let printed = printed.and_then(|()| checked(printer.finish()));
        ended_by_reader(printed.map(|()| ExitCode::SUCCESS))
    }
}

/// Reads the keys that the host has in a set, page by page.
pub(super) fn for_each_page(
    client: &mut Client,
    set: &str,
    mut each: impl FnMut(&[&[u8]]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut cursor = b"0".to_vec();
    loop {
        let words: [&[u8]; 5] = [b"UMBEL.KEYS", set.as_bytes(), &cursor, b"COUNT", b"1000"];
        let answer = client.ask(&words)?;
        let Some((next, keys)) = page(&answer) else {
            return Err(wrong_answer(client.address(), &answer));
        };
        each(&keys)?;
        if next == b"0" {
            return Ok(());
        }
        cursor = next.to_vec();
    }
}

/// Delete a set of the host with all its keys; other hosts keep theirs
#[derive(Args)]
#[command(after_help = "\
Other hosts keep their own sets of the same name, unless --all-hosts says otherwise.

Examples:
  umbel delete images
  umbel delete images --all-hosts")]
pub(crate) struct Delete {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    /// Delete the sets of this name of every host of the cluster
    #[arg(long)]
    all_hosts: bool,
    #[command(flatten)]
    options: Options,
}

impl Delete {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let (set, words) = (&self.set, [&b"DEL"[..], self.set.as_bytes()]);
        if self.all_hosts {
            return everyone(&self.options, &words);
        }
        let mut client = self.options.at.connect()?;
        match client.ask(&words)? {
            Value::Int(0) => {
                bail!("the host at {} has no set '{set}' of its own", client.address())
            }
            Value::Int(_) if self.options.json => {
                print(&format!("{}\n", serde_json::json!({ "set": set, "deleted": true })))?;
            }
            Value::Int(_) => print(&format!("deleted {set}\n"))?,
            answer => return Err(wrong_answer(client.address(), &answer)),
        }
        Ok(ExitCode::SUCCESS)
    }
}
