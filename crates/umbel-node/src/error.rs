//! What can go wrong when a host is asked for something.

use umbel::overlay::SearchError;
use umbel::params::ParamError;
use umbel::replica::Name;

/// Why a host did not do what it was asked for. Nothing changed, unless it says otherwise.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A question about a set that nobody has.
    #[error("no such set '{0}'")]
    NoSuchSet(String),
    /// Something that only this host's own sets can do.
    #[error("this host has no set '{0}' of its own")]
    NotOwn(String),
    /// A text that cannot name a set.
    #[error(
        "a set's name has 1 to {} bytes of printable text without spaces and direction marks",
        Name::LONGEST
    )]
    SetName,
    /// A key of no or too many bytes.
    #[error("a key has 1 to {most} bytes, not {given}")]
    KeyLength {
        /// What it has.
        given: usize,
        /// What it may have.
        most: usize,
    },
    /// A text that is no name such as `/a/b`.
    #[error("'{text}': {reason}")]
    PrefixName {
        /// How it begins.
        text: String,
        /// What is wrong with it.
        reason: umbel::prefix::ParseError,
    },
    /// More sets than the host may have.
    #[error("this host has {0} sets already, as many as it may have")]
    TooManySets(usize),
    /// Something that hosts of an overlay cannot do.
    #[error("in an overlay {0}")]
    InOverlay(&'static str),
    /// Something that only hosts of an overlay can do.
    #[error("this host is in no overlay: {0}")]
    NoOverlay(&'static str),
    /// Nothing was found, and somebody who was asked has not answered.
    #[error("not found, but not everybody who was asked has answered in time: ask again")]
    Unanswered,
    /// Of so many keys nobody can tell whether somebody holds them.
    #[error(
        "{0} keys may be held by hosts that did not answer in time, or could not tell: ask again"
    )]
    Unconfirmed(usize),
    /// A plan for a filter that other hosts would refuse.
    #[error(
        "this plan takes a filter of more than {most} bits, which hosts refuse: plan for fewer keys or raise limits.filter_bits"
    )]
    TooLarge {
        /// Bits that a filter may have.
        most: u64,
    },
    /// A cache is to be asked for keys, but nobody knows where it is.
    #[error("{{advertise}} in 'confirm' needs this host's own setting 'advertise'")]
    NoWayToCache,
    /// A cache is to be asked at a server that this host's configuration does not name.
    #[error(
        "'confirm' may name {{advertise}} or a server of this host's setting 'confirm_origins', not {0}"
    )]
    CacheOrigin(String),
    /// Numbers outside their ranges.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The catalogue cannot be written or read; what was asked for may be lost.
    #[error("the catalogue failed: {0}")]
    Catalogue(String),
    /// Others cannot name a host while it is away whose keys are gone with its process.
    #[error(
        "this host keeps its keys in memory: they are gone when it stops, so nobody can wait for it"
    )]
    InMemory,
    /// The host stops.
    #[error("the host is stopping")]
    Stopping,
}

impl From<SearchError> for HostError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::TooManySets(most) => Self::TooManySets(most),
            SearchError::Param(error) => Self::Param(error),
            error => Self::Catalogue(error.to_string()),
        }
    }
}

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// What it was told is wrong.
    #[error(transparent)]
    Settings(#[from] crate::settings::SettingsError),
    /// The file of users cannot be read.
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
        /// Where the other one listens, in words.
        address: String,
    },
    /// A port cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// There is no runtime to run in.
    #[error("a host runs in tokio's multi-thread runtime: start it in one")]
    Runtime,
    /// A set of the catalogue cannot be owned.
    #[error(transparent)]
    Host(#[from] HostError),
}
