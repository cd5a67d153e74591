//! State of the test disk: live and durable bytes and names, and the pending changes between them.

use std::collections::BTreeMap;

use super::Fate;

#[derive(Debug, Default, Clone)]
pub(super) struct Names {
    pub(super) live: BTreeMap<String, usize>,
    pub(super) durable: BTreeMap<String, usize>,
    pub(super) pending: Vec<NameChange>,
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Link(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

#[derive(Debug, Default, Clone)]
pub(super) struct FileState {
    pub(super) live: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<Change>,
    /// Changes whose sync failed: a crash may keep them, but a later sync does not make them
    /// durable.
    pub(super) doubtful: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate(usize),
}

impl FileState {
    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    pub(super) fn after_crash(&self, fate: Fate, coin: &mut Coin) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in self.doubtful.iter().chain(&self.pending) {
            match fate {
                Fate::LoseAll => {}
                Fate::KeepAll => change.apply(&mut bytes),
                Fate::Mixed(_) => change.apply_in_doubt(&mut bytes, coin),
            }
        }
        bytes
    }
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => write_at(image, *at, bytes),
            Self::Truncate(len) => image.truncate(*len),
        }
    }

    /// Applies the change at random: fully, not at all, cut short, or with a hole of zeros like a
    /// sector that was never written.
    fn apply_in_doubt(&self, image: &mut Vec<u8>, coin: &mut Coin) {
        match (coin.toss() % 4, self) {
            (0, _) => {}
            (1, Self::Write { at, bytes }) => {
                let cut = coin.toss() as usize % (bytes.len() + 1);
                write_at(image, *at, &bytes[..cut]);
            }
            (2, Self::Write { at, bytes }) => {
                let mut holed = bytes.clone();
                let from = coin.toss() as usize % (bytes.len() + 1);
                let to = (from + 1 + coin.toss() as usize % 64).min(bytes.len());
                holed[from.min(to)..to].fill(0);
                write_at(image, *at, &holed);
            }
            _ => self.apply(image),
        }
    }
}

impl Names {
    pub(super) fn after_crash(&self, fate: Fate, coin: &mut Coin) -> BTreeMap<String, usize> {
        let mut names = self.durable.clone();
        for change in &self.pending {
            let kept = match fate {
                Fate::LoseAll => false,
                Fate::KeepAll => true,
                Fate::Mixed(_) => coin.toss().is_multiple_of(2),
            };
            match change {
                _ if !kept => {}
                NameChange::Link(name, file) => drop(names.insert(name.clone(), *file)),
                NameChange::Rename(from, to, file) => {
                    names.remove(from);
                    names.insert(to.clone(), *file);
                }
                NameChange::Remove(name) => drop(names.remove(name)),
            }
        }
        names
    }
}

/// Writes, filling any gap with zeros, as a file system shows a sector that was never written.
pub(super) fn write_at(image: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[at..end].copy_from_slice(bytes);
}

/// A seeded generator (splitmix64): the same seed gives the same crash.
pub(super) struct Coin(pub(super) u64);

impl Coin {
    pub(super) fn toss(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
