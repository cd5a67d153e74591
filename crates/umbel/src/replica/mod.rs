//! The replica protocol: a home decides when its replicas are too stale and what to send;
//! every host applies what arrives, in any order the network makes of it, and answers.
//!
//! Sans-I/O: `handle_*` takes what happened and when, `poll_*` returns what to do; no clock,
//! no socket, no randomness inside. The host drives it with a network, the lab with a
//! simulated one.
//!
//! ```text
//! home   add ─► Home (catalogue, filter) ─► Publisher (kept copy, policy) ─► Engine ─► message
//! host   who ◄─ Bank ◄─ Receiver (image, pages being fetched) ◄───────────── Engine ◄─ message
//! ```
//!
//! Papers 1 and 3 give the update control, formulas section 2 its corrected mathematics.

mod engine;
mod event;
mod fetch;
pub(crate) mod fields;
mod home;
pub(crate) mod image;
pub(crate) mod message;
mod names;
pub(crate) mod paged;
mod policy;
pub(crate) mod publisher;
mod receiver;
mod replicas;
mod sample;
mod tally;
#[cfg(test)]
mod tests;

pub use engine::{
    Config, Destination, Engine, PeerInfo, Reason, Refusal, ReplicaInfo, Transmit, replica_bytes_of,
};
pub use event::{Counters, Event};
pub use home::{Home, SetPlan};
pub use names::{Epoch, Incarnation, Name};
pub use policy::{Policy, PolicyError, Rule};
pub use publisher::{Freshness, Intervals, Sent};
pub use receiver::{Received, Sampled};
pub use replicas::Replicas;
