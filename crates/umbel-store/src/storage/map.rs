//! The only module with `unsafe` code: it maps files that do not change while they are mapped.
//!
//! Always true: only finished master and sorted files are mapped, and unfinished files of a stopped
//! merge until they are written to again. The store that holds the folder's lock writes a finished
//! file once, under another name, and afterwards only ever removes it. A removed file stays
//! readable through its map.
#![expect(unsafe_code, reason = "mapping a file is unsafe by nature; nothing else here is")]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// A mapped file.
#[derive(Debug)]
pub(super) struct Map(Mmap);

impl Map {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the bytes must not change while mapped. Callers map only finished files, which
        // this crate never writes to again, and drop the map of an unfinished one before they
        // append to it. The folder's lock keeps other stores away. Somebody who ignores the lock
        // and edits the file breaks that promise, as they would with any database.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(map))
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
