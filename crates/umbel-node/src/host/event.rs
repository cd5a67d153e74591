//! Events of a host, for subscribers.

use serde::Serialize;

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum HostEvent {
    /// A host appeared, for the first time or again.
    HostUp {
        /// Its name.
        host: String,
    },
    /// A host disappeared; its replicas answer until the grace time is over.
    HostSuspected {
        /// Its name.
        host: String,
    },
    /// A host is gone; its replicas no longer answer.
    HostDown {
        /// Its name.
        host: String,
    },
    /// An own set was published.
    UpdateSent {
        /// The set.
        set: String,
        /// The number of the update.
        epoch: u64,
        /// Its length in bytes.
        bytes: u64,
    },
    /// A replica has a newer image.
    UpdateReceived {
        /// The set.
        set: String,
        /// The host whose image it is.
        host: String,
        /// The number of the update.
        epoch: u64,
    },
    /// Some lookups that named no host came too early: a replica that was just updated claims their
    /// keys. An upper bound, since a key may have been added after the lookup.
    LateLookups {
        /// The set.
        set: String,
        /// The host whose replica it is.
        host: String,
        /// How many.
        lookups: u64,
        /// Late lookups of the set so far, as a share of these and of lookups that named a host.
        share: f64,
    },
    /// The published copy of an own set is staler than its policy permits: an update is due.
    TargetBroken {
        /// The set.
        set: String,
    },
    /// The filter of an own set has another rung: it was rebuilt, or folded.
    Rebuilt {
        /// The set.
        set: String,
    },
    /// A host was linked but did not reply: its link is opened again.
    LinkReopened {
        /// Its name.
        host: String,
    },
    /// Another host uses this host's name.
    NameTaken {},
}

impl HostEvent {
    /// How many events are buffered for a slow subscriber; it misses older ones.
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
