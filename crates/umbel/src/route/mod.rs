//! Data-centric routing: hosts know their links only, filters travel `d` hops, queries
//! follow the filters.
//!
//! ```text
//! home   add ─► Home (publisher, policy) ─► Router ─ advert, hops + 1 ─► Router ─► … d hops
//! query  locate ─► Table: which links claim it? ─► next host ─► … ─► holder
//!                   └─ none: a bounded random walk        answers go back along the path
//! ```
//!
//! A link's entry is the filters that came over it, kept apart (CUBF), as their OR (ABF), or as
//! one OR a distance (attenuated): [`EntryKind`]. It is never more wrong than the plan's rate:
//! [`Plan`] gives shapes by the receiver-oriented design, and a [`Table`] refuses filters that
//! would break it. [`Visit`] is one query at one host, [`Router`] a host's share of it all.
//!
//! Sans-I/O like [`crate::replica`]: `handle_*` takes what happened, `poll_*` says what to do.
//! A filter is made, updated and coded by the very publisher of the replica protocol.
//!
//! Paper 5 (receiver-oriented design); attenuated filters are Rhea and Kubiatowicz's.

mod entry;
mod event;
mod heard;
pub(crate) mod message;
mod parts;
mod plan;
mod router;
mod table;
#[cfg(test)]
mod tests;
mod union;
mod visit;

pub use event::{Counters, Event, Holder, Located, QueryId, Search};
pub use message::{advert_bytes, reach_bytes};
pub use plan::{EntryKind, Plan, UnknownKind};
pub use router::{Config, Router, Survey, Transmit};
pub use table::{Filters, HomeId, LinkId, Match, Refusal, Stored, Table};
pub use visit::{Asked, Forward, Visit};
