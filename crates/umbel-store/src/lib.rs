//! A durable catalogue: key → small value, from a thousand to a hundred million keys.
//!
//! It implements the differential files of paper 2 (Severance and Lohman's scheme). A *master* of
//! sorted pages never changes. Every insert, change and delete is appended to a *differential
//! file*, whose index is kept in memory. A Bloom filter tells most lookups that they can skip that
//! index. From time to time master and differential file are *integrated* into a new master, while
//! readers and writers continue.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("catalogue");
//! use umbel_store::{Batch, Options, Store};
//!
//! let store = Store::open(&path, Options::new())?;
//! let mut batch = Batch::new();
//! batch.put(b"b", b"2").put(b"a", b"1").put(b"c", b"3");
//! store.write(batch)?; // on disk when it returns
//!
//! let before = store.snapshot();
//! store.delete(b"b")?;
//! store.integrate()?;
//! let keys = |scan: umbel_store::Scan| {
//!     scan.map(|record| record.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()
//! };
//! assert_eq!(keys(before.scan(..)?)?, [b"a", b"b", b"c"]);
//! assert_eq!(keys(store.scan(..)?)?, [b"a", b"c"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Guarantees: a write that returned survives a crash (see [`Durability`]); a read returns the
//! right answer or an error, never a wrong answer; readers never wait for writers to sync or for
//! integration. `docs/store.md` describes every byte, and why each crash point is safe.

mod background;
mod backup;
mod batch;
mod commit;
mod delta;
mod error;
mod file_set;
pub mod format;
mod guard;
mod log;
mod numbers;
mod options;
mod order;
mod queue;
mod reader;
mod recover;
mod scan;
mod shared;
mod snapshot;
mod sorted;
mod stat;
pub mod storage;
mod store;
mod upkeep;
mod verify;
mod versions;
mod view;
mod visit;

pub use backup::{Backup, restore, restore_on};
pub use batch::{Applied, Batch};
pub use error::{Error, Result};
pub use guard::filter_error;
pub use options::{Durability, Options};
pub use reader::Reader;
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use stat::Stat;
pub use store::{Progress, Store};
pub use verify::Verified;

/// The longest key, in bytes.
pub const MAX_KEY: usize = u16::MAX as usize;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 1 << 20;
