//! Targets of `umbel-store`: its files, part by part and as a whole.
//!
//! Each function takes any bytes and panics if a promise is broken. Every byte of a store is under a
//! checksum, so the checksums are corrected: what remains is what a parser must survive.

use std::sync::Arc;

use umbel_store::format::manifest::Manifest;
use umbel_store::format::page::{Page, UNIT, is_valid, units};
use umbel_store::format::record::{HEADER, Header, RECORD, Record};
use umbel_store::format::trailer::{Head, TRAILER, Trailer};
use umbel_store::storage::Storage;
use umbel_store::storage::testing::{Fate, TestDisk};
use umbel_store::{Options, Store};

/// What a target does with some bytes.
pub type Target = fn(&[u8]);

/// All targets of this file, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("store_differential", store_differential),
    ("store_manifest", store_manifest),
    ("store_open", store_open),
    ("store_page", store_page),
    ("store_trailer", store_trailer),
];

/// Replaces the four bytes at `at` by the checksum of those in `range`, if all of them are there.
fn seal(bytes: &mut [u8], range: std::ops::Range<usize>, seed: u32, at: usize) {
    let Some(checksum) = bytes.get(range).map(|part| crc32c::crc32c_append(seed, part)) else {
        return;
    };
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
        *place = checksum.to_le_bytes();
    }
}

fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(wide))
}

/// Corrects the checksum of a manifest.
fn seal_manifest(bytes: &mut [u8]) {
    if let Some(end) = bytes.len().checked_sub(4) {
        seal(bytes, 0..end, 0, end);
    }
}

/// Corrects the checksums of the header and of all records that follow it.
fn seal_differential(bytes: &mut [u8]) {
    seal(bytes, 0..HEADER - 4, 0, HEADER - 4);
    let salt = number_at::<4>(bytes, 32).unwrap_or_default() as u32;
    let mut at = HEADER;
    while let (Some(key), Some(value)) =
        (number_at::<2>(bytes, at + 4), number_at::<4>(bytes, at + 6))
    {
        let end = at + RECORD + key as usize + value as usize;
        seal(bytes, at + 4..end, salt, at);
        at = end;
    }
}

/// Corrects the checksums of a master or sorted file: head, pages, index, filter, trailer.
fn seal_sorted(bytes: &mut [u8]) {
    seal(bytes, 0..UNIT - 4, 0, UNIT - 4);
    let Some(trailer) = bytes.len().checked_sub(TRAILER) else { return };
    let number = number_at::<8>(bytes, trailer + 16).unwrap_or_default() as u32;
    let index =
        number_at::<8>(bytes, trailer + 64).unwrap_or_default().min(trailer as u64) as usize;
    let filter =
        number_at::<8>(bytes, trailer + 72).unwrap_or_default().min(trailer as u64) as usize;
    let mut at = UNIT;
    while let Some(units) = bytes.get(at..index).and_then(units) {
        let end = (at + units * UNIT).min(index);
        seal(bytes, at + 4..end, number.rotate_left(16) ^ (at / UNIT) as u32, at);
        at = end;
    }
    seal(bytes, index..filter, 0, trailer + 88);
    seal(bytes, filter..trailer, 0, trailer + 92);
    seal(bytes, trailer..trailer + TRAILER - 4, 0, trailer + TRAILER - 4);
}

/// A manifest: what is accepted is written back alike.
pub fn store_manifest(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    seal_manifest(&mut sealed);
    for bytes in [bytes, &sealed] {
        if let Ok(manifest) = Manifest::decode(bytes) {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
    }
}

/// Header and records of a differential file: what is accepted is written back alike.
pub fn store_differential(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    seal_differential(&mut sealed);
    for bytes in [bytes, &sealed] {
        let header = Header::decode(bytes);
        if let Ok(header) = header {
            assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
        let salt = header.map_or(0, |header| header.salt);
        let mut rest = bytes.get(HEADER..).unwrap_or_default();
        while let Ok(record) = Record::decode(salt, rest) {
            let mut again = Vec::new();
            record.encode(salt, &mut again);
            assert_eq!(again, rest[..again.len()]);
            rest = &rest[again.len()..];
        }
    }
}

/// A page, however it is read. The first byte is the length of the key that is looked for.
pub fn store_page(bytes: &[u8]) {
    let Some((length, bytes)) = bytes.split_first() else { return };
    let (key, bytes) = bytes.split_at(usize::from(*length).min(bytes.len()));
    let _ = is_valid(bytes, 1, 1);
    let mut whole = bytes.to_vec();
    whole.resize(UNIT, 0);
    for page in [Page::new(bytes), Page::new(&whole)].into_iter().flatten() {
        for (start, end) in [(0, page.len()), (0, usize::MAX), (1, 2), (5, 3)] {
            let among = start..end;
            let _ = page.find(key, among);
        }
        let _ = page.lower_bound(key);
        for i in 0..page.len() {
            let _ = page.record(i);
        }
    }
}

/// The trailer of a master, behind as many zeros as the first two bytes say, and its head.
pub fn store_trailer(bytes: &[u8]) {
    let Some((zeros, bytes)) = bytes.split_first_chunk::<2>() else { return };
    let mut sealed = vec![0; usize::from(u16::from_le_bytes(*zeros))];
    sealed.extend_from_slice(bytes);
    let end = sealed.len();
    if let Some(start) = end.checked_sub(TRAILER) {
        seal(&mut sealed, start..end - 4, 0, end - 4);
    }
    if let Ok(trailer) = Trailer::decode(&sealed) {
        sealed[end - TRAILER..].copy_from_slice(&trailer.encode());
        assert_eq!(Trailer::decode(&sealed), Ok(trailer));
    }
    let mut head = bytes.to_vec();
    head.resize(UNIT, 0);
    seal(&mut head, 0..UNIT - 4, 0, UNIT - 4);
    if let Ok(head) = Head::decode(&head) {
        assert_eq!(Head::decode(&head.encode()), Ok(head));
    }
}

fn options() -> Options {
    Options::new().background(false).memory_budget(2200).integrate_bytes(1 << 30).filter_bits(1024)
}

/// Long enough for what is left of it behind a page's prefix to be searched by heads.
fn key(i: u32) -> [u8; 12] {
    let mut key = [7; 12];
    key[..4].copy_from_slice(&i.wrapping_mul(0x9E37_79B9).to_be_bytes());
    key
}

/// A store with a master, a sorted file and a differential file.
pub fn healthy_disk() -> TestDisk {
    let disk = TestDisk::new();
    let store = Store::open_on(Arc::new(disk.clone()), options()).expect("opens");
    for i in 0..80u32 {
        store.put(&key(i), &[i as u8; 20]).expect("puts");
        if i == 30 {
            store.integrate().expect("integrates");
        }
    }
    disk
}

/// Opening and reading a store whose files are damaged. Bytes of the input: whether checksums are
/// corrected afterwards and which file; where (two bytes); what is combined with the byte there by exclusive or.
pub fn store_open(bytes: &[u8]) {
    thread_local! {
        static VALID: TestDisk = healthy_disk();
    }
    let [choice, low, high, junk @ ..] = bytes else { return };
    let disk = VALID.with(|disk| disk.crash(Fate::KeepAll));
    let names = disk.list().expect("lists");
    let name = &names[usize::from(choice & 0x7F) % names.len()];
    let mut file = disk.bytes(name).expect("reads");
    let at = usize::from(u16::from_le_bytes([*low, *high]));
    for (place, byte) in file.iter_mut().skip(at).zip(junk) {
        *place ^= byte;
    }
    if choice & 0x80 != 0 {
        match name.rsplit('.').next() {
            Some("differential") => seal_differential(&mut file),
            Some("master" | "sorted" | "unfinished") => seal_sorted(&mut file),
            _ => seal_manifest(&mut file),
        }
    }
    disk.set_bytes(name, file);
    if let Ok(store) = Store::open_on(Arc::new(disk), options()) {
        let _ = store.verify(|_| {});
        let _ = store.stat();
        let _ = store.scan(..).map(|records| records.filter(Result::is_ok).count());
        for i in 0..100 {
            let _ = store.get(&key(i));
        }
        let _ = store.put(b"key", b"value");
    }
}
