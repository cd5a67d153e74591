//! umbel beside its rivals, in one interleaved run: `cargo run --release -p compare`.
//!
//! `-- SECTION…` runs some sections only: `filters`, `large`, `counting`, `who`, `updates`.
//! Figures are nanoseconds of thread CPU time, minima of interleaved rounds; goals are
//! ratios within the run. Rows that umbel loses are printed like all others.

mod counting;
mod filters;
mod harness;
mod huge;
mod updates;
mod who;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let sections: [(&str, fn()); 5] = [
        ("filters", filters::in_cache),
        ("large", filters::out_of_cache),
        ("counting", counting::run),
        ("who", who::run),
        ("updates", updates::run),
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
