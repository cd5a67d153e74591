//! Every key of the configuration, in one table.
//!
//! Files, environment, flags, the commented file that `umbel config init` writes and what
//! `umbel config show` prints are all made from [`KEYS`]: a key that is added here is
//! everywhere. `docs/configuration.md` names each of them; a test sees to that.

use super::value;

/// One key: what it is called, what it may be, and what it is if nobody says.
#[derive(Debug)]
pub struct Key {
    /// As written in a file: `cluster`, or `set.capacity` for `capacity` under `[set]`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub what: &'static str,
    /// Placeholder of its value in help texts.
    pub value: &'static str,
    /// What it is if nobody says.
    pub default: Option<&'static str>,
    /// A value that works, for keys without a default.
    pub example: &'static str,
    /// How it is written.
    pub kind: Kind,
    pub(super) check: fn(&str) -> Result<(), String>,
}

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One value.
    One,
    /// A list; in the environment with commas between, as a flag one at a time.
    Many,
    /// `true` or `false`; as a flag without a value.
    Switch,
    /// A path; in a file relative to the file's folder.
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

    /// The key that somebody who wrote `name` most likely meant.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static Self> {
        let distance = |key: &Key| {
            let last = key.name.rsplit('.').next().unwrap_or(key.name);
            strsim::damerau_levenshtein(name, key.name).min(strsim::damerau_levenshtein(name, last))
        };
        let nearest = KEYS.iter().min_by_key(|key| distance(key))?;
        (distance(nearest) <= 1.max(name.len() / 3)).then_some(nearest)
    }

    /// Its variable in the environment, such as `UMBEL_SET_CAPACITY`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("UMBEL_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Its flag without the dashes, such as `set-capacity`.
    #[must_use]
    pub fn flag(&self) -> String {
        match self.kind {
            // Given one at a time.
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

/// Every key, in the order in which people read them.
#[rustfmt::skip]
pub static KEYS: &[Key] = &[
    key!("name", "NAME", None, "cache-1", One, value::name,
        "Name of this host, unlike that of every other host of the cluster"),
    key!("cluster", "NAME", Some("local"), "", One, value::name,
        "Hosts of one cluster hear each other; others are refused"),
    key!("data", "DIR", None, "/var/lib/umbel", Path, value::path,
        "Folder of the catalogue: what survives a restart"),
    key!("memory", "", Some("false"), "", Switch, value::flag,
        "Keep the catalogue in memory only, instead of in a folder"),
    key!("durability", "WHEN", Some("group"), "", One, value::durability,
        "When an add is done: 'group' (synced together with others), 'each' (synced alone) or seconds between syncs"),
    key!("resp", "ADDR", Some("127.0.0.1:7440"), "", One, value::address_or_off,
        "Where Redis clients and umbel's own commands connect; port 0: the system chooses; 'off': no such port"),
    key!("http", "ADDR", Some("127.0.0.1:7441"), "", One, value::address_or_off,
        "Where HTTP is served; port 0: the system chooses; 'off': no such port"),
    key!("http_hosts", "NAME", None, "umbel.example.org", Many, value::http_host,
        "Names under which HTTP clients may address this host, beyond localhost and the names of this configuration; checked on loopback and without users"),
    key!("listen", "ADDR", Some("tcp/127.0.0.1:7447"), "", One, value::listen,
        "Where other hosts connect: a concrete address; 'tcp/' may be left out; port 0: the system chooses"),
    key!("peers", "ADDR", None, "tcp/cache-2:7447", Many, value::peer,
        "Where other hosts listen; hosts tell each other of further ones, so that one or two of a mesh are enough"),
    key!("through_routers", "", Some("false"), "", Switch, value::flag,
        "Reach other hosts through the zenoh routers that peers names, and in no other way: nothing listens"),
    key!("peers_file", "FILE", None, "/etc/umbel/peers", Path, value::path,
        "File with more peers, one a line; read again when it changes"),
    key!("peers_dns", "NAME:PORT", None, "umbel.example.org:7447", One, value::peer,
        "Name that is looked up again and again: a peer listens at each of its addresses"),
    key!("hosts", "NAME", None, "cache-3", Many, value::name,
        "Names of hosts that are let in with a certificate, beyond those that peers tell"),
    key!("peer_ca", "FILE", None, "/etc/umbel/ca.pem", Path, value::path,
        "Certificate of the authority that signs the hosts' certificates: hosts speak TLS with each other"),
    key!("peer_cert", "FILE", None, "/etc/umbel/cache-1.pem", Path, value::path,
        "This host's certificate for other hosts; its common name is the host's name"),
    key!("peer_key", "FILE", None, "/etc/umbel/cache-1.key", Path, value::path,
        "The private key of peer_cert"),
    key!("links", "NAME[@ADDR]", None, "cache-2@cache-2:7447", Many, value::link,
        "Neighbours in an overlay, instead of peers: names, and where those listen that do not connect by themselves"),
    key!("advertise", "URL", None, "http://cache-1:8080", One, value::advertise,
        "Where this host's objects are fetched; told to everybody who asks for them"),
    key!("confirm_origins", "ORIGIN", None, "http://cache-1:8080", Many, value::confirm_origin,
        "Servers that a set's CONFIRM may name, beyond that of advertise and of set.confirm"),
    key!("hash_key", "TEXT", None, "", Secret, value::secret,
        "Secret of the cluster's key hash, the same on every host; at least 16 bytes"),
    key!("hash_key_file", "FILE", None, "/etc/umbel/hash-key", Path, value::path,
        "File that holds the secret of the key hash; newlines at its end do not count"),
    key!("users", "FILE", None, "/etc/umbel/users.toml", Path, value::path,
        "File of users and what they may do; without one, everybody may do everything"),
    key!("tls_cert", "FILE", None, "/etc/umbel/clients.pem", Path, value::path,
        "Certificate of the ports for clients, which then speak TLS; read again when it changes"),
    key!("tls_key", "FILE", None, "/etc/umbel/clients.key", Path, value::path,
        "The private key of tls_cert"),
    key!("allow_remote", "", Some("false"), "", Switch, value::flag,
        "Permit ports beyond this machine without users and certificates: anybody who reaches them may read and write"),
    key!("leave_on_stop", "BOOL", Some("true"), "", One, value::flag,
        "Whether others name this host no longer once it stops; 'false': it restarts, and they go on for timing.absence. Hosts with their catalogue in memory always leave"),
    key!("set.false_positive", "RATE", Some("0.01"), "", One, value::rate,
        "Chance that a lookup of an absent key names any wrong host, for sets made by their first add"),
    key!("set.capacity", "KEYS", Some("none"), "", One, value::reserved,
        "Keys that such a set has room for from the start; 'none': it starts small, and grows with its keys"),
    key!("set.expected_hosts", "HOSTS", Some("auto"), "", One, value::expected_hosts,
        "Hosts that the rate is planned for; 'auto': as many as have the set, with room"),
    key!("set.policy", "POLICY", Some("miss:0.01,ghost=0.05,longest=1s"), "", One, value::policy,
        "When such a set's replicas are updated: docs/configuration.md has the grammar"),
    key!("set.lifetime", "SECONDS", Some("none"), "", One, value::lifetime,
        "Seconds until a key leaves such a set on its own; 'none': never"),
    key!("set.confirm", "HOW", Some("none"), "", One, value::confirm,
        "How this host's cache is asked before a key is confirmed, as 'HEAD {advertise}/{key}'; 'none': the catalogue's word counts"),
    key!("overlay.entry", "KIND", Some("cubf"), "", One, value::entry,
        "How a link's entry keeps the filters that came over it: 'cubf', 'abf' or 'attenuated'; this and the next five the same on every host of an overlay"),
    key!("overlay.depth", "HOPS", Some("3"), "", One, value::depth,
        "Hops that a filter travels, and that a query follows filters unless it is told otherwise"),
    key!("overlay.items", "KEYS", Some("1000"), "", One, value::capacity,
        "Keys of a set that a host holds, on average"),
    key!("overlay.filters", "COUNT", Some("64"), "", One, value::filters,
        "Filters that come over a link; more than it has room for are refused"),
    key!("overlay.false_positive", "RATE", Some("0.001"), "", One, value::rate,
        "Chance that a link claims a key that nobody behind it holds, at most"),
    key!("overlay.measured", "", Some("false"), "", Switch, value::flag,
        "Let the overlay measure keys and filters itself, and plan anew when they drift"),
    key!("overlay.walk", "STEPS", Some("128"), "", One, value::walk,
        "Steps of the random walk of a query that no link claims"),
    key!("limits.connections", "COUNT", Some("10000"), "", One, value::some,
        "Clients connected at once"),
    key!("limits.idle", "SECONDS", Some("none"), "", One, value::lifetime,
        "How long a client of the RESP port may say nothing, or leave its replies unread; 'none': for ever"),
    key!("limits.request_bytes", "BYTES", Some("67108864"), "", One, value::large,
        "Most bytes of one request at the RESP port"),
    key!("limits.reply_bytes", "BYTES", Some("65536"), "", One, value::large,
        "Replies of a pipeline gathered before they are sent, and nothing more is read until they are"),
    key!("limits.http_connections", "COUNT", Some("10000"), "", One, value::some,
        "HTTP clients connected at once; when full, the one longest without a request has to go"),
    key!("limits.http_header_bytes", "BYTES", Some("131072"), "", One, value::buffer,
        "Bytes of an HTTP request's line and headers together"),
    key!("limits.http_question_bytes", "BYTES", Some("4194304"), "", One, value::buffer,
        "Bytes of an HTTP question about many keys; bulk loads have no such limit"),
    key!("limits.http_body_rate", "BYTES", Some("16"), "", One, value::pace,
        "Bytes a second that the body of an HTTP request brings at least, over timing.http_idle; 0: any byte will do"),
    key!("limits.confirms", "COUNT", Some("64"), "", One, value::some,
        "Objects that this host's cache is asked for at once"),
    key!("limits.sets", "COUNT", Some("10000"), "", One, value::some,
        "Sets of this host, and of each other host"),
    key!("limits.hosts", "COUNT", Some("10000"), "", One, value::some,
        "Most other hosts of a mesh"),
    key!("limits.filter_bits", "BITS", Some("8589934592"), "", One, value::large,
        "Most bits accepted of another host's set"),
    key!("limits.replica_bytes", "BYTES", Some("auto"), "", One, value::memory,
        "Memory for all replicas of other hosts' sets; 'auto': a quarter of what the process may use"),
    key!("limits.own_bytes", "BYTES", Some("auto"), "", One, value::memory,
        "Memory for the filters of this host's own sets; 'auto': half of what the process may use"),
    key!("timing.announce", "SECONDS", Some("3"), "", One, value::seconds,
        "From one announcement to the next"),
    key!("timing.grace", "SECONDS", Some("4"), "", One, value::grace,
        "How long the replicas of a host that disappeared keep answering; at least 2"),
    key!("timing.silence", "SECONDS", Some("15"), "", One, value::seconds,
        "How long a host may say nothing at all before it counts as gone"),
    key!("timing.forget", "SECONDS", Some("86400"), "", One, value::seconds,
        "How long a host that disappeared without leaving is still expected, and answers are not complete without it"),
    key!("timing.absence", "SECONDS", Some("60"), "", One, value::seconds,
        "How long others are asked to go on naming this host while it restarts, and how long this host goes on naming others that ask for it, at most"),
    key!("timing.ready", "SECONDS", Some("10"), "", One, value::seconds,
        "How long /readyz waits for the replicas of other hosts"),
    key!("timing.reload", "SECONDS", Some("2"), "", One, value::seconds,
        "From one look at the files of users, certificates and peers to the next"),
    key!("timing.stop", "SECONDS", Some("5"), "", One, value::seconds,
        "How long a stop may take"),
    key!("timing.confirm", "SECONDS", Some("1"), "", One, value::seconds,
        "How long this host's cache may take to confirm keys; other hosts wait for 2 seconds"),
    key!("timing.login", "SECONDS", Some("30"), "", One, value::seconds,
        "How long a client of the RESP port may take to log in, or to send its first command where there are no users"),
    key!("timing.http_header", "SECONDS", Some("10"), "", One, value::seconds,
        "From the first byte of an HTTP request to the end of its headers"),
    key!("timing.http_idle", "SECONDS", Some("75"), "", One, value::seconds,
        "How long an HTTP connection may be without a byte in either direction"),
    key!("log.level", "LEVEL", Some("info"), "", One, value::log_level,
        "trace, debug, info, warn or error; of one part as in 'info,zenoh=debug'"),
    key!("log.format", "FORMAT", Some("text"), "", One, value::log_format,
        "'text' or 'json'"),
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
