//! umbel beside its rivals, in one interleaved run: `cargo run --release -p compare`.
//!
//! `-- SECTION…` runs some sections only: `filters`, `large`, `counting`, `who`, `updates`,
//! `prefixes` (`--prefixes FILE` names the routing table to take).
//! Figures are nanoseconds of thread CPU time, minima of interleaved rounds; goals are
//! ratios within the run. Rows that umbel loses are printed like all others.
//!
//! What limits the goals that are missed, all or now and then:
//!
//! * An insert in the cache costs 1.04 times fastbloom's. Both wait for the same seven lines from
//!   the second-level cache; umbel's walk has one more addition a position, and ones and keys
//!   are counted. Unrolling, another way to count, newer instructions and counting once a batch
//!   were tried and gained nothing or 2 %.
//! * An absent key in the cache is answered 1.9 to 2 times as fast as by fastbloom, in batches
//!   out of the cache 1.8 to 2 times; with huge pages for every filter (`GLIBC_TUNABLES=
//!   glibc.malloc.hugetlb=1`) 1.3 times: fastbloom gains the more, as it waits for each page.
//! * Lookups over banks cost what touching their rows costs, and a third more for ids. Loops over
//!   split-block filters read one line a host, which the processor overlaps as well as it can:
//!   115 to 158 times as much for 1024 hosts, 46 to 67 times for 128, by how busy the memory is.
//! * Deltas into a bank and refreshed columns wait for memory alone: 83 to 109 µs, and 0.21 to
//!   0.28 ms, of the same program on a day when the memory is busy.

mod counting;
mod filters;
mod harness;
mod huge;
mod prefixes;
mod updates;
mod who;

/// Knows how much memory every structure takes.
#[global_allocator]
static ALLOCATED: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(option) = wanted.iter().position(|argument| argument == "--prefixes") {
        // The option and the file that it names.
        wanted.drain(option..wanted.len().min(option + 2));
    }
    let sections: [(&str, fn()); 6] = [
        ("filters", filters::in_cache),
        ("large", filters::out_of_cache),
        ("counting", counting::run),
        ("who", who::run),
        ("updates", updates::run),
        ("prefixes", prefixes::run),
    ];
    if let Some(unknown) = wanted.iter().find(|name| !sections.iter().any(|(s, _)| s == name)) {
        let names = sections.map(|(name, _)| name).join(", ");
        eprintln!("compare: no section '{unknown}'; there are {names}");
        std::process::exit(2);
    }
    for (name, run) in sections {
        if wanted.is_empty() || wanted.iter().any(|section| section == name) {
            run();
        }
    }
}
