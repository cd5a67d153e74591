//! How large a filter may be: a filter that does not fit must end in a clear line, not in
//! the system ending the process.
//!
//! Asking the allocator is not enough: Linux promises more memory than it has, and ends
//! the process when the promise is called in. So the limit is what is available now.

use std::fs;

use anyhow::bail;
use indicatif::BinaryBytes;

/// Bytes of memory that one filter may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::cmd) struct MemoryLimit {
    bytes: u64,
    /// Whether somebody said so, rather than the system.
    is_given: bool,
}

/// A filter that was read may take this much, however short its file is.
const SMALL: u64 = 256 << 20;

/// And this many times its file. A filter that is in use is hardly larger than its file: what
/// is longer is nearly empty or, in a file from elsewhere, made up to keep its reader busy.
const TIMES_FILE: u64 = 16;

/// Where the system does not say how much memory it has.
const UNKNOWN: u64 = 64 << 30;

/// Where a Linux container finds its limit, by version of its control groups.
const CONTAINER_LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

impl MemoryLimit {
    pub(in crate::cmd) const fn new(bytes: u64) -> Self {
        Self { bytes, is_given: true }
    }

    /// The memory that the system has available, of the machine or of its container.
    pub(in crate::cmd) fn of_system() -> Self {
        let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
        let container = CONTAINER_LIMITS.iter().filter_map(|path| {
            // "max" where there is no limit: no number, no limit.
            fs::read_to_string(path).ok()?.trim().parse().ok()
        });
        let bytes = machine.into_iter().chain(container).min().unwrap_or(UNKNOWN);
        Self { bytes, is_given: false }
    }

    pub(in crate::cmd) const fn get(self) -> u64 {
        self.bytes
    }

    /// What a filter may take that is read from so many bytes.
    pub(in crate::cmd) fn of_file(self, file_bytes: usize) -> u64 {
        if self.is_given {
            return self.bytes;
        }
        self.bytes.min(SMALL.max(TIMES_FILE.saturating_mul(file_bytes as u64)))
    }

    /// Refuses a filter that would take more.
    pub(in crate::cmd) fn check(self, needed: u64) -> anyhow::Result<()> {
        if needed > self.bytes {
            bail!("{}", too_large(needed, self.bytes));
        }
        Ok(())
    }
}

/// What to say of a filter that takes more than the limit.
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
