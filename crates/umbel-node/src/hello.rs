//! Greetings: how a host introduces itself to all hosts in reach. From them hosts learn each
//! other's addresses, and detect why two of them are incompatible.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use umbel::KeyHasher;
use umbel::replica::{Incarnation, Name};
use umbel::text::is_unsafe;

/// The newest version of the messages between hosts that this program supports; the previous one is
/// supported too.
const WIRE: u32 = 1;

/// Maximum length of a greeting: names and addresses take a fraction of it.
const MAX_BYTES: usize = 8192;

/// A greeting. It is JSON, so that newer versions can add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) name: String,
    pub(crate) cluster: String,
    pub(crate) incarnation: u64,
    pub(crate) wire: u32,
    /// The hash function, and a fingerprint of its key.
    pub(crate) hash: String,
    #[serde(default)]
    pub(crate) advertise: Option<String>,
    #[serde(default)]
    pub(crate) resp: Option<String>,
    #[serde(default)]
    pub(crate) http: Option<String>,
    /// The parameters on which all hosts of its overlay agree, if it is in one.
    #[serde(default)]
    pub(crate) overlay: Option<String>,
    /// Where other hosts connect to it.
    #[serde(default)]
    pub(crate) listen: Option<String>,
    /// A digest of the hosts that it knows and where they listen: a host with another digest
    /// requests the list.
    #[serde(default)]
    pub(crate) hosts: Option<String>,
}

impl Hello {
    pub(crate) fn new(
        name: &Name,
        cluster: &Name,
        incarnation: Incarnation,
        hasher: &KeyHasher,
    ) -> Self {
        Self {
            name: name.as_str().to_owned(),
            cluster: cluster.as_str().to_owned(),
            incarnation: incarnation.0,
            wire: WIRE,
            hash: format!("{} {:016x}", hasher.id(), hasher.fingerprint().get()),
            advertise: None,
            resp: None,
            http: None,
            overlay: None,
            listen: None,
            hosts: None,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text and numbers")
    }

    /// Decodes a greeting; `None` if it is invalid, longer than any greeting, or contains
    /// characters that change how text is displayed: no valid greeting does.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_BYTES {
            return None;
        }
        let hello: Self = serde_json::from_slice(bytes).ok()?;
        Name::new(&hello.name)?;
        let is_plain = hello.texts().all(|text| !text.contains(is_unsafe));
        is_plain.then_some(hello)
    }

    /// All text in it.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let Self { name, cluster, incarnation: _, wire: _, hash, .. } = self;
        let Self { advertise, resp, http, overlay, listen, hosts, .. } = self;
        let optional = [advertise, resp, http, overlay, listen, hosts];
        [name, cluster, hash].into_iter().chain(optional.into_iter().flatten()).map(String::as_str)
    }

    /// Where other hosts connect to it.
    pub(crate) fn listens(&self) -> Option<SocketAddr> {
        self.listen.as_ref()?.parse().ok()
    }

    /// Whether it comes from another incarnation of this name.
    pub(crate) fn is_other(&self, name: &Name, life: Incarnation) -> bool {
        self.name == name.as_str() && self.incarnation != life.0
    }

    /// Why this host and another one are incompatible, if they are.
    pub(crate) fn differs_from(&self, other: &Self) -> Option<Difference> {
        if self.cluster != other.cluster {
            return Some(Difference::Cluster(other.cluster.clone(), self.cluster.clone()));
        }
        if self.wire.abs_diff(other.wire) > 1 {
            return Some(Difference::Wire(other.wire, self.wire));
        }
        if self.hash != other.hash {
            return Some(Difference::Hash(other.hash.clone(), self.hash.clone()));
        }
        let differ = self.overlay != other.overlay;
        differ.then(|| Difference::Overlay(other.overlay.clone(), self.overlay.clone()))
    }
}

/// What differs between two hosts: the other's value, then ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    Cluster(String, String),
    Wire(u32, u32),
    Hash(String, String),
    Overlay(Option<String>, Option<String>),
}

impl Difference {
    /// The same in two or three words, for lists.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Cluster(..) => "other cluster",
            Self::Wire(..) => "other version of the messages",
            Self::Hash(..) => "other hash key",
            Self::Overlay(..) => "other overlay",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(theirs, ours) => {
                write!(f, "it is of cluster '{theirs}', this host of '{ours}'")
            }
            Self::Wire(theirs, ours) => write!(
                f,
                "it speaks version {theirs} of the messages, this host {ours}: upgrade the older"
            ),
            Self::Hash(theirs, ours) => write!(
                f,
                "its hash key differs ({theirs}, this host has {ours}): give both the same"
            ),
            Self::Overlay(theirs, ours) => {
                let word = |overlay: &Option<String>| match overlay {
                    Some(overlay) => format!("'{overlay}'"),
                    None => String::from("none"),
                };
                let (theirs, ours) = (word(theirs), word(ours));
                write!(f, "its overlay is {theirs}, this host's {ours}: give both the same")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::{HashId, Seed};

    fn hello(cluster: &str, seed: u64) -> Hello {
        let hasher = KeyHasher::secret(HashId::SipHash13, Seed::from_number(seed));
        let name = Name::new("fern").unwrap();
        Hello::new(&name, &Name::new(cluster).unwrap(), Incarnation(7), &hasher)
    }

    #[test]
    fn says_what_differs() {
        let own = hello("local", 1);
        assert_eq!(own.differs_from(&own), None);
        let other = own.differs_from(&hello("prod", 1)).unwrap();
        assert_eq!(other.to_string(), "it is of cluster 'prod', this host of 'local'");
        let hash = own.differs_from(&hello("local", 2)).unwrap().to_string();
        assert!(hash.contains("hash key differs"), "{hash}");
        let mut other = own.clone();
        other.overlay = Some(String::from("cubf, depth 3"));
        let overlay = own.differs_from(&other).unwrap().to_string();
        assert!(overlay.contains("its overlay is 'cubf, depth 3', this host's none"), "{overlay}");
        let newer = Hello { wire: WIRE + 1, ..own.clone() };
        assert_eq!(own.differs_from(&newer), None, "the version before is understood");
        let far = Hello { wire: WIRE + 2, ..own.clone() };
        assert!(own.differs_from(&far).unwrap().to_string().contains("upgrade the older"));
    }

    #[test]
    fn text_that_changes_how_text_is_shown_is_refused_in_every_field() {
        let mut own = hello("local", 1);
        for field in [&mut own.advertise, &mut own.resp, &mut own.http, &mut own.overlay] {
            *field = Some(String::from("told"));
        }
        (own.listen, own.hosts) = (Some(String::from("told")), Some(String::from("told")));
        let json: serde_json::Value = serde_json::from_slice(&own.encode()).unwrap();
        let mut fields = 0;
        for (field, value) in json.as_object().unwrap() {
            let Some(text) = value.as_str() else { continue };
            for hostile in ["\n2026 INFO all is well", "\u{1b}[2J", "\u{202e}", "\u{9b}"] {
                let mut json = json.clone();
                json[field] = format!("{text}{hostile}").into();
                assert_eq!(Hello::decode(json.to_string().as_bytes()), None, "{field}");
            }
            fields += 1;
        }
        assert_eq!(fields, 9);
        assert_eq!(Hello::decode(&own.encode()), Some(own));
    }

    #[test]
    fn survives_the_wire_and_strangers() {
        let own = hello("local", 1);
        let long = Hello { overlay: Some("x".repeat(MAX_BYTES)), ..own.clone() };
        assert_eq!(Hello::decode(&long.encode()), None);
        assert_eq!(Hello::decode(&own.encode()), Some(own));
        for bytes in [&b""[..], b"{}", b"\xff", b"{\"name\":\"\"}"] {
            assert_eq!(Hello::decode(bytes), None);
        }
    }
}
