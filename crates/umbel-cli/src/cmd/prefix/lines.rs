//! Lines of a file or of standard input, each with its number.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, ensure};

use crate::lines::name;
use crate::progress::Progress;

/// Maximum length of a line; a file with a longer one is of another kind.
const LONGEST_LINE: u64 = 64 << 10;

/// The name of the input, for messages.
pub(super) fn source_name(path: Option<&Path>) -> String {
    match path {
        Some(path) if path.as_os_str() != "-" => name(path),
        _ => "standard input".to_owned(),
    }
}

/// Calls `work` with every line that is not empty, and its number, counted from 1.
pub(super) fn each(
    path: Option<&Path>,
    progress: &Progress,
    mut work: impl FnMut(u64, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let source = source_name(path);
    let (input, length) = open(path).with_context(|| source.clone())?;
    progress.expect_bytes(length);
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line);
        let read = read.with_context(|| source.clone())?;
        if read == 0 {
            break;
        }
        progress.advance(read);
        ensure!((read as u64) < LONGEST_LINE, "{source}: line {number}: it is longer than 64 KiB");
        let text = str::from_utf8(&line)
            .ok()
            .with_context(|| format!("{source}: line {number}: this is not UTF-8 text"))?;
        let text = text.trim();
        if !text.is_empty() {
            work(number, text).with_context(|| format!("{source}: line {number}"))?;
        }
    }
    progress.finish();
    Ok(())
}

/// The input and its length, if that is known.
fn open(path: Option<&Path>) -> io::Result<(Box<dyn Read>, Option<u64>)> {
    match path {
        Some(path) if path.as_os_str() != "-" => {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            let length = metadata.is_file().then_some(metadata.len());
            Ok((Box::new(file), length))
        }
        _ => Ok((Box::new(io::stdin().lock()), None)),
    }
}
