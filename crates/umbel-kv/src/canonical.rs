//! Engine-independent hashes of blocks: anybody who has the tokens can compute them.
//!
//! ```text
//! hash of a block = XXH3_64, seed 0, of
//!     8 bytes   hash of the block before it, little-endian; 0 for the first block
//!     4 bytes   number of tokens in the block, little-endian
//!     4 bytes   each token, little-endian
//!     the rest  what else the block depends on, as msgpack; nothing, if there is nothing
//! key of a block  = its hash, 8 bytes, little-endian
//! ```
//!
//! What else a block depends on is encoded as in vLLM's `extra_keys`: an array of the adapter's
//! name, identifiers of images, and the salt of the cache. For example, `["adapter"]` is
//! `91 a7 61 64 61 70 74 65 72`.

use xxhash_rust::xxh3::xxh3_64;

/// The hash of a block. `scratch` is a buffer that can be reused for further calls.
#[must_use]
pub fn block_hash(parent: u64, tokens: &[u32], extra: &[u8], scratch: &mut Vec<u8>) -> u64 {
    scratch.clear();
    scratch.reserve(12 + 4 * tokens.len() + extra.len());
    scratch.extend_from_slice(&parent.to_le_bytes());
    scratch.extend_from_slice(&(tokens.len() as u32).to_le_bytes());
    tokens.iter().for_each(|token| scratch.extend_from_slice(&token.to_le_bytes()));
    scratch.extend_from_slice(extra);
    xxh3_64(scratch)
}

/// The hashes of all whole blocks of a token sequence, with the same `extra` for each block.
///
/// ```
/// let tokens: Vec<u32> = (0..40).collect();
/// let chain = umbel_kv::canonical::chain(&tokens, 16, &[]);
/// assert_eq!(chain.len(), 2, "the last 8 tokens are no whole block");
/// assert_eq!(chain, umbel_kv::canonical::chain(&tokens[..32], 16, &[]));
/// ```
#[must_use]
pub fn chain(tokens: &[u32], block_size: usize, extra: &[u8]) -> Vec<u64> {
    let (mut scratch, mut parent) = (Vec::new(), 0);
    let blocks = tokens.chunks_exact(block_size.max(1));
    let hash = |block| {
        parent = block_hash(parent, block, extra, &mut scratch);
        parent
    };
    blocks.map(hash).collect()
}

/// The `extra` of a block that depends on an adapter only: an array with its name or number.
pub(crate) fn of_adapter(adapter: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.push(0x91);
    into.extend_from_slice(adapter);
}

/// The `extra` of a block that depends on an adapter's name, a salt, or both.
#[must_use]
pub fn extra(adapter: Option<&str>, salt: Option<&str>) -> Vec<u8> {
    let texts: Vec<&str> = adapter.into_iter().chain(salt).collect();
    if texts.is_empty() {
        return Vec::new();
    }
    let mut bytes = vec![0x90 | texts.len() as u8];
    for text in texts {
        match text.len() {
            short @ 0..32 => bytes.push(0xa0 | short as u8),
            long @ 32..256 => bytes.extend([0xd9, long as u8]),
            longer => {
                bytes.push(0xda);
                bytes.extend((longer.min(0xffff) as u16).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&text.as_bytes()[..text.len().min(0xffff)]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with the Python package `xxhash`, from the bytes that the module's header names:
    /// a change of the layout fails here.
    #[test]
    fn hashes_stay_what_they_are() {
        let tokens: Vec<u32> = (1..=8).collect();
        assert_eq!(chain(&tokens, 4, &[]), PLAIN);
        assert_eq!(chain(&tokens, 4, &extra(Some("adapter"), None)), WITH_ADAPTER);
        assert_eq!(extra(Some("adapter"), None), b"\x91\xa7adapter");
        assert_eq!(extra(Some("a"), Some("s")), b"\x92\xa1a\xa1s");
        assert_eq!(extra(None, None), b"");
        let long = "x".repeat(40);
        assert_eq!(extra(None, Some(&long)), [&[0x91, 0xd9, 40], long.as_bytes()].concat());
        let mut bytes = Vec::new();
        of_adapter(b"\xa7adapter", &mut bytes);
        assert_eq!(bytes, extra(Some("adapter"), None));
    }

    const PLAIN: [u64; 2] = [0x92bb_a64f_c613_da04, 0x9cc9_91f5_0287_8e71];
    const WITH_ADAPTER: [u64; 2] = [0xc6e0_b063_0545_132d, 0x1fc0_4196_a365_1e12];
}
