//! umbel beside its rivals, in one interleaved run: `cargo run --release -p compare`.
//!
//! `-- SECTION…` runs some sections only: `filters`, `large`, `counting`, `who`, `updates`,
//! `prefixes` (`--prefixes FILE` names the routing table to take).
//! Figures are nanoseconds of thread CPU time, minima of interleaved rounds; goals are
//! ratios within the run. Rows that umbel loses are printed like all others.
//!
//! What is known of the goals that are missed, always or in some runs:
//!
//! * An insert in the cache costs 1.04 to 1.08 times fastbloom's. A profile shows both waiting for
//!   the words; umbel's walk has one more addition a position, and ones and keys are counted.
//!   Unrolling, another way to count, newer instructions and counting once a batch gained
//!   nothing or 2 %.
//! * An absent key in the cache is answered 1.6 to 2 times as fast as by fastbloom, in batches
//!   out of the cache 1.8 to 2 times. With huge pages for every filter
//!   (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1`) it was 1.3 times: fastbloom gains more by them.
//! * Lookups over banks cost little more than touching their rows, and a third more for ids:
//!   for 1024 hosts 453 to 531 times less than a loop over fastbloom, for 128 hosts 167 to 258
//!   times; 115 to 132 and 46 to 67 times less than a loop over split-block filters, which reads
//!   one line a host. Lookups hardly differ between runs, the loops do.
//! * Deltas into a bank took 81 to 116 µs, about three quarters of touching as many rows without
//!   asking ahead. Columns refreshed took 0.21 to 0.28 ms each, 2.3 to 3 times what reading and
//!   writing a word of every row takes. Transposing with AVX2, taking a cache line of every
//!   column at a time, and asking for rows and columns ahead all stayed within what differs from
//!   run to run.

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
