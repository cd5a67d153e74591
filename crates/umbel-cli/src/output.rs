//! What commands print: a table for people, or JSON for scripts.
//!
//! A [`Report`] contains both. Always true: JSON has exactly the keys of the type it was made from,
//! and no number in it is NaN or infinite. If the reader closes the pipe (`… | head -1`), a command
//! ends without an error message; commands that stream get an error that [`ended_by_reader`]
//! recognises.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::Value;
use umbel::text::{bytes_for_terminal, for_log, is_unsafe};

/// One answer, for people and for scripts.
pub(crate) struct Report {
    title: String,
    rows: Vec<[String; 3]>,
    json: String,
}

impl Report {
    /// A report whose JSON is `json`.
    pub(crate) fn new(title: impl Into<String>, json: &impl Serialize) -> anyhow::Result<Self> {
        let value = serde_json::to_value(json).context("the answer cannot be written as JSON")?;
        ensure!(is_finite(&value), "the answer is not a finite number");
        // Not from `value`, which does not keep the order of the keys.
        let json = serde_json::to_string_pretty(json)?;
        Ok(Self { title: title.into(), rows: Vec::new(), json })
    }

    /// Adds a row to the table: label, value, and a note that explains it.
    pub(crate) fn row(mut self, label: &str, value: impl Into<String>, note: &str) -> Self {
        self.rows.push([label.to_owned(), value.into(), note.to_owned()]);
        self
    }

    /// Prints the table, or the JSON.
    pub(crate) fn print(&self, as_json: bool) -> anyhow::Result<ExitCode> {
        let text = if as_json { format!("{}\n", self.json) } else { self.table() };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn table(&self) -> String {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let (labels, values) = (width(0), width(1));
        let mut text = format!("{}\n\n", self.title);
        for [label, value, note] in &self.rows {
            let line = format!("  {label:<labels$}  {value:>values$}  {note}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Whether all numbers are finite: `serde_json` writes NaN and infinity as null, and no report
/// contains null otherwise.
fn is_finite(json: &Value) -> bool {
    match json {
        Value::Null => false,
        Value::Array(values) => values.iter().all(is_finite),
        Value::Object(fields) => fields.values().all(is_finite),
        _ => true,
    }
}

/// Writes lines to standard output; a closed pipe is not an error. Characters that a terminal could
/// interpret as commands are escaped as in JSON, so that JSON stays valid.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(safe_lines(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Keeps line breaks and tabs, and escapes all other characters that change how text is shown.
fn safe_lines(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| is_unsafe(c) && c != '\n' && c != '\t';
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let pieces = text.split_inclusive(['\n', '\t']).map(|piece| {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
        format!("{}{}", for_log(&piece[..end]), &piece[end..])
    });
    Cow::Owned(pieces.collect())
}

/// A key, a name or a value, as part of a line of standard output: the raw bytes for programs, and
/// escaped on a terminal.
pub(crate) fn part(bytes: &[u8]) -> Cow<'_, [u8]> {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    part_for(bytes, *IS_TERMINAL.get_or_init(|| io::stdout().is_terminal()))
}

fn part_for(bytes: &[u8], is_terminal: bool) -> Cow<'_, [u8]> {
    if is_terminal {
        Cow::Owned(bytes_for_terminal(bytes).into_bytes())
    } else {
        Cow::Borrowed(bytes)
    }
}

/// A value as JSON on one line, safe for programs and terminals.
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(for_log(&serde_json::to_string(value)?).into_owned())
}

/// Converts an error of writing to standard output.
pub(crate) fn checked(written: io::Result<()>) -> anyhow::Result<()> {
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("standard output"),
    })
}

/// Turns the error into success, if it is only that the reader closed the pipe.
pub(crate) fn ended_by_reader(outcome: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match outcome {
        Err(error) if error.is::<ReaderGone>() => Ok(ExitCode::SUCCESS),
        outcome => outcome,
    }
}

/// The reader of standard output closed it.
#[derive(Debug)]
struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

/// A key in JSON, without loss.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum JsonKey<'a> {
    Text(&'a str),
    Bytes { hex: String },
}

impl<'a> JsonKey<'a> {
    pub(crate) fn of(key: &'a [u8]) -> Self {
        match str::from_utf8(key) {
            Ok(text) => Self::Text(text),
            Err(_) => Self::Bytes { hex: key.iter().map(|byte| format!("{byte:02x}")).collect() },
        }
    }
}

/// A whole number for JSON that may be too large for an integer.
pub(crate) fn whole(number: f64) -> Value {
    if number < 9e15 { Value::from(number as u64) } else { Value::from(number) }
}

/// `1234567` as `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1` and `key` as `1 key`, `1234` and `key` as `1,234 keys`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A number with four significant digits, or all digits before the decimal point.
pub(crate) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if !(1e-4..9e15).contains(&v) => format!("{v:.3e}"),
        v if v >= 1000.0 => count(v.round() as u64),
        v => {
            let decimals = (3.0 - v.log10().floor()).clamp(0.0, 8.0) as usize;
            let text = format!("{v:.decimals$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
    }
}

/// A share as a percentage, if that is readable.
pub(crate) fn percent(share: f64) -> String {
    if share == 0.0 || share >= 1e-5 {
        format!("{} %", number(100.0 * share))
    } else {
        number(share)
    }
}

/// Bytes in the unit that fits.
pub(crate) fn bytes(bytes: f64) -> String {
    let (mut value, mut units) = (bytes, ["B", "kB", "MB", "GB", "TB", "PB"].iter());
    let mut unit = units.next();
    while value >= 1000.0 && units.len() > 0 {
        value /= 1000.0;
        unit = units.next();
    }
    format!("{} {}", number(value), unit.unwrap_or(&"B"))
}

/// Bits, with their size in bytes.
pub(crate) fn bits(bits: u64) -> String {
    format!("{} ({})", count(bits), bytes(bits.div_ceil(8) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_text_and_lines_is_printed() {
        let hostile = "a\tb\u{1b}[2J\nc\r\u{202e}d\u{9b}\n";
        let safe = safe_lines(hostile);
        assert_eq!(safe, "a\tb\\u001b[2J\nc\\u000d\\u202ed\\u009b\n");
        assert!(matches!(safe_lines("a\tb\n"), Cow::Borrowed(_)));
        let json = json_line(&hostile).unwrap();
        assert!(!json.contains(is_unsafe));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
        let json = serde_json::to_string_pretty(&[hostile]).unwrap();
        assert_eq!(serde_json::from_str::<[String; 1]>(&safe_lines(&json)).unwrap(), [hostile]);
    }

    #[test]
    fn keys_are_escaped_for_people_and_not_for_programs() {
        let key = b"a\x1b[2J\n\xff";
        assert_eq!(*part_for(key, false), *key);
        assert_eq!(*part_for(key, true), *"a\\u{1b}[2J\\n\u{fffd}".as_bytes());
    }

    #[test]
    fn numbers_read_well() {
        for (value, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (0.01, "0.01"),
            (0.123_456, "0.1235"),
            (12.345_6, "12.35"),
            (999.96, "1000"),
            (1_234_567.0, "1,234,567"),
            (1e-9, "1.000e-9"),
            (1e30, "1.000e30"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(999), "999");
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(1000, "key"), "1,000 keys");
        assert_eq!(percent(0.01), "1 %");
        assert_eq!(percent(1e-9), "1.000e-9");
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(12_345.0), "12.35 kB");
    }

    #[test]
    fn an_answer_that_is_no_number_is_refused() {
        assert!(Report::new("", &[1.0, f64::NAN]).is_err());
        assert!(Report::new("", &[1.0, f64::INFINITY]).is_err());
        assert!(Report::new("", &[1.0, 0.0]).is_ok());
    }

    #[test]
    fn whole_numbers_stay_whole_as_long_as_they_are_exact() {
        assert_eq!(whole(1743.0).to_string(), "1743");
        assert_eq!(whole(4e28).to_string(), "4e+28");
    }
}
