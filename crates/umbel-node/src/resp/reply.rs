//! Replies, written directly into the bytes that are sent to the socket.
//!
//! RESP2 has five types; RESP3, used after `HELLO 3`, adds maps, sets, doubles, booleans and a
//! null. A command writes the meaning (`map`, `flag`); the protocol of the connection determines
//! the encoding.
//!
//! A reply to a write may be sent only when the write is durable. Such replies are marked, so that
//! they can be turned into errors if the write fails.

use std::io::Write;
use std::ops::Range;

use crate::{Announced, Value};

/// The protocol version of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Protocol {
    /// The version at the start of every connection.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

impl Protocol {
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Replies that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    protocol: Protocol,
    /// The ranges of complete replies to writes, in order.
    writes: Vec<Range<usize>>,
    /// Errors that are not counted yet.
    errors: u64,
}

impl Replies {
    /// How much memory of a large reply is kept for the next one.
    const KEPT_BYTES: usize = 64 << 10;

    pub(super) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) const fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes everything after it was sent.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.writes.clear();
        self.bytes.shrink_to(Self::KEPT_BYTES);
        self.writes.shrink_to(Self::KEPT_BYTES / size_of::<Range<usize>>());
    }

    /// Removes everything after `length`: a partial reply that is replaced by an error.
    pub(super) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Marks everything from `from` on as the reply to one write.
    pub(super) fn mark_write(&mut self, from: usize) {
        self.writes.push(from..self.bytes.len());
    }

    /// Replaces the replies to writes by errors: the writes failed.
    pub(super) fn fail_writes(&mut self, reason: &str) {
        let before = std::mem::take(&mut self.bytes);
        let mut kept = 0;
        for write in std::mem::take(&mut self.writes) {
            self.bytes.extend_from_slice(&before[kept..write.start]);
            self.error(reason);
            kept = write.end;
        }
        self.bytes.extend_from_slice(&before[kept..]);
    }

    /// A simple string, such as `+OK`; must not contain line ends.
    pub(super) fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.line(b'+', text.as_bytes());
    }

    pub(super) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// `-ERR …`; line ends in the text are replaced by spaces.
    pub(super) fn error(&mut self, text: &str) {
        self.coded_error("ERR", text);
    }

    /// An error line that already begins with its code, or has none.
    pub(super) fn error_line(&mut self, line: &str) {
        self.bytes.push(b'-');
        self.end_of_error(line);
    }

    /// `-CODE …`, for the few errors that have another code than `ERR`.
    pub(super) fn coded_error(&mut self, code: &str, text: &str) {
        self.bytes.push(b'-');
        self.bytes.extend_from_slice(code.as_bytes());
        self.bytes.push(b' ');
        self.end_of_error(text);
    }

    fn end_of_error(&mut self, text: &str) {
        let printable = |byte: u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
        self.bytes.extend(text.bytes().map(printable));
        self.bytes.extend_from_slice(b"\r\n");
        self.errors += 1;
    }

    /// The number of errors written since the last call.
    pub(super) const fn take_errors(&mut self) -> u64 {
        std::mem::replace(&mut self.errors, 0)
    }

    pub(super) fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// A count, as an integer.
    pub(super) fn count(&mut self, value: usize) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// 0 or 1: Redis's no and yes.
    #[inline]
    pub(super) fn bit(&mut self, yes: bool) {
        self.bytes.extend_from_slice(if yes { b":1\r\n" } else { b":0\r\n" });
    }

    #[inline]
    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// The header of an array of this many elements.
    #[inline]
    pub(super) fn array(&mut self, elements: usize) {
        self.length(b'*', elements);
    }

    /// Inserts the header of an array at `place`, before elements that are written already.
    pub(super) fn array_before(&mut self, place: usize, elements: usize) {
        let end = self.bytes.len();
        self.array(elements);
        let header = self.bytes.len() - end;
        self.bytes[place..].rotate_right(header);
    }

    /// Hosts, as in the reply to `WHO`.
    #[inline]
    pub(super) fn names(&mut self, names: &[&str]) {
        self.array(names.len());
        for name in names {
            self.text(name);
        }
    }

    /// A prefix and its hosts, or null, as in the reply to `MATCH`.
    pub(super) fn announced(&mut self, found: Option<&Announced>) {
        let Some(Announced { prefix, hosts }) = found else { return self.null() };
        self.array(2);
        self.text(prefix);
        self.array(hosts.len());
        hosts.iter().for_each(|host| self.text(host));
    }

    /// The header of a map of this many fields.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', 2 * pairs),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// The header of a single value of a map; RESP2 leaves out its name.
    pub(super) fn single(&mut self, name: &str) {
        match self.protocol {
            Protocol::Resp2 => self.array(1),
            Protocol::Resp3 => {
                self.map(1);
                self.simple(name);
            }
        }
    }

    /// Whether the protocol has booleans; otherwise they are integers.
    pub(super) fn has_flags(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// The header of a set of this many elements.
    pub(super) fn set(&mut self, elements: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', elements),
            Protocol::Resp3 => self.length(b'~', elements),
        }
    }

    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    pub(super) fn double(&mut self, value: f64) {
        match self.protocol {
            Protocol::Resp2 => self.text(&value.to_string()),
            Protocol::Resp3 => self.line(b',', value.to_string().to_lowercase().as_bytes()),
        }
    }

    pub(super) fn flag(&mut self, yes: bool) {
        match self.protocol {
            Protocol::Resp2 => self.bit(yes),
            Protocol::Resp3 => self.line(b'#', if yes { b"t" } else { b"f" }),
        }
    }

    /// Text for people, to be displayed as it is.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.text(text),
            Protocol::Resp3 => {
                self.length(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// The value of a field.
    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.text(text),
            Value::Whole(number) => self.integer(i64::try_from(*number).unwrap_or(i64::MAX)),
            Value::Real(number) => self.double(*number),
            Value::Flag(flag) => self.flag(*flag),
            Value::Nothing => self.null(),
            Value::List(values) => {
                self.array(values.len());
                for value in values {
                    self.value(value);
                }
            }
        }
    }

    /// A map of fields.
    pub(super) fn fields(&mut self, fields: &[(&'static str, Value)]) {
        self.map(fields.len());
        for (name, value) in fields {
            self.text(name);
            self.value(value);
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn length(&mut self, kind: u8, length: usize) {
        // A fast path: nearly all lengths have one digit, and replies spend most of their time
        // here.
        if length < 10 {
            self.bytes.extend_from_slice(&[kind, b'0' + length as u8, b'\r', b'\n']);
        } else {
            self.number(kind, length as i64);
        }
    }

    fn number(&mut self, kind: u8, value: i64) {
        write!(self.bytes, "{}{value}\r\n", char::from(kind))
            .expect("memory takes what is written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl Fn(&mut Replies)) -> String {
        let mut replies = Replies::default();
        replies.set_protocol(protocol);
        write(&mut replies);
        String::from_utf8(replies.bytes().to_vec()).unwrap()
    }

    fn both(write: impl Fn(&mut Replies)) -> (String, String) {
        (written(Protocol::Resp2, &write), written(Protocol::Resp3, &write))
    }

    fn same(text: &str) -> (String, String) {
        (text.into(), text.into())
    }

    #[test]
    fn every_type_is_written_as_the_protocol_says() {
        assert_eq!(both(|r| r.simple("PONG")), same("+PONG\r\n"));
        assert_eq!(both(|r| r.error("no\r\nsuch")), same("-ERR no  such\r\n"));
        assert_eq!(both(|r| r.integer(-12)), same(":-12\r\n"));
        assert_eq!(both(|r| r.bulk(b"a\r\nb")), same("$4\r\na\r\nb\r\n"));
        assert_eq!(both(|r| r.bulk(&[b'x'; 12])), same("$12\r\nxxxxxxxxxxxx\r\n"));
        assert_eq!(both(|r| r.array(0)), same("*0\r\n"));
        assert_eq!(both(|r| r.array(100_000)), same("*100000\r\n"));
        let late = |r: &mut Replies| {
            r.bit(true);
            r.integer(7);
            r.integer(8);
            r.array_before(4, 2);
        };
        assert_eq!(both(late), same(":1\r\n*2\r\n:7\r\n:8\r\n"));
        assert_eq!(both(|r| r.map(2)), ("*4\r\n".into(), "%2\r\n".into()));
        assert_eq!(both(|r| r.set(2)), ("*2\r\n".into(), "~2\r\n".into()));
        assert_eq!(both(Replies::null), ("$-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(|r| r.double(0.25)), ("$4\r\n0.25\r\n".into(), ",0.25\r\n".into()));
        assert_eq!(both(|r| r.double(f64::INFINITY)), ("$3\r\ninf\r\n".into(), ",inf\r\n".into()));
        assert_eq!(both(|r| r.double(f64::NAN)), ("$3\r\nNaN\r\n".into(), ",nan\r\n".into()));
        assert_eq!(both(|r| r.flag(true)), (":1\r\n".into(), "#t\r\n".into()));
        assert_eq!(both(|r| r.verbatim("hi")), ("$2\r\nhi\r\n".into(), "=6\r\ntxt:hi\r\n".into()));
    }

    #[test]
    fn fields_are_a_map() {
        let fields =
            [("name", Value::Text("a".into())), ("sets", Value::List(vec![Value::Whole(1)]))];
        let (two, three) = both(|replies| replies.fields(&fields));
        assert_eq!(two, "*4\r\n$4\r\nname\r\n$1\r\na\r\n$4\r\nsets\r\n*1\r\n:1\r\n");
        assert_eq!(three, "%2\r\n$4\r\nname\r\n$1\r\na\r\n$4\r\nsets\r\n*1\r\n:1\r\n");
    }

    #[test]
    fn writes_that_did_not_settle_become_errors_and_nothing_else_does() {
        let mut replies = Replies::default();
        replies.simple("PONG");
        for _ in 0..2 {
            let from = replies.len();
            replies.array(1);
            replies.bit(true);
            replies.mark_write(from);
        }
        replies.integer(7);
        replies.fail_writes("disk full");
        let text = String::from_utf8(replies.bytes().to_vec()).unwrap();
        assert_eq!(text, "+PONG\r\n-ERR disk full\r\n-ERR disk full\r\n:7\r\n");
    }
}
