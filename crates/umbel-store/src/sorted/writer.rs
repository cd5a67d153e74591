//! Writes a file of sorted pages from records that arrive in ascending order.
//!
//! The file is written under the name of an unfinished file, and is renamed only after it is
//! durable. A write that was stopped half-way is resumed from the unfinished file: every valid page
//! is kept, and everything from the first invalid one on is cut.

use umbel::KeyHasher;

use crate::error::{Error, Result};
use crate::format::manifest::unfinished_name;
use crate::format::page::{self, Page, PageBuilder, UNIT};
use crate::format::record::Kind;
use crate::format::trailer::{Head, Trailer};
use crate::guard::{FileFilter, FilterBuilder};
use crate::sorted::index::IndexBuilder;
use crate::storage::{Storage, StorageFile};

/// What is known of a file before its first record.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) head: Head,
    pub(crate) filter: FileFilter,
    pub(crate) hasher: KeyHasher,
    /// Whether values start with their kind, as in a sorted differential file.
    pub(crate) kinds: bool,
}

/// What is known about the changes in a file and cannot be derived from its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// Last sequence in the file.
    pub(crate) sequence: u64,
    /// Number of changes; several may concern the same key.
    pub(crate) updates: u64,
    /// By how much they changed the number of records. The last change of each key does not tell: a
    /// change may follow an insert of the same key.
    pub(crate) net: i64,
}

/// Writes a file of sorted pages.
#[derive(Debug)]
pub(crate) struct SortedWriter {
    plan: Plan,
    name: String,
    file: Box<dyn StorageFile>,
    out: Vec<u8>,
    page: PageBuilder,
    index: IndexBuilder,
    filter: FilterBuilder,
    unit: u32,
    totals: Totals,
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    records: u64,
    deletes: u64,
}

impl SortedWriter {
    pub(crate) fn create(storage: &dyn Storage, plan: Plan) -> Result<Self> {
        let name = unfinished_name(plan.head.number);
        let file = storage.create(&name).map_err(Error::io("create", &name))?;
        let mut writer = Self::new(plan, name, file);
        writer.out = writer.plan.head.encode();
        Ok(writer)
    }

    fn new(plan: Plan, name: String, file: Box<dyn StorageFile>) -> Self {
        Self {
            filter: FilterBuilder::new(plan.filter),
            plan,
            name,
            file,
            out: Vec::with_capacity(PIECE + 2 * UNIT),
            page: PageBuilder::default(),
            index: IndexBuilder::default(),
            unit: 1,
            totals: Totals::default(),
        }
    }

    /// Resumes an unfinished file, if it has the same inputs.
    pub(crate) fn resume(storage: &dyn Storage, plan: Plan) -> Result<Option<Self>> {
        let name = unfinished_name(plan.head.number);
        // Mapped, because it may be as large as the master; nobody writes to it meanwhile.
        let Ok(bytes) = storage.map(&name) else { return Ok(None) };
        if Head::decode(&bytes).as_ref() != Ok(&plan.head) {
            return Ok(None);
        }
        let file = storage.append(&name).map_err(Error::io("open", &name))?;
        let mut writer = Self::new(plan, name, file);
        while writer.keep_page(&bytes).is_some() {}
        drop(bytes);
        let good = u64::from(writer.unit) * UNIT as u64;
        writer.file.truncate(good).map_err(Error::io("cut", &writer.name))?;
        Ok(Some(writer))
    }

    /// Adds the next page of an unfinished file to index, filter and counts; `None` if it is
    /// incomplete or invalid.
    fn keep_page(&mut self, bytes: &[u8]) -> Option<()> {
        let at = self.unit as usize * UNIT;
        let units = page::units(bytes.get(at..)?)?;
        let page_bytes = bytes.get(at..at + units * UNIT)?;
        if !page::is_valid(page_bytes, self.plan.head.number, self.unit) {
            return None;
        }
        let page = Page::new(page_bytes).ok()?;
        let (mut first, mut last) = (None, Vec::new());
        for i in 0..page.len() {
            let (rest, value) = page.record(i).ok()?;
            let key = [page.prefix(), rest].concat();
            let kind =
                if self.plan.kinds { Kind::from_code(*value.first()?)? } else { Kind::Insert };
            self.count(&key, kind);
            last.clone_from(&key);
            first.get_or_insert(key);
        }
        self.index.page(self.unit, &first?, &last);
        self.unit += units as u32;
        Some(())
    }

    /// The last key in a complete page, after which to continue; `None` if there is none.
    pub(crate) fn resume_after(&self) -> Option<&[u8]> {
        (self.index.pages() > 0).then(|| self.index.last_key())
    }

    pub(crate) fn records(&self) -> u64 {
        self.totals.records
    }

    fn count(&mut self, key: &[u8], kind: Kind) {
        self.filter.insert(self.plan.hasher.hash(key));
        self.totals.records += 1;
        self.totals.deletes += u64::from(kind == Kind::Delete);
    }

    /// Adds the next record; `key` must be above all before it. In a sorted differential file
    /// `value` starts with the kind.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], kind: Kind) -> Result<()> {
        debug_assert!(self.page.is_empty() || key > self.page.last_key(), "keys must rise");
        if !self.page.is_empty() && !self.page.has_room(key, value) {
            self.finish_page()?;
        }
        self.page.push(key, value);
        self.count(key, kind);
        Ok(())
    }

    fn finish_page(&mut self) -> Result<()> {
        self.index.page(self.unit, self.page.first_key(), self.page.last_key());
        let before = self.out.len();
        self.page.finish(self.plan.head.number, self.unit, &mut self.out);
        let units = (self.out.len() - before) / UNIT;
        self.unit = self
            .unit
            .checked_add(units as u32)
            .ok_or_else(|| Error::corrupt(&self.name, 0, "the file would be longer than 16 TiB"))?;
        if self.out.len() >= PIECE { self.write_pieces() } else { Ok(()) }
    }

    /// Writes only whole pieces of the file, so that the system can cache and map each as one huge
    /// page: lookups then have fewer TLB misses.
    fn write_pieces(&mut self) -> Result<()> {
        let end = self.unit as usize * UNIT;
        let whole = (end / PIECE * PIECE).saturating_sub(end - self.out.len());
        self.file.append(&self.out[..whole]).map_err(Error::io("write", &self.name))?;
        self.out.drain(..whole);
        Ok(())
    }

    /// Writes all complete pages so far, so that a stopped merge can be resumed from them.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file.append(&self.out).map_err(Error::io("write", &self.name))?;
        self.out.clear();
        Ok(())
    }

    /// Writes the rest, makes everything durable and gives the file its name.
    pub(crate) fn finish(
        mut self,
        storage: &dyn Storage,
        name: &str,
        origin: &Origin,
    ) -> Result<()> {
        if !self.page.is_empty() {
            self.finish_page()?;
        }
        let index_at = u64::from(self.unit) * UNIT as u64;
        let index = self.index.encode(self.unit);
        let kind = self.filter.filter();
        let filter = self.filter.into_bytes();
        let trailer = Trailer {
            number: self.plan.head.number,
            records: self.totals.records,
            deletes: self.totals.deletes,
            net: origin.net,
            updates: origin.updates,
            sequence: origin.sequence,
            pages: self.index.pages(),
            index_at,
            filter_at: index_at + index.len() as u64,
            index_crc: crc32c::crc32c(&index),
            filter_crc: crc32c::crc32c(&filter),
            filter: kind,
        };
        for bytes in [&self.out[..], &index, &filter, &trailer.encode()] {
            self.file.append(bytes).map_err(Error::io("write", &self.name))?;
        }
        self.file.sync().map_err(Error::io("sync", &self.name))?;
        storage.rename(&self.name, name).map_err(Error::io("rename", &self.name))?;
        storage.sync_dir().map_err(Error::io("sync the folder of", name))
    }
}

/// Number of bytes written at once: the size of a huge page on most processors.
const PIECE: usize = 2 << 20;
