//! The memory limit for filters: a filter that does not fit must cause a clear error message
//! instead of the system killing the process.
//!
//! Relying on the allocator is not enough: Linux overcommits memory, and kills the process when the
//! memory is used. So the limit is the memory that is available now.

use std::fs;

use anyhow::bail;
use indicatif::BinaryBytes;

/// Bytes of memory that one filter may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::cmd) struct MemoryLimit {
    bytes: u64,
    /// Whether the limit was given by the user, rather than taken from the system.
    is_given: bool,
}

/// A filter read from a file may take this much memory, however short its file is.
const SMALL: u64 = 256 << 20;

/// Otherwise at most this many times the size of its file. A filter in use is hardly larger than
/// its file: one that is much larger is nearly empty or, if untrusted, made to exhaust its reader.
const TIMES_FILE: u64 = 16;

/// The limit if the system does not report its memory.
const UNKNOWN: u64 = 64 << 30;

/// Where Linux reports the limit of a container: cgroup v2, then v1.
const CONTAINER_LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

impl MemoryLimit {
    pub(in crate::cmd) const fn new(bytes: u64) -> Self {
        Self { bytes, is_given: true }
    }

    /// The memory that is available in the system: the machine's or its container's, if that is
    /// less.
    pub(in crate::cmd) fn of_system() -> Self {
        let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
        let container = CONTAINER_LIMITS.iter().filter_map(|path| {
            // "max" means no limit, and is not a number.
            fs::read_to_string(path).ok()?.trim().parse().ok()
        });
        let bytes = machine.into_iter().chain(container).min().unwrap_or(UNKNOWN);
        Self { bytes, is_given: false }
    }

    pub(in crate::cmd) const fn get(self) -> u64 {
        self.bytes
    }

    /// How much memory a filter may take that is read from a file of this size.
    pub(in crate::cmd) fn of_file(self, file_bytes: usize) -> u64 {
        if self.is_given {
            return self.bytes;
        }
        self.bytes.min(SMALL.max(TIMES_FILE.saturating_mul(file_bytes as u64)))
    }

    /// Rejects a filter that needs more than the limit.
    pub(in crate::cmd) fn check(self, needed: u64) -> anyhow::Result<()> {
        if needed > self.bytes {
            bail!("{}", too_large(needed, self.bytes));
        }
        Ok(())
    }
}

/// The error message for a filter that needs more than the limit.
pub(in crate::cmd) fn too_large(needed: u64, limit: u64) -> String {
    format!(
        "the filter takes {} of memory, and the limit is {}: --max-memory sets another",
        BinaryBytes(needed),
        BinaryBytes(limit)
    )
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_file_is_not_given_all_memory() {
        let system = MemoryLimit { bytes: 64 << 30, is_given: false };
        assert_eq!(system.of_file(83), SMALL);
        assert_eq!(system.of_file(1 << 30), 16 << 30);
        assert_eq!(system.of_file(1 << 40), 64 << 30);
        assert_eq!(MemoryLimit::new(8 << 30).of_file(83), 8 << 30);
    }

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal:       2048 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(available(text), Some(1 << 20));
        assert_eq!(available("MemTotal: 1 kB"), None);
    }
}
