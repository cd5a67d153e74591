//! A host's place in an overlay: its links, and the parameters on which all hosts of the overlay
//! agree.

use std::fmt;

use umbel::replica::Name;
use umbel::route::Plan;

use super::Endpoint;

/// A host's place in an overlay.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Overlay {
    /// The neighbours: at least one.
    pub links: Vec<Link>,
    /// The parameters on which all hosts of the overlay agree.
    pub plan: Plan,
    /// Whether the overlay measures keys per home and filters per link, and plans again when they
    /// drift.
    pub measured: bool,
    /// Steps of the random walk of a query that no link claims.
    pub walk: u32,
}

impl fmt::Display for Overlay {
    /// The parameters that must be the same at every host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&agreement(&self.plan, self.measured))
    }
}

/// The parameters on which hosts of an overlay agree, as text.
pub(crate) fn agreement(plan: &Plan, measured: bool) -> String {
    let Plan { kind, depth, items, filters, false_positive } = plan;
    let measured = if measured { ", measured" } else { "" };
    format!(
        "{kind}, depth {depth}, {filters} filters of {items} keys at {false_positive}{measured}"
    )
}

/// A neighbour: its name, and where it listens unless it connects to this host.
///
/// Displayed as it is written: `cache-2@tcp/cache-2:7447`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The neighbour's name.
    pub name: Name,
    /// Where it listens; `None` if it is the neighbour that connects.
    pub address: Option<Endpoint>,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{}@{address}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}
