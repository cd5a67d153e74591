//! What can change while a host runs: users, certificates, peers, the plan of new sets.
//!
//! Files are checked every `timing.reload`. `Host::reload` checks them at once, and takes a whole
//! new configuration. What cannot be read or parsed is logged and changes nothing. When peers or
//! certificates change, links to other hosts are reopened; replicas stay.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
#[cfg(feature = "zenoh")]
use std::time::{Duration, Instant};

use super::Host;
use crate::settings::Settings;

#[cfg(feature = "zenoh")]
use crate::network::{Endpoints, Network as _, NetworkEvent, peers::Peers};
#[cfg(feature = "zenoh")]
use crate::settings::Endpoint;
#[cfg(feature = "zenoh")]
use std::collections::BTreeMap;
#[cfg(feature = "zenoh")]
use umbel::coverage::Identity;
#[cfg(feature = "zenoh")]
use umbel::replica::Name;

/// Interval between two DNS lookups of a name.
#[cfg(feature = "zenoh")]
const LOOK_UP: Duration = Duration::from_secs(10);

/// Modification time and length of a file.
type Stamp = Option<(SystemTime, u64)>;

/// The state at the last check.
#[derive(Debug)]
pub(crate) struct Seen {
    stamps: HashMap<PathBuf, Stamp>,
    #[cfg(feature = "zenoh")]
    looked_up: Instant,
    #[cfg(feature = "zenoh")]
    links: Option<Links>,
}

/// The state of the links.
#[cfg(feature = "zenoh")]
#[derive(Debug)]
struct Links {
    peers: Peers,
    /// Whether they are open; if not, opening is retried.
    open: bool,
    /// Whether they were closed because this host's certificate had expired.
    expired: bool,
}

#[cfg(feature = "zenoh")]
impl Links {
    /// Returns true once when this host's certificate has expired since the links were opened. Each
    /// end closes a link when the other's certificate expires, but zenoh misses that for links
    /// opened within the certificate's last second, which is still valid. So this host also closes
    /// its own links when that second is over; nobody reopens them.
    fn expire(&mut self, settings: &Settings) -> bool {
        let was_expired = std::mem::replace(&mut self.expired, is_expired(settings));
        if self.expired && !was_expired {
            tracing::error!("this host's certificate has expired: no host works with it any more");
        }
        self.expired && !was_expired
    }
}

#[cfg(all(feature = "zenoh", feature = "tls"))]
fn is_expired(settings: &Settings) -> bool {
    let Some(files) = &settings.peer_tls else { return false };
    let last_second = Duration::from_secs(1);
    let end = crate::tls::expires(&files.own.cert).ok();
    end.is_some_and(|end| end + last_second <= SystemTime::now())
}

#[cfg(all(feature = "zenoh", not(feature = "tls")))]
const fn is_expired(_: &Settings) -> bool {
    false
}

impl Seen {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut seen = Self {
            stamps: HashMap::new(),
            #[cfg(feature = "zenoh")]
            looked_up: Instant::now(),
            #[cfg(feature = "zenoh")]
            links: None,
        };
        for path in watched(settings) {
            seen.changed(path);
        }
        seen
    }

    #[cfg(feature = "zenoh")]
    pub(crate) fn with_links(mut self, peers: Peers) -> Self {
        self.links = Some(Links { peers, open: true, expired: false });
        self
    }

    /// Whether a file has changed since the last check.
    fn changed(&mut self, path: &Path) -> bool {
        let stamp = std::fs::metadata(path)
            .ok()
            .and_then(|found| Some((found.modified().ok()?, found.len())));
        self.stamps.insert(path.to_owned(), stamp) != Some(stamp)
    }

    fn any_changed<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> bool {
        // No short circuit: all files must be checked, so that each change is seen once.
        paths.fold(false, |any, path| self.changed(path) | any)
    }
}

fn watched(settings: &Settings) -> impl Iterator<Item = &PathBuf> {
    settings
        .users
        .iter()
        .chain(port_files(settings))
        .chain(peer_files(settings))
        .chain(&settings.peers_file)
}

fn port_files(settings: &Settings) -> impl Iterator<Item = &PathBuf> {
    settings.tls.iter().flat_map(|files| [&files.cert, &files.key])
}

fn peer_files(settings: &Settings) -> impl Iterator<Item = &PathBuf> {
    settings.peer_tls.iter().flat_map(|files| [&files.ca, &files.own.cert, &files.own.key])
}

/// Why a new configuration was refused: only a restart can change these settings. Nothing has
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only a restart can change {}", keys.join(", "))]
#[non_exhaustive]
pub struct RestartNeeded {
    /// The settings, or sections of them.
    pub keys: Vec<&'static str>,
}

/// The settings that cannot change while a host runs, of which these differ.
fn fixed_that_differ(old: &Settings, new: &Settings) -> Vec<&'static str> {
    // Every field is named, so that the compiler finds a new one that is forgotten here.
    let Settings {
        name,
        cluster,
        storage,
        durability,
        resp,
        http,
        listen,
        through_routers,
        peer_tls,
        http_hosts,
        users,
        tls,
        overlay,
        advertise,
        confirm_origins,
        origins,
        transforms,
        oci,
        hash_key,
        hash_key_file,
        allow_remote,
        leave_on_stop,
        limits,
        timing,
        log_format,
        traces,
        // These can change.
        set: _,
        backups: _,
        watches: _,
        peers: _,
        peers_file: _,
        peers_dns: _,
        hosts: _,
        log_level: _,
    } = new;
    let settings = [
        ("name", *name != old.name),
        ("cluster", *cluster != old.cluster),
        ("data or memory", *storage != old.storage),
        ("durability", *durability != old.durability),
        ("resp", *resp != old.resp),
        ("http", *http != old.http),
        ("listen", *listen != old.listen),
        ("through_routers", *through_routers != old.through_routers),
        ("peer_ca, peer_cert or peer_key", *peer_tls != old.peer_tls),
        ("http_hosts", *http_hosts != old.http_hosts),
        ("users", *users != old.users),
        ("tls_cert or tls_key", *tls != old.tls),
        ("links or overlay", *overlay != old.overlay),
        ("advertise", *advertise != old.advertise),
        ("confirm_origins", *confirm_origins != old.confirm_origins),
        ("origins", *origins != old.origins),
        ("transforms", *transforms != old.transforms),
        ("oci", *oci != old.oci),
        ("the hash key", *hash_key != old.hash_key || *hash_key_file != old.hash_key_file),
        ("allow_remote", *allow_remote != old.allow_remote),
        ("leave_on_stop", *leave_on_stop != old.leave_on_stop),
        ("limits", *limits != old.limits),
        ("timing", *timing != old.timing),
        ("log.format", *log_format != old.log_format),
        ("traces", *traces != old.traces),
    ];
    settings.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

impl Host {
    /// Applies a new configuration (`set.*`, `backups`, `peers`, `peers_file`, `peers_dns`,
    /// `hosts`, watched directories), and reloads users, certificates and peers. Own sets with the
    /// old default policy get the new one. Files that cannot be read are logged and change nothing.
    ///
    /// # Errors
    /// If any other setting has changed, such as a port: only a restart can apply it. Then nothing
    /// has changed.
    pub async fn reload(&self, settings: Settings) -> Result<(), RestartNeeded> {
        let old = self.inner.live.current();
        let keys = fixed_that_differ(&old, &settings);
        if !keys.is_empty() {
            return Err(RestartNeeded { keys });
        }
        let new = Settings {
            set: settings.set,
            backups: settings.backups,
            log_level: settings.log_level,
            peers: settings.peers,
            peers_file: settings.peers_file,
            peers_dns: settings.peers_dns,
            hosts: settings.hosts,
            watches: settings.watches,
            ..(*old).clone()
        };
        if let Err(error) = self.watch(&new.watches) {
            tracing::error!(%error, "not every directory is watched: cannot start a thread");
        }
        let policy = new.set.policy;
        self.inner.live.replace(new);
        if policy != old.set.policy {
            self.follow_policy(&old.set.policy.to_string(), policy);
        }
        self.look(true).await;
        Ok(())
    }

    /// Gives own sets with the old default policy the new one.
    fn follow_policy(&self, old: &str, new: umbel::replica::Policy) {
        for set in self.sets() {
            let follows = self.set_info(&set).is_ok_and(|info| info.policy.as_deref() == Some(old));
            if follows && self.set_policy(&set, new).is_ok() {
                tracing::info!(%set, policy = %new, "the set follows the new default policy");
            }
        }
    }

    /// Checks the files until the host stops.
    pub(crate) async fn keep_looking(self) {
        let every = self.inner.settings.timing.reload;
        loop {
            tokio::select! {
                () = self.stopped() => return,
                () = tokio::time::sleep(every) => self.look(false).await,
            }
        }
    }

    /// Reloads the files that have changed, or all.
    async fn look(&self, everything: bool) {
        let settings = self.inner.live.current();
        let mut seen = self.inner.watched.lock().await;
        if seen.any_changed(settings.users.iter()) || everything {
            match self.inner.ports.access.reload() {
                Ok(true) => tracing::info!("users read again"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the users stay as they were"),
            }
        }
        let port = seen.any_changed(port_files(&settings)) || everything;
        #[cfg(feature = "tls")]
        if let Some(certificates) = self.inner.ports.certificates.as_ref().filter(|_| port) {
            match certificates.reload() {
                Ok(true) => tracing::info!("the certificate for clients is another now"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the certificate stays as it was"),
            }
        }
        #[cfg(not(feature = "tls"))]
        let _ = port;
        #[cfg(feature = "zenoh")]
        self.look_at_links(&mut seen, &settings, everything).await;
    }
}

#[cfg(feature = "zenoh")]
impl Host {
    async fn look_at_links(&self, seen: &mut Seen, settings: &Settings, everything: bool) {
        let Some(network) = &self.inner.cluster.links else { return };
        let certificates = seen.any_changed(peer_files(settings));
        let file = seen.any_changed(settings.peers_file.iter());
        let due = settings.peers_dns.is_some() && seen.looked_up.elapsed() >= LOOK_UP;
        let Some(links) = &mut seen.links else { return };
        let expired = links.expire(settings);
        if !(certificates || file || due || everything || expired || !links.open) {
            return;
        }
        if due {
            seen.looked_up = Instant::now();
        }
        let peers = match Peers::gather(settings, &links.peers).await {
            Ok(peers) => peers,
            Err(error) => return tracing::error!(%error, "the peers stay as they were"),
        };
        if peers == links.peers && !certificates && !expired && links.open {
            return;
        }
        #[cfg(feature = "tls")]
        if let Some(files) = &settings.peer_tls
            && let Err(error) = check_peer_tls(settings, files)
        {
            return tracing::error!(%error, "the links to other hosts stay as they were");
        }
        let renew = certificates || expired || !links.open;
        let identities = network.identities();
        let opened = network.reconfigure(&endpoints(settings, &peers), renew).await;
        links.open = opened.is_ok();
        match opened {
            Ok(()) => {
                let (hosts, addresses) = (peers.hosts.len(), peers.connect.len());
                tracing::info!(
                    hosts,
                    addresses,
                    "links to other hosts follow the new list of peers"
                );
                if settings.peer_tls.is_some() {
                    self.exclude(links.peers.hosts.difference(&peers.hosts));
                }
                self.expect(&links.peers, &peers, &identities);
                self.inner.cluster.configure(peers.expected(settings));
                links.peers = peers;
            }
            Err(error) => tracing::error!(%error, "no links to other hosts; trying again"),
        }
    }
}

#[cfg(feature = "zenoh")]
impl Host {
    /// Peers that the settings no longer name are no longer expected, unless they are connected.
    fn expect(&self, before: &Peers, now: &Peers, identities: &BTreeMap<String, Identity>) {
        let named = before.hosts.difference(&now.hosts).cloned();
        let addresses = before.connect.difference(&now.connect).map(Endpoint::address);
        let found = addresses.filter_map(|address| match identities.get(&address)? {
            Identity::Host(host) => Some(host.clone()),
            _ => None,
        });
        for host in named.chain(found) {
            self.inner.cluster.inbox.put(NetworkEvent::Unexpected { host });
        }
    }

    /// Removes hosts whose certificates are no longer valid at once instead of waiting until they
    /// time out: the links that are open now receive nothing from them.
    fn exclude<'a>(&self, hosts: impl Iterator<Item = &'a Name>) {
        for host in hosts {
            tracing::info!(%host, "let in no more");
            self.inner.cluster.inbox.put(NetworkEvent::Excluded { host: host.clone() });
        }
    }
}

/// The endpoints for zenoh.
#[cfg(feature = "zenoh")]
pub(crate) fn endpoints(settings: &Settings, peers: &Peers) -> Endpoints {
    let guard = settings
        .peer_tls
        .clone()
        .map(|files| crate::network::Guard { files, hosts: peers.hosts.iter().cloned().collect() });
    let connect = peers.connect.iter().cloned().collect();
    Endpoints {
        listen: settings.listen,
        connect,
        learns: settings.overlay.is_none(),
        through_routers: settings.through_routers,
        guard,
        silence: settings.timing.silence,
    }
}

/// Checks that this host's certificate is valid and names this host.
#[cfg(all(feature = "zenoh", feature = "tls"))]
pub(crate) fn check_peer_tls(
    settings: &Settings,
    files: &crate::settings::PeerFiles,
) -> Result<(), String> {
    crate::tls::check(&files.ca, &files.own).map_err(|error| error.to_string())?;
    let named = crate::tls::common_name(&files.own.cert).map_err(|error| error.to_string())?;
    if named == settings.name.as_str() {
        return Ok(());
    }
    let (file, name) = (files.own.cert.display(), &settings.name);
    Err(format!("{file}: it is the certificate of '{named}', and this host is '{name}'"))
}
