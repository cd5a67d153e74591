//! Login to a host: a user name, and a password that is never a command-line argument.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::lines::name;

/// The environment variable that contains the password.
const PASSWORD: &str = "UMBEL_PASSWORD";

/// Who asks.
#[derive(Args, Clone, Default)]
pub(super) struct Login {
    /// User name; the password comes from the environment or a file, never from a flag
    #[arg(long, value_name = "NAME", env = "UMBEL_USER", global = true)]
    user: Option<String>,
    /// File that holds the password; trailing newlines are ignored
    #[arg(long, value_name = "FILE", env = "UMBEL_PASSWORD_FILE", global = true)]
    password_file: Option<PathBuf>,
}

impl Login {
    /// User and password, if there are any.
    pub(super) fn credentials(&self) -> anyhow::Result<Option<(String, Vec<u8>)>> {
        let password = match &self.password_file {
            Some(path) => {
                let mut bytes = std::fs::read(path).with_context(|| name(path))?;
                let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte));
                bytes.truncate(end.map_or(0, |last| last + 1));
                Some(bytes)
            }
            None => std::env::var_os(PASSWORD).map(std::ffi::OsString::into_encoded_bytes),
        };
        match (&self.user, password.filter(|password| !password.is_empty())) {
            (user, Some(password)) => {
                Ok(Some((user.clone().unwrap_or_else(|| "default".to_owned()), password)))
            }
            (None, None) => Ok(None),
            (Some(user), None) => {
                ensure!(
                    false,
                    "user '{user}' needs a password: give it in {PASSWORD}, or a --password-file"
                );
                Ok(None)
            }
        }
    }
}

/// A hint for a login that a host rejected.
pub(super) fn hint(code: &str) -> Option<&'static str> {
    match code {
        "NOAUTH" => Some("Give --user, and its password in UMBEL_PASSWORD or a --password-file."),
        _ => None,
    }
}
