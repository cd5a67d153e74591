//! What happens on a host, for whoever listens.

use serde::Serialize;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Happened {
    /// A host was heard of, for the first time or again.
    HostUp {
        /// Its name.
        host: String,
    },
    /// A host disappeared; its replicas answer until the grace time is over.
    HostSuspected {
        /// Its name.
        host: String,
    },
    /// A host is gone; its replicas answer no more.
    HostDown {
        /// Its name.
        host: String,
    },
    /// An own set was published.
    UpdateSent {
        /// The set.
        set: String,
        /// Which update.
        epoch: u64,
        /// Its length.
        bytes: u64,
    },
    /// A replica has a newer image.
    UpdateReceived {
        /// The set.
        set: String,
        /// Whose image it is.
        host: String,
        /// Which update.
        epoch: u64,
    },
    /// Lookups that named nobody came too early: a replica that has just changed claims their keys.
    /// An upper bound, since a key may have been added after the question.
    LateLookups {
        /// The set.
        set: String,
        /// Whose replica it is.
        host: String,
        /// How many.
        lookups: u64,
    },
    /// The published copy of an own set is staler than its policy permits: an update is due.
    TargetBroken {
        /// The set.
        set: String,
    },
    /// An own set stands on another rung: it was built again, or folded.
    Rebuilt {
        /// The set.
        set: String,
    },
    /// A host was linked but did not reply: its link is opened again.
    LinkReopened {
        /// Its name.
        host: String,
    },
    /// Another host lives under this host's name.
    NameTaken {},
}

impl Happened {
    /// Events that are kept for a listener who is behind; it misses what is older.
    pub const KEPT: usize = 1024;

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HostUp { .. } => "host_up",
            Self::HostSuspected { .. } => "host_suspected",
            Self::HostDown { .. } => "host_down",
            Self::UpdateSent { .. } => "update_sent",
            Self::UpdateReceived { .. } => "update_received",
            Self::LateLookups { .. } => "late_lookups",
            Self::TargetBroken { .. } => "target_broken",
            Self::Rebuilt { .. } => "rebuilt",
            Self::LinkReopened { .. } => "link_reopened",
            Self::NameTaken {} => "name_taken",
        }
    }
}
