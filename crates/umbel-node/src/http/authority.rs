//! Names under which this port may be addressed: a guard against DNS rebinding.
//!
//! A web page can let its own name resolve to this machine. The browser then treats this port as
//! part of the page, so that neither the origin check nor the same-origin policy helps; but it
//! sends the page's host name in `Host`. An IP address there is always accepted: only names can be
//! rebound. A client that sends no `Host` is not a browser.
//!
//! Names are those of the configuration at the start, and of the peers as they are now: a peers file
//! may change.
//!
//! Checked where a page could gain something: on a loopback port, and if no users are configured.
//! Not checked with TLS, since no page has a certificate for its name with this host's key.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;
use crate::Host;
use crate::settings::Settings;

/// Names under which this port may be addressed.
#[derive(Debug, Clone)]
pub(super) struct Names(Option<Arc<Known>>);

/// Names from the settings, and the host, which knows its current peers.
#[derive(Debug)]
struct Known {
    fixed: HashSet<String>,
    host: Option<Host>,
}

impl Names {
    /// Any name is accepted.
    pub(super) const ANY: Self = Self(None);

    /// The names of a port of a host.
    pub(super) fn of_host(host: &Host, local: SocketAddr, has_tls: bool) -> Self {
        let has_users = !host.access().is_open();
        match is_guarded(local, has_users, has_tls) {
            true => Self::ANY,
            false => Self::of(&host.inner.settings, Some(host.clone())),
        }
    }

    /// The names in the settings, and those of the host's current peers.
    fn of(settings: &Settings, host: Option<Host>) -> Self {
        let own = settings.hosts.iter().chain([&settings.name]).map(umbel::replica::Name::as_str);
        let links = settings.overlay.iter().flat_map(|overlay| &overlay.links);
        let peers = links.clone().filter_map(|link| link.address.as_ref());
        let peers = peers.chain(&settings.peers).chain(&settings.peers_dns);
        let peers = peers.flat_map(|peer| [peer.host().to_owned(), peer_name(peer)]);
        let advertise = settings.advertise.as_deref().and_then(|url| url.split_once("://"));
        let advertise = advertise.and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        let names = (own.chain(links.map(|link| link.name.as_str())))
            .chain(settings.http_hosts.iter().map(String::as_str))
            .chain(advertise.map(without_port))
            .map(str::to_owned)
            .chain(peers);
        let fixed = names.map(|name| name.to_ascii_lowercase()).collect();
        Self(Some(Arc::new(Known { fixed, host })))
    }

    fn accept(&self, authority: &str) -> bool {
        let Some(names) = &self.0 else { return true };
        let name = without_port(authority).trim_end_matches('.').to_ascii_lowercase();
        let literal = name.trim_start_matches('[').trim_end_matches(']');
        literal.parse::<IpAddr>().is_ok()
            || name == "localhost"
            || name.ends_with(".localhost")
            || names.fixed.contains(&name)
            || names.host.as_ref().is_some_and(|host| host.has_peer_named(&name))
    }
}

/// Whether a page gains nothing at a port, whatever its name resolves to.
const fn is_guarded(local: SocketAddr, has_users: bool, has_tls: bool) -> bool {
    has_tls || (has_users && !local.ip().is_loopback())
}

fn peer_name(peer: &crate::settings::Endpoint) -> String {
    peer.host_name().map(|name| name.as_str().to_owned()).unwrap_or_default()
}

/// The name of `name:port` or `user@name:port`.
fn without_port(authority: &str) -> &str {
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let end = authority.rfind(']').unwrap_or(0);
    authority[end..].find(':').map_or(authority, |colon| &authority[..end + colon])
}

/// Lets a request pass if every name in its `Host` headers and its target is a name of this port.
pub(super) async fn check(State(names): State<Names>, request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST).iter();
    let hosts = hosts.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
    let target = request.uri().authority().map(|target| target.as_str().to_owned());
    let refused = hosts.chain(target).find(|name| !names.accept(name));
    let Some(name) = refused else { return next.run(request).await };
    let detail = format!(
        "'{}' is not a name of this host: use its address or localhost, or add the name to http_hosts",
        umbel::text::for_terminal(&name)
    );
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", detail).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Draft, Layer};

    fn settings(extra: &[(&str, &str)]) -> Settings {
        let mut layer = Layer::flags();
        let all = [("name", "cache-1"), ("memory", "true")];
        for (key, value) in all.iter().chain(extra) {
            layer.set(key, [*value]).unwrap();
        }
        Draft::new().with(layer).unwrap().settings().unwrap()
    }

    #[test]
    fn a_page_that_rebinds_its_name_is_refused() {
        let settings = settings(&[
            ("advertise", "http://objects.example:8080/x"),
            ("peers", "cache-2=localhost:7447"),
            ("http_hosts", "Umbel.Example.org"),
        ]);
        let names = Names::of(&settings, None);
        for host in [
            "localhost",
            "LOCALHOST:7441",
            "a.localhost:1",
            "127.0.0.1:7441",
            "10.1.2.3",
            "[::1]:7441",
            "cache-1:7441",
            "cache-2",
            "objects.example",
            "umbel.example.ORG:80",
            "umbel.example.org.",
        ] {
            assert!(names.accept(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:7441",
            "127.0.0.1.evil.example",
            "localhost@evil",
            "x",
        ] {
            assert!(!names.accept(host), "{host}");
        }
    }

    #[test]
    fn checked_on_loopback_and_without_users_but_not_with_tls() {
        let (loopback, far) = (([127, 0, 0, 1], 1).into(), ([10, 0, 0, 1], 1).into());
        for (local, has_users, has_tls, is_checked) in [
            (loopback, false, false, true),
            (loopback, true, false, true),
            (far, false, false, true),
            (far, true, false, false),
            (far, false, true, false),
            (loopback, false, true, false),
        ] {
            assert_eq!(!is_guarded(local, has_users, has_tls), is_checked);
        }
    }
}
