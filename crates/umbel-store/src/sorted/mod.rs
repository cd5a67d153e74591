//! A finished file of sorted pages: the master, or a differential file whose index outgrew
//! the memory budget. It is mapped and never changes.
//!
//! Head, index, filter and trailer are checked when the file is opened; each page is checked when
//! it is first read, and then not again while the file is open. So a lookup returns the right
//! answer or an error, and lookups in pages already read pay for no checksum: they go from the
//! index directly to the few records that can match.
//!
//! In a sorted differential file the first byte of a value says whether the record is an
//! insert, a change or a delete; a master has only keys that exist.
//!
//! Not here: how such a file is written (`writer`), how the page of a key is found (`index`), and
//! how its place in the page is found (`places`).

mod cursor;
mod index;
mod places;
mod rows;
mod writer;

pub(crate) use cursor::SortedCursor;
pub(crate) use writer::{Origin, Plan, SortedWriter};

use std::ops::Range;

use umbel::{KeyHash, KeyHasher};

use crate::error::{Error, Result};
use crate::format::Malformed;
use crate::format::page::{self, Page, UNIT, first_row};
use crate::format::trailer::{FileFilter, Head, TRAILER, Trailer};
use crate::storage::{Contents, Storage};
use index::Index;
use places::Places;

/// What a file of sorted pages is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Existing keys; its filter is blocked.
    Master,
    /// Changes; its filter is the standard filter of paper 2.
    Differential,
}

/// A finished file of sorted pages.
#[derive(Debug)]
pub(crate) struct Sorted {
    name: String,
    contents: Contents,
    trailer: Trailer,
    filter: Range<usize>,
    index: Index,
    /// What is remembered about each page.
    places: Vec<Places>,
    /// Length of a key and of a value, if all records of the first page are alike.
    alike: Option<(usize, usize)>,
}

impl Sorted {
    /// Opens the file and checks everything but its pages.
    pub(crate) fn open(
        storage: &dyn Storage,
        name: String,
        number: u64,
        store: u64,
        role: Role,
    ) -> Result<Self> {
        let contents = storage.map(&name).map_err(Error::io("read", &name))?;
        let in_file = |error: Malformed| error.in_file(&name, 0);
        let trailer = Trailer::decode(&contents).map_err(in_file)?;
        let head = Head::decode(&contents).map_err(in_file)?;
        if (head.number, trailer.number, head.store) != (number, number, store) {
            return Err(Error::corrupt(&name, 16, "the file is not the one its name says"));
        }
        if (role == Role::Master) != matches!(trailer.filter, FileFilter::Blocked(_)) {
            return Err(Error::corrupt(&name, 16, "the filter is not the one of such a file"));
        }
        let (index_at, filter_at) = (trailer.index_at as usize, trailer.filter_at as usize);
        if crc32c::crc32c(&contents[index_at..filter_at]) != trailer.index_crc {
            return Err(Error::corrupt(&name, index_at, "the index's checksum is wrong"));
        }
        if crc32c::crc32c(&contents[filter_at..contents.len() - TRAILER]) != trailer.filter_crc {
            return Err(Error::corrupt(&name, filter_at, "the filter's checksum is wrong"));
        }
        let index = Index::new(&contents, &trailer).map_err(in_file)?;
        let places = std::iter::repeat_with(Places::new).take(trailer.pages as usize).collect();
        let filter = filter_at..contents.len() - TRAILER;
        // The page is not checked yet. Wrong lengths make lookups slower, not wrong.
        let first = contents.get(UNIT..2 * UNIT).and_then(|bytes| Page::new(bytes).ok());
        let alike = first.and_then(|page| page.alike());
        Ok(Self { name, contents, trailer, filter, index, places, alike })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.contents.len() as u64
    }

    pub(crate) fn pages(&self) -> usize {
        self.trailer.pages as usize
    }

    /// Whether the filter says that the file may contain the key; `false` is certain.
    #[inline(always)]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        self.trailer.filter.may_contain(&self.contents[self.filter.clone()], hash)
    }

    /// The stored value of a key, without using the filter. Not inlined, so that lookups that end
    /// at the filter stay short.
    #[inline(never)]
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        match self.find_in_rows(key) {
            Some(found) => Ok(found),
            None => self.find_anywhere(key),
        }
    }

    /// The fast path: works if the page was checked before, and its records have the same length as
    /// those of the first page. It does not read the start of the page. `None` if it does not
    /// apply.
    #[inline(always)]
    fn find_in_rows(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let (key_len, value_len) = self.alike.filter(|(key_len, _)| *key_len == key.len())?;
        let head = self.index.head(key);
        let (number, bounds) = self.index.near(head)?;
        let (prefix, among) = self.places.get(number)?.rows(bounds, head)?;
        let len = key_len - prefix + value_len;
        let file = &self.contents[..];
        let page = self.index.units(file, number).0 as usize * UNIT + first_row(prefix);
        let rows = file.get(page + among.start * len..page + among.end * len)?;
        rows::find(rows, len, key.get(prefix..)?)
    }

    #[inline(never)]
    fn find_anywhere(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(number) = self.page_of(key) else { return Ok(None) };
        let page = self.page(number)?;
        let among = self.places[number].among(self.index.bounds(number), self.index.head(key));
        let found = page.find(key, among);
        found.map_err(|error| error.in_file(&self.name, self.page_offset(number)))
    }

    /// The only page that can contain the key.
    pub(crate) fn page_of(&self, key: &[u8]) -> Option<usize> {
        self.index.page_of(&self.contents, key)
    }

    /// Page `number`, checked.
    #[inline]
    pub(crate) fn page(&self, number: usize) -> Result<Page<'_>> {
        let (from, to) = self.index.units(&self.contents, number);
        let offset = from as usize * UNIT;
        let bytes = self.contents.get(offset..to as usize * UNIT);
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            return Err(Error::corrupt(&self.name, offset, "a page is missing"));
        };
        let in_page = |error: Malformed| error.in_file(&self.name, offset);
        if !self.places[number].is_valid() {
            if !page::is_valid(bytes, self.trailer.number, from) {
                return Err(Error::corrupt(&self.name, offset, "a page's checksum is wrong"));
            }
            let bounds = self.index.bounds(number);
            let page = Page::new(bytes).map_err(in_page)?;
            let learnt = self.places[number].learn(&page, &self.index, bounds, self.alike);
            learnt.map_err(in_page)?;
        }
        Page::new(bytes).map_err(in_page)
    }

    fn page_offset(&self, number: usize) -> usize {
        self.index.units(&self.contents, number).0 as usize * UNIT
    }

    /// Reads all pages again and checks everything: checksums, order, counts, and that index and
    /// filter lead to each record. Calls `step` with the length of each page.
    pub(crate) fn verify(&self, hasher: &KeyHasher, mut step: impl FnMut(u64)) -> Result<()> {
        let (mut records, mut last) = (0, None::<Vec<u8>>);
        for number in 0..self.pages() {
            let (from, to) = self.index.units(&self.contents, number);
            let offset = from as usize * UNIT;
            let bytes = self.contents.get(offset..to as usize * UNIT).unwrap_or_default();
            if !page::is_valid(bytes, self.trailer.number, from) {
                return Err(Error::corrupt(&self.name, offset, "a page's checksum is wrong"));
            }
            let in_page = |error: Malformed| error.in_file(&self.name, offset);
            let page = Page::new(bytes).map_err(in_page)?;
            for i in 0..page.len() {
                let (rest, _) = page.record(i).map_err(in_page)?;
                let key = [page.prefix(), rest].concat();
                if last.as_ref().is_some_and(|last| *last >= key) {
                    return Err(Error::corrupt(&self.name, offset, "keys do not rise"));
                }
                if !self.may_contain(hasher.hash(&key)) || self.page_of(&key) != Some(number) {
                    return Err(Error::corrupt(&self.name, offset, "a key cannot be found"));
                }
                records += 1;
                last = Some(key);
            }
            step(bytes.len() as u64);
        }
        if records != self.trailer.records {
            return Err(Error::corrupt(&self.name, 0, "the number of records is wrong"));
        }
        Ok(())
    }

    /// Reads every page once. This proves that what was written is readable, and the first readers
    /// after a switch find the pages in memory and checked.
    pub(crate) fn warm(&self) -> Result<()> {
        (0..self.pages()).try_for_each(|number| self.page(number).map(drop))
    }
}
