//! Resource usage of this process, with the names that Prometheus's own clients use. Read from
//! `/proc`; on systems without it nothing is reported.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

#[derive(Debug)]
pub(super) struct Process;

/// The values that are read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    threads: f64,
    start_seconds: f64,
}

/// Linux counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(usage) = usage() else { return Ok(()) };
        let help = "Processor time that the process has used";
        let metric = encoder.encode_descriptor(
            "process_cpu",
            help,
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        ConstCounter::new(usage.cpu_seconds).encode(metric)?;
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let max = crate::descriptors::max_descriptors().map_or(f64::NAN, |max| max as f64);
        let bytes = Some(&Unit::Bytes);
        let gauges = [
            ("process_resident_memory", "Memory that is resident", bytes, usage.resident_bytes),
            ("process_virtual_memory", "Memory that is mapped", bytes, usage.virtual_bytes),
            (
                "process_start_time",
                "When the process started, since 1970",
                Some(&Unit::Seconds),
                usage.start_seconds,
            ),
            ("process_threads", "Threads", None, usage.threads),
            ("process_open_fds", "Open file descriptors", None, descriptors as f64),
            ("process_max_fds", "Most file descriptors that may be open", None, max),
        ];
        for (name, help, unit, value) in gauges {
            let metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

fn usage() -> Option<Usage> {
    let read = |file: &str| fs::read_to_string(file).ok();
    usage_of(&read("/proc/self/stat")?, &read("/proc/self/status")?, &read("/proc/stat")?)
}

fn usage_of(stat: &str, status: &str, boot: &str) -> Option<Usage> {
    // The name in parentheses may contain any character.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let field = |place: usize| fields.get(place - 3)?.parse::<f64>().ok();
    let line = |text: &str, name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(Usage {
        cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
        start_seconds: line(boot, "btime ")? + field(22)? / TICKS_PER_SECOND,
        virtual_bytes: 1024.0 * line(status, "VmSize:")?,
        resident_bytes: 1024.0 * line(status, "VmRSS:")?,
        threads: line(status, "Threads:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_tables_are_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 150 0 0 20 0 9 0 1000 8192000 50 1";
        let status = "Name:\ta) b\nVmSize:\t    8000 kB\nVmRSS:\t     200 kB\nThreads:\t9\n";
        let usage = usage_of(stat, status, "cpu 1 2\nbtime 1700000000\n").unwrap();
        let expected = Usage {
            cpu_seconds: 4.0,
            resident_bytes: 204_800.0,
            virtual_bytes: 8_192_000.0,
            threads: 9.0,
            start_seconds: 1_700_000_010.0,
        };
        assert_eq!(usage, expected);
        assert_eq!(usage_of("", "", ""), None);
    }
}
