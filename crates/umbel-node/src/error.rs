//! Errors of a host.

use umbel::overlay::SearchError;
use umbel::params::ParamError;

use crate::settings::SetNameError;

/// Why a request to a host failed. Nothing changed, unless the variant says otherwise.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No host has this set.
    #[error("no such set '{0}'")]
    NoSuchSet(String),
    /// Only possible for this host's own sets.
    #[error("this host has no set '{0}' of its own")]
    NotOwn(String),
    /// An invalid name of a set.
    #[error("{}", SetNameError)]
    SetName,
    /// An empty or too long key.
    #[error("a key has 1 to {max} bytes, not {given}")]
    KeyLength {
        /// Its length.
        given: usize,
        /// The maximum length.
        max: usize,
    },
    /// A chain of too many keys.
    #[error("a chain has at most {max} keys, not {given}")]
    ChainLength {
        /// The number of keys.
        given: usize,
        /// The maximum number.
        max: usize,
    },
    /// A text that is not a name such as `/a/b`.
    #[error("'{text}': {reason}")]
    PrefixName {
        /// Its beginning.
        text: String,
        /// The reason.
        reason: umbel::prefix::ParseError,
    },
    /// The host has the maximum number of sets.
    #[error("this host has {0} sets already, as many as it may have")]
    TooManySets(usize),
    /// Not possible in an overlay.
    #[error("in an overlay {0}")]
    InOverlay(&'static str),
    /// Only possible in an overlay.
    #[error("this host is in no overlay: {0}")]
    NoOverlay(&'static str),
    /// Nothing was found, and a host that was asked has not replied.
    #[error("not found, but not everybody who was asked has answered in time: ask again")]
    Unanswered,
    /// For so many keys it is unknown whether any host holds them.
    #[error(
        "{0} keys may be held by hosts that did not answer in time, or could not tell: ask again"
    )]
    Unconfirmed(usize),
    /// So many keys may be held by hosts that are not known at present.
    #[error(
        "{0} keys may be held by hosts that are not known at present (missing_hosts of UMBEL.INFO names them): ask again, or use UMBEL.MISSINGPARTIAL"
    )]
    Incomplete(usize),
    /// A plan for a filter that other hosts would refuse.
    #[error(
        "this plan takes a filter of more than {max} bits, which hosts refuse: plan for fewer keys or raise limits.filter_bits"
    )]
    TooLarge {
        /// The maximum number of bits of a filter.
        max: u64,
    },
    /// The cache is to confirm keys, but its address is unknown.
    #[error("{{advertise}} in 'confirm' needs this host's own setting 'advertise'")]
    NoWayToCache,
    /// The cache is to be asked at a server that this host's configuration does not permit.
    #[error(
        "'confirm' may name {{advertise}} or a server of this host's setting 'confirm_origins', not {0}"
    )]
    CacheOrigin(String),
    /// Parameters out of range.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The catalogue cannot be written or read; the requested change may be lost.
    #[error("the catalogue failed: {0}")]
    Catalogue(String),
    /// Other hosts cannot keep naming a host while it is away if its keys are lost with its
    /// process.
    #[error(
        "this host keeps its keys in memory: they are gone when it stops, so nobody can wait for it"
    )]
    InMemory,
    /// No backup was written.
    #[error("no backup was written: {0}")]
    Backup(String),
    /// The host is stopping.
    #[error("the host is stopping")]
    Stopping,
}

impl From<SearchError> for HostError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::TooManySets(max) => Self::TooManySets(max),
            SearchError::Param(error) => Self::Param(error),
            error => Self::Catalogue(error.to_string()),
        }
    }
}

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] crate::settings::SettingsError),
    /// The users file cannot be read.
    #[error("users: {0}")]
    Users(#[from] crate::access::UsersError),
    /// A certificate cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The catalogue cannot be opened.
    #[error("cannot open the catalogue: {0}")]
    Catalogue(String),
    /// The network cannot be joined.
    #[error("{0}")]
    Network(String),
    /// Another host of the cluster has this host's name, and replies.
    #[error(
        "another host is called '{name}' and replies{address}: give this one another name, or stop the other one first"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Where the other one listens, as text.
        address: String,
    },
    /// A port cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no runtime to run in.
    #[error("a host runs in tokio's multi-thread runtime: start it in one")]
    Runtime,
    /// A set in the catalogue cannot be opened.
    #[error(transparent)]
    Host(#[from] HostError),
}
