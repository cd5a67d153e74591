//! A stack of layers, and the settings that result from it.

use std::path::Path;

use umbel::Seed;
use umbel::replica::Name;
use umbel::route::Plan;

use crate::Confirm;

use super::layer::Given;
use super::value::{self, SHORTEST_SECRET};
use super::{
    Endpoint, HashKey, KEYS, Key, KeyFiles, Kind, Layer, Limits, Oci, Origin, Overlay, PeerFiles,
    SetPlan, SetTransform, Settings, SettingsError, Storage, Timing, Traces,
};

/// A stack of layers: for each key the last layer that sets it wins.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    layer: Layer,
}

/// A key with its current value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// The key's name.
    pub key: &'static str,
    /// Its value; `None` if there is none. Secrets are hidden.
    pub value: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

impl Draft {
    /// Only defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `layer` on top. Some keys exclude each other, such as `data` and `memory`, or
    /// `hash_key` and `hash_key_file`: a layer that sets one of them removes the other from the
    /// layers below.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Both`] if the layer itself sets both.
    pub fn with(mut self, layer: Layer) -> Result<Self, SettingsError> {
        let layer = layer.alone()?;
        let exclusive = [["data", "memory"], ["hash_key", "hash_key_file"], ["peers", "links"]];
        for [one, other] in exclusive {
            for (given, gone) in [(one, other), (other, one)] {
                if layer.given.contains_key(given) {
                    self.layer.given.remove(gone);
                }
            }
        }
        self.layer.given.extend(layer.given);
        if !layer.watches.is_empty() {
            self.layer.watches = layer.watches;
        }
        Ok(self)
    }

    /// Every key, its value and where it comes from; then a row per watched directory.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let show = |key: &'static Key| match self.layer.given.get(key.name) {
            Some(Given { values, origin }) => {
                let hidden = || "(hidden)".to_owned();
                let value = if key.kind == Kind::Secret { hidden() } else { values.join(", ") };
                Shown { key: key.name, value: Some(value), origin: origin.clone() }
            }
            None => Shown {
                key: key.name,
                value: key.default.map(str::to_owned),
                origin: Origin::Default,
            },
        };
        let watches = self.layer.watches.iter().map(|(watch, origin)| Shown {
            key: "watch",
            value: Some(watch.to_string()),
            origin: origin.clone(),
        });
        KEYS.iter().map(show).chain(watches).collect()
    }

    /// The resulting settings.
    ///
    /// # Errors
    ///
    /// A key without a default that was not given, a hash key file that cannot be read, and
    /// violations of what [`Settings`] promises: all of them at once, unless one hides another.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        SettingsError::all([
            self.name().map(drop),
            self.storage().map(drop),
            self.tls().map(drop),
            self.peer_tls().map(drop),
            self.overlay().map(drop),
            self.transforms().map(drop),
            self.hash_key().map(drop),
        ])?;
        let settings = Settings {
            name: self.name()?,
            cluster: self.one("cluster", value::name)?,
            storage: self.storage()?,
            durability: self.one("durability", value::durability)?,
            backups: self.optional("backups", value::path)?,
            resp: self.one("resp", value::address_or_off)?,
            http: self.one("http", value::address_or_off)?,
            listen: self.one("listen", value::listen)?,
            peers: self.all("peers", value::peer)?,
            through_routers: self.one("through_routers", value::flag)?,
            peers_file: self.optional("peers_file", value::path)?,
            peers_dns: self.optional("peers_dns", value::peer)?,
            hosts: self.all("hosts", value::name)?,
            peer_tls: self.peer_tls()?,
            http_hosts: self.all("http_hosts", value::http_host)?,
            users: self.optional("users", value::path)?,
            tls: self.tls()?,
            overlay: self.overlay()?,
            advertise: self.optional("advertise", value::advertise)?,
            confirm_origins: self.all("confirm_origins", value::confirm_origin)?,
            origins: self.all("origins", value::object_origin)?,
            transforms: self.transforms()?,
            hash_key: self.hash_key()?,
            hash_key_file: self.optional("hash_key_file", value::path)?,
            allow_remote: self.one("allow_remote", value::flag)?,
            leave_on_stop: self.one("leave_on_stop", value::flag)?,
            set: self.set()?,
            limits: self.limits()?,
            timing: self.timing()?,
            oci: self.oci()?,
            watches: self.layer.watches.iter().map(|(watch, _)| watch.clone()).collect(),
            log_level: self.one("log.level", value::log_level)?,
            log_format: self.one("log.format", value::log_format)?,
            traces: self.traces()?,
        };
        SettingsError::all([
            self.check_exposure(&settings),
            self.check_peers(&settings),
            self.check_confirm(&settings),
        ])?;
        Ok(settings)
    }

    fn traces(&self) -> Result<Option<Traces>, SettingsError> {
        let share = self.one("traces.share", value::share)?;
        let endpoint = self.one("traces.endpoint", value::traces_endpoint)?;
        Ok(endpoint.map(|endpoint| Traces { endpoint, share }))
    }

    fn name(&self) -> Result<Name, SettingsError> {
        self.optional("name", value::name)?.ok_or(SettingsError::Missing(NO_NAME))
    }

    fn tls(&self) -> Result<Option<KeyFiles>, SettingsError> {
        let files = ["tls_cert", "tls_key"].map(|key| self.optional(key, value::path));
        match files {
            [Ok(Some(cert)), Ok(Some(key))] => Ok(Some(KeyFiles { cert, key })),
            [Ok(None), Ok(None)] => Ok(None),
            [Err(error), _] | [_, Err(error)] => Err(error),
            _ => Err(SettingsError::Missing(HALF_TLS)),
        }
    }

    fn peer_tls(&self) -> Result<Option<PeerFiles>, SettingsError> {
        let [ca, cert, key] = ["peer_ca", "peer_cert", "peer_key"];
        let file = |key| self.optional(key, value::path);
        match (file(ca)?, file(cert)?, file(key)?) {
            (Some(ca), Some(cert), Some(key)) => {
                Ok(Some(PeerFiles { ca, own: KeyFiles { cert, key } }))
            }
            (None, None, None) => Ok(None),
            _ => Err(SettingsError::Missing(HALF_PEER_TLS)),
        }
    }

    /// At most one transform per set.
    fn transforms(&self) -> Result<Vec<SetTransform>, SettingsError> {
        let all = self.all("transforms", value::set_transform)?;
        let second = all.iter().enumerate().find(|(place, transform)| {
            all[..*place].iter().any(|other| other.set() == transform.set())
        });
        match second {
            None => Ok(all),
            Some((_, transform)) => Err(SettingsError::Value {
                origin: self.origin("transforms"),
                key: "transforms",
                range: "one transform per set is permitted".to_owned(),
                given: format!("a second one for '{}'", transform.set()),
            }),
        }
    }

    /// With certificates a peer is admitted by its name, so every name must be known.
    fn check_peers(&self, settings: &Settings) -> Result<(), SettingsError> {
        let nameless = |peer: &&Endpoint| peer.host_name().is_none();
        match settings.peers.iter().find(nameless) {
            Some(peer) if settings.peer_tls.is_some() => Err(SettingsError::Value {
                origin: self.origin("peers"),
                key: "peers",
                range:
                    "with certificates a peer's name is needed too, such as cache-2=10.0.0.2:7447"
                        .into(),
                given: format!("'{}'", peer.address()),
            }),
            _ => Ok(()),
        }
    }

    fn storage(&self) -> Result<Storage, SettingsError> {
        if self.one("memory", value::flag)? {
            return Ok(Storage::Memory);
        }
        let folder = self.optional("data", value::path)?;
        folder.map(Storage::Folder).ok_or(SettingsError::Missing(NO_STORAGE))
    }

    fn hash_key(&self) -> Result<HashKey, SettingsError> {
        let text =
            |text: &str| value::secret(text).map(|secret| Seed::from_secret(secret.as_bytes()));
        if let Some(seed) = self.optional("hash_key", text)? {
            return Ok(HashKey::Secret(seed));
        }
        let file = self.optional("hash_key_file", value::path)?;
        file.map_or(Ok(HashKey::WellKnown), |path| self.read_secret(&path).map(HashKey::Secret))
    }

    fn read_secret(&self, path: &Path) -> Result<Seed, SettingsError> {
        let bytes = std::fs::read(path)
            .map_err(|source| SettingsError::Read { path: path.to_owned(), source })?;
        // Ignores line ends, so that the secret is the same whether written by an editor, `echo` or
        // `printf`.
        let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
        if end < SHORTEST_SECRET {
            return Err(SettingsError::Value {
                origin: self.origin("hash_key_file"),
                key: "hash_key_file",
                range: format!(
                    "a file with a secret of at least {SHORTEST_SECRET} bytes is needed"
                ),
                given: format!("the {end} bytes of '{}'", path.display()),
            });
        }
        Ok(Seed::from_secret(&bytes[..end]))
    }

    fn set(&self) -> Result<SetPlan, SettingsError> {
        Ok(SetPlan {
            false_positive: self.one("set.false_positive", value::rate)?,
            capacity: self.one("set.capacity", value::reserved)?,
            expected_hosts: self.one("set.expected_hosts", value::expected_hosts)?,
            policy: self.one("set.policy", value::policy)?,
            lifetime: self.one("set.lifetime", value::lifetime)?,
            confirm: self.one("set.confirm", value::confirm)?,
        })
    }

    fn overlay(&self) -> Result<Option<Overlay>, SettingsError> {
        let overlay = Overlay {
            links: self.all("links", value::link)?,
            plan: Plan {
                kind: self.one("overlay.entry", value::entry)?,
                depth: self.one("overlay.depth", value::depth)?,
                items: self.one("overlay.items", value::capacity)?,
                filters: self.one("overlay.filters", value::filters)?,
                false_positive: self.one("overlay.false_positive", value::rate)?.get(),
            },
            measured: self.one("overlay.measured", value::flag)?,
            walk: self.one("overlay.walk", value::walk)?,
        };
        if overlay.links.is_empty() {
            return Ok(None);
        }
        let refuse = |key: &'static str, range: &str, given: String| SettingsError::Value {
            origin: self.origin(key),
            key,
            range: range.to_owned(),
            given,
        };
        let own = self.optional("name", value::name)?;
        if let Some(link) = overlay.links.iter().find(|link| Some(&link.name) == own.as_ref()) {
            let range = "other hosts are needed";
            return Err(refuse("links", range, format!("this one, '{}'", link.name)));
        }
        let max = self.one("limits.filter_bits", value::filter_bits)?;
        match overlay.plan.shape() {
            Ok(shape) if shape.bits() <= max => Ok(Some(overlay)),
            _ => {
                let range = format!("fewer keys and filters are needed: {max} bits a filter hold");
                let Plan { items, filters, .. } = overlay.plan;
                Err(refuse("overlay.items", &range, format!("{items} and {filters}")))
            }
        }
    }

    fn oci(&self) -> Result<Oci, SettingsError> {
        Ok(Oci {
            set: self.optional("oci.set", value::set_name)?,
            origin: self.optional("oci.origin", value::server)?,
        })
    }

    fn limits(&self) -> Result<Limits, SettingsError> {
        Ok(Limits {
            connections: self.one("limits.connections", value::some)?,
            idle: self.one("limits.idle", value::lifetime)?,
            request_bytes: self.one("limits.request_bytes", value::large)?,
            reply_bytes: self.one("limits.reply_bytes", value::large)?,
            http_connections: self.one("limits.http_connections", value::some)?,
            http_header_bytes: self.one("limits.http_header_bytes", value::buffer)?,
            confirms: self.one("limits.confirms", value::some)?,
            http_question_bytes: self.one("limits.http_question_bytes", value::buffer)?,
            http_body_rate: self.one("limits.http_body_rate", value::pace)?,
            proxies: self.one("limits.proxies", value::some)?,
            proxy_bytes: self.one("limits.proxy_bytes", value::large)?,
            sets: self.one("limits.sets", value::some)?,
            filter_bits: self.one("limits.filter_bits", value::filter_bits)?,
            hosts: self.one("limits.hosts", value::some)?,
            replica_bytes: self.one("limits.replica_bytes", value::memory)?,
            own_bytes: self.one("limits.own_bytes", value::memory)?,
        })
    }

    fn timing(&self) -> Result<Timing, SettingsError> {
        Ok(Timing {
            announce: self.one("timing.announce", value::seconds)?,
            grace: self.one("timing.grace", value::grace)?,
            silence: self.one("timing.silence", value::seconds)?,
            forget: self.one("timing.forget", value::seconds)?,
            absence: self.one("timing.absence", value::seconds)?,
            ready: self.one("timing.ready", value::seconds)?,
            reload: self.one("timing.reload", value::seconds)?,
            stop: self.one("timing.stop", value::seconds)?,
            confirm: self.one("timing.confirm", value::seconds)?,
            proxy: self.one("timing.proxy", value::seconds)?,
            login: self.one("timing.login", value::seconds)?,
            http_header: self.one("timing.http_header", value::seconds)?,
            http_idle: self.one("timing.http_idle", value::seconds)?,
        })
    }

    /// Checks that the cache can be reached: the host must know its address.
    fn check_confirm(&self, settings: &Settings) -> Result<(), SettingsError> {
        match &settings.set.confirm {
            Confirm::Cache(template)
                if template.needs_advertise() && settings.advertise.is_none() =>
            {
                Err(SettingsError::Value {
                    origin: self.origin("set.confirm"),
                    key: "set.confirm",
                    range: "{advertise} in it needs the key advertise".to_owned(),
                    given: format!("'{}'", settings.set.confirm),
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks who could reach this host, which depends on several values.
    fn check_exposure(&self, settings: &Settings) -> Result<(), SettingsError> {
        let ports =
            [("resp", settings.resp), ("http", settings.http), ("listen", Some(settings.listen))];
        for (key, address) in ports {
            let Some(address) = address.filter(|address| !address.ip().is_loopback()) else {
                continue;
            };
            let (guarded, guard) = match key {
                "listen" => (settings.peer_tls.is_some(), "peer_ca, peer_cert and peer_key"),
                _ => (
                    settings.users.is_some() && settings.tls.is_some(),
                    "users, tls_cert and tls_key",
                ),
            };
            if !guarded && !settings.allow_remote {
                return Err(SettingsError::Exposed(format!(
                    "{}: {key}: {address} is open beyond this machine to anybody who reaches it: \
                     give {guard}, or if that is meant, permit it with allow_remote",
                    self.origin(key)
                )));
            }
        }
        let links = settings.overlay.iter().flat_map(|overlay| &overlay.links);
        let mut links = links.filter_map(|link| link.address.as_ref());
        let far_link = links.any(|address| !address.is_loopback());
        let far = far_link
            || settings.peers.iter().chain(&settings.peers_dns).any(|peer| !peer.is_loopback());
        let listens = !settings.listen.ip().is_loopback();
        if settings.hash_key == HashKey::WellKnown && (listens || far) {
            let key = match (listens, far_link) {
                (true, _) => "listen",
                (false, true) => "links",
                (false, false) => "peers",
            };
            return Err(SettingsError::Exposed(format!(
                "{}: {key}: hosts of several machines need a secret hash key, the same for all: \
                 give hash_key_file a file that 'openssl rand -hex 32' made",
                self.origin(key)
            )));
        }
        Ok(())
    }

    fn origin(&self, key: &str) -> Origin {
        self.layer.given.get(key).map_or(Origin::Default, |given| given.origin.clone())
    }

    /// The value of a key with a default.
    fn one<'a, T>(
        &'a self,
        key: &'static str,
        parse: impl Fn(&'a str) -> Result<T, String>,
    ) -> Result<T, SettingsError> {
        let value = self.optional(key, parse)?;
        Ok(value.expect("the table of keys has a default for it"))
    }

    /// The value of an optional key.
    fn optional<'a, T>(
        &'a self,
        key: &'static str,
        parse: impl Fn(&'a str) -> Result<T, String>,
    ) -> Result<Option<T>, SettingsError> {
        self.all(key, parse).map(|values| values.into_iter().next_back())
    }

    fn all<'a, T>(
        &'a self,
        key: &'static str,
        parse: impl Fn(&'a str) -> Result<T, String>,
    ) -> Result<Vec<T>, SettingsError> {
        let refuse = |range, given: &str| SettingsError::Value {
            origin: self.origin(key),
            key,
            range,
            given: format!("'{given}'"),
        };
        let parse = |text: &'a str| parse(text).map_err(|range| refuse(range, text));
        match self.layer.given.get(key) {
            Some(given) => given.values.iter().map(|text| parse(text)).collect(),
            None => Key::named(key).and_then(|key| key.default).map(parse).into_iter().collect(),
        }
    }
}

const NO_NAME: &str =
    "this host needs a name: give --name NAME, UMBEL_NAME or 'name' in the configuration";
const HALF_TLS: &str = "a certificate needs its key: give both tls_cert and tls_key, or neither";
const HALF_PEER_TLS: &str = "between hosts, certificates need an authority, a certificate and its \
     key: give all of peer_ca, peer_cert and peer_key, or none";
const NO_STORAGE: &str = "say where the catalogue lives: --data DIR, or --memory to keep nothing";
