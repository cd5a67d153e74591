//! The known peers: from the settings, a file and a DNS name. They can be collected again at any
//! time.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use umbel::replica::Name;

use crate::settings::{Endpoint, Settings, peer_line};

/// A peer as given in the settings: its name, its address, or both.
pub(crate) type Expected = (Option<Name>, Option<String>);

/// Where other hosts listen, and which hosts are admitted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Peers {
    /// Where they listen.
    pub(crate) connect: BTreeSet<Endpoint>,
    /// Their names, as far as they are known; this host's name is among them.
    pub(crate) hosts: BTreeSet<Name>,
    /// The settings of each peer, without this host.
    expected: BTreeSet<Expected>,
    /// The result of the last DNS lookup.
    looked_up: Vec<Endpoint>,
}

impl Peers {
    /// Collects all peers. If a DNS name cannot be resolved, the last result is used: perhaps no
    /// host is running there yet.
    ///
    /// # Errors
    /// One line, if the file cannot be read or understood.
    pub(crate) async fn gather(settings: &Settings, last: &Self) -> Result<Self, String> {
        let mut peers = Self::default();
        for peer in &settings.peers {
            peers.learn(peer.host_name(), peer.given_name(), Some(peer.clone()), settings);
        }
        for link in settings.overlay.iter().flat_map(|overlay| &overlay.links) {
            let name = Some(link.name.clone());
            peers.learn(name.clone(), name, link.address.clone(), settings);
        }
        for name in settings.hosts.iter().chain([&settings.name]) {
            peers.learn(Some(name.clone()), Some(name.clone()), None, settings);
        }
        if let Some(path) = &settings.peers_file {
            for (name, peer) in read(path, settings.peer_tls.is_some())? {
                let given = peer.as_ref().map_or_else(|| name.clone(), Endpoint::given_name);
                peers.learn(name, given, peer, settings);
            }
        }
        if let Some(many) = &settings.peers_dns {
            peers.looked_up = look_up(many).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "a name of peers cannot be found");
                last.looked_up.clone()
            });
            for peer in peers.looked_up.clone() {
                peers.learn(None, None, Some(peer), settings);
            }
        }
        Ok(peers)
    }

    /// The peers that are expected, by name, address or both. All routers together count as one
    /// peer: it is enough to reach any of them.
    pub(crate) fn expected(&self, settings: &Settings) -> Vec<Expected> {
        if !settings.through_routers {
            return self.expected.iter().cloned().collect();
        }
        let named = self.expected.iter().filter(|(_, address)| address.is_none());
        let routers: Vec<String> = self.connect.iter().map(Endpoint::address).collect();
        let routers = (!routers.is_empty()).then(|| (None, Some(routers.join(", "))));
        named.cloned().chain(routers).collect()
    }

    /// Adds a peer; this host itself is skipped.
    fn learn(
        &mut self,
        name: Option<Name>,
        given: Option<Name>,
        peer: Option<Endpoint>,
        settings: &Settings,
    ) {
        let own = name.as_ref() == Some(&settings.name)
            || peer.as_ref().is_some_and(|peer| peer.address() == settings.listen.to_string());
        let address = peer.as_ref().map(Endpoint::address);
        self.expected.extend((!own).then_some((given, address)));
        self.hosts.extend(name);
        self.connect.extend(peer.filter(|_| !own));
    }
}

type Line = (Option<Name>, Option<Endpoint>);

/// One peer per line; text after `#` is a comment.
fn read(path: &Path, named: bool) -> Result<Vec<Line>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let refuse =
            |wrong: &str| format!("{}, line {}: {wrong}, not '{line}'", path.display(), number + 1);
        let (name, peer) = peer_line(line).map_err(|wrong| refuse(&wrong))?;
        if named && name.is_none() {
            return Err(refuse(
                "with certificates a peer's name is needed too, such as cache-2=10.0.0.2:7447",
            ));
        }
        lines.push((name, peer));
    }
    Ok(lines)
}

async fn look_up(many: &Endpoint) -> Result<Vec<Endpoint>, String> {
    let found = tokio::net::lookup_host(many.address()).await;
    let found = found.map_err(|error| format!("peers_dns: {}: {error}", many.address()))?;
    let mut found: Vec<Endpoint> = found.map(|address: SocketAddr| address.into()).collect();
    // Resolvers return addresses in changing order.
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Draft, Layer};

    fn settings(text: &str) -> Settings {
        let text = format!("name = 'a'\nmemory = true\nhash_key = '0123456789abcdef'\n{text}");
        let layer = Layer::toml(Path::new("conf"), &text).expect("sound");
        Draft::new().with(layer).expect("sound").settings().expect("sound")
    }

    fn summary(peers: &Peers) -> (Vec<String>, Vec<&str>) {
        let connect = peers.connect.iter().map(|peer| peer.locator("tls")).collect();
        (connect, peers.hosts.iter().map(Name::as_str).collect())
    }

    #[tokio::test]
    async fn come_from_everywhere_and_never_name_oneself() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("peers");
        std::fs::write(&file, "# all\na=10.0.0.1:1\n\n b=10.0.0.2:1 # two\nc:1\nd\n10.0.0.9:1\n")
            .unwrap();
        let text = format!(
            "peers = ['b=10.0.0.2:1', 'e:1', '127.0.0.1:7447']\nhosts = ['f']\npeers_file = '{}'\n\
             peers_dns = 'localhost:4'",
            file.display()
        );
        let text_of_all = text;
        let peers = Peers::gather(&settings(&text_of_all), &Peers::default()).await.unwrap();
        let (connect, hosts) = summary(&peers);
        assert_eq!(hosts, ["a", "b", "c", "d", "e", "f"]);
        assert!(connect.contains(&"tls/127.0.0.1:4".to_owned()), "{connect:?}");
        let plain: Vec<&String> = connect.iter().filter(|peer| !peer.ends_with(":4")).collect();
        assert_eq!(plain, ["tls/10.0.0.9:1", "tls/c:1", "tls/e:1", "tls/10.0.0.2:1"]);
        // A name that was derived from an address is not expected in addition to that address.
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let expected = peers.expected(&settings(&text_of_all)).into_iter();
        let expected = expected.filter(|(_, address)| !text(address).ends_with(":4"));
        let expected: Vec<String> = expected
            .map(|(name, address)| {
                format!("{}@{}", name.as_ref().map_or("", Name::as_str), text(&address))
            })
            .collect();
        assert_eq!(expected, ["@10.0.0.9:1", "@c:1", "@e:1", "b@10.0.0.2:1", "d@", "f@"]);
    }

    #[tokio::test]
    async fn mistakes_in_the_file_are_told_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("peers");
        let secured = "peer_ca = 'a'\npeer_cert = 'c'\npeer_key = 'k'";
        for (text, more, message) in [
            ("b:1\nb:70000\n", "", "line 2: a host and a port"),
            ("a b", "", "line 1: letters"),
            ("10.0.0.1:7", secured, "line 1: with certificates"),
        ] {
            std::fs::write(&file, text).unwrap();
            let text = format!("peers_file = '{}'\n{more}", file.display());
            let error = Peers::gather(&settings(&text), &Peers::default()).await.unwrap_err();
            assert!(error.contains(message) && error.lines().count() == 1, "{error}");
        }
        std::fs::remove_file(&file).unwrap();
        let text = format!("peers_file = '{}'", file.display());
        assert!(Peers::gather(&settings(&text), &Peers::default()).await.is_err());
    }
}
