//! Each store behind the same few calls, set up the way its manual recommends for this work.
//!
//! What each does when it is asked for many keys: ours reads in one snapshot, LMDB, redb and
//! `SQLite` in one read transaction, fjall and `RocksDB` as they are. Nobody copies a value:
//! ours, LMDB, redb and `RocksDB` lend it where it lies, fjall shares it, `SQLite` stops at the row.
//!
//! What each does when it is loaded: a thousand records a batch, in no order of keys, each batch
//! one transaction or atomic write that is not synced; then one synced write, and whatever it
//! has to bring itself to rest (ours integrates, fjall and `RocksDB` compact). Nobody is told
//! that a bulk load is under way, or given keys in order.

use std::path::Path;

/// A key and a value of the measured size.
pub(crate) type Record = ([u8; 24], [u8; 16]);

/// What is measured of every store.
pub(crate) trait Rival {
    /// How many of the keys are there, asked one by one in one read transaction.
    fn count(&self, keys: &[[u8; 24]]) -> usize;
    /// Writes all records in one batch; with `sync` they are on disk when it returns.
    fn write(&mut self, records: &[Record], sync: bool);
    /// Brings the store to rest after a bulk load: compaction, or integrating.
    fn settle(&mut self) {}
}

/// The stores that were compiled in, by name; ours first.
pub(crate) const NAMES: &[&str] = &[
    "umbel",
    #[cfg(feature = "rivals")]
    "lmdb",
    #[cfg(feature = "rivals")]
    "redb",
    #[cfg(feature = "rivals")]
    "sqlite",
    #[cfg(feature = "rivals")]
    "fjall",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
];

/// Opens the store of this name in a folder.
pub(crate) fn open(name: &str, folder: &Path) -> Box<dyn Rival> {
    std::fs::create_dir_all(folder).expect("a folder for the store");
    match name {
        "umbel" => Box::new(Umbel::open(folder)),
        #[cfg(feature = "rivals")]
        "lmdb" => Box::new(others::Lmdb::open(folder)),
        #[cfg(feature = "rivals")]
        "redb" => Box::new(others::Redb::open(folder)),
        #[cfg(feature = "rivals")]
        "sqlite" => Box::new(others::Sqlite::open(folder)),
        #[cfg(feature = "rivals")]
        "fjall" => Box::new(others::Fjall::open(folder)),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Box::new(rocks::Rocks::open(folder)),
        other => panic!("no store '{other}'"),
    }
}

/// Ours. Bulk batches that are not synced go through the interval setting's path.
pub(crate) struct Umbel {
    pub(crate) store: umbel_store::Store,
}

impl Umbel {
    pub(crate) fn open(folder: &Path) -> Self {
        let interval = std::time::Duration::from_secs(3600);
        let durability = umbel_store::Durability::Interval(interval);
        let options = umbel_store::Options::new().durability(durability);
        Self { store: umbel_store::Store::open(folder, options).expect("opens") }
    }
}

impl Rival for Umbel {
    fn count(&self, keys: &[[u8; 24]]) -> usize {
        let snapshot = self.store.snapshot();
        keys.iter().filter(|key| snapshot.get(&key[..]).expect("reads").is_some()).count()
    }

    fn write(&mut self, records: &[Record], sync: bool) {
        let mut batch = umbel_store::Batch::new();
        for (key, value) in records {
            batch.put(key, value);
        }
        self.store.write(batch).expect("writes");
        if sync {
            self.store.sync().expect("syncs");
        }
    }

    fn settle(&mut self) {
        self.store.integrate().expect("integrates");
    }
}

#[cfg(feature = "rivals")]
mod others {
    use std::path::Path;

    use super::{Record, Rival};

    pub(super) struct Lmdb(heed::Env, heed::Database<heed::types::Bytes, heed::types::Bytes>);

    impl Lmdb {
        #[expect(unsafe_code, reason = "heed's open is unsafe: the file must not change behind it")]
        pub(super) fn open(folder: &Path) -> Self {
            let mut options = heed::EnvOpenOptions::new();
            options.map_size(8 << 30);
            // SAFETY: nobody else opens this folder; without syncs of its own a crash may
            // lose data, which the measurement makes good with explicit ones.
            let env = unsafe { options.flags(heed::EnvFlags::NO_SYNC).open(folder) };
            let env = env.expect("opens");
            let mut write = env.write_txn().expect("a transaction");
            let database = env.create_database(&mut write, None).expect("a database");
            write.commit().expect("commits");
            Self(env, database)
        }
    }

    impl Rival for Lmdb {
        fn count(&self, keys: &[[u8; 24]]) -> usize {
            let read = self.0.read_txn().expect("a transaction");
            keys.iter().filter(|key| self.1.get(&read, &key[..]).expect("reads").is_some()).count()
        }

        fn write(&mut self, records: &[Record], sync: bool) {
            let mut write = self.0.write_txn().expect("a transaction");
            for (key, value) in records {
                self.1.put(&mut write, key, value).expect("writes");
            }
            write.commit().expect("commits");
            if sync {
                self.0.force_sync().expect("syncs");
            }
        }
    }

    const TABLE: redb::TableDefinition<'_, &[u8; 24], &[u8; 16]> = redb::TableDefinition::new("t");

    pub(super) struct Redb(redb::Database);

    impl Redb {
        pub(super) fn open(folder: &Path) -> Self {
            Self(redb::Database::create(folder.join("data")).expect("opens"))
        }
    }

    impl Rival for Redb {
        fn count(&self, keys: &[[u8; 24]]) -> usize {
            use redb::ReadableDatabase;
            let read = self.0.begin_read().expect("a transaction");
            let table = read.open_table(TABLE).expect("the table");
            keys.iter().filter(|key| table.get(*key).expect("reads").is_some()).count()
        }

        fn write(&mut self, records: &[Record], sync: bool) {
            let mut write = self.0.begin_write().expect("a transaction");
            let durability =
                if sync { redb::Durability::Immediate } else { redb::Durability::None };
            write.set_durability(durability).expect("a durability");
            {
                let mut table = write.open_table(TABLE).expect("the table");
                for (key, value) in records {
                    table.insert(key, value).expect("writes");
                }
            }
            write.commit().expect("commits");
        }
    }

    pub(super) struct Sqlite(rusqlite::Connection, bool);

    impl Sqlite {
        pub(super) fn open(folder: &Path) -> Self {
            let connection = rusqlite::Connection::open(folder.join("data")).expect("opens");
            let setup = "pragma journal_mode=WAL; pragma synchronous=OFF;
                pragma mmap_size=4294967296; pragma cache_size=-262144;
                create table if not exists t(k blob primary key, v blob) without rowid;";
            connection.execute_batch(setup).expect("sets up");
            Self(connection, false)
        }
    }

    impl Rival for Sqlite {
        fn count(&self, keys: &[[u8; 24]]) -> usize {
            let read = self.0.unchecked_transaction().expect("a transaction");
            let mut query = read.prepare_cached("select v from t where k=?1").expect("a query");
            keys.iter()
                .filter(|key| {
                    let mut rows = query.query([&key[..]]).expect("reads");
                    rows.next().expect("reads").is_some()
                })
                .count()
        }

        fn write(&mut self, records: &[Record], sync: bool) {
            if sync != self.1 {
                let synchronous = if sync { "FULL" } else { "OFF" };
                self.0.pragma_update(None, "synchronous", synchronous).expect("a pragma");
                self.1 = sync;
            }
            let write = self.0.unchecked_transaction().expect("a transaction");
            {
                let mut insert = write
                    .prepare_cached("insert or replace into t values(?1,?2)")
                    .expect("a statement");
                for (key, value) in records {
                    insert.execute((&key[..], &value[..])).expect("writes");
                }
            }
            write.commit().expect("commits");
        }
    }

    pub(super) struct Fjall(fjall::Database, fjall::Keyspace);

    impl Fjall {
        pub(super) fn open(folder: &Path) -> Self {
            let database = fjall::Database::builder(folder).open().expect("opens");
            let keyspace =
                database.keyspace("k", fjall::KeyspaceCreateOptions::default).expect("a keyspace");
            Self(database, keyspace)
        }
    }

    impl Rival for Fjall {
        fn count(&self, keys: &[[u8; 24]]) -> usize {
            keys.iter().filter(|key| self.1.get(key).expect("reads").is_some()).count()
        }

        fn write(&mut self, records: &[Record], sync: bool) {
            let mut batch = self.0.batch();
            for (key, value) in records {
                batch.insert(&self.1, &key[..], &value[..]);
            }
            batch.commit().expect("commits");
            if sync {
                self.0.persist(fjall::PersistMode::SyncData).expect("syncs");
            }
        }

        fn settle(&mut self) {
            self.1.rotate_memtable_and_wait().expect("flushes");
            self.1.major_compact().expect("compacts");
        }
    }
}

#[cfg(feature = "rocksdb")]
mod rocks {
    use std::path::Path;

    use super::{Record, Rival};

    pub(super) struct Rocks(rocksdb::DB);

    impl Rocks {
        pub(super) fn open(folder: &Path) -> Self {
            let mut options = rocksdb::Options::default();
            options.create_if_missing(true);
            options.set_compression_type(rocksdb::DBCompressionType::None);
            let mut table = rocksdb::BlockBasedOptions::default();
            table.set_bloom_filter(10.0, false);
            let cache = rocksdb::Cache::new_lru_cache(512 << 20).expect("a cache");
            table.set_block_cache(&cache);
            options.set_block_based_table_factory(&table);
            Self(rocksdb::DB::open(&options, folder).expect("opens"))
        }
    }

    impl Rival for Rocks {
        fn count(&self, keys: &[[u8; 24]]) -> usize {
            keys.iter().filter(|key| self.0.get_pinned(key).expect("reads").is_some()).count()
        }

        fn write(&mut self, records: &[Record], sync: bool) {
            let mut batch = rocksdb::WriteBatch::default();
            for (key, value) in records {
                batch.put(key, value);
            }
            let mut options = rocksdb::WriteOptions::default();
            options.set_sync(sync);
            self.0.write_opt(batch, &options).expect("writes");
        }

        fn settle(&mut self) {
            self.0.compact_range(None::<&[u8]>, None::<&[u8]>);
        }
    }
}
