//! A cursor over a sorted file, in key order.

use std::ops::Range;
use std::sync::Arc;

use super::Sorted;
use crate::error::Result;

/// A cursor: at one record of a sorted file, or past its end.
#[derive(Debug)]
pub(crate) struct SortedCursor {
    sorted: Arc<Sorted>,
    page: usize,
    record: usize,
    key: Vec<u8>,
    value: Range<usize>,
    at_end: bool,
}

impl SortedCursor {
    /// Starts at the first record whose key is not below `from`.
    pub(crate) fn new(sorted: Arc<Sorted>, from: &[u8]) -> Result<Self> {
        let page = sorted.page_of(from).unwrap_or(0);
        let mut record = 0;
        if page < sorted.pages() {
            let first = sorted.page(page)?;
            record = first
                .lower_bound(from)
                .map_err(|error| error.in_file(sorted.name(), sorted.page_offset(page)))?;
        }
        let mut cursor = Self { sorted, page, record, key: Vec::new(), value: 0..0, at_end: false };
        cursor.settle()?;
        Ok(cursor)
    }

    /// The key of the current record, or `None` past the end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        (!self.at_end).then_some(&self.key[..])
    }

    /// The stored value of the current record.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        &self.sorted.contents[self.value.clone()]
    }

    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        self.record += 1;
        self.settle()
    }

    /// Moves to the next page while this one has no more records, then reads the record.
    fn settle(&mut self) -> Result<()> {
        while self.page < self.sorted.pages() {
            let page = self.sorted.page(self.page)?;
            if self.record < page.len() {
                let (rest, value) = page.record(self.record).map_err(|error| {
                    error.in_file(self.sorted.name(), self.sorted.page_offset(self.page))
                })?;
                self.key.clear();
                self.key.extend_from_slice(page.prefix());
                self.key.extend_from_slice(rest);
                // Keep the value's offset in the file, so that no borrow outlives this call.
                let start = value.as_ptr().addr() - self.sorted.contents.as_ptr().addr();
                self.value = start..start + value.len();
                return Ok(());
            }
            self.page += 1;
            self.record = 0;
        }
        self.at_end = true;
        Ok(())
    }
}
