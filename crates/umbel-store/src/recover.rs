//! Opens a store: reads the files that the manifest names, and repairs what a crash left.
//!
//! Only the differential files are read; master and sorted files are mapped, and their index and
//! filter are used in place. What a crash may leave, and what is done about it:
//!
//! * a torn end of the newest differential file that has records: cut, and the rest made durable;
//! * files that the manifest does not name, because the crash came just before or just after it was
//!   replaced: removed;
//! * an unfinished merge: kept, if it can still be resumed;
//! * no manifest at all, because creating the store did not finish: the store is created again.
//!
//! Any other inconsistency is damage, and the store does not open.

use std::sync::Arc;

use umbel::Shape;

use crate::delta::{Delta, Published};
use crate::error::{Error, Result};
use crate::format::manifest::{self, Form, Manifest, Part};
use crate::format::record::HEADER;
use crate::format::trailer::Head;
use crate::guard::hasher_of;
use crate::log::{Log, Replay, replay};
use crate::options::Options;
use crate::sorted::{Role, Sorted};
use crate::storage::Storage;
use crate::versions::NewVersion;
use crate::view::{Counts, Layer, Rules, View};

/// An opened store.
pub(crate) struct Recovered {
    pub(crate) lock: Arc<dyn Send + Sync>,
    pub(crate) manifest: Manifest,
    pub(crate) view: View,
    pub(crate) log: Log,
    /// A stopped merge that can be resumed.
    pub(crate) unfinished: Option<Head>,
}

pub(crate) fn open(storage: &dyn Storage, options: &Options) -> Result<Recovered> {
    options.check()?;
    let list = || storage.list().map_err(Error::io("list", "the folder"));
    let has_manifest = |names: &[String]| names.iter().any(|name| name == manifest::NAME);
    if !options.create && !has_manifest(&list()?) {
        return Err(Error::Missing);
    }
    storage.create_dir().map_err(Error::io("make", "the folder"))?;
    let lock = storage.lock().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked,
        _ => Error::io("lock", "the folder")(error),
    })?;
    let names = list()?;
    if !has_manifest(&names) {
        create(storage, &names)?;
    }
    recover(storage, options, lock.into())
}

/// Recovers from a crash or a failed write. The caller holds the lock.
pub(crate) fn recover(
    storage: &dyn Storage,
    options: &Options,
    lock: Arc<dyn Send + Sync>,
) -> Result<Recovered> {
    let names = storage.list().map_err(Error::io("list", "the folder"))?;
    let manifest = read_manifest(storage)?;
    let (view, replays) = read_parts(storage, &manifest, options)?;
    let log = resume_logs(storage, &replays)?;
    let unfinished = tidy(storage, &names, &manifest);
    Ok(Recovered { lock, manifest, view, log, unfinished })
}

/// Creates an empty store: its first differential file, then the manifest that names it.
fn create(storage: &dyn Storage, names: &[String]) -> Result<()> {
    // A crash while creating a store leaves at most an empty differential file. If there are
    // records but no manifest, the manifest was lost.
    for name in names {
        let bytes = match name.rsplit_once('.') {
            Some((_, "master" | "sorted")) => usize::MAX,
            Some((_, "differential")) => storage.read(name).map_err(Error::io("read", name))?.len(),
            _ => 0,
        };
        if bytes > HEADER {
            return Err(Error::corrupt(manifest::NAME, 0, "the manifest is missing"));
        }
    }
    Log::create(storage, 1, 1)?;
    let parts = vec![Part { form: Form::Differential, number: 1 }];
    let store = storage.salt();
    write_manifest(storage, &Manifest { generation: 1, store, master: None, integrated: 0, parts })
}

/// Replaces the manifest in one step.
pub(crate) fn write_manifest(storage: &dyn Storage, manifest: &Manifest) -> Result<()> {
    let name = manifest::NEW_NAME;
    let mut file = storage.create(name).map_err(Error::io("create", name))?;
    file.append(&manifest.encode()).map_err(Error::io("write", name))?;
    file.sync().map_err(Error::io("sync", name))?;
    storage.rename(name, manifest::NAME).map_err(Error::io("rename", name))?;
    storage.sync_dir().map_err(Error::io("sync the folder of", manifest::NAME))
}

pub(crate) fn read_manifest(storage: &dyn Storage) -> Result<Manifest> {
    let name = manifest::NAME;
    let bytes = storage.read(name).map_err(Error::io("read", name))?;
    Manifest::decode(&bytes).map_err(|error| error.in_file(name, 0))
}

/// Reads and checks the files that the manifest names. Writes nothing.
pub(crate) fn read_parts(
    storage: &dyn Storage,
    manifest: &Manifest,
    options: &Options,
) -> Result<(View, Vec<Replay>)> {
    let store = manifest.store;
    let open = |name, number, role| Sorted::open(storage, name, number, store, role).map(Arc::new);
    let master = manifest
        .master
        .map(|number| open(manifest::master_name(number), number, Role::Master))
        .transpose()?;
    let records = master.as_ref().map_or(0, |master| master.trailer().records);
    let mut reading = Reading {
        storage,
        shape: options.filter_shape(),
        planned: options.planned_updates(),
        state: Published { sequence: manifest.integrated, records },
        store,
        layers: Vec::new(),
        replays: Vec::new(),
    };
    for &part in &manifest.parts {
        match part.form {
            Form::Sorted => reading.sorted(open(part.name(), part.number, Role::Differential)?)?,
            Form::Differential => reading.differential(part)?,
        }
    }
    let Reading { mut layers, replays, .. } = reading;
    layers.reverse();
    let Some(Layer::Delta(active)) = layers.first() else {
        unreachable!("a manifest's newest part is a differential file");
    };
    let rules = Arc::new(Rules { filter: options.filter, counts: Counts::default() });
    let active = Arc::clone(active);
    Ok((View { master, layers, active, rules }, replays))
}

/// The parts that were read so far, oldest first.
struct Reading<'a> {
    storage: &'a dyn Storage,
    shape: Shape,
    planned: u64,
    state: Published,
    store: u64,
    layers: Vec<Layer>,
    replays: Vec<Replay>,
}

impl Reading<'_> {
    fn sorted(&mut self, sorted: Arc<Sorted>) -> Result<()> {
        self.refuse_torn_before()?;
        let trailer = sorted.trailer();
        if trailer.sequence < self.state.sequence {
            return Err(Error::corrupt(sorted.name(), 0, "the file is older than the master"));
        }
        self.state.sequence = trailer.sequence;
        self.state.records = self.state.records.wrapping_add_signed(trailer.net);
        self.layers.push(Layer::Sorted(sorted));
        Ok(())
    }

    fn differential(&mut self, part: Part) -> Result<()> {
        let name = part.name();
        let bytes = self.storage.read(&name).map_err(Error::io("read", &name))?;
        let hasher = hasher_of(self.store);
        let delta = Delta::new(part.number, self.shape, self.planned, self.state);
        let mut state = self.state;
        let found = {
            let mut changes = delta.write();
            replay(&name, &bytes, part.number, state.sequence + 1, |record| {
                let (kind, sequence) = (record.kind, record.sequence);
                let (key, value) = (record.key, record.value);
                let version = NewVersion { kind, sequence, key, value };
                let hash = hasher.hash(key);
                let is_new = !delta.may_contain(hash);
                delta.announce(hash);
                delta.add(&mut changes, hash, is_new, &version);
                state.records = state.records.wrapping_add_signed(kind.net());
            })?
        };
        state.sequence = found.next_sequence - 1;
        if found.records > 0 {
            self.refuse_torn_before()?;
        }
        delta.publish(state);
        delta.set_file_bytes(found.good_bytes);
        self.state = state;
        self.layers.push(Layer::Delta(Arc::new(delta)));
        self.replays.push(found);
        Ok(())
    }

    /// Rejects a torn end in an earlier file. Records are written to a later file only after all
    /// earlier ones are durable, so no crash can leave such a torn end.
    fn refuse_torn_before(&self) -> Result<()> {
        match self.replays.iter().find(|replay| replay.torn_bytes > 0) {
            Some(torn) => {
                let offset = torn.good_bytes as usize;
                Err(Error::corrupt(&torn.name, offset, "records that were durable are damaged"))
            }
            None => Ok(()),
        }
    }
}

/// Cuts torn ends, makes the rest durable, and returns the file to append to.
fn resume_logs(storage: &dyn Storage, replays: &[Replay]) -> Result<Log> {
    let (newest, older) =
        replays.split_last().expect("a manifest's newest part is a differential file");
    for replay in older {
        // New records will go to the newest file: everything before them must be durable.
        Log::resume(storage, replay)?.settle()?;
    }
    Log::resume(storage, newest)
}

/// Removes files that the manifest does not name, and returns a merge that can be resumed. Failures
/// are ignored: the next start tries again.
fn tidy(storage: &dyn Storage, names: &[String], manifest: &Manifest) -> Option<Head> {
    let mut kept: Vec<String> = manifest.parts.iter().map(|part| part.name()).collect();
    kept.extend(manifest.master.map(manifest::master_name));
    let mut unfinished = None;
    for name in names {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let ours = matches!(ending, "master" | "sorted" | "differential" | "unfinished" | "new");
        if !ours || kept.contains(name) {
            continue;
        }
        if ending == "unfinished" && unfinished.is_none() {
            unfinished = can_be_taken_up(storage, name, manifest);
            if unfinished.is_some() {
                continue;
            }
        }
        let _ = storage.remove(name);
    }
    unfinished
}

/// The head of an unfinished file, if it is a merge of the current master with the oldest parts of
/// the manifest. An unfinished sorted file names no inputs, and is written from scratch.
fn can_be_taken_up(storage: &dyn Storage, name: &str, manifest: &Manifest) -> Option<Head> {
    let head = Head::decode(&storage.map(name).ok()?).ok()?;
    let (master, parts) = head.inputs.split_first()?;
    let older = &manifest.parts[..manifest.parts.len() - 1];
    let same = head.store == manifest.store
        && name == manifest::unfinished_name(head.number)
        && *master == manifest.master.unwrap_or(0)
        && !parts.is_empty()
        && parts.len() <= older.len()
        && parts.iter().zip(older).all(|(number, part)| *number == part.number);
    same.then_some(head)
}
