//! The zenoh configuration: one session that listens, and one per link that this host opens.
//!
//! Lessons from measurements: gossip is off and every link is opened by one end in a session of its
//! own, since zenoh's links to one peer can stay half open for good when both ends connect at the
//! same time, or when a peer comes back under an identity whose old link still exists. There is one
//! attempt per session, since zenoh would reconnect under the same identity. The lease is a few
//! seconds, since a host that hangs should be noticed before its replicas are stale. zenoh sends a
//! keep-alive over a link that carried nothing for half of the lease. Announcements every three
//! seconds make keep-alives unnecessary. The previous configuration, keep-alives every quarter of a
//! lease of three seconds, made them more than half of the traffic of a quiet mesh.

use std::net::SocketAddr;
use std::path::Path;

use ::zenoh::Config;
use umbel::replica::Name;

use super::{Guard, JoinError, acl};
use crate::settings::{Endpoint, PeerFiles};

/// The purpose of a session.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// Links that other hosts open.
    Listen(SocketAddr),
    /// A link to this host, or to a router.
    Link(&'a [Endpoint]),
    /// A link to one of these routers, as their client.
    Client(&'a [Endpoint]),
}

/// The configuration of a session.
pub(super) fn config(
    purpose: Purpose<'_>,
    cluster: &Name,
    guard: Option<&Guard>,
) -> Result<Config, JoinError> {
    let protocol = if guard.is_some() { "tls" } else { "tcp" };
    let quoted = |endpoints: &[Endpoint]| {
        let locators = endpoints.iter().map(|endpoint| format!("{:?}", endpoint.locator(protocol)));
        format!("[{}]", locators.collect::<Vec<_>>().join(","))
    };
    let none = || String::from("[]");
    let (mode, listen, connect) = match purpose {
        Purpose::Listen(at) => ("peer", format!("[\"{protocol}/{at}\"]"), none()),
        Purpose::Link(to) => ("peer", none(), quoted(to)),
        Purpose::Client(to) => ("client", none(), quoted(to)),
    };
    let mut config = Config::default();
    for (key, value) in [
        ("mode", format!("{mode:?}")),
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
        // A single attempt; `links` decides when to retry.
        ("connect/timeout_ms", String::from("0")),
        ("connect/exit_on_failure", String::from("true")),
        ("scouting/multicast/enabled", String::from("false")),
        ("scouting/gossip/enabled", String::from("false")),
        ("scouting/delay", String::from("0")),
        ("transport/link/tx/lease", String::from("7000")),
        ("transport/link/tx/keep_alive", String::from("2")),
        // Batches of 64 KiB for replies, allocated when needed: enough for all pages and parts that
        // one host requests at the same time. With zenoh's default of two, most of them were
        // dropped when the processor was busy.
        ("transport/link/tx/queue/size/data_low", String::from("16")),
        ("transport/unicast/open_timeout", String::from("5000")),
        ("transport/unicast/accept_timeout", String::from("5000")),
        // Many hosts may start at once.
        ("transport/unicast/accept_pending", String::from("1000")),
        ("transport/unicast/max_sessions", String::from("10000")),
    ] {
        config.insert_json5(key, &value)?;
    }
    if let Some(Guard { files, hosts }) = guard {
        config.insert_json5("transport/link/tls", &tls(files).to_string())?;
        let rules = acl::rules(cluster, hosts.iter());
        config.insert_json5("access_control", &rules.to_string())?;
    }
    Ok(config)
}

/// Both ends present a certificate. The name in it is compared with the name that a host uses, not
/// with the address at which it was found, because that may change.
fn tls(files: &PeerFiles) -> serde_json::Value {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (cert, key) = (text(&files.own.cert), text(&files.own.key));
    serde_json::json!({
        "root_ca_certificate": text(&files.ca),
        "listen_certificate": cert,
        "listen_private_key": key,
        "connect_certificate": cert,
        "connect_private_key": key,
        "enable_mtls": true,
        "verify_name_on_connect": false,
        "close_link_on_expiration": true,
    })
}
