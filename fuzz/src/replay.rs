//! Replays seeds: ordinary tests include this file.

use std::path::Path;

/// What a fuzz target does with some bytes.
type Target = fn(&[u8]);

/// Runs each target with each of its seeds, and with what becomes of a seed when it is cut or a bit of it
/// flips. Seeds of a target are the files of `fuzz/seeds/<target>` and of the other folders that are
/// given.
pub(crate) fn replay(targets: &[(&str, Target)], others: impl Fn(&str) -> Option<&'static str>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, target) in targets {
        let own = root.join("fuzz/seeds").join(name);
        let folders = others(name).map(|other| root.join(other)).into_iter().chain([own]);
        let mut count = 0;
        for folder in folders.filter(|folder| folder.exists()) {
            for file in std::fs::read_dir(folder).expect("a folder of seeds") {
                let bytes = std::fs::read(file.expect("an entry").path()).expect("a seed");
                replay_one(*target, &bytes);
                count += 1;
            }
        }
        assert!(count >= 3, "{name} has {count} seeds");
    }
}

fn replay_one(target: Target, bytes: &[u8]) {
    target(bytes);
    for at in (0..bytes.len()).step_by(1 + bytes.len() / 8) {
        target(&bytes[..at]);
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << (at % 8);
        target(&flipped);
    }
}

/// Writes the seeds of a target.
#[allow(dead_code, reason = "only some of those who replay seeds make them")]
pub(crate) fn write(target: &str, seeds: &[Vec<u8>]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(number.to_string()), seed).expect("a seed");
    }
}
