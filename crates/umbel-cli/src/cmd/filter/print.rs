//! What the commands print: answers to standard output, warnings to standard error.

use std::fmt;

use serde::Serialize;

use crate::output;

pub(in crate::cmd) use crate::output::{checked, ended_by_reader};

/// Prints one answer as JSON.
pub(in crate::cmd) fn json(answer: &impl Serialize) -> anyhow::Result<()> {
    output::print(&format!("{}\n", serde_json::to_string_pretty(answer)?))
}

/// Prints a warning on standard error.
pub(in crate::cmd) fn warn(text: impl fmt::Display) {
    crate::complain(&format!("warning: {text}"));
}
