//! Requests to a language model, as parts of their texts: a trace from a file, or a synthetic one.
//!
//! A part identifies 512 tokens of a text and everything before them: two requests that share a
//! part share all parts before it. The synthetic trace has the statistics of one hour of a public
//! conversation trace (12,031 requests, 24 parts each on average, a third of them seen before),
//! given as tables of quantiles.
//!
//! Always true: requests are in the order of time; the same seed gives the same trace.

use std::fmt;

use serde::Deserialize;

use crate::random::Random;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// When it arrives, in milliseconds.
    pub at: f64,
    /// Its text, from the beginning.
    pub parts: Vec<u32>,
}

/// Requests in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    requests: Vec<Request>,
    /// For every part, the part before it.
    parents: Vec<Option<u32>>,
}

/// An invalid line of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for TraceError {}

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    hash_ids: Vec<u32>,
}

/// Maximum number of parts in a trace.
const MAX_PARTS: u32 = 1 << 26;

impl Trace {
    /// Reads lines such as `{"timestamp": 27482, "hash_ids": [0, 46, 47]}`; other fields are
    /// ignored.
    ///
    /// # Errors
    /// If a line is not such an object, or there is none.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut requests = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let failed = |reason: String| TraceError { line: index + 1, reason };
            let read: Line =
                serde_json::from_str(line).map_err(|error| failed(error.to_string()))?;
            if !(read.timestamp.is_finite() && read.timestamp >= 0.0) || read.hash_ids.is_empty() {
                return Err(failed("a time and at least one id are needed".to_owned()));
            }
            if read.hash_ids.iter().any(|id| *id >= MAX_PARTS) {
                return Err(failed(format!("ids must be below {MAX_PARTS}")));
            }
            requests.push(Request { at: read.timestamp, parts: read.hash_ids });
        }
        match requests.is_empty() {
            true => Err(TraceError { line: 1, reason: "there is no request".to_owned() }),
            false => Ok(Self::of(requests)),
        }
    }

    /// Generates conversations of several requests, each of which starts with the whole
    /// conversation so far. All start with the same part.
    #[must_use]
    pub fn synthetic(requests: usize, seed: u64) -> Self {
        let mut random = Random::of_trial(seed, "conversations", 0);
        let (mut made, mut next, mut start) = (Vec::new(), 1u32, 0.0);
        // Conversations that start before the end may continue after it: generate until there are
        // enough.
        while made.len() < requests {
            start += -uniform(&mut random).ln() * MS_BETWEEN_CONVERSATIONS;
            let (mut at, mut parts) = (start, vec![0]);
            let mut wanted = quantile(&mut random, &FIRST_PARTS).max(1.0) as usize;
            for turn in 0.. {
                while parts.len() < wanted {
                    parts.push(next);
                    next += 1;
                }
                made.push(Request { at, parts: parts.clone() });
                let goes_on = if turn == 0 { FIRST_GOES_ON } else { GOES_ON };
                if uniform(&mut random) > goes_on {
                    break;
                }
                at += quantile(&mut random, &SECONDS_BETWEEN) * 1000.0;
                wanted = parts.len() + quantile(&mut random, &MORE_PARTS).round() as usize;
            }
        }
        let mut trace = Self::of(made);
        trace.requests.truncate(requests);
        trace
    }

    /// Combines `copies` services, each with these requests at other times. They share only the
    /// first part, number 0.
    #[must_use]
    pub fn times(&self, copies: u32) -> Self {
        let (parts, end) = (self.parents.len() as u32, self.milliseconds());
        let copy = |copy: u32| {
            self.requests.iter().map(move |request| Request {
                at: (request.at + end / f64::from(copies) * f64::from(copy) * 0.37) % end,
                parts: request
                    .parts
                    .iter()
                    .map(|part| if *part == 0 { 0 } else { part + copy * parts })
                    .collect(),
            })
        };
        Self::of((0..copies).flat_map(copy).collect())
    }

    fn of(mut requests: Vec<Request>) -> Self {
        requests.sort_by(|a, b| a.at.total_cmp(&b.at));
        let parts =
            requests.iter().flat_map(|request| &request.parts).max().map_or(0, |max| max + 1);
        let mut parents = vec![None; parts as usize];
        for request in &requests {
            for pair in request.parts.windows(2) {
                parents[pair[1] as usize] = Some(pair[0]);
            }
        }
        Self { requests, parents }
    }

    /// The requests.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The part before a part, if there is one.
    #[must_use]
    pub fn parent(&self, part: u32) -> Option<u32> {
        self.parents.get(part as usize).copied().flatten()
    }

    /// Number of distinct parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parents.len()
    }

    /// When the last request arrives.
    #[must_use]
    pub fn milliseconds(&self) -> f64 {
        self.requests.last().map_or(0.0, |request| request.at)
    }
}

/// 7373 conversations in 3537 s.
const MS_BETWEEN_CONVERSATIONS: f64 = 480.0;
/// Probability that a conversation has a second request, and that it continues after a later one.
const FIRST_GOES_ON: f64 = 0.306;
const GOES_ON: f64 = 0.51;
/// Quantiles: a share of all values, and the value that is not exceeded by it.
type Quantiles = [(f64, f64); 8];
const FIRST_PARTS: Quantiles = [
    (0.0, 1.0),
    (0.1, 2.0),
    (0.25, 3.0),
    (0.5, 11.0),
    (0.75, 26.0),
    (0.9, 50.0),
    (0.99, 176.0),
    (1.0, 247.0),
];
const MORE_PARTS: Quantiles = [
    (0.0, 1.0),
    (0.1, 1.0),
    (0.25, 2.0),
    (0.5, 2.0),
    (0.75, 7.0),
    (0.9, 20.0),
    (0.99, 53.0),
    (1.0, 120.0),
];
const SECONDS_BETWEEN: Quantiles = [
    (0.0, 15.0),
    (0.1, 42.0),
    (0.25, 66.0),
    (0.5, 123.0),
    (0.75, 264.0),
    (0.9, 480.0),
    (0.99, 1482.0),
    (1.0, 3000.0),
];

/// A random number above 0 and at most 1.
fn uniform(random: &mut Random) -> f64 {
    ((random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// A value of a distribution; between two quantiles its logarithm is spread evenly.
fn quantile(random: &mut Random, table: &Quantiles) -> f64 {
    let share = uniform(random);
    let above = table.iter().position(|(at, _)| share <= *at).unwrap_or(table.len() - 1).max(1);
    let ((low, from), (high, to)) = (table[above - 1], table[above]);
    from * (to / from).powf((share - low) / (high - low))
}

/// The keys of a trace's blocks: every part consists of several blocks, and the hash of each covers
/// all blocks before it.
#[derive(Debug, Clone)]
pub struct Blocks {
    per_part: usize,
    /// The key of the last block of every part.
    ends: Vec<u64>,
    chain: fn(Option<u64>, u64) -> u64,
}

impl Blocks {
    /// `chain` computes the key of a block from the key before it and the block's own content.
    #[must_use]
    pub fn new(trace: &Trace, per_part: usize, chain: fn(Option<u64>, u64) -> u64) -> Self {
        let mut blocks = Self { per_part, ends: vec![0; trace.parts()], chain };
        let mut is_known = vec![false; trace.parts()];
        for request in trace.requests() {
            for part in &request.parts {
                if !std::mem::replace(&mut is_known[*part as usize], true) {
                    let end = blocks.keys(trace, *part).last().unwrap_or(0);
                    blocks.ends[*part as usize] = end;
                }
            }
        }
        blocks
    }

    /// Blocks per part.
    #[must_use]
    pub const fn per_part(&self) -> usize {
        self.per_part
    }

    /// The hash of the content of a part's block.
    #[must_use]
    pub const fn content(part: u32, block: usize) -> u64 {
        Random::of_key(part as u64, block as u64).next()
    }

    /// The key of a part's last block.
    #[must_use]
    pub fn end(&self, part: u32) -> u64 {
        self.ends[part as usize]
    }

    /// The keys of a part.
    pub fn keys(&self, trace: &Trace, part: u32) -> impl Iterator<Item = u64> + use<> {
        let mut before = trace.parent(part).map(|parent| self.ends[parent as usize]);
        let chain = self.chain;
        (0..self.per_part).map(move |block| {
            let key = chain(before, Self::content(part, block));
            before = Some(key);
            key
        })
    }
}

/// Computes a key from the key before it and a block's content, with one multiplication.
#[must_use]
pub const fn fold(before: Option<u64>, content: u64) -> u64 {
    let before = match before {
        Some(before) => before,
        None => 0x9E37_79B9_7F4A_7C15,
    };
    let product =
        (before ^ 0xA076_1D64_78BD_642F) as u128 * (content ^ 0xE703_7ED1_A0B4_28DB) as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The figures of the public trace, within a tenth or so.
    #[test]
    fn the_synthetic_trace_is_like_the_public_one() {
        let trace = Trace::synthetic(12_000, 1);
        assert_eq!(trace.requests().len(), 12_000);
        let parts: usize = trace.requests().iter().map(|request| request.parts.len()).sum();
        let mean = parts as f64 / 12_000.0;
        assert!((20.0..30.0).contains(&mean), "{mean} parts");
        let (mut seen, mut known) = (HashSet::<u32>::new(), 0);
        for request in trace.requests() {
            known += request.parts.iter().take_while(|part| seen.contains(*part)).count();
            seen.extend(&request.parts);
        }
        let share = known as f64 / parts as f64;
        assert!((0.30..0.50).contains(&share), "{share} seen before");
        assert!(trace.requests().is_sorted_by_key(|request| request.at));
        assert_eq!(trace, Trace::synthetic(12_000, 1));
        assert_ne!(trace, Trace::synthetic(12_000, 2));
    }

    #[test]
    fn lines_are_read_and_refused() {
        let text =
            "{\"timestamp\": 5, \"hash_ids\": [0, 2]}\n\n{\"timestamp\": 1, \"hash_ids\": [0]}";
        let trace = Trace::parse(text).unwrap();
        assert_eq!((trace.requests()[0].at, trace.parts()), (1.0, 3));
        assert_eq!((trace.parent(2), trace.parent(0), trace.parent(9)), (Some(0), None, None));
        for text in [
            "",
            "nonsense",
            "{\"timestamp\": -1, \"hash_ids\": [1]}",
            "{\"timestamp\": 1, \"hash_ids\": []}",
            "{\"timestamp\": 1, \"hash_ids\": [4294967295]}",
        ] {
            assert!(Trace::parse(text).is_err(), "{text}");
        }
        let error = Trace::parse("{\"timestamp\": 1, \"hash_ids\": [1]}\n{").unwrap_err();
        assert_eq!(error.line, 2);
        let twice = trace.times(2);
        assert_eq!((twice.requests().len(), twice.parts()), (4, 6));
    }

    #[test]
    fn a_block_stands_for_all_before_it() {
        let trace = Trace::parse("{\"timestamp\": 1, \"hash_ids\": [0, 1, 2]}").unwrap();
        let blocks = Blocks::new(&trace, 4, fold);
        let keys: Vec<u64> = (0..3).flat_map(|part| blocks.keys(&trace, part)).collect();
        let mut before = None;
        for (index, key) in keys.iter().enumerate() {
            let content = Blocks::content(index as u32 / 4, index % 4);
            assert_eq!(*key, fold(before, content));
            before = Some(*key);
        }
        assert_eq!(blocks.end(1), keys[7]);
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 12);
    }
}
