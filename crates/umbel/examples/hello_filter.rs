//! A filter of words: add, ask, write it down, read it back.
//!
//! `cargo run -p umbel --example hello_filter`

use umbel::StandardFilter;
use umbel::codec::{Decoder, encode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut filter = StandardFilter::for_target(1000, 0.01)?;
    for word in ["apple", "banana", "cherry"] {
        filter.insert(word);
    }
    for word in ["apple", "durian"] {
        let answer = if filter.contains(word) { "perhaps" } else { "certainly not" };
        println!("{word}: {answer}");
    }

    let bytes = encode(&filter);
    println!("{filter:?} takes {} bytes on the wire", bytes.len());
    let received = Decoder::new().filter(&bytes)?;
    assert_eq!(received, filter.into());
    Ok(())
}
