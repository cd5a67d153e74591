//! Any bytes of a Redis client, cut anywhere: requests within their limits or an error, and the
//! same ones as in one piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_node::resp::request::{Parser, Request, RequestLimits, Step};

const LIMITS: RequestLimits =
    RequestLimits { arguments: 16, argument_bytes: 64, request_bytes: 512 };

/// All requests, and whether the protocol broke.
fn read(bytes: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, bool) {
    let mut parser = Parser::new(LIMITS);
    let (mut requests, mut start, mut end) = (Vec::new(), 0, 0);
    while end < bytes.len() {
        end = (end + piece).min(bytes.len());
        loop {
            match parser.next(&bytes[start..end]) {
                Err(_) => return (requests, true),
                Ok(Step::More(needed)) => {
                    assert!(needed > end - start);
                    break;
                }
                Ok(Step::Empty(consumed)) => start += consumed,
                Ok(Step::Request(request, consumed)) => {
                    start += consumed;
                    let words: Vec<Vec<u8>> = match request {
                        Request::Array(words) => words.from(0).map(<[u8]>::to_vec).collect(),
                        Request::Inline(words) => words.from(0).map(<[u8]>::to_vec).collect(),
                    };
                    assert!(!words.is_empty() && consumed <= LIMITS.request_bytes);
                    requests.push(words);
                }
            }
        }
    }
    (requests, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(read(bytes, usize::from(piece).max(1)), whole);
});
