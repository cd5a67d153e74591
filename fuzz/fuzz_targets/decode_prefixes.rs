//! Any bytes as a table of prefixes: refused, or a sound table that is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::prefix::AnyTable;

fuzz_target!(|data: &[u8]| {
    let _ = AnyTable::decode(data, 1 << 24);
    // The same with frame and checksum put right.
    let Some((kind, body)) = data.split_first() else { return };
    let mut sealed = b"UMBL\x01".to_vec();
    sealed.push(0x20 + kind % 3);
    sealed.extend_from_slice(body);
    sealed.extend_from_slice(&crc32c::crc32c(&sealed).to_le_bytes());
    let Ok(table) = AnyTable::decode(&sealed, 1 << 24) else { return };
    match &table {
        AnyTable::Ipv4(table) => table.table().validate(),
        AnyTable::Ipv6(table) => table.table().validate(),
        AnyTable::Names(table) => table.table().validate(),
    }
    let bytes = table.encode();
    let again = AnyTable::decode(&bytes, 1 << 24).expect("what was written is read");
    assert_eq!(again.encode(), bytes);
});
