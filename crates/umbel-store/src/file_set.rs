//! The set of files a store consists of. To change it, a thread must hold the lock `upkeep`.

use crate::format::manifest::Manifest;
use crate::format::trailer::Head;

/// The files in use, a merge that was stopped, and the number of the next file.
#[derive(Debug)]
pub(crate) struct FileSet {
    pub(crate) manifest: Manifest,
    pub(crate) unfinished: Option<Head>,
    next_number: u64,
}

impl FileSet {
    pub(crate) fn new(manifest: Manifest, unfinished: Option<Head>) -> Self {
        let after = unfinished.as_ref().map_or(0, |head| head.number + 1);
        let next_number = manifest.next_number().max(after);
        Self { manifest, unfinished, next_number }
    }

    pub(crate) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// A changed copy of the manifest, as the next generation.
    pub(crate) fn next(&self, change: impl FnOnce(&mut Manifest)) -> Manifest {
        let mut next = self.manifest.clone();
        next.generation += 1;
        change(&mut next);
        next
    }
}
