//! What a host is told when it starts: file, then environment, then flags.
//!
//! [`KEYS`] names every key. A [`Layer`] holds what one place says, already checked value by
//! value; a [`Draft`] lays them on top of each other and remembers where each value comes
//! from; [`Draft::settings`] checks what only all of them together can show.
//!
//! Always true of [`Settings`] made so: every value is in its range; no port is open beyond
//! this machine without users and certificates, unless that was permitted; with certificates
//! every peer's name is known; and hosts of several machines share a secret hash key, since
//! with the well-known one anybody can craft keys that collide.

mod draft;
mod error;
mod key;
mod layer;
mod origin;
mod overlay;
mod template;
mod value;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use umbel::replica::{Name, Policy};
use umbel::{HashId, KeyHasher, Rate, Seed};
use umbel_store::Durability;

use crate::Confirm;

pub use draft::{Draft, Shown};
pub use error::SettingsError;
pub use key::{KEYS, Key, Kind};
pub use layer::Layer;
pub use origin::Origin;
pub(crate) use overlay::agreement;
pub use overlay::{Link, Overlay};
pub use template::template;
#[cfg(feature = "zenoh")]
pub(crate) use value::peer_line;

/// The whole configuration of a host, checked.
///
/// ```
/// use umbel_node::Settings;
///
/// let settings = Settings::in_memory("cache-1")?;
/// assert_eq!(settings.cluster.as_str(), "local");
/// assert_eq!(settings.resp.unwrap().to_string(), "127.0.0.1:7440");
/// # Ok::<(), umbel_node::SettingsError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Unlike that of every other host of the cluster.
    pub name: Name,
    /// Hosts of another cluster are refused.
    pub cluster: Name,
    /// Where the catalogue lives.
    pub storage: Storage,
    /// When an add is done, for a catalogue in a folder.
    pub durability: Durability,
    /// Where Redis clients connect; `None`: no such port.
    pub resp: Option<SocketAddr>,
    /// Where HTTP is served; `None`: no such port.
    pub http: Option<SocketAddr>,
    /// Where other hosts connect, over TCP.
    pub listen: SocketAddr,
    /// Where other hosts listen.
    pub peers: Vec<Endpoint>,
    /// Whether other hosts are reached through zenoh routers only, which `peers` names; nothing
    /// listens then.
    pub through_routers: bool,
    /// A file that says where more of them do.
    pub peers_file: Option<PathBuf>,
    /// A name at whose addresses more of them do.
    pub peers_dns: Option<Endpoint>,
    /// Names of hosts that are let in, beyond those that peers tell.
    pub hosts: Vec<Name>,
    /// Certificates between hosts; `None`: plain TCP.
    pub peer_tls: Option<PeerFiles>,
    /// Names under which the HTTP port may be addressed, beyond those that the host knows.
    pub http_hosts: Vec<String>,
    /// Who may do what; `None`: everybody everything.
    pub users: Option<PathBuf>,
    /// The certificate of the ports for clients; `None`: plain TCP.
    pub tls: Option<KeyFiles>,
    /// The host's place in an overlay; `None`: everybody knows everybody.
    pub overlay: Option<Overlay>,
    /// Where this host's objects are fetched.
    pub advertise: Option<String>,
    /// Servers that may confirm keys of a set, beyond that of `advertise`.
    pub confirm_origins: Vec<String>,
    /// What the cluster's key hash is keyed with.
    pub hash_key: HashKey,
    /// The file that it was read from, if it was.
    pub hash_key_file: Option<PathBuf>,
    /// Whether ports may be open beyond this machine.
    pub allow_remote: bool,
    /// Whether others are to name this host no longer when it stops; otherwise it will be back, and
    /// they are asked to go on naming it for `timing.absence`.
    pub leave_on_stop: bool,
    /// Sets that their first add makes.
    pub set: SetPlan,
    /// What is refused beyond.
    pub limits: Limits,
    /// How long things may take.
    pub timing: Timing,
    /// What is logged: a level, or levels of parts as in `info,zenoh=debug`.
    pub log_level: String,
    /// How it is logged.
    pub log_format: LogFormat,
}

impl Settings {
    /// A host of this name with every default, its catalogue in memory.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Value`] for a name with other characters than letters, digits, `.`,
    /// `_` and `-`, or more than 64 of them.
    pub fn in_memory(name: &str) -> Result<Self, SettingsError> {
        let mut layer = Layer::flags();
        layer.set("name", [name])?;
        layer.set("memory", ["true"])?;
        Draft::new().with(layer)?.settings()
    }

    /// Whether a set's keys may be confirmed by a server of this origin.
    #[must_use]
    pub fn permits_cache(&self, origin: &str) -> bool {
        let default = match &self.set.confirm {
            Confirm::Cache(template) => template.origin(),
            Confirm::Catalogue => None,
        };
        let own = self.advertise.as_deref().and_then(crate::confirm::origin);
        let named = self.confirm_origins.iter().map(String::as_str);
        named.chain(own.as_deref()).chain(default.as_deref()).any(|permitted| permitted == origin)
    }

    /// How everybody in the cluster hashes keys.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        match self.hash_key {
            HashKey::WellKnown => KeyHasher::new(HashId::SipHash13, Seed::default()),
            HashKey::Secret(seed) => KeyHasher::secret(HashId::SipHash13, seed),
        }
    }
}

/// Where a catalogue lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In memory: gone when the host stops.
    Memory,
    /// In this folder.
    Folder(PathBuf),
}

/// Where a host listens for others: a host name or an address, and a port.
///
/// Written `cache-2:7447`, or `cache-2=10.0.0.2:7447` where the address does not begin with the
/// host's name. Displayed as zenoh writes it: `tcp/cache-2:7447`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    name: Option<String>,
    host: String,
    port: u16,
}

impl Endpoint {
    /// As zenoh writes it, with this protocol.
    #[must_use]
    pub fn locator(&self, protocol: &str) -> String {
        format!("{protocol}/{}:{}", self.host, self.port)
    }

    /// As the system's resolver takes it.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The name that was written before `=`.
    #[must_use]
    pub fn given_name(&self) -> Option<Name> {
        self.name.as_deref().and_then(Name::new)
    }

    /// Which host it is: what was written before `=`, or the first part of a host name.
    #[must_use]
    pub fn host_name(&self) -> Option<Name> {
        let told = self.name.as_deref();
        let bare = self.host();
        let from_address = || match bare.parse::<IpAddr>() {
            Err(_) if bare != "localhost" => bare.split('.').next(),
            _ => None,
        };
        told.or_else(from_address).and_then(Name::new)
    }

    /// The host name, or the address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether it is certainly on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let bare = self.host();
        bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        let host = match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        Self { name: None, host, port: address.port() }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp/{}:{}", self.host, self.port)
    }
}

/// A certificate and its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFiles {
    /// The certificate, and those between it and the authority, as PEM.
    pub cert: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
}

/// What hosts show each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFiles {
    /// Who signs the hosts' certificates, as PEM.
    pub ca: PathBuf,
    /// What this host shows.
    pub own: KeyFiles,
}

/// What the cluster's key hash is keyed with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HashKey {
    /// The same everywhere: enough for hosts of one machine.
    WellKnown,
    /// Known to the cluster's hosts alone.
    Secret(Seed),
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WellKnown => "WellKnown",
            Self::Secret(_) => "Secret(hidden)",
        })
    }
}

/// How a set is made when nobody has reserved it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SetPlan {
    /// Chance that one lookup of an absent key names any wrong host.
    pub false_positive: Rate,
    /// Keys that it has room for at this host from the start; `None`: it starts on the lowest rung.
    pub capacity: Option<u64>,
    /// Hosts that the rate is planned for; `None`: as many as have the set, with room.
    pub expected_hosts: Option<u32>,
    /// When its replicas are updated.
    pub policy: Policy,
    /// When a key leaves on its own; `None`: never.
    pub lifetime: Option<Duration>,
    /// Whose word counts when a key is confirmed.
    pub confirm: Confirm,
}

/// What is refused beyond.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Clients connected at once.
    pub connections: usize,
    /// How long a client of the RESP port may say nothing; `None`: for ever.
    pub idle: Option<Duration>,
    /// Most bytes of one request at the RESP port.
    pub request_bytes: u64,
    /// Replies of a pipeline that are gathered before they are sent.
    pub reply_bytes: u64,
    /// HTTP clients connected at once.
    pub http_connections: usize,
    /// Bytes of an HTTP request's line and headers together.
    pub http_header_bytes: usize,
    /// Bytes of an HTTP question about many keys.
    pub http_question_bytes: usize,
    /// Bytes a second that the body of an HTTP request brings at least.
    pub http_body_rate: u32,
    /// Objects that this host's cache is asked for at once.
    pub confirms: usize,
    /// Sets of this host, and of each other host.
    pub sets: usize,
    /// Most other hosts of a mesh.
    pub hosts: usize,
    /// Most bits accepted of another host's set.
    pub filter_bits: u64,
    /// Memory for all replicas; `None`: a quarter of what the process may use.
    pub replica_bytes: Option<u64>,
    /// Memory for the filters of own sets; `None`: half of what the process may use.
    pub own_bytes: Option<u64>,
}

/// How long things may take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// From one announcement to the next.
    pub announce: Duration,
    /// How long the replicas of a host that disappeared keep answering.
    pub grace: Duration,
    /// How long a host may say nothing at all before it counts as gone.
    pub silence: Duration,
    /// How long a host that disappeared without leaving is still expected.
    pub forget: Duration,
    /// How long others are asked to go on naming this host while it restarts, and how long this host
    /// names others that ask for it, at most.
    pub absence: Duration,
    /// How long readiness waits for the replicas of other hosts.
    pub ready: Duration,
    /// From one look at the files of users, certificates and peers to the next.
    pub reload: Duration,
    /// How long a stop may take.
    pub stop: Duration,
    /// How long this host's cache may take to confirm keys.
    pub confirm: Duration,
    /// How long a client of the RESP port may take to log in, or without users to send a command.
    pub login: Duration,
    /// From the first byte of an HTTP request to the end of its headers.
    pub http_header: Duration,
    /// How long an HTTP connection may be without a byte in either direction.
    pub http_idle: Duration,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines, one object a line.
    Json,
}

#[cfg(test)]
mod tests;
