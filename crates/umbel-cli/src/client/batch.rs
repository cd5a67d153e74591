//! Batches of keys to send to a host, already encoded as RESP.
//!
//! Always true: a batch has at most [`KEYS`] keys and, except for a single long key, about
//! [`BYTES`] bytes. Batches are reused, so that no key costs an allocation.

use std::ops::Range;

/// Maximum length of a key that hosts accept.
pub(crate) const MAX_KEY: usize = 32 << 10;

/// Keys per command: enough to make the overhead of a command negligible, few enough that a host
/// can answer others in between.
const KEYS: usize = 1000;
const BYTES: usize = 256 << 10;

/// Keys and bytes per pipeline. With the words of its commands it must fit into the socket's buffer
/// while nobody reads, because the host may be waiting for its own replies to be read first.
const PIPELINE_KEYS: usize = 64;
const PIPELINE_BYTES: usize = 16 << 10;

/// Some keys, in input order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Sequence number of the batch in the stream.
    pub(super) number: u64,
    packed: Vec<u8>,
    keys: Vec<Range<usize>>,
}

impl Batch {
    pub(super) fn clear(&mut self, number: u64) {
        self.number = number;
        self.packed.clear();
        self.keys.clear();
    }

    pub(super) fn push(&mut self, key: &[u8]) {
        bulk(&mut self.packed, key);
        let end = self.packed.len() - 2;
        self.keys.push(end - key.len()..end);
    }

    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= KEYS || self.packed.len() >= BYTES
    }

    pub(super) fn is_full_pipeline(&self) -> bool {
        self.keys.len() >= PIPELINE_KEYS || self.packed.len() >= PIPELINE_BYTES
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|range| &self.packed[range.clone()])
    }

    /// The whole command: its first words, then the keys.
    pub(super) fn command(&self, words: &[Vec<u8>], into: &mut Vec<u8>) {
        into.clear();
        line(into, b'*', words.len() + self.len());
        words.iter().for_each(|word| bulk(into, word));
        into.extend_from_slice(&self.packed);
    }

    /// One command per key, one after the other: the words, the key, the words after it.
    pub(super) fn commands(&self, words: &[Vec<u8>], behind: &[Vec<u8>], into: &mut Vec<u8>) {
        into.clear();
        for key in self.keys() {
            line(into, b'*', words.len() + 1 + behind.len());
            words.iter().for_each(|word| bulk(into, word));
            bulk(into, key);
            behind.iter().for_each(|word| bulk(into, word));
        }
    }
}

fn bulk(into: &mut Vec<u8>, bytes: &[u8]) {
    line(into, b'$', bytes.len());
    into.extend_from_slice(bytes);
    into.extend_from_slice(b"\r\n");
}

fn line(into: &mut Vec<u8>, mark: u8, number: usize) {
    let mut digits = [0; 20];
    let (mut start, mut rest) = (digits.len(), number);
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    into.push(mark);
    into.extend_from_slice(&digits[start..]);
    into.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_command_as_the_client_crate_would_write_it() {
        let mut batch = Batch::default();
        let keys: [&[u8]; 4] = [b"a", b"", b"\r\n$1\r\nx\r\n", &[0xff; 1234]];
        let mut command = redis::cmd("UMBEL.ADD");
        command.arg("images");
        for key in keys {
            batch.push(key);
            command.arg(key);
        }
        let mut packed = vec![1, 2, 3];
        batch.command(&[b"UMBEL.ADD".to_vec(), b"images".to_vec()], &mut packed);
        assert_eq!(packed, command.get_packed_command());
        assert!(batch.keys().eq(keys));
        let mut one_by_one = Vec::new();
        for key in keys {
            let mut command = redis::cmd("UMBEL.MATCH");
            command.arg("images").arg(key).arg("CONFIRM");
            one_by_one.extend(command.get_packed_command());
        }
        let words = [b"UMBEL.MATCH".to_vec(), b"images".to_vec()];
        batch.commands(&words, &[b"CONFIRM".to_vec()], &mut packed);
        assert_eq!(packed, one_by_one);
        batch.clear(7);
        assert_eq!((batch.len(), batch.number), (0, 7));
    }
}
