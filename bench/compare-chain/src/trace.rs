//! Traces from files.

use std::io::Read as _;

use umbel_lab::chain::Trace;

/// Reads a trace, compressed by gzip if its name ends so.
pub(crate) fn read(path: &str) -> Trace {
    let bytes = std::fs::read(path).expect("the trace can be read");
    let mut text = String::new();
    match path.ends_with(".gz") {
        true => flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).map(|_| ()),
        false => (&*bytes).read_to_string(&mut text).map(|_| ()),
    }
    .expect("the trace is text");
    Trace::parse(&text).expect("the trace has requests")
}
