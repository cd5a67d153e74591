//! umbel beside its rivals, in one interleaved run: `cargo run --release -p compare`.
//!
//! `-- SECTION…` runs some sections only: `filters`, `large`, `counting`, `who`, `updates`,
//! `prefixes` (`--prefixes FILE` names the routing table to take).
//! Figures are nanoseconds of thread CPU time, minima of interleaved rounds; goals are
//! ratios within the run. Rows that umbel loses are printed like all others.

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
