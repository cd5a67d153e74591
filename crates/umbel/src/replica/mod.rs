//! The parts of a replica: a home decides when replicas are too stale and what to send. A receiver
//! applies what arrives, in any order, and answers lookups.
//!
//! [`crate::mesh`] combines the parts into a protocol between hosts.
//!
//! ```text
//! home   add ─► Home (catalogue, filter) ─► Publisher (kept copy, policy) ─► Engine ─► message
//! host   who ◄─ Bank ◄─ Receiver (image, pages being fetched) ◄───────────── Engine ◄─ message
//! ```
//!
//! Papers 1 and 3 give the update control, formulas section 2 its corrected mathematics.

pub(crate) mod catch_up;
mod counters;
mod draft;
pub(crate) mod fetch;
pub(crate) mod fields;
mod home;
pub(crate) mod image;
mod lag;
pub(crate) mod message;
mod names;
pub(crate) mod own_memory;
pub(crate) mod paged;
pub(crate) mod pins;
mod policy;
pub(crate) mod publisher;
pub(crate) mod receiver;
pub(crate) mod replicas;
mod sample;
pub(crate) mod served;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod update_log;
mod window;

pub use counters::Counters;
pub(crate) use home::memory_of;
pub use home::{Home, SetPlan};
pub use names::{Epoch, Incarnation, Name};
pub use policy::{Policy, PolicyError, Rule};
pub use publisher::{Changed, Freshness, Intervals, Sent};
pub use receiver::{Received, Sampled};
pub use replicas::{Deepest, Replicas};
