//! A library of records, asked by any of their attributes.
//!
//! `cargo run -p umbel --example attributes`

use umbel::filter::{Answer, AttributeFilter, Combinations};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names = ["artist", "year", "format"];
    let mut records = AttributeFilter::for_target(&names, Combinations::Every, 10_000, 0.001)?;
    records.insert(&["Nina Simone", "1965", "vinyl"])?;
    records.insert(&["Can", "1972", "tape"])?;

    let questions: [&[(&str, &str)]; 4] = [
        &[("artist", "Can")],
        &[("year", "1965"), ("format", "vinyl")],
        &[("artist", "Can"), ("year", "1965")],
        &[("artist", "Nico")],
    ];
    for question in questions {
        let answer = match records.ask(question)? {
            Answer::Yes => "perhaps",
            Answer::Apart => "each of them, perhaps not together",
            Answer::No => "certainly not",
        };
        println!("{question:?}: {answer}");
    }
    println!(
        "an invented combination is claimed with {:.1e}",
        records.false_positive(&[], &["artist", "year"])?
    );
    Ok(())
}
