//! umbel-store beside its rivals, in one run:
//! `cargo run --release -p compare-store --features rivals,rocksdb` (see Cargo.toml for what
//! RocksDB needs; without that feature its column is missing).
//!
//! 10^6 records of 24 + 16 bytes (`--records N` for another number, `--folder F` for another
//! disk). Rounds are interleaved and the least of each is kept, because other work on the
//! machine only ever adds. CPU time where that is what matters, wall time where the disk is.
//! Everything is printed as measured and as a ratio to ours, rows that we lose included;
//! goals are checked against the same run.

mod measure;
mod rivals;

use std::path::PathBuf;
use std::process::ExitCode;

/// What the run was asked for.
struct Settings {
    records: u64,
    reopen_records: u64,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let mut settings = Settings {
        records: 1_000_000,
        reopen_records: 10_000_000,
        folder: std::env::temp_dir().join(format!("compare-store-{}", std::process::id())),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (option.as_str(), value.parse()) {
            ("--records", Ok(records)) => settings.records = records,
            ("--reopen-records", Ok(records)) => settings.reopen_records = records,
            ("--folder", _) if !value.is_empty() => settings.folder = PathBuf::from(value),
            // How the run starts itself to be killed.
            ("--fill-and-wait", _) => return measure::fill_and_wait(&value, arguments),
            _ => {
                eprintln!("compare-store: unknown or incomplete option '{option}'");
                return ExitCode::from(2);
            }
        }
    }
    println!("stores: {}; {} records of 24 + 16 bytes", rivals::NAMES.join(", "), settings.records);
    println!(
        "loads: batches of 1000 in no order, not synced, then one synced write and coming to rest"
    );
    println!("lookups: one by one in one snapshot or transaction, values not copied");
    let table = measure::run(&settings);
    let _ = std::fs::remove_dir_all(&settings.folder);
    table.print();
    ExitCode::SUCCESS
}
