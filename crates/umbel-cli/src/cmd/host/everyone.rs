//! `--all-hosts`: sends the same command to every host of the cluster.
//!
//! The command is sent to each host's own port, since a host decides only about its own sets. If
//! one host fails, the others still receive it; the exit status is 0 only if all succeeded.

use std::process::ExitCode;

use anyhow::ensure;
use redis::Value;
use serde::Serialize;
use umbel::text::for_terminal;

use super::Options;
use crate::client::{Address, Fields, wrong_answer};
use crate::output::print;

/// Result for one host.
#[derive(Serialize)]
pub(super) struct HostResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl HostResult {
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
    let results: Vec<HostResult> = hosts
        .iter()
        .map(|host| Fields::of(host).map(|fields| execute_on(options, &fields, words)))
        .collect::<Option<_>>()
        .ok_or_else(|| wrong_answer(client.address(), &answer))?;
    ensure!(!results.is_empty(), "{} knows no host, not even itself", client.address());
    if options.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&results)?))?;
    } else {
        print(&results.iter().map(line).collect::<String>())?;
    }
    let failed = results.iter().filter(|results| !results.done).count();
    ensure!(failed == 0, "the command failed on {failed} of {} hosts", results.len());
    Ok(ExitCode::SUCCESS)
}

fn execute_on(options: &Options, host: &Fields<'_>, words: &[&[u8]]) -> HostResult {
    let at = host.text("resp").filter(|at| !at.is_empty());
    let outcome = match &at {
        None => Err("it does not announce where its RESP port is".to_owned()),
        Some(at) => Address::parse(at)
            .and_then(|at| options.at.elsewhere(at).connect().map_err(|error| format!("{error:#}")))
            .and_then(|mut client| client.execute(words).map_err(|error| format!("{error:#}"))),
    };
    HostResult { host: host.text("name"), at, done: outcome.is_ok(), error: outcome.err() }
}

fn line(results: &HostResult) -> String {
    let host = for_terminal(results.host.as_deref().unwrap_or("?"));
    let at = for_terminal(results.at.as_deref().unwrap_or("?"));
    let outcome = for_terminal(results.error.as_deref().unwrap_or("done"));
    format!("{host} at {at}: {outcome}\n")
}
