//! `umbel hosts`, `umbel sets` and `umbel info`: show what a host knows.

use std::process::ExitCode;

use clap::Args;
use redis::Value;
use umbel::text::{bytes_for_terminal, for_terminal};

use super::{Options, set_name};
use crate::client::{Fields, json, text, texts, wrong_answer};
use crate::output::{number, print};

/// List the hosts of the cluster, the asked host first
#[derive(Args)]
#[command(after_help = "Examples:\n  umbel hosts\n  umbel hosts --at cache-2:7440 --json")]
pub(crate) struct Hosts {
    #[command(flatten)]
    options: Options,
}

impl Hosts {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut client = self.options.at.connect()?;
        let answer = client.ask(&[b"UMBEL.HOSTS"])?;
        let hosts = match &answer {
            Value::Array(hosts) => hosts.iter().map(Fields::of).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let hosts = hosts.ok_or_else(|| wrong_answer(client.address(), &answer))?;
        if self.options.json {
            return print_json(&Value::Array(hosts.iter().map(map).collect()));
        }
        print(&table(&hosts))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// List the sets that the host holds or knows of
#[derive(Args)]
#[command(after_help = "Examples:\n  umbel sets\n  umbel sets --json")]
pub(crate) struct Sets {
    #[command(flatten)]
    options: Options,
}

impl Sets {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut client = self.options.at.connect()?;
        let answer = client.ask(&[b"UMBEL.SETS"])?;
        let sets = texts(&answer).ok_or_else(|| wrong_answer(client.address(), &answer))?;
        if self.options.json {
            return print_json(&answer);
        }
        let lines = sets.iter().map(|set| format!("{}\n", bytes_for_terminal(set)));
        print(&lines.collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Show the state of the host or of one of its sets
#[derive(Args)]
#[command(after_help = "Examples:\n  umbel info\n  umbel info images\n  umbel info images --json")]
pub(crate) struct Info {
    /// Set; without one, the host itself
    #[arg(value_parser = set_name)]
    set: Option<String>,
    #[command(flatten)]
    options: Options,
}

impl Info {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut client = self.options.at.connect()?;
        let mut words: Vec<&[u8]> = vec![b"UMBEL.INFO"];
        words.extend(self.set.as_ref().map(String::as_bytes));
        let answer = client.ask(&words)?;
        let fields = Fields::of(&answer).ok_or_else(|| wrong_answer(client.address(), &answer))?;
        if self.options.json {
            return print_json(&map(&fields));
        }
        let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let lines = fields
            .iter()
            .map(|(name, value)| format!("  {:<width$}  {}\n", heading(name), shown(value)));
        print(&lines.collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The fields as a map, whichever RESP type the host used.
pub(super) fn map(fields: &Fields<'_>) -> Value {
    let pair =
        |(name, value): (&str, &Value)| (Value::SimpleString(name.to_owned()), value.clone());
    Value::Map(fields.iter().map(pair).collect())
}

pub(super) fn print_json(answer: &Value) -> anyhow::Result<ExitCode> {
    print(&format!("{}\n", serde_json::to_string_pretty(&json(answer))?))?;
    Ok(ExitCode::SUCCESS)
}

/// The name of a field, formatted for people.
fn heading(name: &str) -> String {
    for_terminal(&name.replace('_', " ")).into_owned()
}

/// A value, formatted for people.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "-".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Double(value) => number(*value),
        Value::Boolean(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Value::Okay => "OK".to_owned(),
        Value::Array(values) | Value::Set(values) => {
            values.iter().map(shown).collect::<Vec<_>>().join(" ")
        }
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| format!("{}={}", shown(key), shown(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
        }
        other => bytes_for_terminal(text(other).unwrap_or_default()),
    }
}

/// One row per host and one column per field; then one line for everything that is not accepted.
fn table(hosts: &[Fields<'_>]) -> String {
    let Some(first) = hosts.first() else { return String::new() };
    let names = first.iter().map(|(name, _)| name).filter(|name| *name != NOT_ACCEPTED);
    let names: Vec<&str> = names.collect();
    let mut rows = vec![names.iter().map(|name| heading(name)).collect::<Vec<_>>()];
    for host in hosts {
        let cell = |name: &&str| host.get(name).map_or_else(|| "-".to_owned(), shown);
        rows.push(names.iter().map(cell).collect());
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text: String = rows.iter().map(line).collect();
    for host in hosts {
        let name = host.get("name").map_or_else(String::new, shown);
        let Some(Value::Array(reasons)) = host.get(NOT_ACCEPTED) else { continue };
        for reason in reasons {
            text.push_str(&format!("not accepted of {name}: {}\n", shown(reason)));
        }
    }
    text
}

/// The field that lists what is not accepted from a host; its reasons are too long for a column.
const NOT_ACCEPTED: &str = "not_accepted";
