//! umbel beside its rivals, in one interleaved run: `cargo run --release -p compare`.
//!
//! `-- SECTION…` runs some sections only: `filters`, `large`, `counting`, `who`, `updates`,
//! `prefixes` (`--prefixes NAME` names a table, a file or one of the kinds routes, ranges, hosts and
//! mixed, and may be repeated), `prefixes-bad`.
//! Figures are nanoseconds of thread CPU time, minima of interleaved rounds; goals are
//! ratios within the run. Rows that umbel loses are printed like all others.
//!
//! What is known of the goals that are missed, always or in some runs:
//!
//! * An insert in the cache costs 1.02 to 1.11 times fastbloom's. A profile shows both waiting for
//!   the words; umbel's walk takes one more addition a position. Not to count the ones gained
//!   nothing; nor did two or four positions at a time, the first position ahead of the step,
//!   another way to count, newer instructions and counting once a batch. Out of the cache it
//!   costs 1.12 to 1.26 times fastbloom's key by key, and 0.55 to 0.65 times in batches.
//! * An absent key in the cache is answered twice as fast as by fastbloom (2.0 to 2.1 times) while
//!   the core is umbel's alone, 1.6 to 1.7 times while a neighbour shares it: fastbloom waits for
//!   branches, umbel computes. Two probes or five before the first branch are worse, four, the
//!   rest out of line and words without a bound check no better than three.
//! * In batches out of the cache an absent key is answered 1.8 to 2.4 times as fast. With huge pages
//!   for every filter (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1`) it was 1.3 times: fastbloom gains
//!   more by them.
//! * Lookups over banks cost little more than touching their rows (bitmaps 1.02 to 1.17 times),
//!   and a third more for ids: for 1024 hosts 450 to 560 times less than a loop over fastbloom,
//!   for 128 hosts 167 to 258 times; 104 to 163 and 46 to 67 times less than a loop over
//!   split-block filters, which reads one line a host. Rows of 128 hosts take 16 MB: in the
//!   second-level cache a lookup takes 17 ns, beyond it 25, and how much of the last-level cache
//!   neighbours leave decides. Positions worked out once instead of twice gain a fifth there, but
//!   nothing where memory is what costs.
//! * Deltas into a bank took 81 to 116 µs, about three quarters of touching as many rows without
//!   asking ahead.

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
    while let Some(option) = wanted.iter().position(|argument| argument == "--prefixes") {
        // The option and the file that it names.
        wanted.drain(option..wanted.len().min(option + 2));
    }
    let sections: [(&str, fn()); 7] = [
        ("filters", filters::in_cache),
        ("large", filters::out_of_cache),
        ("counting", counting::run),
        ("who", who::run),
        ("updates", updates::run),
        ("prefixes", prefixes::run),
        ("prefixes-bad", prefixes::run_bad),
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
