//! Data-centric routing: hosts know their links only, filters travel `d` hops, queries
//! follow the filters.
//!
//! ```text
//! home   add ─► Home (publisher, policy) ─► Router ─ advert, hops + 1 ─► Router ─► … d hops
//! query  locate ─► Table: which links claim it? ─► next host ─► … ─► holder
//!                   └─ none: a bounded random walk        answers go back along the path
//! ```
//!
//! The entry of a link holds the filters that arrived over it: each separately (CUBF), as their OR
//! (ABF), or as one OR per distance (attenuated); see [`EntryKind`]. Its false positive rate never
//! exceeds the plan's rate: [`Plan`] chooses shapes by the receiver-oriented design, and a
//! [`RouteTable`] refuses filters that would break it. [`Visit`] is one query at one host,
//! [`Router`] is one host's side of the protocol.
//!
//! Sans-I/O like [`crate::replica`]: `handle_*` takes what happened, `poll_*` returns what to do.
//! The publisher of the replica protocol makes, updates and encodes the filters here too.
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

pub use event::{Holder, Located, QueryId, RouterCounters, RouterEvent, Search};
pub use message::{advert_bytes, reach_bytes};
pub use plan::{EntryKind, Plan, UnknownKind};
pub use router::{Router, RouterConfig, Survey, Transmit};
pub use table::{Filters, HomeId, LinkId, Refusal, RouteMatch, RouteTable, Stored};
pub use visit::{Asked, Forward, Visit};
