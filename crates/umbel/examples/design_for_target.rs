//! What a rate costs: bits a key of one filter, and of one replica among many hosts.
//!
//! `cargo run -p umbel --example design_for_target`

use umbel::replica::SetPlan;
use umbel::{Rate, design};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let items = 100_000;
    println!("{:>8}  {:>14}  {:>24}", "rate", "bits a key", "bits a key over 32 hosts");
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        let alone = design::standard(items, Rate::new(rate)?)?;
        // A set's rate is per lookup: each of 32 replicas must be that much tighter.
        let set = SetPlan { false_positive: rate, expected_hosts: 32, ..SetPlan::default() };
        let among = design::standard(items, set.replica_false_positive()?)?;
        let a_key = |bits: u64| bits as f64 / items as f64;
        println!("{rate:>8}  {:>14.2}  {:>24.2}", a_key(alone.bits()), a_key(among.bits()));
    }
    Ok(())
}
