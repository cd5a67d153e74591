//! How much memory this process may use: that of the machine, or a container's limit.

use std::fs;
use std::path::Path;

/// Assumed if nothing can be found out.
const UNKNOWN: u64 = 4 << 30;

/// A limit from here on is none: more than any machine has.
const UNLIMITED: u64 = 1 << 56;

/// Bytes of memory that this process may use.
pub(crate) fn usable() -> u64 {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group_limits(&groups, Path::new("/sys/fs/cgroup"));
    total.into_iter().chain(limits).min().unwrap_or(UNKNOWN)
}

/// The line `MemTotal:   16309864 kB`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The limits of the control groups that a process is in, and of those above them: version 2
/// (`0::/path`, `memory.max`) and version 1 (`4:memory:/path`, `memory.limit_in_bytes`).
fn group_limits(groups: &str, root: &Path) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = folder.join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|place| place.starts_with(&folder));
        let texts = above.filter_map(|place| fs::read_to_string(place.join(file)).ok());
        // "max" is not a number: it means no limit, as do the huge numbers of version 1.
        let numbers = texts.filter_map(|text| text.trim().parse::<u64>().ok());
        limits.extend(numbers.filter(|limit| *limit < UNLIMITED));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_and_its_groups_are_read() {
        let meminfo = "MemFree: 5 kB\nMemTotal:       16309864 kB\n";
        assert_eq!(total_of(meminfo), Some(16_309_864 * 1024));
        assert_eq!(total_of("nothing"), None);
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        fs::write(root.path().join("a/memory.max"), "1000000\n").unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(group_limits("0::/a/b\n", root.path()), [1_000_000]);
        let old = root.path().join("memory/c");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("memory.limit_in_bytes"), "2000").unwrap();
        let groups = "9:cpu:/x\n4:cpuset,memory:/c\n";
        assert_eq!(group_limits(groups, root.path()), [2000]);
        fs::write(old.join("memory.limit_in_bytes"), "9223372036854771712").unwrap();
        assert!(group_limits(groups, root.path()).is_empty());
        assert!(usable() > 1 << 20);
    }
}
