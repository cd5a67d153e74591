//! Simulated worlds: the very code that hosts run, in networks that misbehave from a seed.

#![forbid(unsafe_code)]

pub mod faults;
pub mod policies;
mod random;
