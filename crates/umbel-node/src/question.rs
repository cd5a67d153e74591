//! What one host asks another directly.
//!
//! ```text
//! question = 0, a message of the replica protocol (a request for a page)
//!          | 1, set name, keys: which of them do you hold?     answer: a byte a key, 0 no, 1 yes, 2 cannot tell
//!          | 2, host name: which life of it have you heard of? answer: u64 little-endian
//! ```
//!
//! Names and keys: u32 length, bytes; keys: u32 number, each as a name. Little-endian.

use umbel::replica::Name;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Question<'a> {
    Protocol(&'a [u8]),
    Holds { set: &'a str, keys: Vec<&'a [u8]> },
    Life { of: Name },
}

const PROTOCOL: u8 = 0;
const HOLDS: u8 = 1;
const LIFE: u8 = 2;

impl<'a> Question<'a> {
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
        }
        out
    }

    /// What was asked; `None` if it is not to be understood.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let question = match *kind {
            PROTOCOL => return Some(Self::Protocol(rest)),
            HOLDS => {
                let set = std::str::from_utf8(take(&mut rest)?).ok()?;
                let count = number(&mut rest)?;
                // A key takes four bytes at least: no more are believed.
                if count > rest.len() / 4 {
                    return None;
                }
                let keys = (0..count).map(|_| take(&mut rest)).collect::<Option<_>>()?;
                Self::Holds { set, keys }
            }
            LIFE => Self::Life { of: Name::new(std::str::from_utf8(take(&mut rest)?).ok()?)? },
            _ => return None,
        };
        rest.is_empty().then_some(question)
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number) as usize)
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
            Question::Protocol(b"page"),
            Question::Holds { set: "images", keys: vec![b"", b"cat.png"] },
            Question::Life { of: name },
        ] {
            let bytes = question.encode();
            assert_eq!(Question::decode(&bytes).as_ref(), Some(&question));
            if bytes[0] != PROTOCOL {
                for cut in 0..bytes.len() {
                    assert_eq!(Question::decode(&bytes[..cut]), None, "{question:?} to {cut}");
                }
                assert_eq!(Question::decode(&[&bytes[..], b"x"].concat()), None);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Question::decode(&bytes);
        }
    }
}
