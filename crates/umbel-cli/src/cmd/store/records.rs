//! Records and keys as lines: of text (key, tab, value) or of JSON (`{"key": …, "value": …}`).
//!
//! Always true: what is printed can be read back as the same record. Lines of text cannot represent
//! a key that contains a tab or a line break, a value that contains a line break, or one that ends
//! in a carriage return, which also ends lines. Such a record is rejected in text; JSON can
//! represent it.
//!
//! A line ends with `\n` or `\r\n`. The two formats cannot be confused: a line of text has a tab, a
//! line of JSON has none.

use std::io::{self, BufRead, IsTerminal as _, Read as _};

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;
use umbel::text::bytes_for_terminal;
use umbel_store::{MAX_KEY, MAX_VALUE};

use crate::lines::key_of;
use crate::output::{JsonKey, json_line, part};

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Key, tab, value; or a key alone
    Text,
    /// An object, as `umbel store scan --json` prints it
    Json,
}

/// Prints a record on a line.
pub(super) fn print(
    out: &mut impl io::Write,
    format: Format,
    key: &[u8],
    value: &[u8],
) -> anyhow::Result<()> {
    match format {
        Format::Json => {
            let record = json!({ "key": JsonKey::of(key), "value": JsonKey::of(value) });
            writeln!(out, "{}", json_line(&record)?)?;
        }
        Format::Text => {
            // On a terminal everything is escaped, and is not meant to be read back.
            if !io::stdout().is_terminal() {
                check_text(key, value)?;
            }
            out.write_all(&part(key))?;
            out.write_all(b"\t")?;
            out.write_all(&part(value))?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Checks that a line of text can be read back as this record.
fn check_text(key: &[u8], value: &[u8]) -> anyhow::Result<()> {
    let what = if key.iter().any(|byte| matches!(byte, b'\t' | b'\n')) {
        "has a tab or a line break in it"
    } else if value.contains(&b'\n') {
        "has a value with a line break in it"
    } else if value.ends_with(b"\r") {
        "has a value that ends in a carriage return"
    } else {
        return Ok(());
    };
    let mut shown = bytes_for_terminal(&key[..key.len().min(64)]);
    if key.len() > 64 {
        shown.push('…');
    }
    bail!("the key '{shown}' {what}, which a line of text cannot hold: use --json")
}

/// Lines of records or of keys.
pub(super) struct Lines<R> {
    input: R,
    format: Option<Format>,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads lines of this format, or of the format of the first line of records.
    pub(super) fn new(input: R, format: Option<Format>) -> Self {
        Self { input, format, number: 0, line: Vec::new() }
    }

    /// Calls `take` with every record.
    pub(super) fn each_record(
        mut self,
        mut take: impl FnMut(&[u8], &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while self.read()? {
            let (number, line) = (self.number, key_of(&self.line));
            match *self.format.get_or_insert_with(|| format_of(line)) {
                Format::Text => {
                    let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
                        bail!("line {number} has no tab between key and value");
                    };
                    let (key, value) = (&line[..tab], &line[tab + 1..]);
                    check_lengths(number, key, value)?;
                    take(key, value)?;
                }
                Format::Json => {
                    let (key, value) = parse(number, line)?;
                    let value = value.with_context(|| format!("line {number} has no value"))?;
                    check_lengths(number, &key, &value)?;
                    take(&key, &value)?;
                }
            }
        }
        Ok(())
    }

    /// Calls `take` with every key. Empty lines of text are skipped, and so are values in JSON.
    pub(super) fn each_key(
        mut self,
        mut take: impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while self.read()? {
            let (number, line) = (self.number, key_of(&self.line));
            match self.format {
                Some(Format::Json) => {
                    let (key, _) = parse(number, line)?;
                    check_lengths(number, &key, &[])?;
                    take(&key)?;
                }
                Some(Format::Text) | None if line.is_empty() => {}
                Some(Format::Text) | None => {
                    check_lengths(number, line, &[])?;
                    take(line)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the next line, with its end; `false` if there is none.
    fn read(&mut self) -> anyhow::Result<bool> {
        self.line.clear();
        self.number += 1;
        let number = self.number;
        let read = (&mut self.input).take(LONGEST + 1).read_until(b'\n', &mut self.line);
        let read = read.with_context(|| format!("line {number}"))?;
        ensure!(read as u64 <= LONGEST, "line {number} is too long to be a record");
        Ok(read > 0)
    }
}

/// Recognises the format: printed JSON never contains a tab, because strings escape it; text always
/// has one.
fn format_of(first_line: &[u8]) -> Format {
    let is_json = first_line.starts_with(b"{") && !first_line.contains(&b'\t');
    if is_json { Format::Json } else { Format::Text }
}

fn check_lengths(number: u64, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
    ensure!(key.len() <= MAX_KEY, "line {number}: the key has over {MAX_KEY} bytes");
    ensure!(value.len() <= MAX_VALUE, "line {number}: the value has over {MAX_VALUE} bytes");
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRecord {
    key: JsonBytes,
    value: Option<JsonBytes>,
}

/// What [`JsonKey`] writes.
#[derive(Deserialize)]
#[serde(untagged)]
enum JsonBytes {
    Text(String),
    Bytes { hex: String },
}

fn parse(number: u64, line: &[u8]) -> anyhow::Result<(Vec<u8>, Option<Vec<u8>>)> {
    let bad = || anyhow!("line {number} is no JSON object with a key and a value");
    let record: JsonRecord = serde_json::from_slice(line).map_err(|_| bad())?;
    let value = record.value.map(|value| value.decode().with_context(bad)).transpose()?;
    Ok((record.key.decode().with_context(bad)?, value))
}

impl JsonBytes {
    /// The bytes, or `None` if hexadecimal digits are invalid.
    fn decode(self) -> Option<Vec<u8>> {
        let hex = match self {
            Self::Text(text) => return Some(text.into_bytes()),
            Self::Bytes { hex } => hex,
        };
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
        let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
        if rest.is_empty() { pairs.iter().map(|two| pair(two)).collect() } else { None }
    }
}

/// Maximum length of a line, with six characters per byte.
const LONGEST: u64 = 6 * (MAX_KEY + MAX_VALUE) as u64 + 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[u8], format: Option<Format>) -> anyhow::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut records = Vec::new();
        Lines::new(lines, format).each_record(|key, value| {
            records.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(records)
    }

    /// All short keys and values of the bytes that matter.
    #[test]
    fn what_is_printed_is_read_as_the_same_and_the_rest_is_refused() {
        let bytes = [b'a', b'\t', b'\n', b'\r', b'{', b'"', b'\\', 0, 0xff];
        let mut words = vec![Vec::new()];
        for &first in &bytes {
            words.push(vec![first]);
            words.extend(bytes.map(|second| vec![first, second]));
        }
        let (mut texts, mut refused) = (0, 0);
        for key in &words {
            for value in &words {
                let record = [(key.clone(), value.clone())];
                let mut line = Vec::new();
                print(&mut line, Format::Json, key, value).unwrap();
                assert_eq!(read(&line, None).unwrap(), record);
                assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
                if check_text(key, value).is_err() {
                    refused += 1;
                    continue;
                }
                let line = [key, &b"\t"[..], value, b"\n"].concat();
                assert_eq!(read(&line, None).unwrap(), record);
                let line = [key, &b"\t"[..], value, b"\r\n"].concat();
                assert_eq!(read(&line, None).unwrap(), record, "a line of other systems");
                texts += 1;
            }
        }
        assert!(texts > 1000 && refused > 1000, "{texts} and {refused}");
    }

    #[test]
    fn lines_that_hold_no_record_are_refused_by_number() {
        let long = format!("{{\"key\":\"{}\",\"value\":\"\"}}", "k".repeat(MAX_KEY + 1));
        for (lines, why) in [
            ("a\tb\n\n", "line 2 has no tab"),
            ("{\"key\":\"a\",\"value\":\"\"}\na\tb\n", "line 2 is no JSON object"),
            ("a\tb\n{\"key\":\"a\",\"value\":\"\"}\n", "line 2 has no tab"),
            ("{\"key\":\"a\"}\n", "line 1 has no value"),
            ("{\"key\":\"a\",\"value\":1}\n", "line 1 is no JSON object"),
            ("{\"key\":{\"hex\":\"f\"},\"value\":\"\"}\n", "line 1 is no JSON object"),
            ("{\"key\":{\"hex\":\"zz\"},\"value\":\"\"}\n", "line 1 is no JSON object"),
            ("{\"key\":\"a\",\"value\":\"\",\"more\":1}\n", "line 1 is no JSON object"),
            (&long, "line 1: the key has over 65535 bytes"),
        ] {
            let error = read(lines.as_bytes(), None).unwrap_err().to_string();
            assert!(error.starts_with(why), "{lines:?}: {error}");
        }
        let endless = Lines::new(io::BufReader::new(io::repeat(b'x')), None);
        assert!(
            endless.each_key(|_| Ok(())).unwrap_err().to_string().contains("line 1 is too long")
        );
    }

    #[test]
    fn keys_are_lines_or_objects() {
        let read = |lines: &[u8], format| {
            let mut keys = Vec::new();
            Lines::new(lines, format)
                .each_key(|key| {
                    keys.push(key.to_vec());
                    Ok(())
                })
                .unwrap();
            keys
        };
        assert_eq!(read(b"a\tb\r\n\n{\nlast", None), [&b"a\tb"[..], b"{", b"last"]);
        let objects = b"{\"key\":\"a\\n\",\"value\":\"v\"}\n{\"key\":{\"hex\":\"FF00\"}}";
        assert_eq!(read(objects, Some(Format::Json)), [&b"a\n"[..], b"\xff\0"]);
    }
}
