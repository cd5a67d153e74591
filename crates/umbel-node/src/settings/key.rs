//! Every key of the configuration, in one table.
//!
//! Files, environment, flags, the commented file that `umbel config init` writes and the output of
//! `umbel config show` are all generated from [`KEYS`]: a key that is added here is available
//! everywhere. `docs/configuration.md` lists each of them; a test checks that.

use super::value;

/// One key: its name, its permitted values, and its default.
#[derive(Debug)]
pub struct Key {
    /// Its name in a file: `cluster`, or `set.capacity` for `capacity` under `[set]`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub what: &'static str,
    /// Placeholder of its value in help texts.
    pub value: &'static str,
    /// Its default, if it has one.
    pub default: Option<&'static str>,
    /// A value that works, for keys without a default.
    pub example: &'static str,
    /// The form of its value.
    pub kind: Kind,
    pub(super) check: fn(&str) -> Result<(), String>,
}

/// The form of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One value.
    One,
    /// A list; in the environment separated by commas, as a flag one value at a time.
    Many,
    /// `true` or `false`; as a flag without a value.
    Switch,
    /// A path; in a file relative to the file's directory.
    Path,
    /// A value that is never shown.
    Secret,
}

impl Key {
    /// The key of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The key that was most likely meant by `name`.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static Self> {
        Self::nearest_of(KEYS, name)
    }

    /// The key of a list that was most likely meant by `name`.
    pub(super) fn nearest_of(keys: &'static [Self], name: &str) -> Option<&'static Self> {
        let distance = |key: &Key| {
            let last = key.name.rsplit('.').next().unwrap_or(key.name);
            strsim::damerau_levenshtein(name, key.name).min(strsim::damerau_levenshtein(name, last))
        };
        let nearest = keys.iter().min_by_key(|key| distance(key))?;
        (distance(nearest) <= 1.max(name.len() / 3)).then_some(nearest)
    }

    /// The heading in help texts.
    #[must_use]
    pub fn heading(&self) -> &'static str {
        let (section, _) = self.name.split_once('.').unwrap_or_default();
        match (section, self.name) {
            ("set", _) => "New sets",
            ("overlay", _) => "Overlay",
            ("oci", _) => "Containers",
            ("limits", _) => "Limits",
            ("timing", _) => "Timing",
            ("log", _) => "Log",
            ("traces", _) => "Traces",
            (
                _,
                "name" | "cluster" | "data" | "memory" | "durability" | "backups" | "leave_on_stop",
            ) => "Host",
            (_, "resp" | "http" | "http_hosts" | "users" | "tls_cert" | "tls_key") => "Clients",
            (_, "allow_remote" | "advertise" | "confirm_origins" | "origins" | "transforms") => {
                "Clients"
            }
            _ => "Other hosts",
        }
    }

    /// Its environment variable, such as `UMBEL_SET_CAPACITY`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("UMBEL_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Its flag without the dashes, such as `set-capacity`.
    #[must_use]
    pub fn flag(&self) -> String {
        match self.kind {
            // A flag gives one value at a time, so its name is in the singular.
            Kind::Many => self.name.trim_end_matches('s').replace(['.', '_'], "-"),
            _ => self.name.replace(['.', '_'], "-"),
        }
    }
}

macro_rules! key {
    ($name:literal, $value:literal, $default:expr, $example:literal, $kind:ident, $check:path, $what:literal) => {
        Key {
            name: $name,
            what: $what,
            value: $value,
            default: $default,
            example: $example,
            kind: Kind::$kind,
            check: |text| $check(text).map(drop),
        }
    };
}

/// The keys of a `[[watch]]` table. A file may have several of these tables; they have neither
/// flags nor environment variables.
#[rustfmt::skip]
pub static WATCH_KEYS: &[Key] = &[
    key!("watch.set", "SET", None, "images", One, value::set_name,
        "Set that is kept equal to the directory; one directory per set"),
    key!("watch.dir", "DIR", None, "/var/cache/images", Path, value::path,
        "Directory whose files are the keys of the set"),
    key!("watch.key", "FORM", Some("path"), "", One, value::key_form,
        "Key of a file: 'path' (below the directory), 'basename' or 'stem' (its name without the suffix)"),
    key!("watch.include", "PATTERN", None, "*.png", Many, value::pattern,
        "Only files that fit one of these patterns ('*', '?'; with a / they are compared with the path)"),
    key!("watch.exclude", "PATTERN", None, "*.log", Many, value::pattern,
        "No file that fits one of these patterns"),
    key!("watch.min_age", "DURATION", Some("0"), "", One, value::min_age,
        "Ignore files that changed more recently, until they are older"),
    key!("watch.temporary", "BOOL", Some("false"), "", Switch, value::flag,
        "Include temporary files: .*, *~, *.tmp, *.temp, *.part, *.partial, *.swp, *.lock, *.0123456789"),
    key!("watch.every", "DURATION", Some("600"), "", One, value::seconds,
        "Interval between scans of the whole directory"),
    key!("watch.allow_empty", "BOOL", Some("false"), "", Switch, value::flag,
        "Let a directory without files empty the set"),
    key!("watch.serve", "BOOL", Some("false"), "", Switch, value::flag,
        "Serve the files at /v1/sets/SET/objects/KEY of the HTTP port; keys must be paths"),
];

/// All keys, in the order of the documentation.
#[rustfmt::skip]
pub static KEYS: &[Key] = &[
    key!("name", "NAME", None, "cache-1", One, value::name,
        "Name of this host; must be unique in the cluster"),
    key!("cluster", "NAME", Some("local"), "", One, value::name,
        "Name of the cluster; hosts of other clusters are refused"),
    key!("data", "DIR", None, "/var/lib/umbel", Path, value::path,
        "Directory of the catalogue, which survives restarts"),
    key!("memory", "", Some("false"), "", Switch, value::flag,
        "Keep the catalogue in memory instead of in a directory; it is lost when the host stops"),
    key!("durability", "WHEN", Some("group"), "", One, value::durability,
        "When a write is acknowledged: 'group' (after a sync shared with other writes), 'each' (after a sync of its own), or the seconds between syncs (before the sync)"),
    key!("backups", "DIR", None, "/var/backups/umbel", Path, value::path,
        "Directory into which 'umbel backup' writes; must exist and be writable by the host"),
    key!("resp", "ADDR", Some("127.0.0.1:7440"), "", One, value::address_or_off,
        "Address for Redis clients and umbel's own commands; port 0: chosen by the system; 'off': no such port"),
    key!("http", "ADDR", Some("127.0.0.1:7441"), "", One, value::address_or_off,
        "Address of the HTTP port; port 0: chosen by the system; 'off': no such port"),
    key!("http_hosts", "NAME", None, "umbel.example.org", Many, value::http_host,
        "Further names that HTTP clients may use for this host in URLs; checked on loopback addresses and where there are no users"),
    key!("listen", "ADDR", Some("tcp/127.0.0.1:7447"), "", One, value::listen,
        "Address on which other hosts connect: a concrete address, not 0.0.0.0; port 0: chosen by the system"),
    key!("peers", "ADDR", None, "tcp/cache-2:7447", Many, value::peer,
        "Addresses of other hosts; hosts introduce each other, so one or two of a mesh are enough"),
    key!("through_routers", "", Some("false"), "", Switch, value::flag,
        "Connect only to the zenoh routers that peers names; do not listen"),
    key!("peers_file", "FILE", None, "/etc/umbel/peers", Path, value::path,
        "File with more peers, one per line; read again when it changes"),
    key!("peers_dns", "NAME:PORT", None, "umbel.example.org:7447", One, value::peer,
        "DNS name whose addresses are peers; looked up repeatedly"),
    key!("hosts", "NAME", None, "cache-3", Many, value::name,
        "Names of further hosts whose certificates are accepted, besides those named by peers"),
    key!("peer_ca", "FILE", None, "/etc/umbel/ca.pem", Path, value::path,
        "Certificate of the authority that signs the hosts' certificates; enables TLS between hosts"),
    key!("peer_cert", "FILE", None, "/etc/umbel/cache-1.pem", Path, value::path,
        "Certificate of this host for other hosts; its common name is the host's name"),
    key!("peer_key", "FILE", None, "/etc/umbel/cache-1.key", Path, value::path,
        "Private key of peer_cert"),
    key!("links", "NAME[@ADDR]", None, "cache-2@cache-2:7447", Many, value::link,
        "Neighbours in an overlay, used instead of peers: names, with an address where this host connects"),
    key!("advertise", "URL", None, "http://cache-1:8080", One, value::advertise,
        "Base URL from which this host's objects are fetched; part of answers that name this host"),
    key!("confirm_origins", "ORIGIN", None, "http://cache-1:8080", Many, value::confirm_origin,
        "Further servers that the CONFIRM option of a set may name, besides those of advertise and set.confirm"),
    key!("origins", "[SET=]URL", None, "images=http://origin.example/{key}", Many, value::object_origin,
        "Where objects are fetched that no host holds, for 'fetch' with else=origin: a URL with {key} or {key64}, for one set or for all others"),
    key!("transforms", "SET=TRANSFORM", None, "pages=template:/{key}|md5", Many, value::set_transform,
        "How the keys of a set are made from the names that clients ask for: steps md5, sha256, path and template:TEXT with | between them; the same on every host"),
    key!("hash_key", "TEXT", None, "", Secret, value::secret,
        "Secret key of the cluster's key hash; the same on every host; at least 16 bytes"),
    key!("hash_key_file", "FILE", None, "/etc/umbel/hash-key", Path, value::path,
        "File that holds the secret key of the key hash; trailing newlines are ignored"),
    key!("users", "FILE", None, "/etc/umbel/users.toml", Path, value::path,
        "File of users and their permissions; without it every client may do everything"),
    key!("tls_cert", "FILE", None, "/etc/umbel/clients.pem", Path, value::path,
        "Certificate of the RESP and HTTP ports; enables TLS for clients; read again when it changes"),
    key!("tls_key", "FILE", None, "/etc/umbel/clients.key", Path, value::path,
        "Private key of tls_cert"),
    key!("allow_remote", "", Some("false"), "", Switch, value::flag,
        "Allow ports that other machines can reach without users and certificates: whoever connects may read and write"),
    key!("leave_on_stop", "BOOL", Some("true"), "", One, value::flag,
        "Whether other hosts drop this host as soon as it stops; 'false': they keep naming it for timing.absence, for a restart. A host with its catalogue in memory always leaves"),
    key!("set.false_positive", "RATE", Some("0.01"), "", One, value::rate,
        "Chance that a lookup of an absent key names any wrong host, for sets created by their first add"),
    key!("set.capacity", "KEYS", Some("none"), "", One, value::reserved,
        "Keys that such a set has room for from the start; 'none': it starts small and grows"),
    key!("set.expected_hosts", "HOSTS", Some("auto"), "", One, value::expected_hosts,
        "Number of hosts that the rate is planned for; 'auto': the hosts that have the set, with room for more"),
    key!("set.policy", "POLICY", Some("miss:0.01,ghost=0.05,longest=1s"), "", One, value::policy,
        "When replicas of such a set are updated; docs/configuration.md describes the syntax"),
    key!("set.lifetime", "DURATION", Some("none"), "", One, value::lifetime,
        "Time until a key of such a set expires; 'none': never"),
    key!("set.confirm", "HOW", Some("none"), "", One, value::confirm,
        "How this host's cache is asked before a key is confirmed, such as 'HEAD {advertise}/{key}'; 'none': the catalogue decides"),
    key!("overlay.entry", "KIND", Some("cubf"), "", One, value::entry,
        "Kind of routing entry: 'cubf', 'abf' or 'attenuated'; this and the next five keys must be the same on every host of an overlay"),
    key!("overlay.depth", "HOPS", Some("3"), "", One, value::depth,
        "Hops that a filter travels, and the default number of hops that a query follows filters"),
    key!("overlay.items", "KEYS", Some("1000"), "", One, value::capacity,
        "Average number of keys per host and set"),
    key!("overlay.filters", "COUNT", Some("64"), "", One, value::filters,
        "Maximum number of filters received over one link; more are refused"),
    key!("overlay.false_positive", "RATE", Some("0.001"), "", One, value::rate,
        "Maximum chance that a link claims a key that no host behind it holds"),
    key!("overlay.measured", "", Some("false"), "", Switch, value::flag,
        "Measure keys and filters in the overlay, and plan again when they drift"),
    key!("overlay.walk", "STEPS", Some("128"), "", One, value::walk,
        "Steps of the random walk of a query that no link claims"),
    key!("oci.set", "SET", None, "blobs", One, value::set_name,
        "Set whose keys are the digests of container blobs: with it, /v2/ is a mirror of container registries"),
    key!("oci.origin", "URL", None, "https://registry.example", One, value::server,
        "Registry to which this mirror redirects what no host holds; without it, clients get status 404 and ask the registry themselves"),
    key!("limits.connections", "COUNT", Some("10000"), "", One, value::some,
        "Maximum number of RESP connections"),
    key!("limits.idle", "DURATION", Some("none"), "", One, value::lifetime,
        "Time after which a RESP client that sends nothing, or does not read its replies, is disconnected; 'none': never"),
    key!("limits.request_bytes", "BYTES", Some("67108864"), "", One, value::large,
        "Maximum size of one RESP request"),
    key!("limits.reply_bytes", "BYTES", Some("65536"), "", One, value::large,
        "Bytes of replies buffered per RESP connection; nothing more is read until they are sent"),
    key!("limits.http_connections", "COUNT", Some("10000"), "", One, value::some,
        "Maximum number of HTTP connections; when full, the one idle for longest is closed"),
    key!("limits.http_header_bytes", "BYTES", Some("131072"), "", One, value::buffer,
        "Maximum size of an HTTP request's line and headers together"),
    key!("limits.http_question_bytes", "BYTES", Some("4194304"), "", One, value::buffer,
        "Maximum size of an HTTP request that asks about many keys; bulk loads have no such limit"),
    key!("limits.http_body_rate", "BYTES", Some("16"), "", One, value::pace,
        "Minimum bytes per second of an HTTP request's body, averaged over timing.http_idle; 0: any progress is enough"),
    key!("limits.confirms", "COUNT", Some("64"), "", One, value::some,
        "Maximum number of concurrent requests to this host's cache"),
    key!("limits.proxies", "COUNT", Some("64"), "", One, value::some,
        "Maximum number of objects that this host reads from its cache for other hosts at once, and of objects that it passes on to clients"),
    key!("limits.proxy_bytes", "BYTES", Some("1073741824"), "", One, value::large,
        "Maximum size of an object that this host passes on"),
    key!("limits.sets", "COUNT", Some("10000"), "", One, value::some,
        "Maximum number of sets of this host, and of each other host"),
    key!("limits.hosts", "COUNT", Some("10000"), "", One, value::some,
        "Maximum number of other hosts in a mesh"),
    key!("limits.filter_bits", "BITS", Some("8589934592"), "", One, value::filter_bits,
        "Maximum length of another host's filter that is accepted"),
    key!("limits.replica_bytes", "BYTES", Some("auto"), "", One, value::memory,
        "Memory for all replicas of other hosts' sets; 'auto': a quarter of what the process may use"),
    key!("limits.own_bytes", "BYTES", Some("auto"), "", One, value::memory,
        "Memory for the filters of this host's own sets; 'auto': half of what the process may use"),
    key!("timing.announce", "DURATION", Some("3"), "", One, value::seconds,
        "Interval between announcements"),
    key!("timing.grace", "DURATION", Some("4"), "", One, value::grace,
        "How long replicas of a host that disappeared keep answering; at least 2 seconds"),
    key!("timing.silence", "DURATION", Some("15"), "", One, value::seconds,
        "Time without any message after which a host counts as gone"),
    key!("timing.forget", "DURATION", Some("86400"), "", One, value::seconds,
        "How long a host that disappeared without leaving is still expected; until then answers are not complete"),
    key!("timing.absence", "DURATION", Some("60"), "", One, value::seconds,
        "How long other hosts are asked to keep naming this host while it restarts; also the maximum that this host grants to others"),
    key!("timing.ready", "DURATION", Some("10"), "", One, value::seconds,
        "Maximum time that /readyz waits for the replicas of other hosts"),
    key!("timing.reload", "DURATION", Some("2"), "", One, value::seconds,
        "Interval between checks of the files of users, certificates and peers"),
    key!("timing.stop", "DURATION", Some("5"), "", One, value::seconds,
        "Maximum duration of a stop"),
    key!("timing.confirm", "DURATION", Some("1"), "", One, value::seconds,
        "Maximum time that this host's cache may take to confirm keys; other hosts wait for 2 seconds"),
    key!("timing.proxy", "DURATION", Some("60"), "", One, value::seconds,
        "Maximum time that passing on an object may take"),
    key!("timing.login", "DURATION", Some("30"), "", One, value::seconds,
        "Maximum time until a RESP client has logged in, or sent its first command where there are no users"),
    key!("timing.http_header", "DURATION", Some("10"), "", One, value::seconds,
        "Maximum time from the first byte of an HTTP request to the end of its headers"),
    key!("timing.http_idle", "DURATION", Some("75"), "", One, value::seconds,
        "Maximum time without a byte in either direction on an HTTP connection"),
    key!("log.level", "LEVEL", Some("info"), "", One, value::log_level,
        "trace, debug, info, warn or error; for one part as in 'info,zenoh=debug'"),
    key!("log.format", "FORMAT", Some("text"), "", One, value::log_format,
        "'text' or 'json'"),
    key!("traces.endpoint", "URL", Some("off"), "", One, value::traces_endpoint,
        "OpenTelemetry collector that receives traces over HTTP, such as http://127.0.0.1:4318; 'off': none. Needs a program built with the feature 'otel'"),
    key!("traces.share", "SHARE", Some("0.01"), "", One, value::share,
        "Share of the requests that are traced, of those whose caller did not decide it"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_examples_pass_their_own_checks() {
        for key in KEYS {
            for text in key.default.iter().chain([&key.example]).filter(|text| !text.is_empty()) {
                assert_eq!((key.check)(text), Ok(()), "{}", key.name);
            }
        }
    }

    #[test]
    fn near_misses_find_their_key() {
        for (written, meant) in [
            ("clutser", Some("cluster")),
            ("peer", Some("peers")),
            ("capacity", Some("set.capacity")),
            ("false-positive", Some("set.false_positive")),
            ("set.capacty", Some("set.capacity")),
            ("bananas", None),
        ] {
            assert_eq!(Key::nearest(written).map(|key| key.name), meant, "{written}");
        }
    }

    #[test]
    fn names_variables_and_flags_are_all_different() {
        let unlike = |names: Vec<String>| {
            let all: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(all.len(), KEYS.len());
        };
        unlike(KEYS.iter().map(|key| key.name.to_owned()).collect());
        unlike(KEYS.iter().map(Key::variable).collect());
        unlike(KEYS.iter().map(Key::flag).collect());
    }
}
