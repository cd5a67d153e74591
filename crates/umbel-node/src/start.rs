//! How a host is started: reads the settings, opens the catalogue, builds filters, joins the
//! network, assembles the parts, starts the driver and the ports.
//!
//! It depends on the host, its driver and its ports; none of them depends on it.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use umbel::replica::Incarnation;
use umbel_store::{Options, Store};

use crate::access::Access;
use crate::catalogue::{Journal, OwnCatalogue};
use crate::driver::Driver;
use crate::error::StartError;
use crate::hello::Hello;
use crate::host::reload::Seen;
#[cfg(feature = "http")]
use crate::host::{Cache, Objects};
use crate::host::{
    Clock, Cluster, Host, HostEvent, Inner, Lifecycle, LiveSettings, Ports, Sets, StoredSet,
    Watches, wall_clock_ms,
};
use crate::memory;
use crate::network::{Inbox, Join, LocalNetwork, Member, Network, NetworkEvents};
use crate::peer_request::{PeerRequest, decode_life};
use crate::priority;
use crate::protocol::HostProtocol;
use crate::settings::{Draft, Layer, Settings, SettingsError, Storage};

/// How long other hosts may take to reply which incarnation of this host they know.
const HEARD: Duration = Duration::from_millis(500);
/// How long other hosts may take to find out whether another host of this name replies.
const HOLDER: Duration = Duration::from_secs(5);
/// How often the other host is asked once its address is known, and the pause in between.
const HOLDER_TRIES: usize = 20;
const HOLDER_PAUSE: Duration = Duration::from_millis(200);

/// Builds and starts a host.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use umbel_node::{Host, LocalNetwork};
///
/// let network = LocalNetwork::new();
/// let fern = Host::builder().name("fern").local(&network).start().await?;
/// let lily = Host::builder().name("lily").local(&network).start().await?;
///
/// fern.add_key("images", b"cat.png").await?;
/// fern.publish("images")?;
/// while lily.who_has("images", b"cat.png").unwrap_or_default() != ["fern"] {
///     tokio::time::sleep(std::time::Duration::from_millis(10)).await;
/// }
/// fern.stop().await;
/// lily.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Builder {
    layer: Result<Layer, SettingsError>,
    settings: Option<Settings>,
    ports: bool,
    network: Option<Arc<dyn Join>>,
    foreign: Vec<(String, Foreign)>,
}

impl Host {
    /// A builder for a host; see [`Builder`].
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// A wrapper with debug output for a catalogue that has none.
struct Foreign(OwnCatalogue);

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnCatalogue")
    }
}

impl Builder {
    fn new() -> Self {
        let layer = Ok(Layer::flags());
        Self { layer, settings: None, ports: false, network: None, foreign: Vec::new() }
    }

    /// Name of this host; must be unique in the cluster.
    pub fn name(self, name: &str) -> Self {
        self.set("name", [name])
    }

    /// The cluster's name; default `local`.
    pub fn cluster(self, name: &str) -> Self {
        self.set("cluster", [name])
    }

    /// Keeps the catalogue in this folder; without it, in memory.
    pub fn data(self, folder: &Path) -> Self {
        self.set("data", [folder.to_string_lossy()])
    }

    /// Where other hosts connect; with port 0 the system chooses one.
    pub fn listen(self, address: SocketAddr) -> Self {
        self.set("listen", [address.to_string()])
    }

    /// Where other hosts listen: all known addresses.
    pub fn peers<T: ToString>(self, endpoints: &[T]) -> Self {
        self.set("peers", endpoints.iter().map(ToString::to_string))
    }

    /// The URL from which this host's objects are fetched; it is sent to other hosts.
    pub fn advertise(self, url: &str) -> Self {
        self.set("advertise", [url])
    }

    /// Any other setting, by its name in the configuration file.
    pub fn set<T: Into<String>>(mut self, key: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        self.layer = self.layer.and_then(|mut layer| {
            layer.set(key, values)?;
            Ok(layer)
        });
        self
    }

    /// A whole configuration, ports included, instead of single settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self.ports = true;
        self
    }

    /// Opens the ports for Redis clients and HTTP. A host embedded in another program does not open
    /// them by default.
    pub const fn with_ports(mut self) -> Self {
        self.ports = true;
        self
    }

    /// Joins a network of hosts in this process, instead of zenoh.
    pub fn local(self, network: &LocalNetwork) -> Self {
        self.network(network.clone())
    }

    /// Joins a network of the caller's own, instead of zenoh. Whatever carries messages between
    /// processes will do; messages may be lost.
    pub fn network(mut self, network: impl Join) -> Self {
        self.network = Some(Arc::new(network));
        self
    }

    /// A set whose keys are in a catalogue of the caller: no second copy is kept. Its keys are in
    /// the filter from the start; later changes must go through the host.
    pub fn own_catalogue(mut self, set: &str, catalogue: OwnCatalogue) -> Self {
        self.foreign.push((set.to_owned(), Foreign(catalogue)));
        self
    }

    /// Starts the host: reads the catalogue, joins the network, opens the ports.
    ///
    /// # Errors
    /// If a setting is wrong, the catalogue cannot be read, a port is taken, or the runtime
    /// has one thread only.
    pub async fn start(self) -> Result<Host, StartError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::Runtime)?;
        let settings = match self.settings {
            Some(settings) => settings,
            None => embedded(self.layer?, self.ports)?,
        };
        crate::modes::warn(&settings);
        let access = Access::new(settings.users.clone())?;
        let certificates = read_certificates(&settings)?;
        let journal = open_journal(&settings).await?;
        let (inbox, events) = Inbox::new(inbox_bytes());
        let sets = open_sets(&settings, journal.as_ref(), self.foreign).await?;
        let stored = journal.as_ref().and_then(|(journal, _)| journal.incarnation());
        let seen = Seen::new(&settings);
        let joined = join(&settings, self.network.as_deref(), stored, &inbox).await?;
        if let Some((journal, _)) = &journal {
            journal.set_incarnation(joined.incarnation.0);
        }
        let guards = Guards { access, certificates, seen };
        let host = assemble(settings, guards, journal, joined, inbox, runtime);
        let entered = host.inner.sets.enter_stored(sets);
        entered.map_err(|error| StartError::Catalogue(error.to_string()))?;
        drive(&host, events)?;
        #[cfg(any(feature = "resp", feature = "http"))]
        if self.ports {
            host.open_ports()?;
        }
        host.watch(&host.inner.settings.watches)
            .map_err(|error| StartError::Network(format!("cannot start a thread: {error}")))?;
        host.inner.lifecycle.runtime.spawn(host.clone().keep_looking());
        Ok(host)
    }
}

/// Settings of a host that is embedded in another program.
fn embedded(layer: Layer, ports: bool) -> Result<Settings, SettingsError> {
    let mut layer = layer;
    if !layer.has("data") {
        layer.set("memory", ["true"])?;
    }
    let mut settings = Draft::new().with(layer)?.settings()?;
    if !ports {
        settings.resp = None;
        settings.http = None;
    }
    Ok(settings)
}

/// What protects a host: users and certificates.
struct Guards {
    access: Access,
    certificates: Option<Certificates>,
    seen: Seen,
}

#[cfg(feature = "tls")]
type Certificates = Arc<crate::tls::Certificates>;
#[cfg(not(feature = "tls"))]
type Certificates = std::convert::Infallible;

#[cfg(feature = "tls")]
fn read_certificates(settings: &Settings) -> Result<Option<Certificates>, StartError> {
    #[cfg(feature = "zenoh")]
    if let Some(files) = &settings.peer_tls {
        crate::host::reload::check_peer_tls(settings, files).map_err(StartError::Tls)?;
    }
    let read = settings.tls.as_ref().map(crate::tls::Certificates::read).transpose();
    read.map_err(|error| StartError::Tls(error.to_string()))
}

#[cfg(not(feature = "tls"))]
fn read_certificates(settings: &Settings) -> Result<Option<Certificates>, StartError> {
    match settings.tls {
        None => Ok(None),
        Some(_) => Err(StartError::Tls("tls_cert: this program was built without TLS".into())),
    }
}

type Running = (Arc<Journal>, std::thread::JoinHandle<()>);

async fn open_journal(settings: &Settings) -> Result<Option<Running>, StartError> {
    let Storage::Folder(folder) = &settings.storage else { return Ok(None) };
    crate::backup::clean(folder);
    let path = folder.join(crate::backup::CATALOGUE);
    let durability = settings.durability;
    let opened = tokio::task::spawn_blocking(move || {
        let options = Options::new().durability(durability).memory_budget(STORE_MEMORY);
        let store =
            Store::open(&path, options).map_err(|error| format!("{}: {error}", path.display()))?;
        let (journal, thread) = Journal::start(store).map_err(|error| error.to_string())?;
        if let Err(reason) = journal.check_layout() {
            journal.close();
            return Err(format!("{}: {reason}", path.display()));
        }
        Ok((journal, thread))
    });
    let opened = opened.await.map_err(|error| StartError::Catalogue(error.to_string()))?;
    opened.map(Some).map_err(StartError::Catalogue)
}

/// Memory for keys that the store has not sorted in yet: a small fraction of the filter of 10
/// million keys.
const STORE_MEMORY: usize = 16 << 20;

/// A host's membership in a network, and its incarnation there.
struct Joined {
    network: Arc<dyn Network>,
    incarnation: Incarnation,
    listen: Option<SocketAddr>,
    #[cfg(feature = "zenoh")]
    links: Option<(Arc<crate::network::ZenohNetwork>, crate::network::peers::Peers)>,
}

impl Joined {
    /// Membership in a network whose links cannot change.
    fn fixed(network: Arc<dyn Network>, incarnation: Incarnation) -> Self {
        Self {
            network,
            incarnation,
            listen: None,
            #[cfg(feature = "zenoh")]
            links: None,
        }
    }
}

/// Joins the network, with an incarnation above all of this name that any host remembers.
async fn join(
    settings: &Settings,
    network: Option<&dyn Join>,
    stored: Option<u64>,
    inbox: &Inbox,
) -> Result<Joined, StartError> {
    let mut heard = None;
    loop {
        let incarnation = Incarnation::next(stored.map(Incarnation), wall_clock_ms(), heard);
        let joined = join_as(settings, network, incarnation, inbox).await?;
        let peer_request = PeerRequest::Life { of: settings.name.clone() }.encode();
        let answers = joined.network.ask_all(peer_request, HEARD).await;
        let lives: Vec<(u64, bool)> =
            answers.iter().filter_map(|(_, answer)| decode_life(answer)).collect();
        let highest = lives.iter().map(|(life, _)| *life).max().unwrap_or(0);
        let is_seen = |(life, is_seen): &(u64, bool)| *is_seen && *life != incarnation.0;
        if lives.iter().any(is_seen) {
            refuse_taken_name(settings, &joined).await?;
        }
        if highest <= incarnation.0 {
            return Ok(joined);
        }
        tracing::info!(highest, "others have heard of a later life of this host");
        joined.network.close().await;
        heard = Some(Incarnation(highest));
    }
}

/// Fails if another host of this name replies. Other hosts report where it is, but this host checks
/// itself that it replies, so that nobody can keep it out by a false report.
async fn refuse_taken_name(settings: &Settings, joined: &Joined) -> Result<(), StartError> {
    let (network, name) = (&joined.network, &settings.name);
    let peer_request = PeerRequest::Holder { of: name.clone() }.encode();
    let answers = network.ask_all(peer_request, HOLDER).await;
    let mut hellos = answers.iter().filter_map(|(_, answer)| Hello::decode(answer));
    let Some(holder) = hellos.find(|hello| hello.is_other(name, joined.incarnation)) else {
        return Ok(());
    };
    if let Some(address) = holder.listens() {
        network.learn(name, address);
    }
    let own = Hello::new(name, &settings.cluster, joined.incarnation, &settings.hasher());
    let hello = PeerRequest::Hello(&own.encode()).encode();
    for _ in 0..HOLDER_TRIES {
        let answers = network.ask_lives(name, hello.clone(), HOLDER).await;
        let mut hellos = answers.iter().filter_map(|answer| Hello::decode(answer));
        if let Some(holder) = hellos.find(|hello| hello.is_other(name, joined.incarnation)) {
            network.close().await;
            let address = holder.listens().map(|address| format!(" at {address}"));
            let (name, address) = (name.to_string(), address.unwrap_or_default());
            return Err(StartError::NameTaken { name, address });
        }
        // The link to it may still be opening.
        tokio::time::sleep(HOLDER_PAUSE).await;
    }
    tracing::warn!("others say that another host has this host's name, but it does not reply here");
    Ok(())
}

async fn join_as(
    settings: &Settings,
    network: Option<&dyn Join>,
    incarnation: Incarnation,
    inbox: &Inbox,
) -> Result<Joined, StartError> {
    let (cluster, name) = (settings.cluster.clone(), settings.name.clone());
    let me = Member { cluster, name, incarnation };
    if let Some(network) = network {
        return Ok(Joined::fixed(network.join(me, inbox.clone()), incarnation));
    }
    #[cfg(feature = "zenoh")]
    {
        use crate::network::{ZenohNetwork, peers::Peers};
        let peers = Peers::gather(settings, &Peers::default()).await;
        let peers = peers.map_err(StartError::Network)?;
        let network =
            ZenohNetwork::join(&crate::host::reload::endpoints(settings, &peers), me, inbox)
                .await
                .map_err(|error| StartError::Network(error.to_string()))?;
        let (listen, network) = (network.local_addr(), Arc::new(network));
        let links = Some((Arc::clone(&network), peers));
        Ok(Joined { network, incarnation, listen, links })
    }
    #[cfg(not(feature = "zenoh"))]
    {
        // Alone: without the feature `zenoh` no other host can be reached.
        Ok(Joined::fixed(LocalNetwork::new().join(me, inbox.clone()), incarnation))
    }
}

/// The key of the hash tables of catalogues in memory. Unlike the incarnation it is secret, so that
/// nobody can craft keys that collide there.
fn random_seed() -> u64 {
    // The standard library seeds this with the system's randomness.
    RandomState::new().hash_one(())
}

fn assemble(
    settings: Settings,
    guards: Guards,
    journal: Option<Running>,
    joined: Joined,
    inbox: Inbox,
    runtime: tokio::runtime::Handle,
) -> Host {
    let hasher = settings.hasher();
    let incarnation = joined.incarnation;
    let mut hello = Hello::new(&settings.name, &settings.cluster, incarnation, &hasher);
    hello.advertise.clone_from(&settings.advertise);
    hello.overlay = settings.overlay.as_ref().map(ToString::to_string);
    hello.listen = joined.listen.map(|address| address.to_string());
    let (clock, lifecycle) = (Clock::start(), Lifecycle::new(runtime));
    let journal = journal.map(|(journal, thread)| {
        lifecycle.add_thread(thread);
        journal
    });
    let live = Arc::new(LiveSettings::new(settings.clone()));
    let protocol = HostProtocol::new(&settings, incarnation);
    let sets = Sets::new(protocol, Arc::clone(&live), clock, random_seed(), journal);
    #[cfg_attr(not(feature = "zenoh"), allow(unused_mut, reason = "links are zenoh's"))]
    let mut cluster = Cluster::new(joined.network, incarnation, inbox, hello);
    let Guards { access, certificates, seen } = guards;
    #[cfg(feature = "zenoh")]
    let seen = match joined.links {
        Some((links, peers)) => {
            cluster.configure(peers.expected(&settings));
            cluster.links = Some(links);
            seen.with_links(peers)
        }
        None => seen,
    };
    #[cfg(feature = "tls")]
    let ports = Ports::new(access, certificates, joined.listen);
    #[cfg(not(feature = "tls"))]
    let (_, ports) = (certificates, Ports::new(access, joined.listen));
    Host {
        inner: Arc::new(Inner {
            live,
            watched: tokio::sync::Mutex::new(seen),
            watches: Watches::default(),
            clock,
            sets,
            cluster,
            ports,
            lifecycle,
            events: tokio::sync::broadcast::channel(HostEvent::KEPT).0,
            #[cfg(feature = "http")]
            cache: Cache::new(settings.limits.confirms, settings.timing.confirm),
            #[cfg(feature = "http")]
            objects: Objects::new(&settings),
            settings,
        }),
    }
}

/// Builds the filters of the existing sets.
async fn open_sets(
    settings: &Settings,
    journal: Option<&Running>,
    external: Vec<(String, Foreign)>,
) -> Result<Vec<StoredSet>, StartError> {
    let (settings, journal) = (settings.clone(), journal.map(|(journal, _)| Arc::clone(journal)));
    let external = external.into_iter().map(|(set, Foreign(keys))| (set, keys)).collect();
    let opened = tokio::task::spawn_blocking(move || {
        StoredSet::open_all(&settings, journal.as_ref(), external)
    });
    Ok(opened.await.map_err(|error| StartError::Catalogue(error.to_string()))??)
}

/// Maximum bytes of messages that are queued for the driver: a sixteenth of the usable memory,
/// within bounds.
fn inbox_bytes() -> u64 {
    (memory::usable() / 16).clamp(4 << 20, 64 << 20)
}

/// Starts the driver thread and the builder thread.
fn drive(host: &Host, events: NetworkEvents) -> Result<(), StartError> {
    let driver = Driver::new(Arc::clone(&host.inner));
    start_thread(host, "umbel-driver", move || {
        priority::work_long();
        driver.run(&events);
    })?;
    let inner = Arc::clone(&host.inner);
    start_thread(host, "umbel-builder", move || {
        priority::work_long();
        inner.sets.build_until_closed(|| inner.cluster.wake());
    })
}

fn start_thread(
    host: &Host,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), StartError> {
    let thread = std::thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(|error| StartError::Network(format!("cannot start a thread: {error}")))?;
    host.inner.lifecycle.add_thread(thread);
    Ok(())
}

#[cfg(any(feature = "resp", feature = "http"))]
impl Host {
    /// Opens the configured ports.
    fn open_ports(&self) -> Result<(), StartError> {
        let settings = &self.inner.settings;
        let mut addresses = self.inner.ports.addresses();
        let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let places = crate::descriptors::Places::of(settings);
        #[cfg(feature = "resp")]
        if let Some(address) = settings.resp {
            let limits = crate::resp::Limits {
                connections: places.resp,
                login_time: settings.timing.login,
                idle: settings.limits.idle,
                reply_bytes: bytes(settings.limits.reply_bytes),
                request: crate::resp::request::RequestLimits {
                    request_bytes: bytes(settings.limits.request_bytes),
                    ..Default::default()
                },
                ..crate::resp::Limits::default()
            };
            let server = crate::resp::Server::bind(address, self.clone(), limits)
                .map_err(|source| StartError::Listen { address, source })?;
            addresses.resp = Some(server.local_addr());
            let host = self.clone();
            self.inner.lifecycle.runtime.spawn(server.run(async move { host.stopped().await }));
        }
        #[cfg(feature = "http")]
        if let Some(address) = settings.http {
            let limits = crate::http::Limits {
                connections: places.http,
                ..crate::http::Limits::from(settings)
            };
            let server = crate::http::Server::bind(address, self.clone(), limits)
                .map_err(|source| StartError::Listen { address, source })?;
            addresses.http = Some(server.local_addr());
            let host = self.clone();
            self.inner.lifecycle.runtime.spawn(server.run(async move { host.stopped().await }));
        }
        self.inner.ports.set_addresses(addresses);
        self.inner.cluster.greetings().change_own(|own| {
            own.resp = addresses.resp.map(|address| address.to_string());
            own.http = addresses.http.map(|address| address.to_string());
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use umbel::catalogue::{Catalogue as _, MemoryCatalogue};
    use umbel::filter::ComponentId;

    use super::*;
    use crate::Lifetime;

    /// Whether the keys are in the order of a table with this seed: those of its first shard, which
    /// the hash of a key determines, come first.
    fn is_keyed_with(seed: u64, order: &[Vec<u8>]) -> bool {
        let mut catalogue = MemoryCatalogue::with_seed(seed);
        order.iter().for_each(|key| catalogue.insert(key, ComponentId(0)));
        let (mut shard, _) = catalogue.page(None, order.len());
        let mut first: Vec<&[u8]> = order.iter().take(shard.len()).map(Vec::as_slice).collect();
        shard.sort_unstable();
        first.sort_unstable();
        shard.len() < order.len() && first == shard
    }

    /// A bug: the table was keyed with the incarnation, which greetings contain. Anybody who knows
    /// the key can craft keys that collide.
    #[tokio::test(flavor = "multi_thread")]
    async fn no_two_hosts_key_their_tables_alike() {
        let keys: Vec<[u8; 4]> = (0..4000_u32).map(u32::to_le_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 4]>::as_slice).collect();
        let mut orders = Vec::new();
        for _ in 0..2 {
            let host = Host::builder().name("fern").local(&LocalNetwork::new()).start().await;
            let host = host.unwrap();
            host.add("set", &keys, Lifetime::Default, &mut Vec::new()).unwrap();
            let (order, next) = host.keys("set", &[], keys.len()).unwrap();
            assert_eq!((order.len(), next), (keys.len(), None));
            assert!(
                is_keyed_with(host.inner.sets.seed(), &order),
                "the test looks at the right thing"
            );
            assert!(
                !is_keyed_with(host.inner.cluster.incarnation.0, &order)
                    && !is_keyed_with(0, &order)
            );
            host.stop().await;
            orders.push(order);
        }
        assert_ne!(orders[0], orders[1]);
    }
}
