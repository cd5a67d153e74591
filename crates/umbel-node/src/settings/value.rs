//! The permitted values of each key: one parser per kind, whose error message states the range.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use umbel::Rate;
use umbel::duration::parse_duration;
use umbel::number::{parse_bytes, parse_count, parse_share};
use umbel::replica::{Name, Policy};
use umbel::route::EntryKind;
use umbel_store::Durability;

pub(super) use super::set_name::set_name;
use super::{Endpoint, Link, LogFormat, ObjectOrigin, SetTransform};
use crate::Confirm;
use crate::watch::KeyForm;

/// Maximum length of the name of a host or cluster, in bytes.
const LONGEST_NAME: usize = 64;

/// Minimum length of a secret, in bytes.
pub(super) const SHORTEST_SECRET: usize = 16;

/// The name of a host or cluster: it is part of addresses on the wire, so only letters, digits,
/// `.`, `_` and `-` are allowed.
pub(super) fn name(text: &str) -> Result<Name, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let fits = (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(is_allowed);
    let range = "letters, digits, '.', '_' and '-' are allowed, 1 to 64 of them";
    Name::new(text).filter(|_| fits).ok_or_else(|| range.to_owned())
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("a path is needed".to_owned()) } else { Ok(text.into()) }
}

pub(super) fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err("true or false is needed".to_owned()),
    }
}

pub(super) fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "group" => Ok(Durability::Group),
        "each" => Ok(Durability::EveryWrite),
        _ => seconds(text)
            .map(Durability::Interval)
            .map_err(|range| format!("'group' or 'each' is needed, or {range}")),
    }
}

/// An address to listen on: an IP address or `localhost`, and a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let range = "an address with a port is needed, such as 127.0.0.1:7440 or [::1]:7440";
    if let Some(port) = text.strip_prefix("localhost:") {
        let port = port.parse().map_err(|_| range.to_owned())?;
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| range.to_owned())
}

pub(super) fn address_or_off(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" { Ok(None) } else { address(text).map(Some) }
}

/// Where other hosts connect. The wildcard address is refused: hosts send each other the addresses
/// at which they listen, and nobody can connect to 0.0.0.0.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let listen = address(without_protocol(text)?)?;
    if listen.ip().is_unspecified() {
        return Err("a concrete address is needed: hosts tell each other where they listen".into());
    }
    Ok(listen)
}

pub(super) fn peer(text: &str) -> Result<Endpoint, String> {
    let range = "a host and a port are needed, such as cache-2:7447";
    let (called, text) = match text.split_once('=') {
        Some((called, rest)) => (Some(name(called)?.as_str().to_owned()), rest),
        None => (None, text),
    };
    let (host, port) = without_protocol(text)?.rsplit_once(':').ok_or(range)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or(range)?;
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_valid = match literal {
        Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_host_name(host),
    };
    if !is_valid || matches!(host.parse(), Ok(ip) if IpAddr::is_unspecified(&ip)) {
        return Err(range.to_owned());
    }
    Ok(Endpoint { name: called, host: host.to_owned(), port })
}

/// A line of a peers file: a peer, or only the name of a host that connects to this one.
#[cfg(feature = "zenoh")]
pub(crate) fn peer_line(text: &str) -> Result<(Option<Name>, Option<Endpoint>), String> {
    if !text.contains([':', '=', '/']) {
        return name(text).map(|name| (Some(name), None));
    }
    peer(text).map(|peer| (peer.host_name(), Some(peer)))
}

/// A neighbour: `cache-2`, or `cache-2@cache-2:7447` if this host connects to it.
pub(super) fn link(text: &str) -> Result<Link, String> {
    let (host, address) = match text.split_once('@') {
        Some((host, address)) => (host, Some(peer(address))),
        None => (text, None),
    };
    let range = "a name is needed, or a name and an address, such as cache-2@cache-2:7447";
    let name = name(host).map_err(|_| range.to_owned())?;
    let address = address.transpose().map_err(|_| range.to_owned())?;
    Ok(Link { name, address })
}

pub(super) fn entry(text: &str) -> Result<EntryKind, String> {
    text.parse().map_err(|_| "cubf, abf or attenuated is needed".to_owned())
}

pub(super) fn depth(text: &str) -> Result<u8, String> {
    whole(text, 1, 255, "255").map(|hops| hops as u8)
}

pub(super) fn filters(text: &str) -> Result<u64, String> {
    whole(text, 1, 1_000_000, "1000000")
}

/// The path of a walk is recorded host by host, so an unlimited walk is useless.
pub(super) fn walk(text: &str) -> Result<u32, String> {
    whole(text, 0, 1000, "1000").map(|steps| steps as u32)
}

fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    host.len() <= 253 && host.split('.').all(label)
}

/// A name under which the HTTP port may be addressed.
pub(super) fn http_host(text: &str) -> Result<String, String> {
    let range = "a host name without a port is needed, such as umbel.example.org";
    if is_host_name(text) { Ok(text.to_ascii_lowercase()) } else { Err(range.to_owned()) }
}

fn without_protocol(text: &str) -> Result<&str, String> {
    match text.split_once('/') {
        None => Ok(text),
        Some(("tcp", rest)) => Ok(rest),
        Some((other, _)) => Err(format!("'{other}/' is no protocol of umbel's: use tcp/HOST:PORT")),
    }
}

/// A URL that people can paste into a browser or a client; umbel itself never opens it.
pub(super) fn advertise(text: &str) -> Result<String, String> {
    let range = "a URL is needed, such as http://cache-1:8080, of at most 255 bytes";
    let is_valid = text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && !rest.is_empty()
    });
    let plain = text.len() <= 255 && text.chars().all(|c| c.is_ascii_graphic());
    if is_valid && plain { Ok(text.to_owned()) } else { Err(range.to_owned()) }
}

/// The origin of a server that may confirm keys.
pub(super) fn confirm_origin(text: &str) -> Result<String, String> {
    let range = "the origin of a server is needed, such as http://cache-1:8080, without a path";
    let origin = crate::confirm::origin(text);
    origin.filter(|origin| origin.len() == text.len()).ok_or_else(|| range.to_owned())
}

/// The address of a server, without a path.
pub(super) fn server(text: &str) -> Result<String, String> {
    let range =
        "the address of a server is needed, such as https://registry.example, without a path";
    let origin = crate::confirm::origin(text);
    origin.filter(|origin| origin.len() == text.len()).ok_or_else(|| range.to_owned())
}

/// Where objects of one set, or of all others, are fetched from if no host holds them.
pub(super) fn object_origin(text: &str) -> Result<ObjectOrigin, String> {
    text.parse()
}

/// How the keys of one set are made from names.
pub(super) fn set_transform(text: &str) -> Result<SetTransform, String> {
    text.parse()
}

pub(super) fn secret(text: &str) -> Result<&str, String> {
    match text.len() {
        SHORTEST_SECRET.. => Ok(text),
        _ => Err(format!(
            "a secret of at least {SHORTEST_SECRET} bytes is needed: openssl rand -hex 32 makes one"
        )),
    }
}

pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let range = "a number from 1e-15 to below 1 is needed, such as 0.01 or 1%";
    let given = parse_share(text).filter(|rate| *rate >= 1e-15).ok_or(range)?;
    Rate::new(given).map_err(|_| range.to_owned())
}

pub(super) fn capacity(text: &str) -> Result<u64, String> {
    whole(text, 1, 1 << 40, "2^40")
}

/// Number of keys for which a set has room from the start, or `none`.
pub(super) fn reserved(text: &str) -> Result<Option<u64>, String> {
    if text == "none" {
        return Ok(None);
    }
    capacity(text).map(Some).map_err(|range| format!("'none' is needed, or {range}"))
}

pub(super) fn expected_hosts(text: &str) -> Result<Option<u32>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let hosts = whole(text, 1, 1_000_000, "1000000").map(|hosts| Some(hosts as u32));
    hosts.map_err(|range| format!("'auto' is needed, or {range}"))
}

/// Bytes of memory, or `auto`: what suits the machine.
pub(super) fn memory(text: &str) -> Result<Option<u64>, String> {
    if text == "auto" {
        return Ok(None);
    }
    large(text).map(Some).map_err(|range| format!("'auto' is needed, or {range}"))
}

pub(super) fn policy(text: &str) -> Result<Policy, String> {
    text.parse().map_err(|error: umbel::replica::PolicyError| error.to_string())
}

pub(super) fn lifetime(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    seconds(text).map(Some).map_err(|range| format!("'none' is needed, or {range}"))
}

pub(super) fn confirm(text: &str) -> Result<Confirm, String> {
    let confirm = text.parse().map_err(|error: crate::ConfirmError| error.to_string())?;
    if matches!(confirm, Confirm::Cache(_)) && !cfg!(feature = "http") {
        return Err("'none' is needed: this program was built without HTTP".to_owned());
    }
    Ok(confirm)
}

pub(super) fn some(text: &str) -> Result<usize, String> {
    whole(text, 1, 1_000_000, "1000000").map(|count| count as usize)
}

/// Maximum number of bits of a filter.
pub(super) fn filter_bits(text: &str) -> Result<u64, String> {
    whole(text, 1 << 10, 1 << 48, "2^48")
}

pub(super) fn large(text: &str) -> Result<u64, String> {
    bytes(text, 1 << 10, 1 << 48, "2^48")
}

/// Maximum bytes that a connection may make a host buffer.
pub(super) fn buffer(text: &str) -> Result<usize, String> {
    bytes(text, 1 << 13, 1 << 30, "2^30").map(|bytes| bytes as usize)
}

/// Bytes per second; 0 means no minimum.
pub(super) fn pace(text: &str) -> Result<u32, String> {
    bytes(text, 0, 1_000_000_000, "1000000000").map(|bytes| bytes as u32)
}

/// Short enough that adding it to a point in time cannot overflow, and at least a millisecond.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let given = parse_duration(text).filter(|given| *given >= Duration::from_millis(1));
    given.ok_or_else(|| {
        "a number of seconds from 0.001 to 10^9 is needed, or a duration such as 500ms or 10m"
            .to_owned()
    })
}

/// Live hosts seem dead for up to two seconds now and then.
pub(super) fn grace(text: &str) -> Result<Duration, String> {
    let range = "a number of seconds from 2 to 10^9 is needed";
    seconds(text).ok().filter(|grace| grace.as_secs() >= 2).ok_or_else(|| range.to_owned())
}

/// How old a file must be before it counts; 0: it counts at once.
pub(super) fn min_age(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { seconds(text) }
}

pub(super) fn key_form(text: &str) -> Result<KeyForm, String> {
    text.parse()
}

/// A pattern for names of files.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a pattern is needed, such as *.png".into()) } else { Ok(text.into()) }
}

pub(super) fn log_level(text: &str) -> Result<String, String> {
    let levels = ["trace", "debug", "info", "warn", "error", "off"];
    let is_valid = |part: &str| {
        let (target, level) = part.split_once('=').unwrap_or(("all", part));
        let plain = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
        !target.is_empty() && target.chars().all(plain) && levels.contains(&level)
    };
    let range =
        "trace, debug, info, warn, error or off is needed, of a part as in 'info,zenoh=debug'";
    if text.split(',').all(is_valid) { Ok(text.to_owned()) } else { Err(range.to_owned()) }
}

/// A collector of traces, or `off`.
pub(super) fn traces_endpoint(text: &str) -> Result<Option<String>, String> {
    if text == "off" {
        return Ok(None);
    }
    if cfg!(not(feature = "otel")) {
        return Err("'off' is needed: this program was built without the feature 'otel'".to_owned());
    }
    let range = "'off' is needed, or the URL of a collector such as http://127.0.0.1:4318";
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_plain =
        |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic());
    let has_more = text.contains(['?', '#', '@']);
    rest.filter(|rest| is_plain(rest) && !has_more && text.len() <= 255)
        .map(|_| Some(text.to_owned()))
        .ok_or_else(|| range.to_owned())
}

/// A share of all requests.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let range = "a number from 0 to 1 is needed, such as 0.01 or 1%";
    parse_share(text).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| range.to_owned())
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("'text' or 'json' is needed".to_owned()),
    }
}

/// A whole number, such as `1000`, `1e3` or `1k`.
fn whole(text: &str, min: u64, max: u64, shown: &str) -> Result<u64, String> {
    parse_count(text)
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("a whole number from {min} to {shown} is needed"))
}

/// A number of bytes, such as `65536` or `64KiB`.
fn bytes(text: &str, min: u64, max: u64, shown: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("a number of bytes from {min} to {shown} is needed, such as 64MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_addresses() {
        for text in ["a", "cache-1.eu_west", &"x".repeat(64)] {
            assert!(name(text).is_ok(), "{text}");
        }
        for text in ["", "a b", "a/b", "ü", "*", "a$", &"x".repeat(65)] {
            assert!(name(text).unwrap_err().contains("letters, digits"), "{text}");
        }
    }

    #[test]
    fn addresses_may_leave_out_their_protocol() {
        let all = ["tcp/127.0.0.1:7447", "127.0.0.1:7447", "localhost:7447"];
        for text in all {
            assert_eq!(listen(text).unwrap().to_string(), "127.0.0.1:7447");
        }
        assert_eq!(listen("[::1]:0").unwrap().to_string(), "[::1]:0");
        assert!(listen("0.0.0.0:7447").unwrap_err().contains("concrete"));
        assert!(listen("udp/127.0.0.1:7447").unwrap_err().contains("'udp/'"));
        for text in ["", "7447", "127.0.0.1", "127.0.0.1:70000", "cache-2:7447", "a:b:c"] {
            assert!(listen(text).unwrap_err().contains("127.0.0.1:7440"), "{text}");
        }
        assert_eq!(address_or_off("off"), Ok(None));
    }

    #[test]
    fn peers_may_be_named() {
        for (text, shown) in [
            ("cache-2:7447", "tcp/cache-2:7447"),
            ("tcp/10.0.0.1:7447", "tcp/10.0.0.1:7447"),
            ("[::1]:7447", "tcp/[::1]:7447"),
            ("cache-2=10.0.0.1:7447", "tcp/10.0.0.1:7447"),
        ] {
            assert_eq!(peer(text).unwrap().to_string(), shown);
        }
        for (text, name) in [
            ("cache-2=10.0.0.1:7447", Some("cache-2")),
            ("cache-2.example.org:7447", Some("cache-2")),
            ("10.0.0.1:7447", None),
            ("[::1]:7447", None),
            ("localhost:7447", None),
        ] {
            let known = peer(text).unwrap().host_name();
            assert_eq!(known.as_ref().map(Name::as_str), name, "{text}");
        }
        for text in [
            "",
            "cache-2",
            "cache-2:0",
            "a b=c:1",
            "=c:1",
            "a=",
            ":7447",
            "a b:1",
            "::1:7447",
            "0.0.0.0:1",
            "a..b:1",
        ] {
            assert!(peer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn links_have_a_name_and_perhaps_an_address() {
        for (text, shown) in [
            ("cache-2", "cache-2"),
            ("cache-2@10.0.0.1:7447", "cache-2@tcp/10.0.0.1:7447"),
            ("b@tcp/[::1]:7447", "b@tcp/[::1]:7447"),
        ] {
            assert_eq!(link(text).unwrap().to_string(), shown);
        }
        for text in ["", "@", "b@", "@b:1", "b@c", "a b", "b@c:0", "cache-2:7447", "b@c@d:1"] {
            assert!(link(text).unwrap_err().contains("cache-2@cache-2:7447"), "{text}");
        }
        assert!(entry("bloom").unwrap_err().contains("attenuated"));
        assert_eq!(depth("256").unwrap_err(), "a whole number from 1 to 255 is needed");
        assert!(depth("0").is_err() && filters("0").is_err() && walk("1001").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_told_the_range() {
        assert_eq!(capacity("1e6"), Ok(1_000_000));
        assert_eq!(capacity("1_000"), Ok(1000));
        assert_eq!((capacity("1M"), large("64MiB")), (Ok(1_000_000), Ok(64 << 20)));
        assert_eq!((rate("1%"), seconds("5m")), (rate("0.01"), Ok(Duration::from_secs(300))));
        assert!(large("64 apples").unwrap_err().contains("64MiB"));
        for text in ["0", "-1", "1.5", "many", "1e300", ""] {
            assert_eq!(capacity(text).unwrap_err(), "a whole number from 1 to 2^40 is needed");
        }
        for text in ["0", "-1", "NaN", "inf", "1e10", "soon"] {
            assert!(seconds(text).is_err() && lifetime(text).is_err(), "{text}");
            assert!(durability(text).unwrap_err().contains("'group' or 'each'"), "{text}");
        }
        assert_eq!(grace("1.9").unwrap_err(), "a number of seconds from 2 to 10^9 is needed");
        for text in ["0", "1", "NaN", "x"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(log_level("info,zenoh=debug").is_ok());
        for text in ["", "loud", "info,", "=info", "a b=info"] {
            assert!(log_level(text).is_err(), "{text}");
        }
        for text in [
            "cache-1:8080",
            "http://",
            "://x",
            "http://a b",
            &format!("http://{}", "x".repeat(255)),
        ] {
            assert!(advertise(text).is_err(), "{text}");
        }
    }
}
