//! Merges master and changes in key order, for scanning and integrating.
//!
//! Each source has a cursor on its current record. The smallest key comes next; if several sources
//! have it, the newest wins and the others skip it.

use std::ops::Bound;
use std::sync::Arc;

use crate::delta::Delta;
use crate::error::Result;
use crate::format::record::Kind;
use crate::sorted::{Sorted, SortedCursor};
use crate::view::{Layer, View, split_kind};

/// Key, kind and value of the current record.
type Standing<'a> = (&'a [u8], Kind, &'a [u8]);

/// A merge iterator over several sources, in key order.
#[derive(Debug)]
pub(crate) struct Merge {
    /// Newest first.
    sources: Vec<Source>,
    /// The source that has the next record, and all that have its key.
    winner: Option<usize>,
    same: Vec<usize>,
}

#[derive(Debug)]
enum Source {
    Delta(DeltaCursor),
    Sorted(SortedCursor, Arc<Sorted>),
    Master(SortedCursor),
}

impl Source {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Delta(cursor) => cursor.key(),
            Self::Sorted(cursor, _) | Self::Master(cursor) => cursor.key(),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        match self {
            Self::Delta(cursor) => {
                cursor.advance();
                Ok(())
            }
            Self::Sorted(cursor, _) | Self::Master(cursor) => cursor.advance(),
        }
    }
}

impl Merge {
    /// Starts at the first key not below `from`.
    pub(crate) fn new(
        layers: &[Layer],
        master: Option<&Arc<Sorted>>,
        from: &[u8],
        sequence: u64,
    ) -> Result<Self> {
        let mut sources = Vec::with_capacity(layers.len() + 1);
        for layer in layers {
            sources.push(match layer {
                Layer::Delta(delta) => Source::Delta(DeltaCursor::new(delta, from, sequence)),
                Layer::Sorted(sorted) => {
                    let cursor = SortedCursor::new(Arc::clone(sorted), from)?;
                    Source::Sorted(cursor, Arc::clone(sorted))
                }
            });
        }
        if let Some(master) = master {
            sources.push(Source::Master(SortedCursor::new(Arc::clone(master), from)?));
        }
        let mut merge = Self { sources, winner: None, same: Vec::new() };
        merge.choose();
        Ok(merge)
    }

    fn choose(&mut self) {
        self.winner = None;
        self.same.clear();
        let mut smallest: Option<&[u8]> = None;
        for (i, source) in self.sources.iter().enumerate() {
            let Some(key) = source.key() else { continue };
            match smallest.map(|smallest| key.cmp(smallest)) {
                Some(std::cmp::Ordering::Greater) => continue,
                Some(std::cmp::Ordering::Equal) => {}
                Some(std::cmp::Ordering::Less) | None => {
                    self.same.clear();
                    self.winner = Some(i);
                    smallest = Some(key);
                }
            }
            self.same.push(i);
        }
    }

    /// The current record: key, kind and value. Master records count as inserts.
    #[inline]
    pub(crate) fn record(&self) -> Result<Option<Standing<'_>>> {
        let Some(winner) = self.winner else { return Ok(None) };
        let source = &self.sources[winner];
        let key = source.key().expect("the winner stands on a record");
        let (kind, value) = match source {
            Source::Delta(cursor) => cursor.change(),
            Source::Sorted(cursor, sorted) => split_kind(sorted, cursor.value())?,
            Source::Master(cursor) => (Kind::Insert, cursor.value()),
        };
        Ok(Some((key, kind, value)))
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        for &i in &self.same {
            self.sources[i].advance()?;
        }
        self.choose();
        Ok(())
    }
}

/// Iterates over one index in memory. Copies a few records at a time, so that the lock is held
/// briefly.
#[derive(Debug)]
struct DeltaCursor {
    delta: Arc<Delta>,
    sequence: u64,
    entries: Vec<u32>,
    next: usize,
    copied: Vec<u8>,
    block: Vec<(Kind, usize, usize, usize)>,
    at: usize,
}

impl DeltaCursor {
    fn new(delta: &Arc<Delta>, from: &[u8], sequence: u64) -> Self {
        let entries = delta.in_order(|key| key < from);
        let mut cursor = Self {
            delta: Arc::clone(delta),
            sequence,
            entries,
            next: 0,
            copied: Vec::new(),
            block: Vec::new(),
            at: 0,
        };
        cursor.fill();
        cursor
    }

    fn fill(&mut self) {
        self.copied.clear();
        self.block.clear();
        self.at = 0;
        let changes = self.delta.read();
        let ahead = (self.next + BLOCK).min(self.entries.len());
        changes.touch(&self.entries[self.next..ahead]);
        while self.block.len() < BLOCK && self.next < self.entries.len() {
            let seen = changes.seen_by(self.entries[self.next], self.sequence);
            self.next += 1;
            let Some(version) = seen else { continue };
            let start = self.copied.len();
            self.copied.extend_from_slice(version.key);
            let value = self.copied.len();
            self.copied.extend_from_slice(version.value);
            self.block.push((version.kind, start, value, self.copied.len()));
        }
    }

    fn key(&self) -> Option<&[u8]> {
        self.block.get(self.at).map(|&(_, start, value, _)| &self.copied[start..value])
    }

    fn change(&self) -> (Kind, &[u8]) {
        let (kind, _, value, end) = self.block[self.at];
        (kind, &self.copied[value..end])
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at >= self.block.len() {
            self.fill();
        }
    }
}

const BLOCK: usize = 128;

/// Records in key order, as a snapshot sees them. Ends after an error.
#[derive(Debug)]
pub struct Scan {
    merge: Option<Merge>,
    end: End,
}

/// Where a scan ends.
#[derive(Debug)]
pub(crate) enum End {
    Bound(Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl End {
    fn is_past(&self, key: &[u8]) -> bool {
        match self {
            Self::Bound(Bound::Unbounded) => false,
            Self::Bound(Bound::Included(last)) => key > &last[..],
            Self::Bound(Bound::Excluded(end)) => key >= &end[..],
            Self::Prefix(prefix) => !key.starts_with(prefix),
        }
    }
}

impl Scan {
    pub(crate) fn new(view: &View, sequence: u64, from: &[u8], end: End) -> Result<Self> {
        let merge = Merge::new(&view.layers, view.master.as_ref(), from, sequence)?;
        Ok(Self { merge: Some(merge), end })
    }

    fn step(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some(merge) = &mut self.merge else { return Ok(None) };
        while let Some((key, kind, value)) = merge.record()? {
            if self.end.is_past(key) {
                break;
            }
            let found = (kind != Kind::Delete).then(|| (key.to_vec(), value.to_vec()));
            merge.advance()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.merge = None;
        Ok(None)
    }
}

impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.merge = None;
        }
        step.transpose()
    }
}
