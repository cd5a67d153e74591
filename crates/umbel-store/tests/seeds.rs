//! Every seed of the fuzz targets for the store's files is survived.
//!
//! The seeds are made by a program: when a format has changed, make them anew with
//!
//! ```text
//! UMBEL_RECORD=1 cargo test -p umbel-store --test integration seeds::
//! ```

use umbel_store::format::page::{Page, UNIT};
use umbel_store::format::trailer::TRAILER;
use umbel_store::storage::Storage as _;

#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/store.rs"]
#[expect(unreachable_pub, reason = "it is public where targets call it")]
mod targets;

#[test]
fn seeds_are_survived() {
    if std::env::var_os("UMBEL_RECORD").is_some() {
        record();
    }
    replay::replay(targets::TARGETS, |_| None);
}

fn record() {
    let disk = targets::healthy_disk();
    for name in disk.list().expect("a list") {
        let bytes = disk.bytes(&name).expect("a file");
        match name.rsplit('.').next() {
            Some("differential") => replay::write("store_differential", &three(&bytes)),
            Some("master") => record_master(&bytes),
            Some("sorted") => {}
            _ => replay::write("store_manifest", &three(&bytes)),
        }
    }
    // Which file and whether its checksums are corrected; where; what is XORed.
    let damages = (0..6).flat_map(|file: u8| {
        [[file, 8, 0, 1, 0, 1], [file | 0x80, 16, 0, 1, 0, 1], [file | 0x80, 12, 16, 0, 2, 7]]
    });
    replay::write("store_open", &damages.map(Vec::from).collect::<Vec<_>>());
}

fn record_master(bytes: &[u8]) {
    let end = bytes.len() - TRAILER;
    let trailer = [&(end as u16).to_le_bytes(), &bytes[end..]].concat();
    replay::write("store_trailer", &[trailer, [&[0; 2], &bytes[..64]].concat(), vec![0; 8]]);
    let page = &bytes[UNIT..2 * UNIT];
    let read = Page::new(page).expect("a page");
    let (rest, _) = read.record(1).expect("a record");
    let asked = |key: &[u8]| [&[key.len() as u8], key, &page[..1500]].concat();
    let held = [read.prefix(), rest].concat();
    replay::write("store_page", &[asked(&held), asked(b""), asked(&[9; 12])]);
}

/// A seed as it is, without its end, and with its middle twice.
fn three(bytes: &[u8]) -> Vec<Vec<u8>> {
    let half = bytes.len() / 2;
    let twice = [&bytes[..half + 9], &bytes[half..]].concat();
    vec![bytes.to_vec(), bytes[..half].to_vec(), twice]
}
