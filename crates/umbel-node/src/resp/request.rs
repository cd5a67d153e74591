//! Parses requests of Redis clients from a socket: arrays of bulk strings, and inline commands.
//!
//! ```text
//! *3\r\n $9\r\nUMBEL.HAS\r\n $6\r\nimages\r\n $5\r\napple\r\n      an array of bulk strings
//! UMBEL.HAS images "an apple"\r\n                               inline, for people with netcat
//! ```
//!
//! The parser reads from the connection's buffer and keeps positions, not copies: arguments are
//! borrowed from the buffer. It remembers how far it came, so that a request which arrives in a
//! thousand pieces is parsed once, not a thousand times.
//!
//! Always true: any bytes yield requests, a need for more bytes, or an error. Limits are checked as
//! soon as a length is known, before its bytes are waited for. Nothing is allocated because a
//! client announces a length.
//!
//! Not here: the meaning of commands (`commands`), the buffer and its growth (`buffer`).

/// Limits for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Maximum number of arguments, the command's name included.
    pub arguments: usize,
    /// Maximum length of one argument, in bytes.
    pub argument_bytes: usize,
    /// Maximum length of a whole request in bytes, lengths and line ends included; at most
    /// [`u32::MAX`].
    pub request_bytes: usize,
}

impl Default for RequestLimits {
    /// 2^20 arguments of at most 1 MiB each, 64 MiB together.
    fn default() -> Self {
        Self { arguments: 1 << 20, argument_bytes: 1 << 20, request_bytes: 64 << 20 }
    }
}

impl RequestLimits {
    /// Limits for a client that has not logged in, if users are configured: enough for `AUTH` and
    /// `HELLO` with all their options.
    pub const BEFORE_LOGIN: Self =
        Self { arguments: 16, argument_bytes: 4 << 10, request_bytes: 16 << 10 };
}

/// Why a connection cannot continue: the start of the next request is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The number of arguments is not a number, or exceeds the limit.
    #[error("Protocol error: invalid multibulk length")]
    ArrayLength,
    /// An argument does not begin with its length.
    #[error("Protocol error: expected '$', got '{}'", .0.escape_ascii())]
    NoLength(u8),
    /// The length of an argument is not a number, or exceeds the limit.
    #[error("Protocol error: invalid bulk length")]
    ArgumentLength,
    /// An argument is longer or shorter than its length.
    #[error("Protocol error: an argument does not end where its length says")]
    ArgumentEnd,
    /// The whole request exceeds the limit.
    #[error("Protocol error: too big a request")]
    RequestLength,
    /// An inline command is longer than [`Parser::LONGEST_LINE`].
    #[error("Protocol error: too big inline request")]
    LineLength,
    /// An inline command opens a quote and does not close it before a space.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
}

/// What is at the beginning of the bytes.
#[derive(Debug)]
pub enum Step<'bytes, 'parser> {
    /// A request, and how many bytes it took.
    Request(Request<'bytes, 'parser>, usize),
    /// An empty line or array, which gets no reply, and how many bytes it took.
    Empty(usize),
    /// An incomplete request; it needs at least this many bytes.
    More(usize),
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub enum Request<'bytes, 'parser> {
    /// An array of bulk strings: its arguments are borrowed from the bytes.
    Array(Arguments<'bytes, 'parser>),
    /// An inline command: its arguments were unquoted into the parser.
    Inline(Arguments<'parser, 'parser>),
}

/// The arguments of a request, the command's name first.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'bytes, 'parser> {
    bytes: &'bytes [u8],
    spans: &'parser [Span],
}

impl<'bytes> Arguments<'bytes, '_> {
    /// How many there are, the command's name included: never 0.
    #[expect(clippy::len_without_is_empty, reason = "a request has a name at least")]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// The argument at `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'bytes [u8]> {
        self.spans.get(index).map(|span| span.of(self.bytes))
    }

    /// All arguments from `index` on.
    #[must_use]
    pub fn from(&self, index: usize) -> impl ExactSizeIterator<Item = &'bytes [u8]> {
        let bytes = self.bytes;
        self.spans.get(index..).unwrap_or_default().iter().map(move |span| span.of(bytes))
    }
}

/// The position of an argument. `u32` halves the memory of a hundred thousand arguments.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u32,
    to: u32,
}

impl Span {
    /// Both ends are within a request, whose length fits (`RequestLimits::request_bytes`).
    fn new(from: usize, to: usize) -> Self {
        debug_assert!(from <= to);
        debug_assert!(u32::try_from(to).is_ok());
        Self { from: from as u32, to: to as u32 }
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.from as usize..self.to as usize]
    }
}

/// Parses requests, one after the other.
///
/// ```
/// use umbel_node::resp::request::{Parser, Request, RequestLimits, Step};
///
/// let mut parser = Parser::new(RequestLimits::default());
/// let bytes = b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n*1\r\n";
/// let Step::Request(Request::Array(arguments), consumed) = parser.next(bytes)? else { panic!() };
/// assert_eq!(arguments.get(1), Some(&b"hi"[..]));
/// assert!(matches!(parser.next(&bytes[consumed..])?, Step::More(_)));
/// # Ok::<(), umbel_node::resp::request::ProtocolError>(())
/// ```
#[derive(Debug)]
pub struct Parser {
    limits: RequestLimits,
    /// Arguments of the current request, relative to its first byte.
    spans: Vec<Span>,
    /// Bytes of it that were parsed (of a line: searched for its end).
    scanned: usize,
    /// Arguments that are still missing, once the array's length is known.
    awaited: Option<usize>,
    /// The arguments of a line without quotes.
    line: Vec<u8>,
}

impl Parser {
    /// Maximum length of an inline command, in bytes.
    pub const LONGEST_LINE: usize = 64 << 10;
    /// Maximum number of digits of a length, with sign: no `i64` has more.
    const LONGEST_NUMBER: usize = 20;
    /// How much memory of a large request is kept for the next one.
    const KEPT_SPANS: usize = 4 << 10;

    /// A parser at the beginning of a connection.
    #[must_use]
    pub fn new(limits: RequestLimits) -> Self {
        let mut parser =
            Self { limits, spans: Vec::new(), scanned: 0, awaited: None, line: Vec::new() };
        parser.set_limits(limits);
        parser
    }

    /// Changes the limits for requests that are not parsed yet.
    pub fn set_limits(&mut self, limits: RequestLimits) {
        let request_bytes = limits.request_bytes.min(u32::MAX as usize);
        self.limits = RequestLimits { request_bytes, ..limits };
    }

    /// Parses the request at the beginning of `bytes`.
    ///
    /// After [`Step::More`], call it again with the same bytes and more; after the other steps,
    /// with the bytes that follow.
    ///
    /// # Errors
    /// If the bytes are not a request. What follows them cannot be parsed.
    pub fn next<'bytes>(&mut self, bytes: &'bytes [u8]) -> Result<Step<'bytes, '_>, ProtocolError> {
        match bytes.first() {
            None => Ok(Step::More(1)),
            Some(b'*') => self.array(bytes),
            Some(_) => self.inline(bytes),
        }
    }

    fn array<'bytes>(&mut self, bytes: &'bytes [u8]) -> Result<Step<'bytes, '_>, ProtocolError> {
        let mut awaited = match self.awaited {
            Some(awaited) => awaited,
            None => match number(bytes, 1).ok_or(ProtocolError::ArrayLength)? {
                Number::Partial => return Ok(Step::More(bytes.len() + 1)),
                Number::Whole(length, after) if length <= 0 => return Ok(Step::Empty(after)),
                Number::Whole(length, after) => {
                    let within = usize::try_from(length).ok();
                    let within = within.filter(|length| *length <= self.limits.arguments);
                    self.forget_last();
                    self.scanned = after;
                    within.ok_or(ProtocolError::ArrayLength)?
                }
            },
        };
        while awaited > 0 {
            match self.argument(bytes)? {
                None => awaited -= 1,
                Some(needed) => {
                    self.awaited = Some(awaited);
                    return Ok(Step::More(needed));
                }
            }
        }
        let consumed = std::mem::take(&mut self.scanned);
        self.awaited = None;
        Ok(Step::Request(Request::Array(Arguments { bytes, spans: &self.spans }), consumed))
    }

    /// Parses one argument, or returns how many bytes the request needs for it.
    fn argument(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let at = self.scanned;
        match bytes.get(at) {
            None => return self.more(at + 1),
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::NoLength(*other)),
        }
        let (length, from) = match number(bytes, at + 1).ok_or(ProtocolError::ArgumentLength)? {
            Number::Partial => return self.more(bytes.len() + 1),
            Number::Whole(length, from) => (length, from),
        };
        let length = usize::try_from(length).map_err(|_| ProtocolError::ArgumentLength)?;
        if length > self.limits.argument_bytes {
            return Err(ProtocolError::ArgumentLength);
        }
        let to = from + length;
        match bytes.get(to..to + 2) {
            // Reject a wrong length at once instead of waiting for bytes that never come.
            None if bytes.get(to).is_some_and(|end| *end != b'\r') => {
                Err(ProtocolError::ArgumentEnd)
            }
            None => self.more(to + 2),
            Some(b"\r\n") if to + 2 > self.limits.request_bytes => {
                Err(ProtocolError::RequestLength)
            }
            Some(b"\r\n") => {
                self.spans.push(Span::new(from, to));
                self.scanned = to + 2;
                Ok(None)
            }
            Some(_) => Err(ProtocolError::ArgumentEnd),
        }
    }

    fn more(&self, needed: usize) -> Result<Option<usize>, ProtocolError> {
        if needed > self.limits.request_bytes {
            return Err(ProtocolError::RequestLength);
        }
        Ok(Some(needed))
    }

    fn inline<'bytes>(&mut self, bytes: &'bytes [u8]) -> Result<Step<'bytes, '_>, ProtocolError> {
        let longest = Self::LONGEST_LINE.min(self.limits.request_bytes);
        let new = bytes.get(self.scanned..).unwrap_or_default();
        let Some(end) = new.iter().position(|byte| *byte == b'\n') else {
            self.scanned = bytes.len();
            let fits = bytes.len() < longest;
            return if fits {
                Ok(Step::More(bytes.len() + 1))
            } else {
                Err(ProtocolError::LineLength)
            };
        };
        let end = self.scanned + end;
        self.scanned = 0;
        self.forget_last();
        if end >= longest {
            return Err(ProtocolError::LineLength);
        }
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        self.unquote(line)?;
        if self.spans.is_empty() {
            return Ok(Step::Empty(end + 1));
        }
        let arguments = Arguments { bytes: &self.line, spans: &self.spans };
        Ok(Step::Request(Request::Inline(arguments), end + 1))
    }

    /// Splits a line at spaces, as Redis does: `"…"` with `\n \r \t \b \a \xHH \"`, `'…'`
    /// with `\'`.
    fn unquote(&mut self, line: &[u8]) -> Result<(), ProtocolError> {
        let mut rest = line.trim_ascii_start();
        while let Some(first) = rest.first() {
            let from = self.line.len();
            rest = match first {
                b'"' => double_quoted(&rest[1..], &mut self.line).ok_or(ProtocolError::Quotes)?,
                b'\'' => single_quoted(&rest[1..], &mut self.line).ok_or(ProtocolError::Quotes)?,
                _ => plain(rest, &mut self.line),
            };
            self.spans.push(Span::new(from, self.line.len()));
            if rest.first().is_some_and(|next| !next.is_ascii_whitespace()) {
                return Err(ProtocolError::Quotes);
            }
            rest = rest.trim_ascii_start();
        }
        Ok(())
    }

    fn forget_last(&mut self) {
        self.spans.clear();
        self.spans.shrink_to(Self::KEPT_SPANS);
        self.line.clear();
    }
}

/// A number up to its line end.
enum Number {
    /// The line end has not arrived yet.
    Partial,
    /// The number, and where its line ends.
    Whole(i64, usize),
}

/// The number at `at`; `None` if it is invalid.
#[inline]
fn number(bytes: &[u8], at: usize) -> Option<Number> {
    let (negative, digits) = match bytes.get(at) {
        Some(b'-') => (true, at + 1),
        _ => (false, at),
    };
    let mut value = 0_i64;
    let mut here = digits;
    loop {
        match bytes.get(here) {
            None => return Some(Number::Partial),
            Some(digit @ b'0'..=b'9') => {
                value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
                here += 1;
            }
            Some(b'\r') if here > digits => break,
            _ => return None,
        }
        if here > at + Parser::LONGEST_NUMBER {
            return None;
        }
    }
    match bytes.get(here + 1) {
        None => Some(Number::Partial),
        Some(b'\n') => Some(Number::Whole(if negative { -value } else { value }, here + 2)),
        Some(_) => None,
    }
}

/// Copies the text before the next space or quote; returns the rest.
fn plain<'line>(line: &'line [u8], into: &mut Vec<u8>) -> &'line [u8] {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    let end = line.iter().position(ends).unwrap_or(line.len());
    into.extend_from_slice(&line[..end]);
    &line[end..]
}

/// Copies the text up to the closing quote and returns the rest; `None` if there is no such quote.
fn single_quoted<'line>(mut line: &'line [u8], into: &mut Vec<u8>) -> Option<&'line [u8]> {
    loop {
        line = match line {
            [b'\\', b'\'', rest @ ..] => {
                into.push(b'\'');
                rest
            }
            [b'\'', rest @ ..] => return Some(rest),
            [byte, rest @ ..] => {
                into.push(*byte);
                rest
            }
            [] => return None,
        }
    }
}

/// Copies the text up to the closing quote and returns the rest; `None` if there is no such quote.
fn double_quoted<'line>(mut line: &'line [u8], into: &mut Vec<u8>) -> Option<&'line [u8]> {
    loop {
        line = match line {
            [b'\\', b'x', high, low, rest @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                into.push(hex(*high) << 4 | hex(*low));
                rest
            }
            [b'\\', escaped, rest @ ..] => {
                into.push(escape(*escaped));
                rest
            }
            [b'"', rest @ ..] => return Some(rest),
            [byte, rest @ ..] => {
                into.push(*byte);
                rest
            }
            [] => return None,
        }
    }
}

fn escape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 32) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All requests in `bytes`, which arrive in pieces that end at `cuts`.
    fn read(
        bytes: &[u8],
        cuts: &[usize],
        limits: RequestLimits,
    ) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
        let mut parser = Parser::new(limits);
        let (mut requests, mut start) = (Vec::new(), 0);
        for end in cuts.iter().copied().chain([bytes.len()]) {
            loop {
                match parser.next(&bytes[start..end]) {
                    Err(error) => return (requests, Some(error)),
                    Ok(Step::More(needed)) => {
                        assert!(needed > end - start, "asks for bytes that it has");
                        break;
                    }
                    Ok(Step::Empty(consumed)) => start += consumed,
                    Ok(Step::Request(request, consumed)) => {
                        requests.push(match request {
                            Request::Array(arguments) => {
                                arguments.from(0).map(<[u8]>::to_vec).collect()
                            }
                            Request::Inline(arguments) => {
                                arguments.from(0).map(<[u8]>::to_vec).collect()
                            }
                        });
                        start += consumed;
                    }
                }
            }
        }
        (requests, None)
    }

    fn encode(request: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for argument in request {
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    fn error_of(bytes: &[u8]) -> Option<ProtocolError> {
        read(bytes, &[], RequestLimits::default()).1
    }

    fn line(bytes: &[u8]) -> Vec<Vec<u8>> {
        let (mut requests, error) = read(bytes, &[], RequestLimits::default());
        assert_eq!((requests.len(), error), (1, None));
        requests.remove(0)
    }

    proptest! {
        #[test]
        fn requests_come_out_as_they_went_in_wherever_they_are_cut(
            requests in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6), 0..5)
        ) {
            let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
            for cut in 0..=bytes.len() {
                prop_assert_eq!(read(&bytes, &[cut], RequestLimits::default()), (requests.clone(), None));
            }
            let every: Vec<usize> = (0..bytes.len()).collect();
            prop_assert_eq!(read(&bytes, &every, RequestLimits::default()), (requests, None));
        }

        #[test]
        fn any_bytes_are_read_the_same_in_one_piece_and_byte_by_byte(
            bytes in prop::collection::vec(
                prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'"'),
                            Just(b'\\'), b'0'..b'4', any::<u8>()], 0..60)
        ) {
            let limits = RequestLimits { arguments: 4, argument_bytes: 8, request_bytes: 40 };
            let every: Vec<usize> = (0..bytes.len()).collect();
            let (whole, pieces) = (read(&bytes, &[], limits), read(&bytes, &every, limits));
            prop_assert_eq!(whole.0, pieces.0);
            prop_assert_eq!(whole.1.is_some(), pieces.1.is_some());
        }
    }

    #[test]
    fn a_hundred_thousand_arguments_are_a_request() {
        let request: Vec<Vec<u8>> = (0..100_002).map(|i: u32| i.to_string().into_bytes()).collect();
        let bytes = encode(&request);
        let cuts: Vec<usize> = (0..bytes.len()).step_by(1000).collect();
        assert_eq!(read(&bytes, &cuts, RequestLimits::default()), (vec![request], None));
    }

    #[test]
    fn broken_requests_say_what_is_broken() {
        use ProtocolError as E;
        assert_eq!(error_of(b"*x\r\n"), Some(E::ArrayLength));
        assert_eq!(error_of(b"*\r\n"), Some(E::ArrayLength));
        assert_eq!(error_of(b"*99999999999999999999999\r\n"), Some(E::ArrayLength));
        assert_eq!(error_of(b"*1048577\r\n"), Some(E::ArrayLength));
        assert_eq!(error_of(b"*1\r\n+OK\r\n"), Some(E::NoLength(b'+')));
        assert_eq!(error_of(b"*1\r\n$-1\r\n"), Some(E::ArgumentLength));
        assert_eq!(error_of(b"*1\r\n$1048577\r\n"), Some(E::ArgumentLength));
        assert_eq!(error_of(b"*1\r\n$2\r\nabc\r\n"), Some(E::ArgumentEnd));
        assert_eq!(error_of(b"*1\r\n$2\r\nabc"), Some(E::ArgumentEnd));
        assert_eq!(error_of(b"PING \"a\r\n"), Some(E::Quotes));
        assert_eq!(error_of(b"PING \"a\"b\r\n"), Some(E::Quotes));
        assert_eq!(error_of(&[b'a'; Parser::LONGEST_LINE]), Some(E::LineLength));
        assert_eq!(E::NoLength(b'\n').to_string(), r"Protocol error: expected '$', got '\n'");
    }

    #[test]
    fn a_request_beyond_its_limit_is_refused_before_its_bytes_come() {
        let limits = RequestLimits { request_bytes: 100, ..RequestLimits::default() };
        let (_, error) = read(b"*2\r\n$4\r\nECHO\r\n$90\r\n", &[], limits);
        assert_eq!(error, Some(ProtocolError::RequestLength));
    }

    #[test]
    fn empty_lines_and_arrays_are_skipped() {
        let (requests, error) =
            read(b"\r\n*0\r\n*-1\r\n  \nPING\r\n", &[], RequestLimits::default());
        assert_eq!((requests, error), (vec![vec![b"PING".to_vec()]], None));
    }

    #[test]
    fn lines_are_unquoted_as_redis_does() {
        assert_eq!(line(b"  PING  hi \r\n"), [&b"PING"[..], b"hi"]);
        assert_eq!(line(b"A \"b c\\n\\x41\\\"\" 'd \\' e'\n"), [&b"A"[..], b"b c\nA\"", b"d ' e"]);
        assert_eq!(line(b"A \"\" ''\n"), [&b"A"[..], b"", b""]);
    }
}
