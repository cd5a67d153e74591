//! The `traceparent` header of a request: which trace it belongs to (W3C Trace Context).

/// The caller's place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// Whether the caller records this trace.
    pub(super) is_sampled: bool,
}

impl Parent {
    /// Parses `00-<32 hex digits>-<16>-<2>`. Later versions may have more after it. Anything else is
    /// ignored, as the specification asks for.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split('-');
        let [version, trace, span, flags] =
            [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let version = hexadecimal(version, 2)?;
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span) = (hexadecimal(trace, 32)?, hexadecimal(span, 16)? as u64);
        let is_sampled = hexadecimal(flags, 2)? & 1 == 1;
        (trace != 0 && span != 0).then_some(Self { trace, span, is_sampled })
    }
}

/// A number of exactly this many lower-case digits.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_number = text.len() == digits && text.bytes().all(is_digit);
    is_number.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn headers_are_read_as_specified() {
        let parsed = Parent::parse(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!(
            format!("{:032x} {:016x}", parsed.trace, parsed.span),
            format!("{TRACE} {SPAN}")
        );
        assert!(parsed.is_sampled);
        assert!(!Parent::parse(&format!("00-{TRACE}-{SPAN}-02")).unwrap().is_sampled);
        assert_eq!(Parent::parse(&format!("cc-{TRACE}-{SPAN}-01-more")), Some(parsed));
    }

    #[test]
    fn anything_else_is_ignored() {
        for bad in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}0-{SPAN}-01"),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
            "é".repeat(40),
        ] {
            assert_eq!(Parent::parse(&bad), None, "{bad}");
        }
    }
}
