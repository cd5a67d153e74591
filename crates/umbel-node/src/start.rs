//! How a host is started: settings are read, the catalogue opened, filters built, the network
//! joined, the parts put together, the driver and the ports started.
//!
//! It knows the host, its driver and its ports; none of them knows it.

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
#[cfg(feature = "http")]
use crate::host::Cache;
use crate::host::reload::Seen;
use crate::host::{
    Clock, Cluster, Happened, Host, Inner, Lifecycle, LiveSettings, Ports, Sets, StoredSet,
    wall_clock_ms,
};
use crate::memory;
use crate::network::{Happenings, Inbox, LocalNetwork, Member, Network};
use crate::priority;
use crate::protocol::HostProtocol;
use crate::question::{Question, decode_life};
use crate::settings::{Draft, Layer, Settings, SettingsError, Storage};

/// How long others may take to tell which life of this host they have heard of.
const HEARD: Duration = Duration::from_millis(500);
/// How long others may take to find out whether another host of this one's name replies.
const HOLDER: Duration = Duration::from_secs(5);
/// How often the other host is asked once its address is known, and how long between.
const HOLDER_TRIES: usize = 20;
const HOLDER_PAUSE: Duration = Duration::from_millis(200);

/// A host that is to be started.
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
    local: Option<LocalNetwork>,
    foreign: Vec<(String, Foreign)>,
}

impl Host {
    /// A host to be started; see [`Builder`].
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// A catalogue that cannot be shown.
struct Foreign(OwnCatalogue);

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnCatalogue")
    }
}

impl Builder {
    fn new() -> Self {
        let layer = Ok(Layer::flags());
        Self { layer, settings: None, ports: false, local: None, foreign: Vec::new() }
    }

    /// Unlike that of every other host of the cluster.
    pub fn name(self, name: &str) -> Self {
        self.set("name", [name])
    }

    /// The cluster's name; `local` unless told otherwise.
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

    /// Where other hosts listen: all of them that are known.
    pub fn peers<T: ToString>(self, endpoints: &[T]) -> Self {
        self.set("peers", endpoints.iter().map(ToString::to_string))
    }

    /// Where this host's objects are fetched: others are told.
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

    /// Opens the ports for Redis clients and HTTP, which a host inside another program does
    /// not need.
    pub const fn with_ports(mut self) -> Self {
        self.ports = true;
        self
    }

    /// Joins a network of hosts in this process, instead of zenoh.
    pub fn local(mut self, network: &LocalNetwork) -> Self {
        self.local = Some(network.clone());
        self
    }

    /// A set whose keys the caller's own catalogue holds: no second copy is kept. Its keys
    /// are in the filter from the start; later changes go through the host.
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
        let (inbox, happenings) = Inbox::new(inbox_bytes());
        let sets = open_sets(&settings, journal.as_ref(), self.foreign).await?;
        let stored = journal.as_ref().and_then(|(journal, _)| journal.incarnation());
        let seen = Seen::new(&settings);
        let joined = join(&settings, self.local.as_ref(), stored, &inbox).await?;
        if let Some((journal, _)) = &journal {
            journal.set_incarnation(joined.incarnation.0);
        }
        let guards = Guards { access, certificates, seen };
        let host = assemble(settings, guards, journal, joined, inbox, runtime);
        let entered = host.inner.sets.enter_stored(sets);
        entered.map_err(|error| StartError::Catalogue(error.to_string()))?;
        drive(&host, happenings)?;
        #[cfg(any(feature = "resp", feature = "http"))]
        if self.ports {
            host.open_ports()?;
        }
        host.inner.lifecycle.runtime.spawn(host.clone().keep_looking());
        Ok(host)
    }
}

/// Settings of a host inside another program.
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

/// What a host is guarded with.
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
    let path = folder.join("catalogue");
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

/// Memory for keys that the catalogue has not brought into its order yet: a small part of
/// what the filter over 10 million keys takes.
const STORE_MEMORY: usize = 16 << 20;

/// A host's place in a network, and the life it has there.
struct Joined {
    network: Arc<dyn Network>,
    incarnation: Incarnation,
    listen: Option<SocketAddr>,
    #[cfg(feature = "zenoh")]
    links: Option<(Arc<crate::network::ZenohNetwork>, crate::network::peers::Peers)>,
}

impl Joined {
    /// A place in a network whose links cannot change.
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

/// Joins the network, in a life above every one of this name that anybody remembers.
async fn join(
    settings: &Settings,
    local: Option<&LocalNetwork>,
    stored: Option<u64>,
    inbox: &Inbox,
) -> Result<Joined, StartError> {
    let mut heard = None;
    loop {
        let incarnation = Incarnation::next(stored.map(Incarnation), wall_clock_ms(), heard);
        let joined = join_as(settings, local, incarnation, inbox).await?;
        let question = Question::Life { of: settings.name.clone() }.encode();
        let answers = joined.network.ask_all(question, HEARD).await;
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

/// Fails if another host of this one's name replies. Others say where it is; that it is there, this
/// host sees for itself, so that nobody can keep it out by a word.
async fn refuse_taken_name(settings: &Settings, joined: &Joined) -> Result<(), StartError> {
    let (network, name) = (&joined.network, &settings.name);
    let question = Question::Holder { of: name.clone() }.encode();
    let answers = network.ask_all(question, HOLDER).await;
    let mut hellos = answers.iter().filter_map(|(_, answer)| Hello::decode(answer));
    let Some(holder) = hellos.find(|hello| hello.is_other(name, joined.incarnation)) else {
        return Ok(());
    };
    if let Some(address) = holder.listens() {
        network.learn(name, address);
    }
    let own = Hello::new(name, &settings.cluster, joined.incarnation, &settings.hasher());
    let hello = Question::Hello(&own.encode()).encode();
    for _ in 0..HOLDER_TRIES {
        let answers = network.ask_lives(name, hello.clone(), HOLDER).await;
        let mut hellos = answers.iter().filter_map(|answer| Hello::decode(answer));
        if let Some(holder) = hellos.find(|hello| hello.is_other(name, joined.incarnation)) {
            network.close().await;
            let address = holder.listens().map(|address| format!(" at {address}"));
            let (name, address) = (name.to_string(), address.unwrap_or_default());
            return Err(StartError::NameTaken { name, address });
        }
        // The link to it is on its way.
        tokio::time::sleep(HOLDER_PAUSE).await;
    }
    tracing::warn!("others say that another host has this host's name, but it does not reply here");
    Ok(())
}

async fn join_as(
    settings: &Settings,
    local: Option<&LocalNetwork>,
    incarnation: Incarnation,
    inbox: &Inbox,
) -> Result<Joined, StartError> {
    let (cluster, name) = (settings.cluster.clone(), settings.name.clone());
    let me = Member { cluster, name, incarnation };
    if let Some(local) = local {
        let network: Arc<dyn Network> = Arc::new(local.join(me, inbox.clone()));
        return Ok(Joined::fixed(network, incarnation));
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
        // Alone: nobody else can be reached without a network.
        let network: Arc<dyn Network> = Arc::new(LocalNetwork::new().join(me, inbox.clone()));
        Ok(Joined::fixed(network, incarnation))
    }
}

/// What keys the hash tables of catalogues in memory. Unlike the incarnation nobody outside
/// knows it, so that nobody can craft keys that collide there.
fn random_seed() -> u64 {
    // The standard library seeds this from the system's randomness.
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
            clock,
            sets,
            cluster,
            ports,
            lifecycle,
            events: tokio::sync::broadcast::channel(Happened::KEPT).0,
            #[cfg(feature = "http")]
            cache: Cache::new(settings.limits.confirms, settings.timing.confirm),
            settings,
        }),
    }
}

/// Builds the filters of the sets that are there already.
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

/// Bytes of messages that may wait for the driver: a sixteenth of the memory that there is.
fn inbox_bytes() -> u64 {
    (memory::usable() / 16).clamp(4 << 20, 64 << 20)
}

/// Starts the threads that drive the host and build its filters.
fn drive(host: &Host, happenings: Happenings) -> Result<(), StartError> {
    let driver = Driver::new(Arc::clone(&host.inner));
    start_thread(host, "umbel-driver", move || {
        priority::work_long();
        driver.run(&happenings);
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
    /// Opens the ports that the settings name.
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
    #[test]
    fn no_two_hosts_key_their_tables_alike() {
        let seeds: std::collections::HashSet<u64> = (0..8).map(|_| super::random_seed()).collect();
        assert_eq!(seeds.len(), 8);
    }
}
