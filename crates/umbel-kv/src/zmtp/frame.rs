//! The bytes of ZMTP 3.0: greetings, commands, frames.
//!
//! ```text
//! greeting  ff 0*8 7f | 3 0 | "NULL" 0*16 | 0 | 0*31          64 bytes
//! frame     flags (1 more, 2 long, 4 command) | length (1 byte, or 8 big-endian) | body
//! READY     5 "READY" (length name, 4 bytes length value)…
//! ```

use std::io::{self, ErrorKind, Read};

/// Maximum length of an accepted frame, in bytes.
pub const MAX_FRAME: u64 = 64 << 20;
/// Maximum number of frames in an accepted message.
pub const MAX_FRAMES: usize = 8;

pub(super) const GREETING: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A protocol violation by a peer.
pub(super) fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not a ZeroMQ peer: {}", what.into()))
}

pub(super) fn greeting() -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    (bytes[0], bytes[9], bytes[10]) = (0xff, 0x7f, 3);
    bytes[12..16].copy_from_slice(b"NULL");
    bytes
}

pub(super) fn check_greeting(bytes: &[u8; GREETING]) -> io::Result<()> {
    if (bytes[0], bytes[9] & 1) != (0xff, 1) {
        return Err(broken("it does not greet as one"));
    }
    if bytes[10] < 3 {
        return Err(broken(format!("it speaks version {} of the protocol, not 3", bytes[10])));
    }
    let mechanism = bytes[12..32].split(|byte| *byte == 0).next().unwrap_or_default();
    if mechanism != b"NULL" {
        let shown = String::from_utf8_lossy(mechanism);
        return Err(broken(format!("it wants security {shown}; only NULL is known here")));
    }
    Ok(())
}

pub(super) fn ready(socket_type: &str) -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    for (name, value) in [("Socket-Type", socket_type), ("Identity", "")] {
        body.push(name.len() as u8);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    command(&body)
}

fn command(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header(COMMAND, body.len(), &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

fn header(flags: u8, length: usize, into: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short) => into.extend([flags, short]),
        Err(_) => {
            into.push(flags | LONG);
            into.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// The socket type that a READY command names.
pub(super) fn socket_type(body: &[u8]) -> io::Result<Option<&[u8]>> {
    if let Some(reason) = body.strip_prefix(b"\x05ERROR") {
        let reason = String::from_utf8_lossy(reason.get(1..).unwrap_or_default());
        return Err(broken(format!("it refuses: {reason}")));
    }
    let Some(mut rest) = body.strip_prefix(b"\x05READY") else { return Ok(None) };
    while let Some((length, after)) = rest.split_first() {
        let short = || broken("its greeting ends too early");
        let (name, after) = after.split_at_checked(usize::from(*length)).ok_or_else(short)?;
        let (length, after) = after.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (value, after) = after.split_at_checked(length).ok_or_else(short)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Ok(Some(value));
        }
        rest = after;
    }
    Ok(None)
}

/// The PONG reply to a PING: its context, without its time-to-live. `None` if it is not a PING.
pub(super) fn pong(body: &[u8]) -> Option<Vec<u8>> {
    let context = body.strip_prefix(b"\x04PING")?.get(2..)?;
    Some(command(&[b"\x04PONG", context].concat()))
}

/// Writes the frames of one message.
pub(super) fn write(frames: &[&[u8]], into: &mut Vec<u8>) {
    for (place, body) in frames.iter().enumerate() {
        let flags = if place + 1 < frames.len() { MORE } else { 0 };
        header(flags, body.len(), into);
        into.extend_from_slice(body);
    }
}

/// Reads a frame: whether it is a command, its body, and whether more frames of the message follow.
pub(super) fn read(input: &mut impl Read) -> io::Result<((bool, Vec<u8>), bool)> {
    let mut flags = [0];
    input.read_exact(&mut flags)?;
    let [flags] = flags;
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & (COMMAND | MORE) == (COMMAND | MORE) {
        return Err(broken(format!("a frame with flags 0x{flags:02x}")));
    }
    let mut length = [0; 8];
    let digits = if flags & LONG == 0 { 7..8 } else { 0..8 };
    input.read_exact(&mut length[digits])?;
    let length = u64::from_be_bytes(length);
    if length > MAX_FRAME {
        return Err(broken(format!("a frame of {length} bytes; {MAX_FRAME} are accepted")));
    }
    // Memory grows with the bytes received, not with the announced length.
    let mut body = Vec::with_capacity((length as usize).min(1 << 16));
    let read = input.take(length).read_to_end(&mut body)?;
    if read as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(((flags & COMMAND != 0, body), flags & MORE != 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let long = vec![7; 70_000];
        let frames: [&[u8]; 4] = [b"", b"topic", &[9; 255], &long];
        let mut bytes = Vec::new();
        write(&frames, &mut bytes);
        let mut input = &bytes[..];
        for (place, frame) in frames.iter().enumerate() {
            let ((is_command, body), has_more) = read(&mut input).unwrap();
            assert_eq!((is_command, &body[..], has_more), (false, *frame, place < 3));
        }
        for end in 0..bytes.len().min(300) {
            let mut input = &bytes[..end];
            while let Ok((_, true)) = read(&mut input) {}
        }
    }

    #[test]
    fn a_length_that_is_announced_takes_no_memory() {
        for bytes in
            [&[2, 0, 0, 0, 0, 4, 0, 0, 0, 1][..], &[2, 255, 255, 255, 255, 255, 255, 255, 255]]
        {
            assert!(read(&mut &bytes[..]).is_err());
        }
        assert!(read(&mut &[0x08, 0][..]).is_err(), "an unknown flag");
        assert!(read(&mut &[0x05, 0][..]).is_err(), "a command has one frame");
    }

    #[test]
    fn the_other_socket_is_known_by_its_greeting() {
        let body = |bytes: &[u8]| bytes[2..].to_vec();
        assert_eq!(socket_type(&body(&ready("PUB"))).unwrap(), Some(&b"PUB"[..]));
        assert_eq!(socket_type(b"\x05READY").unwrap(), None);
        assert_eq!(socket_type(b"\x05HELLO").unwrap(), None);
        assert!(socket_type(b"\x05ERROR\x02no").unwrap_err().to_string().contains("refuses: no"));
        assert!(socket_type(b"\x05READY\x0bSocket-Type\0\0\0\x09PUB").is_err());
        assert!(check_greeting(&greeting()).is_ok());
        for (place, byte) in [(0, 0), (9, 0), (10, 2), (12, b'P')] {
            let mut other = greeting();
            other[place] = byte;
            assert!(check_greeting(&other).is_err());
        }
        assert_eq!(pong(b"\x04PING\0\x0aabc").unwrap(), b"\x04\x08\x04PONGabc");
        assert_eq!(pong(b"\x04PONG"), None);
        assert_eq!(pong(b"\x04PING"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut input = &bytes[..];
            while read(&mut input).is_ok() {}
            _ = socket_type(&bytes);
            _ = socket_type(&[b"\x05READY", &bytes[..]].concat());
            _ = pong(&bytes);
            if let Ok(greeting) = <&[u8; GREETING]>::try_from(&bytes[..bytes.len().min(GREETING)]) {
                _ = check_greeting(greeting);
            }
        }
    }
}
