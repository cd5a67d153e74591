//! A simulated disk for tests, with crashes and injected failures.
//!
//! Each file has live bytes, which programs see, and durable bytes, which survive a crash; plus a
//! list of changes that are in the first but not yet in the second. So has the folder's list of
//! names. [`TestDisk::crash`] returns a disk as a machine could find it after a power loss: the
//! durable image with any of those changes, each of them whole, torn or missing.
//!
//! [`TestDisk::fail_call`] makes one chosen call fail, [`TestDisk::crash_at_call`] all calls from a
//! chosen one on, [`TestDisk::set_capacity`] all calls that need more space than there is, and
//! [`TestDisk::set_read_only`] all calls that change something. A failed sync behaves as on Linux:
//! the changes stay visible, and no later sync makes them durable.

mod image;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Contents, Storage, StorageFile};
use image::{Change, Coin, FileState, NameChange, Names, write_at};

/// A disk in memory. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct TestDisk {
    state: Arc<Mutex<State>>,
}

/// What happens to unsynced changes in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing that was not synced survives.
    LoseAll,
    /// Everything survives, as after `kill -9`.
    KeepAll,
    /// Each change is kept, lost or torn in the middle, chosen by a generator with this seed.
    Mixed(u64),
}

#[derive(Debug, Default)]
struct State {
    names: Names,
    files: Vec<FileState>,
    calls: u64,
    fail_call: Option<u64>,
    crash_at: Option<u64>,
    capacity: Option<u64>,
    read_only: bool,
    locked: bool,
    salts: u64,
}

impl TestDisk {
    /// An empty disk on which nothing fails.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many storage calls were made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Makes one call fail: the `n`th from now, counted from zero.
    pub fn fail_call(&self, n: u64) {
        let mut state = self.state();
        state.fail_call = Some(state.calls + n);
    }

    /// Makes every call fail from the `n`th from now on: the machine has lost power.
    pub fn crash_at_call(&self, n: u64) {
        let mut state = self.state();
        state.crash_at = Some(state.calls + n);
    }

    /// Room for this many bytes in all files together, or no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Whether the disk rejects all changes, as a write-protected one does.
    pub fn set_read_only(&self, read_only: bool) {
        self.state().read_only = read_only;
    }

    /// Bytes in all files together.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// A disk as the machine may find it after a crash: a separate disk, unlocked, on which nothing
    /// fails.
    #[must_use]
    pub fn crash(&self, fate: Fate) -> Self {
        let state = self.state();
        let mut coin = Coin(match fate {
            Fate::Mixed(seed) => seed,
            _ => 0,
        });
        let names = state.names.after_crash(fate, &mut coin);
        let files: Vec<FileState> = state
            .files
            .iter()
            .map(|file| {
                let bytes = file.after_crash(fate, &mut coin);
                FileState { live: bytes.clone(), durable: bytes, ..FileState::default() }
            })
            .collect();
        let names = Names { live: names.clone(), durable: names, pending: Vec::new() };
        let after = State { names, files, salts: state.salts, ..State::default() };
        Self { state: Arc::new(Mutex::new(after)) }
    }

    /// The bytes of a file as programs see them.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.names.live.get(name)?;
        Some(state.files[file].live.clone())
    }

    /// Sets the bytes of a file, durably, replacing any file of that name.
    pub fn set_bytes(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(FileState { live: bytes.clone(), durable: bytes, ..Default::default() });
        state.names.live.insert(name.to_owned(), file);
        state.names.durable.insert(name.to_owned(), file);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Counts a call, and fails if it is one that should.
    fn call(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        let call = state.calls;
        state.calls += 1;
        if state.crash_at.is_some_and(|at| call >= at) {
            return Err(io::Error::other("the machine has lost power"));
        }
        if state.fail_call == Some(call) {
            return Err(io::Error::other("injected failure"));
        }
        Ok(state)
    }

    /// A call that changes something.
    fn changing_call(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.call()?;
        if state.read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(state) }
    }
}

impl State {
    fn used(&self) -> u64 {
        self.names.live.values().map(|&file| self.files[file].live.len() as u64).sum()
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        self.names.live.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// How many of these bytes the disk has room for.
    fn room(&self, wanted: usize) -> usize {
        let left = self.capacity.map_or(u64::MAX, |all| all.saturating_sub(self.used()));
        wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
    }
}

impl Storage for TestDisk {
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.changing_call()?;
        if std::mem::replace(&mut state.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        drop(state);
        Ok(Box::new(Guard(self.clone())))
    }

    fn lock_to_read(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        match self.lock() {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(None),
            lock => lock.map(Some),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.call()?.names.live.keys().cloned().collect())
    }

    fn create_dir(&self) -> io::Result<()> {
        self.changing_call().map(drop)
    }

    fn read(&self, name: &str) -> io::Result<Contents> {
        let state = self.call()?;
        let file = state.file(name)?;
        Ok(Contents::from(state.files[file].live.clone()))
    }

    fn map(&self, name: &str) -> io::Result<Contents> {
        self.read(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.changing_call()?;
        let file = state.files.len();
        state.files.push(FileState::default());
        state.names.live.insert(name.to_owned(), file);
        state.names.pending.push(NameChange::Link(name.to_owned(), file));
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = self.changing_call()?.file(name)?;
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.changing_call()?;
        let file = state.file(from)?;
        state.names.live.remove(from);
        state.names.live.insert(to.to_owned(), file);
        state.names.pending.push(NameChange::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.changing_call()?;
        state.file(name)?;
        state.names.live.remove(name);
        state.names.pending.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.call()?;
        state.names.durable = state.names.live.clone();
        state.names.pending.clear();
        Ok(())
    }

    fn hard_link(&self, _name: &str, _to: &dyn Storage) -> io::Result<bool> {
        drop(self.call()?);
        Ok(false)
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn salt(&self) -> u64 {
        let mut state = self.state();
        state.salts += 1;
        Coin(state.salts).toss()
    }
}

struct Guard(TestDisk);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

#[derive(Debug)]
struct OpenFile {
    disk: TestDisk,
    file: usize,
}

impl StorageFile for OpenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.disk.state().files[self.file].live.len();
        self.write_at(end as u64, bytes)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // A call that fails or runs out of space may still have written a part.
        let (mut state, failure) = match self.disk.call() {
            Ok(state) => (state, None),
            Err(error) => (self.disk.state(), Some(error)),
        };
        let at = at as usize;
        let len = state.files[self.file].live.len();
        assert!(at <= len, "a write leaves no gap");
        // Only bytes beyond the end of the file need space.
        let over = (len - at).min(bytes.len());
        let mut taken = over + state.room(bytes.len() - over);
        if failure.is_some() {
            taken /= 2;
        }
        let file = &mut state.files[self.file];
        write_at(&mut file.live, at, &bytes[..taken]);
        file.pending.push(Change::Write { at, bytes: bytes[..taken].to_vec() });
        match failure {
            Some(error) => Err(error),
            None if taken < bytes.len() => Err(io::ErrorKind::StorageFull.into()),
            None => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.disk.call() {
            Ok(mut state) => {
                state.files[self.file].sync();
                Ok(())
            }
            Err(error) => {
                let mut state = self.disk.state();
                let file = &mut state.files[self.file];
                let pending = std::mem::take(&mut file.pending);
                file.doubtful.extend(pending);
                Err(error)
            }
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.disk.call()?;
        let file = &mut state.files[self.file];
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(file.live.len());
        file.live.truncate(len);
        file.pending.push(Change::Truncate(len));
        Ok(())
    }

    /// Files of this disk keep their names.
    fn check_place(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_synced_is_sure_to_survive() {
        let disk = TestDisk::new();
        let mut file = disk.create("a").unwrap();
        file.append(b"one").unwrap();
        file.sync().unwrap();
        assert_eq!(disk.crash(Fate::LoseAll).bytes("a"), None, "the name was not synced");
        disk.sync_dir().unwrap();
        file.append(b"two").unwrap();
        assert_eq!(disk.crash(Fate::LoseAll).bytes("a").unwrap(), b"one");
        assert_eq!(disk.crash(Fate::KeepAll).bytes("a").unwrap(), b"onetwo");
        assert_eq!(disk.bytes("a").unwrap(), b"onetwo");
    }

    #[test]
    fn a_failed_sync_is_not_mended_by_a_later_one() {
        let disk = TestDisk::new();
        let mut file = disk.create("a").unwrap();
        disk.sync_dir().unwrap();
        file.append(b"lost").unwrap();
        disk.fail_call(0);
        file.sync().unwrap_err();
        file.sync().unwrap();
        assert_eq!(disk.crash(Fate::LoseAll).bytes("a").unwrap(), b"");
    }

    #[test]
    fn a_full_disk_takes_what_fits() {
        let disk = TestDisk::new();
        disk.set_capacity(Some(4));
        let mut file = disk.create("a").unwrap();
        let error = file.append(b"123456").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.bytes("a").unwrap(), b"1234");
    }

    #[test]
    fn a_second_lock_is_refused_until_the_first_is_gone() {
        let disk = TestDisk::new();
        let guard = disk.lock().unwrap();
        assert!(disk.lock().is_err());
        drop(guard);
        assert!(disk.lock().is_ok());
    }
}
