//! The configuration of a host: defaults, overridden by file, environment and flags in this order.
//!
//! [`KEYS`] lists every key. A [`Layer`] contains the values from one source, each already
//! validated; a [`Draft`] stacks layers and records where each value comes from;
//! [`Draft::settings`] checks what depends on several values.
//!
//! Always true of [`Settings`] made this way: every value is in its range; no port is reachable
//! from other machines without users and certificates, unless that was permitted; with certificates
//! every peer's name is known; and hosts on several machines share a secret hash key, since with
//! the well-known one anybody can craft keys that collide.

mod draft;
mod error;
mod key;
mod layer;
mod object_origin;
mod origin;
mod overlay;
mod set_name;
mod set_transform;
mod template;
mod value;
mod watch;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use umbel::replica::{Name, Policy};
use umbel::{HashId, KeyHasher, Rate, Seed};
use umbel_store::Durability;

use crate::{Confirm, Template};

pub use draft::{Draft, Shown};
pub use error::SettingsError;
pub use key::{KEYS, Key, Kind, WATCH_KEYS};
pub use layer::Layer;
pub use object_origin::ObjectOrigin;
pub use origin::Origin;
pub(crate) use overlay::agreement;
pub use overlay::{Link, Overlay};
pub(crate) use set_name::SetNameError;
pub use set_transform::SetTransform;
pub use template::template;
#[cfg(feature = "zenoh")]
pub(crate) use value::peer_line;
pub use watch::WatchedDirectory;

/// The complete, validated configuration of a host.
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
    /// Name of this host; must be unique in the cluster.
    pub name: Name,
    /// Name of the cluster; hosts of other clusters are refused.
    pub cluster: Name,
    /// Where the catalogue is stored.
    pub storage: Storage,
    /// When an add is acknowledged, for a catalogue in a folder.
    pub durability: Durability,
    /// Where backups are written; `None`: none are.
    pub backups: Option<PathBuf>,
    /// Where Redis clients connect; `None`: no such port.
    pub resp: Option<SocketAddr>,
    /// Where HTTP is served; `None`: no such port.
    pub http: Option<SocketAddr>,
    /// Where other hosts connect, over TCP.
    pub listen: SocketAddr,
    /// Where other hosts listen.
    pub peers: Vec<Endpoint>,
    /// Whether other hosts are reached only through zenoh routers, which `peers` lists; then the
    /// host does not listen.
    pub through_routers: bool,
    /// A file that lists more peers.
    pub peers_file: Option<PathBuf>,
    /// A DNS name whose addresses are more peers.
    pub peers_dns: Option<Endpoint>,
    /// Names of admitted hosts, in addition to those of the peers.
    pub hosts: Vec<Name>,
    /// Certificates between hosts; `None`: plain TCP.
    pub peer_tls: Option<PeerFiles>,
    /// Names under which the HTTP port may be addressed, in addition to those that the host knows.
    pub http_hosts: Vec<String>,
    /// The users file; `None`: everybody may do everything.
    pub users: Option<PathBuf>,
    /// The certificate of the ports for clients; `None`: plain TCP.
    pub tls: Option<KeyFiles>,
    /// The host's place in an overlay; `None`: a mesh, in which every host knows every other.
    pub overlay: Option<Overlay>,
    /// The URL from which this host's objects are fetched.
    pub advertise: Option<String>,
    /// Servers that may confirm keys of a set, in addition to that of `advertise`.
    pub confirm_origins: Vec<String>,
    /// Where objects are fetched from that no host holds.
    pub origins: Vec<ObjectOrigin>,
    /// How the keys of sets are made from the names that clients ask for.
    pub transforms: Vec<SetTransform>,
    /// The key of the cluster's key hash.
    pub hash_key: HashKey,
    /// The file that it was read from, if any.
    pub hash_key_file: Option<PathBuf>,
    /// Whether ports may be reachable from other machines.
    pub allow_remote: bool,
    /// Whether other hosts stop naming this host when it stops. Otherwise it is expected back, and
    /// they are asked to keep naming it for `timing.absence`.
    pub leave_on_stop: bool,
    /// The plan of sets that are created by their first add.
    pub set: SetPlan,
    /// Limits: what exceeds them is refused.
    pub limits: Limits,
    /// Intervals and timeouts.
    pub timing: Timing,
    /// The mirror of container registries.
    pub oci: Oci,
    /// Directories whose files are the keys of own sets.
    pub watches: Vec<WatchedDirectory>,
    /// The log level, or levels per module as in `info,zenoh=debug`.
    pub log_level: String,
    /// The format of the log.
    pub log_format: LogFormat,
    /// Where traces are exported to; `None`: nowhere.
    pub traces: Option<Traces>,
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

    /// Where to fetch the objects of a set that no host holds: the origin of this set, otherwise
    /// that for all other sets.
    #[must_use]
    pub fn origin_of(&self, set: &str) -> Option<&Template> {
        let of = |name: Option<&str>| self.origins.iter().find(|origin| origin.set() == name);
        of(Some(set)).or_else(|| of(None)).map(ObjectOrigin::template)
    }

    /// The key hasher, which is the same for all hosts of the cluster.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        match self.hash_key {
            HashKey::WellKnown => KeyHasher::new(HashId::SipHash13, Seed::default()),
            HashKey::Secret(seed) => KeyHasher::secret(HashId::SipHash13, seed),
        }
    }
}

/// The export of traces, which needs the feature `otel`.
#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    /// URL of the collector; spans are sent to `/v1/traces` below it.
    pub endpoint: String,
    /// Share of the requests that are traced, of those whose caller did not decide it.
    pub share: f64,
}

/// Where a catalogue is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In memory: lost when the host stops.
    Memory,
    /// In this folder.
    Folder(PathBuf),
}

/// Where a host listens for other hosts: a host name or an address, and a port.
///
/// Written `cache-2:7447`, or `cache-2=10.0.0.2:7447` if the address does not begin with the host's
/// name. Displayed in zenoh's syntax: `tcp/cache-2:7447`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    name: Option<String>,
    host: String,
    port: u16,
}

impl Endpoint {
    /// In zenoh's syntax, with this protocol.
    #[must_use]
    pub fn locator(&self, protocol: &str) -> String {
        format!("{protocol}/{}:{}", self.host, self.port)
    }

    /// In the syntax of the system's resolver.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The name that was written before `=`.
    #[must_use]
    pub fn given_name(&self) -> Option<Name> {
        self.name.as_deref().and_then(Name::new)
    }

    /// The name of the host: what was written before `=`, or the first label of a host name.
    #[must_use]
    pub fn host_name(&self) -> Option<Name> {
        let given = self.name.as_deref();
        let bare = self.host();
        let from_address = || match bare.parse::<IpAddr>() {
            Err(_) if bare != "localhost" => bare.split('.').next(),
            _ => None,
        };
        given.or_else(from_address).and_then(Name::new)
    }

    /// The host name, or the address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether it is known to be on this machine.
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
    /// The certificate and its intermediate certificates, as PEM.
    pub cert: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
}

/// The files for authentication between hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFiles {
    /// The authority that signs the hosts' certificates, as PEM.
    pub ca: PathBuf,
    /// This host's certificate and key.
    pub own: KeyFiles,
}

/// The key of the cluster's key hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HashKey {
    /// The public default: enough for hosts on one machine.
    WellKnown,
    /// Known only to the hosts of the cluster.
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

/// The plan of a set that nobody has reserved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SetPlan {
    /// Chance that one lookup of an absent key names any wrong host.
    pub false_positive: Rate,
    /// Keys for which it has room at this host from the start; `None`: it starts on the lowest
    /// rung.
    pub capacity: Option<u64>,
    /// Number of hosts that the rate is planned for; `None`: as many as have the set, with a
    /// margin.
    pub expected_hosts: Option<u32>,
    /// When its replicas are updated.
    pub policy: Policy,
    /// When a key expires; `None`: never.
    pub lifetime: Option<Duration>,
    /// Who confirms one of this host's keys: the catalogue or the cache.
    pub confirm: Confirm,
}

/// A mirror of container registries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Oci {
    /// The set whose keys are the digests of blobs; `None`: the host is no mirror.
    pub set: Option<Name>,
    /// The registry that has what no host holds.
    pub origin: Option<String>,
}

/// Limits: what exceeds them is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of connected clients of the RESP port.
    pub connections: usize,
    /// How long a client of the RESP port may send nothing; `None`: for ever.
    pub idle: Option<Duration>,
    /// Maximum bytes of one request at the RESP port.
    pub request_bytes: u64,
    /// Bytes of replies of a pipeline that are collected before they are sent.
    pub reply_bytes: u64,
    /// Maximum number of connected HTTP clients.
    pub http_connections: usize,
    /// Maximum bytes of an HTTP request's line and headers together.
    pub http_header_bytes: usize,
    /// Maximum bytes of an HTTP query about many keys.
    pub http_question_bytes: usize,
    /// Minimum rate of the body of an HTTP request, in bytes per second.
    pub http_body_rate: u32,
    /// Maximum number of objects about which this host's cache is asked at once.
    pub confirms: usize,
    /// Maximum number of objects that are read for other hosts at once, and that are passed on to
    /// clients at once.
    pub proxies: usize,
    /// Maximum bytes of an object that is passed on.
    pub proxy_bytes: u64,
    /// Maximum number of sets of this host, and of each other host.
    pub sets: usize,
    /// Maximum number of other hosts in a mesh.
    pub hosts: usize,
    /// Maximum number of bits of another host's filter.
    pub filter_bits: u64,
    /// Memory for all replicas; `None`: a quarter of what the process may use.
    pub replica_bytes: Option<u64>,
    /// Memory for the filters of own sets; `None`: half of what the process may use.
    pub own_bytes: Option<u64>,
}

/// Intervals and timeouts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Interval between two announcements.
    pub announce: Duration,
    /// How long the replicas of a host that disappeared keep answering.
    pub grace: Duration,
    /// How long a host may send nothing at all before it counts as gone.
    pub silence: Duration,
    /// How long a host that disappeared without leaving is still expected.
    pub forget: Duration,
    /// How long other hosts are asked to keep naming this host while it restarts, and the maximum
    /// time for which this host does so for others.
    pub absence: Duration,
    /// How long readiness waits for the replicas of other hosts.
    pub ready: Duration,
    /// Interval between two checks of the files of users, certificates and peers.
    pub reload: Duration,
    /// How long a stop may take.
    pub stop: Duration,
    /// How long this host's cache may take to confirm keys.
    pub confirm: Duration,
    /// How long passing on an object may take.
    pub proxy: Duration,
    /// How long a client of the RESP port may take to log in or, if no users are configured, to
    /// send a command.
    pub login: Duration,
    /// Maximum time from the first byte of an HTTP request to the end of its headers.
    pub http_header: Duration,
    /// How long an HTTP connection may be without a byte in either direction.
    pub http_idle: Duration,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines, one JSON object per line.
    Json,
}

#[cfg(test)]
mod tests;
