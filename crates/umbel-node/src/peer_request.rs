//! Requests from one host directly to another.
//!
//! ```text
//! question = 0, a message of the replica protocol (a request for a page)
//!          | 1, set name, keys: which of them do you hold?     answer: a byte a key, 0 no, 1 yes, 2 cannot tell
//!          | 2, host name: which life of it have you heard of? answer: u64 little-endian, a byte: whether it is seen now
//!          | 3, a greeting: who are you?                       answer: a greeting
//!          | 4: which hosts do you know?                       answer: names and addresses in turn, as keys
//!          | 5, u64 life, address: that life of your name is believed here, and replies       answer: nothing
//!          | 6, host name: who has that name and replies?    answer: a greeting; nothing if nobody does
//!          | 7, set name, key, u64 transfer, u64 offset: a piece of an object    answer: see `object`
//! ```
//!
//! Names and keys: u32 length, bytes; keys: u32 number, each as a name. Little-endian.

use std::net::SocketAddr;

use umbel::replica::{Incarnation, Name};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PeerRequest<'a> {
    Protocol(&'a [u8]),
    Holds {
        set: &'a str,
        keys: Vec<&'a [u8]>,
    },
    Life {
        of: Name,
    },
    Hello(&'a [u8]),
    Hosts,
    NameHeld {
        life: Incarnation,
        address: Option<SocketAddr>,
    },
    Holder {
        of: Name,
    },
    /// A piece of the object of a key, from the home's own cache; a request without an offset ends
    /// the transfer.
    Object {
        set: &'a str,
        key: &'a [u8],
        transfer: u64,
        offset: Option<u64>,
    },
}

const PROTOCOL: u8 = 0;
const HOLDS: u8 = 1;
const LIFE: u8 = 2;
const HELLO: u8 = 3;
const HOSTS: u8 = 4;
const NAME_HELD: u8 = 5;
const HOLDER: u8 = 6;
const OBJECT: u8 = 7;
/// The offset that ends a transfer.
const END: u64 = u64::MAX;

impl<'a> PeerRequest<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Protocol(bytes) => {
                out.push(PROTOCOL);
                out.extend_from_slice(bytes);
            }
            Self::Holds { set, keys } => {
                out.push(HOLDS);
                put(&mut out, set.as_bytes());
                out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
                keys.iter().for_each(|key| put(&mut out, key));
            }
            Self::Life { of } => {
                out.push(LIFE);
                put(&mut out, of.as_str().as_bytes());
            }
            Self::Hello(greeting) => {
                out.push(HELLO);
                out.extend_from_slice(greeting);
            }
            Self::Hosts => out.push(HOSTS),
            Self::Holder { of } => {
                out.push(HOLDER);
                put(&mut out, of.as_str().as_bytes());
            }
            Self::Object { set, key, transfer, offset } => {
                out.push(OBJECT);
                put(&mut out, set.as_bytes());
                put(&mut out, key);
                out.extend_from_slice(&transfer.to_le_bytes());
                out.extend_from_slice(&offset.unwrap_or(END).to_le_bytes());
            }
            Self::NameHeld { life, address } => {
                out.push(NAME_HELD);
                out.extend_from_slice(&life.0.to_le_bytes());
                let address = address.map(|address| address.to_string()).unwrap_or_default();
                put(&mut out, address.as_bytes());
            }
        }
        out
    }

    /// Decodes a request; `None` if it is invalid.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let question = match *kind {
            PROTOCOL => return Some(Self::Protocol(rest)),
            HELLO => return Some(Self::Hello(rest)),
            HOSTS => Self::Hosts,
            HOLDS => {
                let set = std::str::from_utf8(take(&mut rest)?).ok()?;
                let count = number(&mut rest)?;
                // A key takes at least four bytes: reject a count that is too large.
                if count > rest.len() / 4 {
                    return None;
                }
                let keys = (0..count).map(|_| take(&mut rest)).collect::<Option<_>>()?;
                Self::Holds { set, keys }
            }
            NAME_HELD => {
                let life = Incarnation(long(&mut rest)?);
                let address = std::str::from_utf8(take(&mut rest)?).ok()?.parse().ok();
                Self::NameHeld { life, address }
            }
            LIFE => Self::Life { of: name(&mut rest)? },
            HOLDER => Self::Holder { of: name(&mut rest)? },
            OBJECT => {
                let set = std::str::from_utf8(take(&mut rest)?).ok()?;
                let (key, transfer) = (take(&mut rest)?, long(&mut rest)?);
                let offset = Some(long(&mut rest)?).filter(|offset| *offset != END);
                Self::Object { set, key, transfer, offset }
            }
            _ => return None,
        };
        rest.is_empty().then_some(question)
    }
}

/// Encodes the reply to [`PeerRequest::Life`]: the known incarnation of a host, 0 if none is known,
/// and whether it is seen now.
pub(crate) fn encode_life(life: Option<Incarnation>, is_seen: bool) -> Vec<u8> {
    let life = life.map_or(0, |life| life.0).to_le_bytes();
    life.into_iter().chain([u8::from(is_seen)]).collect()
}

/// Decodes the incarnation that another host knows, and whether it is seen there now.
pub(crate) fn decode_life(bytes: &[u8]) -> Option<(u64, bool)> {
    let (life, seen) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*life), seen == [1]))
}

/// Encodes the reply to [`PeerRequest::Hosts`]: the hosts that this one knows, and where they
/// listen.
pub(crate) fn encode_hosts<'a>(
    hosts: impl ExactSizeIterator<Item = (&'a str, SocketAddr)>,
) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&(hosts.len() as u32).to_le_bytes());
    for (name, address) in hosts {
        put(&mut out, name.as_bytes());
        put(&mut out, address.to_string().as_bytes());
    }
    out
}

/// Decodes the hosts that another one knows; `None` if the reply is invalid.
pub(crate) fn decode_hosts(mut bytes: &[u8]) -> Option<Vec<(Name, SocketAddr)>> {
    let count = number(&mut bytes)?;
    // Each takes at least eight bytes: reject a count that is too large.
    if count > bytes.len() / 8 {
        return None;
    }
    let mut text = || std::str::from_utf8(take(&mut bytes)?).ok();
    let hosts = (0..count).map(|_| Some((Name::new(text()?)?, text()?.parse().ok()?)));
    let hosts: Vec<_> = hosts.collect::<Option<_>>()?;
    bytes.is_empty().then_some(hosts)
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn name(rest: &mut &[u8]) -> Option<Name> {
    Name::new(std::str::from_utf8(take(rest)?).ok()?)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number) as usize)
}

fn long(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_asked_is_understood() {
        let name = Name::new("fern").unwrap();
        for question in [
            PeerRequest::Protocol(b"page"),
            PeerRequest::Holds { set: "images", keys: vec![b"", b"cat.png"] },
            PeerRequest::Life { of: name.clone() },
            PeerRequest::Holder { of: name },
            PeerRequest::NameHeld { life: Incarnation(7), address: None },
            PeerRequest::NameHeld { life: Incarnation(7), address: "[::1]:7447".parse().ok() },
            PeerRequest::Hello(b"{}"),
            PeerRequest::Hosts,
            PeerRequest::Object { set: "images", key: b"cat", transfer: 9, offset: Some(0) },
            PeerRequest::Object { set: "images", key: b"cat", transfer: 9, offset: None },
        ] {
            let bytes = question.encode();
            assert_eq!(PeerRequest::decode(&bytes).as_ref(), Some(&question));
            if ![PROTOCOL, HELLO].contains(&bytes[0]) {
                for cut in 0..bytes.len() {
                    assert_eq!(PeerRequest::decode(&bytes[..cut]), None, "{question:?} to {cut}");
                }
                assert_eq!(PeerRequest::decode(&[&bytes[..], b"x"].concat()), None);
            }
        }
    }

    #[test]
    fn a_list_of_hosts_is_understood_whole_or_not_at_all() {
        let at: [SocketAddr; 2] = ["10.0.0.1:7447", "[::1]:1"].map(|at| at.parse().unwrap());
        let bytes = encode_hosts([("fern", at[0]), ("lily", at[1])].into_iter());
        let name = |name| Name::new(name).unwrap();
        assert_eq!(decode_hosts(&bytes), Some(vec![(name("fern"), at[0]), (name("lily"), at[1])]));
        for cut in 0..bytes.len() {
            assert_eq!(decode_hosts(&bytes[..cut]), None);
        }
        assert_eq!(decode_hosts(&[&bytes[..], b"x"].concat()), None);
        assert_eq!(decode_hosts(&[255; 12]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = PeerRequest::decode(&bytes);
            let _ = decode_hosts(&bytes);
        }
    }
}
