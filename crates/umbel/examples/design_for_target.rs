//! What a rate costs: bits a key of one filter, and of one replica among many hosts on a full rung.
//!
//! `cargo run -p umbel --example design_for_target`

use umbel::design::ladder::{Ladder, Rung};
use umbel::{Rate, design};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let items = 100_000;
    println!("{:>8}  {:>14}  {:>24}", "rate", "bits a key", "bits a key over 32 hosts");
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        let alone = design::standard(items, Rate::new(rate)?)?;
        // A set's rate is per lookup: each of 32 replicas must be that much tighter.
        let (ladder, rung) = (Ladder::new(Rate::new(rate)?), Rung::LOWEST.above(12));
        let among = rung.bits() as f64 / ladder.takes(rung, 32) as f64;
        let alone = alone.bits() as f64 / items as f64;
        println!("{rate:>8}  {alone:>14.2}  {among:>24.2}");
    }
    Ok(())
}
