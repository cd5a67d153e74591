//! A client that sends commands to a host over its RESP port, as any Redis client would.
//!
//! [`At`] names the host, [`Client`] is a connection to it, [`stream`] sends any number of keys
//! over several connections. Every error is one line that says which host was asked, what is wrong
//! and what to do.

mod answer;
mod batch;
mod login;
mod stream;
mod trust;

use std::io::Write as _;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use redis::Value;

use login::Login;
use trust::{Stream, Trust};

pub(crate) use answer::{Fields, flags, json, page, text, texts, wrong_answer};
pub(crate) use batch::{Batch, MAX_KEY};
pub(crate) use stream::{Asked, stream};

/// Which host is asked, and how.
#[derive(Args, Clone)]
pub(crate) struct At {
    /// RESP port of the host to ask
    #[arg(long, value_name = "HOST:PORT", env = "UMBEL_AT", default_value = "127.0.0.1:7440",
          value_parser = Address::parse, global = true)]
    at: Address,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    trust: Trust,
}

impl At {
    /// A host without login and TLS.
    pub(crate) fn open(address: &Address) -> Self {
        Self { at: address.clone(), login: Login::default(), trust: Trust::default() }
    }

    /// Another host, with the same login and TLS settings.
    pub(crate) fn elsewhere(&self, address: Address) -> Self {
        Self { at: address, ..self.clone() }
    }

    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        Client::connect(self)
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.at
    }
}

/// A host name or IP address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// `cache-1:7440`, `10.0.0.1:7440` or `[::1]:7440`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let range = "a host and its port are needed, such as 127.0.0.1:7440";
        let (host, port) = text.rsplit_once(':').ok_or(range)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(literal) if literal.contains(':') => literal,
            None if !host.contains([':', '[', ']', '/', ' ']) => host,
            _ => return Err(range.to_owned()),
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(range)?;
        if host.is_empty() {
            return Err(range.to_owned());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A connection to a host.
pub(crate) struct Client {
    stream: Stream,
    parser: redis::Parser,
    address: Address,
}

impl Client {
    /// Connects, logs in, and requires RESP3, whose replies distinguish numbers, texts and flags.
    fn connect(at: &At) -> anyhow::Result<Self> {
        let address = at.at.clone();
        let credentials = at.login.credentials()?;
        let stream = at.trust.connect(&address)?;
        let mut client = Self { stream, parser: redis::Parser::new(), address };
        let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some((user, password)) = &credentials {
            words.extend([b"AUTH", user.as_bytes(), password]);
        }
        client.ask(&words)?;
        for (attribute, value) in
            [("LIB-NAME", "umbel-cli"), ("LIB-VER", env!("CARGO_PKG_VERSION"))]
        {
            client.ask(&[b"CLIENT", b"SETINFO", attribute.as_bytes(), value.as_bytes()])?;
        }
        Ok(client)
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Sends one command, and returns the reply.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> anyhow::Result<Value> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        self.ask_packed(&command.get_packed_command())
    }

    /// As [`Self::ask`], for a command that may take up to this long.
    pub(crate) fn ask_patiently(
        &mut self,
        words: &[&[u8]],
        patience: Duration,
    ) -> anyhow::Result<Value> {
        self.stream.set_patience(patience)?;
        self.ask(words)
    }

    /// Sends a command that replies OK.
    pub(crate) fn execute(&mut self, words: &[&[u8]]) -> anyhow::Result<()> {
        match self.ask(words)? {
            Value::Okay => Ok(()),
            // DEL replies with the number of deleted sets.
            Value::Int(_) if words.first() == Some(&&b"DEL"[..]) => Ok(()),
            other => Err(wrong_answer(&self.address, &other)),
        }
    }

    /// Sends a command that is already encoded, and returns the reply.
    pub(crate) fn ask_packed(&mut self, command: &[u8]) -> anyhow::Result<Value> {
        let answer = self.send(command).and_then(|()| self.receive());
        answer.map_err(|error| describe(&self.address, &error))
    }

    /// Sends several commands that are already encoded, and returns the list of their replies.
    pub(crate) fn ask_pipeline(&mut self, commands: &[u8], count: usize) -> anyhow::Result<Value> {
        let answers = self
            .send(commands)
            .and_then(|()| (0..count).map(|_| self.receive()).collect::<Result<Vec<_>, _>>());
        answers.map(Value::Array).map_err(|error| describe(&self.address, &error))
    }

    fn send(&mut self, commands: &[u8]) -> redis::RedisResult<()> {
        Ok(self.stream.write_all(commands).and_then(|()| self.stream.flush())?)
    }

    fn receive(&mut self) -> redis::RedisResult<Value> {
        self.parser.parse_value(&mut self.stream).and_then(Value::extract_error)
    }
}

/// An error that says which host was asked, what is wrong, and what to do.
fn describe(address: &Address, error: &redis::RedisError) -> anyhow::Error {
    let hint = "is `umbel serve` running there? --at or UMBEL_AT names another host";
    if error.is_connection_refusal() {
        return anyhow!("nobody answers at {address}: {hint}");
    }
    if error.is_timeout() {
        return anyhow!("{address} does not answer in time: is it overloaded, or stopped?");
    }
    if let Some(message) = error.detail().filter(|_| error.code().is_some()) {
        if let Some(hint) = error.code().and_then(login::hint) {
            return anyhow!("{address}: {message} {hint}");
        }
        return Refused { address: address.to_string(), message: message.to_owned() }.into();
    }
    if error.is_io_error() || error.is_connection_dropped() {
        return anyhow!("the connection to {address} failed ({error}): {hint}");
    }
    anyhow!("{address} does not speak as a host of umbel does ({error}): is it the RESP port?")
}

/// An error reply of the host.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {message}")]
struct Refused {
    address: String,
    message: String,
}

/// Whether the error means that the host does not know the set.
pub(crate) fn no_such_set(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Refused>()
        .is_some_and(|refused| refused.message.starts_with("no such set"))
}

/// Rejects an invalid key before anything is sent.
pub(crate) fn check_key(key: &[u8]) -> anyhow::Result<()> {
    match key.len() {
        0 => bail!("an empty key is no key"),
        1..=MAX_KEY => Ok(()),
        longer => bail!("a key has at most {MAX_KEY} bytes, not {longer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for text in ["127.0.0.1:7440", "cache-1:1", "[::1]:7440"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "7440",
            "cache-1",
            "cache-1:",
            "cache-1:0",
            ":7440",
            "::1:7440",
            "a b:1",
            "[]:1",
            "redis://a:1",
            "a:70000",
        ] {
            assert!(Address::parse(text).unwrap_err().contains("127.0.0.1:7440"), "{text}");
        }
    }
}
