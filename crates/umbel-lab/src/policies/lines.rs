//! Parses histories and request traces, one entry per line.
//!
//! ```text
//! history   + host key     the host adds the key
//!           - host key     the host removes it
//!           ? host key     the host asks who holds it
//! requests  key            the next host in turn wants it
//! ```
//!
//! A host is a word; a key is the rest of the line, and may be any bytes.

use std::collections::HashMap;

use super::ids::Id;
use super::lru::{Lru, Request};

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Remove,
    Ask,
}

/// One parsed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) kind: Kind,
    /// When it happens, in milliseconds.
    pub(super) at: u64,
    pub(super) host: u32,
    pub(super) key: u32,
}

/// The lines of a history, and its number of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) hosts: usize,
    pub(super) lines: Vec<Line>,
    /// Maximum number of keys that any host ever has.
    pub(super) max_items: u64,
}

/// Why a text is not a history. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// There is no line at all.
    Empty,
    /// A line of a history is not made of a sign, a host and a key.
    Malformed {
        /// Which line.
        line: usize,
    },
    /// A line of a request trace is empty.
    NoKey {
        /// Which line.
        line: usize,
    },
    /// More keys, hosts or lines than can be numbered.
    TooMany,
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("no lines in it"),
            Self::Malformed { line } => {
                write!(f, "line {line}: '+ host key', '- host key' or '? host key' is needed")
            }
            Self::NoKey { line } => write!(f, "line {line}: a key is needed"),
            Self::TooMany => f.write_str("more than 2^32 different keys"),
        }
    }
}

impl std::error::Error for LineError {}

/// Parses a history of `rate` lines per second, or as many as there are hosts.
pub(super) fn history(text: &[u8], rate: Option<f64>) -> Result<Lines, LineError> {
    let (mut hosts, mut keys) = (Names::default(), Names::default());
    let mut lines = Vec::new();
    for (number, line) in split(text)?.enumerate() {
        let (kind, host, key) = parsed(line).ok_or(LineError::Malformed { line: number + 1 })?;
        let (host, key) = (hosts.number(host)?, keys.number(key)?);
        lines.push(Line { kind, at: 0, host, key });
    }
    let hosts = hosts.0.len();
    let rate = rate.unwrap_or(hosts as f64);
    for (number, line) in lines.iter_mut().enumerate() {
        line.at = milliseconds(number, rate);
    }
    let max_items = max_items(&lines, hosts);
    Ok(Lines { hosts, lines, max_items })
}

/// Parses a request trace: keys are assigned to the hosts in turn, each of which is a cache of a
/// fixed number of objects. A host looks up what it does not have, and has it from then on. There
/// are `rate` requests per second, or as many as there are hosts.
pub(super) fn requests(
    text: &[u8],
    hosts: usize,
    cache_items: u64,
    rate: Option<f64>,
) -> Result<Lines, LineError> {
    let mut keys = Names::default();
    let mut caches: Vec<Lru> = (0..hosts).map(|_| Lru::new(cache_items as usize)).collect();
    let rate = rate.unwrap_or(hosts as f64);
    let mut lines: Vec<Line> = Vec::new();
    for (number, key) in split(text)?.enumerate() {
        if key.is_empty() {
            return Err(LineError::NoKey { line: number + 1 });
        }
        let (host, key) = (number % hosts, keys.number(key)?);
        let at = milliseconds(number, rate);
        let mut push = |kind, key| {
            lines.push(Line { kind, at, host: host as u32, key });
        };
        if let Request::Miss { evicted } = caches[host].request(Id::from(key)) {
            push(Kind::Ask, key);
            if let Some(evicted) = evicted {
                push(Kind::Remove, evicted as u32);
            }
            push(Kind::Add, key);
        }
    }
    let max_items = max_items(&lines, hosts);
    Ok(Lines { hosts, lines, max_items })
}

/// When the line or request with this number happens, at this rate per second.
fn milliseconds(number: usize, rate: f64) -> u64 {
    (number as f64 * 1000.0 / rate) as u64
}

/// The lines of a text, without their ends (`\n` or `\r\n`).
fn split(text: &[u8]) -> Result<impl Iterator<Item = &[u8]>, LineError> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Err(LineError::Empty);
    }
    Ok(text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

fn parsed(line: &[u8]) -> Option<(Kind, &[u8], &[u8])> {
    let (sign, rest) = line.split_first()?;
    let kind = match sign {
        b'+' => Kind::Add,
        b'-' => Kind::Remove,
        b'?' => Kind::Ask,
        _ => return None,
    };
    let rest = rest.strip_prefix(b" ")?;
    let space = rest.iter().position(|byte| *byte == b' ')?;
    let (host, key) = (&rest[..space], &rest[space + 1..]);
    (!host.is_empty() && !key.is_empty()).then_some((kind, host, key))
}

/// Numbers for names, in the order of their first appearance.
#[derive(Default)]
struct Names<'a>(HashMap<&'a [u8], u32>);

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a [u8]) -> Result<u32, LineError> {
        let next = u32::try_from(self.0.len()).map_err(|_| LineError::TooMany)?;
        Ok(*self.0.entry(name).or_insert(next))
    }
}

fn max_items(lines: &[Line], hosts: usize) -> u64 {
    let mut held = vec![std::collections::HashSet::new(); hosts];
    let mut max = 0;
    for line in lines {
        let held = &mut held[line.host as usize];
        match line.kind {
            Kind::Add => drop(held.insert(line.key)),
            Kind::Remove => drop(held.remove(&line.key)),
            Kind::Ask => {}
        }
        max = max.max(held.len());
    }
    max as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &Lines) -> Vec<(Kind, u32, u32, u64)> {
        lines.lines.iter().map(|l| (l.kind, l.host, l.key, l.at)).collect()
    }

    #[test]
    fn a_history_is_read_line_by_line() {
        let lines = history(b"+ a apple\n+ b big pear\r\n? a big pear\n- b big pear", None);
        let lines = lines.unwrap();
        let expected = [
            (Kind::Add, 0, 0, 0),
            (Kind::Add, 1, 1, 500),
            (Kind::Ask, 0, 1, 1000),
            (Kind::Remove, 1, 1, 1500),
        ];
        assert_eq!((shown(&lines), lines.hosts, lines.max_items), (expected.into(), 2, 1));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for bad in ["", "+", "+ a", "+ a ", "+  x", "* a x", "+a x", "a x", " + a x"] {
            let text = format!("+ a x\n{bad}\n+ a y\n");
            let error = history(text.as_bytes(), None).unwrap_err();
            assert_eq!(error, LineError::Malformed { line: 2 }, "{bad}");
        }
        assert_eq!(history(b"", None), Err(LineError::Empty));
        assert_eq!(requests(b"\n", 2, 5, None), Err(LineError::Empty));
        assert_eq!(requests(b"a\n\nb\n", 2, 5, None), Err(LineError::NoKey { line: 2 }));
    }

    #[test]
    fn requests_are_dealt_in_turn_and_caches_forget() {
        let lines = requests(b"a\na\nb\na\na\n", 2, 1, None).unwrap();
        let expected = [
            (Kind::Ask, 0, 0, 0),
            (Kind::Add, 0, 0, 0),
            (Kind::Ask, 1, 0, 500),
            (Kind::Add, 1, 0, 500),
            (Kind::Ask, 0, 1, 1000),
            (Kind::Remove, 0, 0, 1000),
            // The second host has it: no line of its own at 1500.
            (Kind::Add, 0, 1, 1000),
            (Kind::Ask, 0, 0, 2000),
            (Kind::Remove, 0, 1, 2000),
            (Kind::Add, 0, 0, 2000),
        ];
        assert_eq!((shown(&lines), lines.max_items), (expected.into(), 1));
    }
}
