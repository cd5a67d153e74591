//! What the commands print: answers to standard output, warnings to standard error.
//!
//! A reader who has seen enough closes the pipe (`… | head -1`): that ends a command
//! quietly, as an error that [`ended_by_reader`] recognises, never with a panic.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::output;

/// Prints one answer as JSON.
pub(in crate::cmd) fn json(answer: &impl Serialize) -> anyhow::Result<()> {
    output::print(&format!("{}\n", serde_json::to_string_pretty(answer)?))
}

/// Says something that is no answer and no error, on standard error.
pub(in crate::cmd) fn warn(text: impl fmt::Display) {
    // Nobody is left to be told if this fails.
    let _ = writeln!(io::stderr(), "umbel: warning: {text}");
}

/// Turns the outcome of writing to standard output into one of the command.
pub(in crate::cmd) fn checked(written: io::Result<()>) -> anyhow::Result<()> {
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("standard output"),
    })
}

/// Success instead of the error, if all that went wrong is that nobody reads on.
pub(in crate::cmd) fn ended_by_reader(
    outcome: anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match outcome {
        Err(error) if error.is::<ReaderGone>() => Ok(ExitCode::SUCCESS),
        outcome => outcome,
    }
}

/// Whoever read standard output closed it.
#[derive(Debug)]
struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}
