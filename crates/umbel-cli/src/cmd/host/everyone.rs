//! `--all-hosts`: the same told to every host of the cluster.
//!
//! Each is told over its own port, since a host decides about its own sets alone. One that
//! cannot be told does not keep the others from it; the exit status is 0 only if all were.

use std::process::ExitCode;

use anyhow::ensure;
use redis::Value;
use serde::Serialize;
use umbel::text::for_terminal;

use super::Options;
use crate::client::{Address, Fields, wrong_answer};
use crate::output::print;

/// What became of one host.
#[derive(Serialize)]
pub(super) struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Told {
    pub(super) fn done(at: &Address) -> Self {
        Self { host: None, at: Some(at.to_string()), done: true, error: None }
    }
}

pub(super) fn everyone(options: &Options, words: &[&[u8]]) -> anyhow::Result<ExitCode> {
    let mut client = options.at.connect()?;
    let answer = client.ask(&[b"UMBEL.HOSTS"])?;
    let Value::Array(hosts) = &answer else {
        return Err(wrong_answer(client.address(), &answer));
    };
    let told: Vec<Told> = hosts
        .iter()
        .map(|host| Fields::of(host).map(|fields| tell_one(options, &fields, words)))
        .collect::<Option<_>>()
        .ok_or_else(|| wrong_answer(client.address(), &answer))?;
    ensure!(!told.is_empty(), "{} knows no host, not even itself", client.address());
    if options.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&told)?))?;
    } else {
        print(&told.iter().map(line).collect::<String>())?;
    }
    let failed = told.iter().filter(|told| !told.done).count();
    ensure!(failed == 0, "{failed} of {} hosts were not told", told.len());
    Ok(ExitCode::SUCCESS)
}

fn tell_one(options: &Options, host: &Fields<'_>, words: &[&[u8]]) -> Told {
    let at = host.text("resp").filter(|at| !at.is_empty());
    let outcome = match &at {
        None => Err("it has told nobody where its RESP port is".to_owned()),
        Some(at) => Address::parse(at)
            .and_then(|at| options.at.elsewhere(at).connect().map_err(|error| format!("{error:#}")))
            .and_then(|mut client| client.tell(words).map_err(|error| format!("{error:#}"))),
    };
    Told { host: host.text("name"), at, done: outcome.is_ok(), error: outcome.err() }
}

fn line(told: &Told) -> String {
    let host = for_terminal(told.host.as_deref().unwrap_or("?"));
    let at = for_terminal(told.at.as_deref().unwrap_or("?"));
    let outcome = for_terminal(told.error.as_deref().unwrap_or("done"));
    format!("{host} at {at}: {outcome}\n")
}
