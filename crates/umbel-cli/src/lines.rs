//! Reads keys, one per line, from files or standard input, in blocks.
//!
//! A line ends with `\n` or `\r\n`; every other byte belongs to the key, UTF-8 or not.
//! Empty lines are skipped and counted: in practice they are superfluous trailing newlines, and an
//! unintended empty key would make every such file "match".
//!
//! Always true: at most one block of input is in memory, or one line if that is longer; a line
//! longer than [`LONGEST_LINE`] is rejected.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use serde::Serialize;

/// A path as shown in errors and reports: always on one line.
pub(crate) fn name(path: &Path) -> String {
    umbel::text::for_terminal(&path.display().to_string()).into_owned()
}

/// Counts of what was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    /// Keys, repeats included.
    #[serde(skip)]
    pub(crate) keys: u64,
    /// Lines without a key.
    pub(crate) empty_lines: u64,
}

/// Where lines come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Stdin,
    File(&'a Path),
}

impl<'a> Source<'a> {
    pub(crate) fn of(path: &'a Path) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path) }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => name(path),
        }
    }

    pub(crate) fn open(&self) -> anyhow::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(path) => Box::new(File::open(path).with_context(|| self.name())?),
        })
    }

    /// Its length in bytes, if that is known before it is read.
    pub(crate) fn bytes(&self) -> anyhow::Result<Option<u64>> {
        let Self::File(path) = self else { return Ok(None) };
        let metadata = path.metadata().with_context(|| self.name())?;
        ensure!(!metadata.is_dir(), "{}: this is a directory, not a key file", self.name());
        let known = metadata.is_file();
        Ok(known.then_some(metadata.len()))
    }
}

/// The length of all sources together, or `None` if the length of any is unknown.
pub(crate) fn total_bytes(sources: &[Source<'_>]) -> anyhow::Result<Option<u64>> {
    let lengths = sources.iter().map(Source::bytes).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(lengths.into_iter().sum())
}

/// The keys of a block of whole lines.
pub(crate) fn split<'a>(lines: &'a [u8], tally: &mut Tally) -> Vec<&'a [u8]> {
    let mut keys = Vec::with_capacity(lines.len() / 16);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        match key_of(line) {
            [] => tally.empty_lines += 1,
            key => keys.push(key),
        }
    }
    tally.keys += keys.len() as u64;
    keys
}

/// A line without its end.
pub(crate) fn key_of(line: &[u8]) -> &[u8] {
    match line {
        [key @ .., b'\r', b'\n'] | [key @ .., b'\n'] => key,
        last => last,
    }
}

/// How much is read at once.
const BLOCK: usize = 1 << 20;

/// Maximum length of a line without its end. A file with a longer one is not a file of keys.
const LONGEST_LINE: usize = 16 << 20;
/// The same, including the line's end.
const LONGEST_WHOLE: usize = LONGEST_LINE + "\r\n".len();

/// Calls `work` with whole lines, as many at a time as have arrived.
pub(crate) fn read_lines(
    mut input: impl Read,
    name: &str,
    mut work: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut buffer = vec![0; BLOCK];
    // Bytes of a line whose end has not arrived, at the front of the buffer.
    let mut held = 0;
    loop {
        if held == buffer.len() {
            if held >= LONGEST_WHOLE {
                return Err(too_long(name));
            }
            buffer.resize((held * 2).min(LONGEST_WHOLE), 0);
        }
        let read = match input.read(&mut buffer[held..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.with_context(|| name.to_owned())?,
        };
        let filled = held + read;
        if read == 0 {
            ensure!(held <= LONGEST_LINE, too_long(name));
            return if held > 0 { work(&buffer[..held]) } else { Ok(()) };
        }
        let end = buffer[held..filled].iter().rposition(|byte| *byte == b'\n');
        let whole = end.map_or(0, |end| held + end + 1);
        if whole > 0 {
            // Only a line that fills the block can be too long.
            let first = buffer[..whole].iter().position(|byte| *byte == b'\n');
            let first = key_of(&buffer[..=first.unwrap_or(0)]);
            ensure!(first.len() <= LONGEST_LINE, too_long(name));
            work(&buffer[..whole])?;
            buffer.copy_within(whole..filled, 0);
        }
        held = filled - whole;
    }
}

fn too_long(name: &str) -> anyhow::Error {
    anyhow!("{name}: a line is longer than 16 MiB: this is not a key file")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes in pieces of `step`.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn keys_of(bytes: &[u8], step: usize) -> (Vec<Vec<u8>>, Tally) {
        let (mut keys, mut tally) = (Vec::new(), Tally::default());
        read_lines(Trickle(bytes, step), "keys", |lines| {
            keys.extend(split(lines, &mut tally).into_iter().map(<[u8]>::to_vec));
            Ok(())
        })
        .unwrap();
        (keys, tally)
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        for step in 1..20 {
            let (keys, tally) = keys_of(b"a\n\nb c\r\n\r\n\xff\rd\nlast\r", step);
            assert_eq!(keys, [&b"a"[..], b"b c", b"\xff\rd", b"last\r"], "{step}");
            assert_eq!(tally, Tally { keys: 4, empty_lines: 2 });
        }
    }

    #[test]
    fn a_line_longer_than_a_block_is_one_key() {
        let long = vec![b'x'; 3 * BLOCK + 5];
        let (keys, _) = keys_of(&[&long[..], b"\nshort"].concat(), usize::MAX);
        assert_eq!(keys, [&long[..], b"short"]);
    }

    #[test]
    fn a_line_may_have_exactly_as_many_bytes_as_the_limit_says() {
        let line = |length: usize, end: &str| [&vec![b'x'; length][..], end.as_bytes()].concat();
        for (before, end) in [("", "\n"), ("", "\r\n"), ("", ""), ("a\n", "\n"), ("a\n", "\r\n")] {
            for step in [usize::MAX, BLOCK - 1] {
                let bytes = [before.as_bytes(), &line(LONGEST_LINE, end)].concat();
                let (keys, _) = keys_of(&bytes, step);
                assert_eq!(keys.last().map(Vec::len), Some(LONGEST_LINE), "{before:?} {end:?}");
                let bytes = [before.as_bytes(), &line(LONGEST_LINE + 1, end)].concat();
                let refused = read_lines(Trickle(&bytes, step), "keys", |_| Ok(()));
                assert!(refused.is_err(), "{before:?} {end:?}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let error = read_lines(io::repeat(b'x'), "zeros", |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("zeros: a line is longer"));
    }
}
