//! How many clients can connect with the file descriptors that this process may open.
//!
//! A connection takes a descriptor, and so do the catalogue's files and the links to other hosts.
//! If clients took all of them, neither port could accept a connection and no file could be opened.
//! So the ports together leave a quarter of them to everything else, clamped to [`RESERVED`].

use std::fs;

use crate::settings::Settings;

/// Minimum and maximum number of descriptors that clients leave.
const RESERVED: std::ops::RangeInclusive<usize> = 64..=4096;

/// The maximum number of clients per port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    #[cfg_attr(not(feature = "resp"), allow(dead_code, reason = "there is no such port"))]
    pub(crate) resp: usize,
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "there is no such port"))]
    pub(crate) http: usize,
}

impl Places {
    /// As many as configured, or fewer if there are not enough descriptors.
    pub(crate) fn of(settings: &Settings) -> Self {
        let wanted = |is_open: bool, count| if is_open { count } else { 0 };
        let wanted = Self {
            resp: wanted(settings.resp.is_some(), settings.limits.connections),
            http: wanted(settings.http.is_some(), settings.limits.http_connections),
        };
        let Some(descriptors) = max_descriptors() else { return wanted };
        let places = wanted.within(descriptors);
        if places != wanted {
            tracing::warn!(
                descriptors,
                redis_clients = places.resp,
                http_clients = places.http,
                "fewer clients are served than limits.connections and limits.http_connections say: \
                 raise the limit of open files (ulimit -n, LimitNOFILE)"
            );
        }
        places
    }

    /// As many, or as this number of descriptors allows, divided between the ports.
    fn within(self, descriptors: usize) -> Self {
        let reserved = (descriptors / 4).clamp(*RESERVED.start(), *RESERVED.end());
        let all = descriptors.saturating_sub(reserved).max(2);
        let Self { resp, http } = self;
        let half = all / 2;
        match (resp.min(half), http.min(half)) {
            // A port that needs less than its half leaves the rest to the other.
            (small, _) if small < half => Self { resp: small, http: http.min(all - small) },
            (_, small) => Self { resp: resp.min(all - small), http: small },
        }
    }
}

/// The limit of open files of this process, if it is known.
pub(crate) fn max_descriptors() -> Option<usize> {
    of_limits(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// The line `Max open files            1024                 524288               files`.
fn of_limits(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_descriptors_for_everything_else() {
        let wanted = |resp, http| Places { resp, http };
        for (descriptors, of, places) in [
            (65_536, wanted(10_000, 10_000), wanted(10_000, 10_000)),
            (24_096, wanted(10_000, 10_000), wanted(10_000, 10_000)),
            (1024, wanted(10_000, 10_000), wanted(384, 384)),
            (1024, wanted(100, 10_000), wanted(100, 668)),
            (1024, wanted(10_000, 0), wanted(768, 0)),
            (128, wanted(10_000, 10_000), wanted(32, 32)),
            (10, wanted(10_000, 10_000), wanted(1, 1)),
        ] {
            assert_eq!(of.within(descriptors), places, "{descriptors} {of:?}");
        }
    }

    #[test]
    fn the_limit_is_read_from_the_systems_table() {
        let text = "Limit   Soft Limit   Hard Limit   Units\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(of_limits(text), Some(1024));
        assert_eq!(of_limits("Max open files  unlimited  unlimited files"), None);
        assert_eq!(of_limits(""), None);
    }
}
