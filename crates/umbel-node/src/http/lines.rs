//! Keys as the lines of a body that arrives in pieces.
//!
//! A line ends with `\n` or `\r\n`; every other byte belongs to the key. Lines count from 1,
//! empty ones too, but hold no key.
//!
//! Always true: at most one line is kept from piece to piece, and of that at most the maximum
//! length of a key, however long the line is.

/// One line: its number, and its bytes without the line end, or its length if it is too long.
pub(super) type Line<'a> = (u64, Result<&'a [u8], usize>);

/// Splits pieces into lines.
#[derive(Debug)]
pub(super) struct Lines {
    longest: usize,
    number: u64,
    /// The beginning of a line whose end has not arrived yet.
    begun: Vec<u8>,
    /// The number of bytes of that line that were not kept because it is too long.
    beyond: usize,
    /// The line that began before the current piece.
    joined: Vec<u8>,
}

impl Lines {
    pub(super) const fn new(longest: usize) -> Self {
        Self { longest, number: 0, begun: Vec::new(), beyond: 0, joined: Vec::new() }
    }

    /// Appends the non-empty lines that end in this piece.
    pub(super) fn split<'a>(&'a mut self, piece: &'a [u8], lines: &mut Vec<Line<'a>>) {
        let Some(first_end) = piece.iter().position(|byte| *byte == b'\n') else {
            return self.keep(piece);
        };
        let mut rest = piece;
        if !self.begun.is_empty() {
            self.keep(&piece[..first_end]);
            self.number += 1;
            std::mem::swap(&mut self.begun, &mut self.joined);
            self.begun.clear();
            let beyond = std::mem::take(&mut self.beyond);
            rest = &piece[first_end + 1..];
            push(lines, self.number, &self.joined, beyond, self.longest);
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.number += 1;
            push(lines, self.number, &rest[..end], 0, self.longest);
            rest = &rest[end + 1..];
        }
        keep(&mut self.begun, &mut self.beyond, self.longest, rest);
    }

    /// Appends the last line, if it has no line end.
    pub(super) fn finish<'a>(&'a mut self, lines: &mut Vec<Line<'a>>) {
        if !self.begun.is_empty() {
            self.number += 1;
            push(lines, self.number, &self.begun, self.beyond, self.longest);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        keep(&mut self.begun, &mut self.beyond, self.longest, bytes);
    }
}

/// Keeps as much of a line as fits, with room for `\r`, and counts the rest.
fn keep(begun: &mut Vec<u8>, beyond: &mut usize, longest: usize, bytes: &[u8]) {
    let fits = bytes.len().min((longest + 1).saturating_sub(begun.len()));
    begun.extend_from_slice(&bytes[..fits]);
    *beyond += bytes.len() - fits;
}

fn push<'a>(lines: &mut Vec<Line<'a>>, number: u64, line: &'a [u8], beyond: usize, longest: usize) {
    // The end of a line that is far too long was not kept.
    let whole = beyond == 0 && line.len() <= longest + 1;
    let key = line.strip_suffix(b"\r").filter(|_| whole).unwrap_or(line);
    match key.len() + beyond {
        0 => {}
        length if length > longest => lines.push((number, Err(length))),
        _ => lines.push((number, Ok(key))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (u64, Result<Vec<u8>, usize>);

    fn owned(lines: &[Line<'_>]) -> Vec<Owned> {
        lines.iter().map(|(number, line)| (*number, line.map(<[u8]>::to_vec))).collect()
    }

    /// All at once, as a simple reference.
    fn oracle(body: &[u8], longest: usize) -> Vec<Owned> {
        let mut all: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
        if all.last().is_some_and(|last| last.is_empty()) {
            all.pop();
        }
        let bare = |line: &[u8]| {
            let kept = line.len() <= longest + 1;
            line.strip_suffix(b"\r").filter(|_| kept).unwrap_or(line).to_vec()
        };
        let numbered = (1..).zip(all.into_iter().map(bare)).filter(|(_, line)| !line.is_empty());
        numbered
            .map(|(number, line)| match line.len() {
                length if length > longest => (number, Err(length)),
                _ => (number, Ok(line)),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_give_the_same_lines(
            body in prop::collection::vec(prop::sample::select(&b"ab\r\n"[..]), 0..60),
            cuts in prop::collection::vec(0_usize..8, 0..40),
            longest in 1_usize..6,
        ) {
            let (mut lines, mut found, mut rest) = (Lines::new(longest), Vec::new(), &body[..]);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                rest = later;
                let mut cut = Vec::new();
                lines.split(piece, &mut cut);
                found.extend(owned(&cut));
            }
            let mut last = Vec::new();
            lines.finish(&mut last);
            found.extend(owned(&last));
            prop_assert_eq!(found, oracle(&body, longest));
        }
    }

    #[test]
    fn an_endless_line_is_counted_and_not_kept() {
        let mut lines = Lines::new(10);
        for _ in 0..1000 {
            lines.split(&[b'x'; 1000], &mut Vec::new());
        }
        assert!(lines.begun.capacity() < 100);
        let mut found = Vec::new();
        lines.split(b"\nnext\n", &mut found);
        assert_eq!(found, [(1, Err(1_000_000)), (2, Ok(&b"next"[..]))]);
    }
}
