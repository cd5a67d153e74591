//! Decodes the messages of an engine: blocks stored, blocks removed, all blocks cleared.
//!
//! vLLM and SGLang encode the same structures with msgspec, in one of two forms: arrays whose first
//! element is the name of the event, or maps with the name under `type`. Both are read. Fields are
//! identified by position in arrays and by name in maps. Unknown fields are skipped, and fields at
//! the end may be missing, because engines add fields and omit defaults.
//!
//! ```text
//! batch         [ts, [event, …], data_parallel_rank?]
//! BlockStored   block_hashes, parent_block_hash, token_ids, block_size, lora_id?, medium?,
//!               lora_name?, extra_keys?, group_idx?
//! BlockRemoved  block_hashes, medium?, group_idx?
//! AllBlocksCleared
//! ```

use crate::msgpack::{MsgpackError, Reader};

/// Limit for memory reserved in advance, in blocks or tokens per message: more than an engine
/// holds.
const MAX_BLOCKS: usize = 1 << 24;

/// Why a message is rejected. No event of it is applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// It is not msgpack, or has an unexpected structure.
    #[error(transparent)]
    Msgpack(#[from] MsgpackError),
    /// A required field is missing.
    #[error("a {event} event without {field}")]
    Missing {
        /// The event.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A number outside its range.
    #[error("{field} is {value}, which cannot be")]
    Range {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i128,
    },
    /// The number of tokens does not match the number and size of the blocks.
    #[error("{tokens} tokens for {blocks} blocks of {block_size}")]
    Tokens {
        /// Tokens in the event.
        tokens: usize,
        /// Blocks in the event.
        blocks: usize,
        /// Tokens per block.
        block_size: u32,
    },
    /// A hash that is empty or too long.
    #[error("the hash of a block has {0} bytes; 1 to 255 are accepted")]
    HashLength(usize),
}

/// The engine's hash of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockHash<'a> {
    /// A number of 64 bits; a negative one in two's complement.
    Number(u64),
    /// Bytes, such as those of a SHA-256.
    Bytes(&'a [u8]),
}

/// One message of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch<'a> {
    /// What happened, in order.
    pub events: Vec<KvEvent<'a>>,
    /// The data-parallel rank that published it, if given.
    pub rank: Option<u64>,
    /// Number of events of unknown types.
    pub unknown: u64,
}

/// What happened to blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvEvent<'a> {
    /// Blocks were stored.
    Stored(Stored<'a>),
    /// Blocks were removed.
    Removed(Removed<'a>),
    /// All blocks were removed.
    Cleared,
}

/// Blocks that were stored, each the parent of the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored<'a> {
    /// Their hashes.
    pub hashes: Vec<BlockHash<'a>>,
    /// The block before the first one.
    pub parent: Option<BlockHash<'a>>,
    /// The tokens of all blocks; empty if the engine does not repeat them.
    pub tokens: Vec<u32>,
    /// Tokens per block.
    pub block_size: u32,
    /// The adapter, as msgpack: its name or, in older engines, its number.
    pub adapter: Option<&'a [u8]>,
    /// What else each block's hash covers, as msgpack; empty if the engine does not send it.
    pub extra: Vec<Option<&'a [u8]>>,
    /// Where the blocks are: `None` or `GPU`, or a slower tier.
    pub medium: Option<&'a str>,
    /// The group of layers whose blocks these are.
    pub group: Option<u64>,
}

/// Blocks that were removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed<'a> {
    /// Their hashes.
    pub hashes: Vec<BlockHash<'a>>,
    /// Where the blocks were.
    pub medium: Option<&'a str>,
    /// The group of layers whose blocks these were.
    pub group: Option<u64>,
}

const BATCH: &[&str] = &["ts", "events", "data_parallel_rank"];
const STORED: &[&str] = &[
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
];
const REMOVED: &[&str] = &["block_hashes", "medium", "group_idx"];

impl<'a> Batch<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// If it is not a valid message.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, EventError> {
        let (mut batch, mut reader) = (Self::default(), Reader::new(bytes));
        let mut has_events = false;
        fields(&mut reader, BATCH, 0, |field, reader| {
            match field {
                "events" => {
                    has_events = true;
                    batch.read_events(reader)?;
                }
                "data_parallel_rank" => {
                    batch.rank = optional(reader, |it| whole(it, "data_parallel_rank"))?;
                }
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        if has_events { Ok(batch) } else { Err(missing("batch", "events")) }
    }

    fn read_events(&mut self, reader: &mut Reader<'a>) -> Result<(), EventError> {
        for _ in 0..reader.array()? {
            let (name, from) = (tag(*reader)?, usize::from(!reader.is_map()));
            match name {
                "BlockStored" => self.events.push(KvEvent::Stored(Stored::read(reader, from)?)),
                "BlockRemoved" => self.events.push(KvEvent::Removed(Removed::read(reader, from)?)),
                "AllBlocksCleared" => {
                    reader.skip()?;
                    self.events.push(KvEvent::Cleared);
                }
                _ => {
                    reader.skip()?;
                    self.unknown += 1;
                }
            }
        }
        Ok(())
    }
}

/// The type name of the next event.
fn tag<'a>(mut reader: Reader<'a>) -> Result<&'a str, EventError> {
    if !reader.is_map() {
        return match reader.array()? {
            0 => Err(missing("nameless", "name")),
            _ => Ok(reader.text()?),
        };
    }
    for _ in 0..reader.map()? {
        if reader.text()? == "type" {
            return Ok(reader.text()?);
        }
        reader.skip()?;
    }
    Err(missing("nameless", "type"))
}

/// Calls `each` with every field of an array or a map, and its name. `from` is the number of array
/// elements before the first field.
fn fields<'a>(
    reader: &mut Reader<'a>,
    names: &[&'static str],
    from: usize,
    mut each: impl FnMut(&str, &mut Reader<'a>) -> Result<(), EventError>,
) -> Result<(), EventError> {
    if reader.is_map() {
        for _ in 0..reader.map()? {
            let name = reader.text()?;
            each(name, reader)?;
        }
        return Ok(());
    }
    for place in 0..reader.array()? {
        match place.checked_sub(from).and_then(|place| names.get(place)) {
            Some(name) => each(name, reader)?,
            None => reader.skip()?,
        }
    }
    Ok(())
}

impl<'a> Stored<'a> {
    fn read(reader: &mut Reader<'a>, from: usize) -> Result<Self, EventError> {
        let mut stored = Self::default();
        let (mut has_hashes, mut number) = (false, None);
        fields(reader, STORED, from, |field, reader| {
            match field {
                "block_hashes" => {
                    has_hashes = true;
                    stored.hashes = hashes(reader)?;
                }
                "parent_block_hash" => stored.parent = optional(reader, hash)?,
                "token_ids" => stored.tokens = tokens(reader)?,
                "block_size" => stored.block_size = whole(reader, "block_size")?,
                "lora_id" => number = optional(reader, |it| Ok(it.raw()?))?,
                "lora_name" => stored.adapter = optional(reader, |it| Ok(it.raw()?))?,
                "medium" => stored.medium = optional(reader, |it| Ok(it.text()?))?,
                "extra_keys" => stored.extra = optional(reader, extra)?.unwrap_or_default(),
                "group_idx" => stored.group = optional(reader, |it| whole(it, "group_idx"))?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        stored.adapter = stored.adapter.or(number);
        if !has_hashes {
            return Err(missing("BlockStored", "block_hashes"));
        }
        stored.check()?;
        Ok(stored)
    }

    fn check(&self) -> Result<(), EventError> {
        let (tokens, blocks, block_size) = (self.tokens.len(), self.hashes.len(), self.block_size);
        if tokens > 0 && blocks.checked_mul(block_size as usize) != Some(tokens) {
            return Err(EventError::Tokens { tokens, blocks, block_size });
        }
        if !self.extra.is_empty() && self.extra.len() != blocks {
            return Err(missing("BlockStored", "as many extra_keys as block_hashes"));
        }
        Ok(())
    }
}

impl<'a> Removed<'a> {
    fn read(reader: &mut Reader<'a>, from: usize) -> Result<Self, EventError> {
        let (mut removed, mut has_hashes) = (Self::default(), false);
        fields(reader, REMOVED, from, |field, reader| {
            match field {
                "block_hashes" => {
                    has_hashes = true;
                    removed.hashes = hashes(reader)?;
                }
                "medium" => removed.medium = optional(reader, |it| Ok(it.text()?))?,
                "group_idx" => removed.group = optional(reader, |it| whole(it, "group_idx"))?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        if has_hashes { Ok(removed) } else { Err(missing("BlockRemoved", "block_hashes")) }
    }
}

const fn missing(event: &'static str, field: &'static str) -> EventError {
    EventError::Missing { event, field }
}

fn optional<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, EventError>,
) -> Result<Option<T>, EventError> {
    if reader.nil() { Ok(None) } else { read(reader).map(Some) }
}

fn whole<T: TryFrom<i128>>(reader: &mut Reader<'_>, field: &'static str) -> Result<T, EventError> {
    let value = reader.integer()?;
    T::try_from(value).map_err(|_| EventError::Range { field, value })
}

fn hash<'a>(reader: &mut Reader<'a>) -> Result<BlockHash<'a>, EventError> {
    if reader.is_integer() {
        // From -2^63 to 2^64 - 1: the lower 64 bits are two's complement.
        return Ok(BlockHash::Number(reader.integer()? as u64));
    }
    let bytes = reader.bytes()?;
    match bytes.len() {
        1..=255 => Ok(BlockHash::Bytes(bytes)),
        length => Err(EventError::HashLength(length)),
    }
}

fn hashes<'a>(reader: &mut Reader<'a>) -> Result<Vec<BlockHash<'a>>, EventError> {
    let count = reader.array()?;
    let mut hashes = Vec::with_capacity(count.min(MAX_BLOCKS));
    for _ in 0..count {
        hashes.push(hash(reader)?);
    }
    Ok(hashes)
}

fn tokens(reader: &mut Reader<'_>) -> Result<Vec<u32>, EventError> {
    let count = reader.array()?;
    let mut tokens = Vec::with_capacity(count.min(MAX_BLOCKS));
    for _ in 0..count {
        tokens.push(whole(reader, "a token")?);
    }
    Ok(tokens)
}

fn extra<'a>(reader: &mut Reader<'a>) -> Result<Vec<Option<&'a [u8]>>, EventError> {
    let count = reader.array()?;
    let mut all = Vec::with_capacity(count.min(MAX_BLOCKS));
    for _ in 0..count {
        all.push(optional(reader, |it| Ok(it.raw()?))?);
    }
    Ok(all)
}
