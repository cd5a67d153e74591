//! Tables as bytes: the prefixes and their values; filters are made again when they are read.
//!
//! ```text
//! frame   "UMBL", version 1, kind (0x20 IPv4, 0x21 IPv6, 0x22 names), body, crc32c
//! body    values, prefixes, for each prefix the varint index of its value
//! values  varint count, each: varint length, bytes; all distinct, in the order of first use
//! IP      varint number of lengths in use, each ascending: u8 length, then its prefixes as
//!         a subset of all of that length (up to 64 bits), or varint count and 16 bytes each
//! names   varint count, each ascending: varint bytes it shares with the one before, varint
//!         length of the rest, the rest
//! ```
//!
//! Always true: any bytes decode to a table or to an error; every prefix takes at least a
//! byte of the file, so that a short file never makes a long table.

use std::collections::BTreeMap;
use std::ops::Range;

use super::kind::{Bits, Coded};
use super::{Ipv4Prefix, Ipv6Prefix, Name, Prefix, Table};
use crate::codec::subset::{self, Sink, Source};
use crate::codec::{DecodeError, Reader, frame, put_varint, seal};

/// What a file of prefixes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A table of [`Ipv4Prefix`].
    Ipv4,
    /// A table of [`Ipv6Prefix`].
    Ipv6,
    /// A table of [`Name`].
    Names,
}

impl FileKind {
    /// Says what a file holds.
    ///
    /// # Errors
    /// If the bytes are not a whole file of prefixes.
    pub fn of(bytes: &[u8]) -> Result<Self, DecodeError> {
        match frame::open(bytes)?.byte()? {
            IPV4 => Ok(Self::Ipv4),
            IPV6 => Ok(Self::Ipv6),
            NAMES => Ok(Self::Names),
            _ => Err(NO_TABLE),
        }
    }
}

const IPV4: u8 = 0x20;
const IPV6: u8 = 0x21;
const NAMES: u8 = 0x22;

const NO_TABLE: DecodeError = DecodeError::Malformed("this is no table of prefixes");

impl<P: Prefix, V: Default> Table<P, V> {
    /// The bytes of the table, as a file holds them; `to_bytes` writes a value.
    ///
    /// ```
    /// use umbel::prefix::{Ipv4Prefix, Table};
    ///
    /// let table: Table<Ipv4Prefix, u16> = [("10.0.0.0/8".parse()?, 7)].into_iter().collect();
    /// let bytes = table.encode(|value| value.to_le_bytes());
    /// let limit = 1 << 20;
    /// let read: Table<Ipv4Prefix, u16> =
    ///     Table::decode(&bytes, limit, |value| value.try_into().ok().map(u16::from_le_bytes))?;
    /// assert_eq!(read.get(&"10.0.0.0/8".parse()?), Some(&7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn encode<B: AsRef<[u8]>>(&self, to_bytes: impl Fn(&V) -> B) -> Vec<u8> {
        let mut sorted: Vec<(P, &V)> = self.iter().collect();
        sorted.sort_unstable_by_key(|(prefix, _)| prefix.sorted_by());
        let mut indices: BTreeMap<Box<[u8]>, u64> = BTreeMap::new();
        let mut values = Vec::new();
        let index = |(_, value): &(P, &V)| {
            let bytes = to_bytes(value);
            let next = indices.len() as u64;
            if let Some(known) = indices.get(bytes.as_ref()) {
                return *known;
            }
            put_varint(&mut values, bytes.as_ref().len() as u64);
            values.extend_from_slice(bytes.as_ref());
            indices.insert(bytes.as_ref().into(), next);
            next
        };
        let used: Vec<u64> = sorted.iter().map(index).collect();
        let mut out = frame::begin(P::CODE);
        put_varint(&mut out, indices.len() as u64);
        out.append(&mut values);
        let prefixes: Vec<P> = sorted.into_iter().map(|(prefix, _)| prefix).collect();
        P::write(&prefixes, &mut out);
        used.into_iter().for_each(|index| put_varint(&mut out, index));
        seal(out)
    }

    /// Reads a table; `from_bytes` reads each distinct value once, in the order in which the
    /// file has them.
    ///
    /// # Errors
    /// If the bytes are not a whole, sound table of this kind, if it would take more than
    /// `limit` bytes of memory, or if a value cannot be read.
    pub fn decode(
        bytes: &[u8],
        limit: u64,
        mut from_bytes: impl FnMut(&[u8]) -> Option<V>,
    ) -> Result<Self, DecodeError>
    where
        V: Clone,
    {
        let mut reader = frame::open(bytes)?;
        let reader = &mut reader;
        if reader.byte()? != P::CODE {
            return Err(NO_TABLE);
        }
        let mut values = Vec::new();
        for _ in 0..counted(reader)? {
            let length = reader.varint()?;
            let value = from_bytes(reader.take(length)?);
            values.push(value.ok_or(DecodeError::Malformed("a value cannot be read"))?);
        }
        let prefixes = P::read(reader, limit)?;
        let mut table = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            let index = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
            let value = values.get(index).ok_or(DecodeError::Malformed("a value is missing"))?;
            table.push((prefix, value.clone()));
        }
        reader.end()?;
        Ok(table.into_iter().collect())
    }
}

/// A table takes about so much of memory while it is made, values apart.
const BYTES_A_PREFIX: u64 = 64;

/// What the smallest table of addresses takes: the first sixteen bits are answered directly.
const BYTES_OF_FRONT: usize = 1 << 18;

/// A count of things that take at least a byte each.
fn counted(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let count = reader.varint()?;
    if count > reader.left() { Err(DecodeError::Truncated) } else { Ok(count) }
}

/// That so many prefixes, and what they take besides, fit the limit.
const fn fits(prefixes: usize, fixed: usize, limit: u64) -> Result<(), DecodeError> {
    let needed = prefixes as u64 * BYTES_A_PREFIX + fixed as u64;
    if needed > limit { Err(DecodeError::TooLarge { needed, limit }) } else { Ok(()) }
}

/// What is written of addresses, by either family.
fn write_bits<P: Bits>(prefixes: &[P], out: &mut Vec<u8>) {
    let lengths = prefixes.chunk_by(|a, b| a.to_bits().0 == b.to_bits().0);
    put_varint(out, lengths.clone().count() as u64);
    for prefixes in lengths {
        let length = prefixes[0].to_bits().0;
        out.push(length);
        let numbers = prefixes.iter().map(|prefix| prefix.to_bits().1);
        if length <= 64 {
            let behind = 128 - u32::from(length);
            let numbers =
                numbers.map(|bits| bits.checked_shr(behind).unwrap_or(0) as u64).collect();
            subset::encode(out, 1 << length, prefixes.len() as u64, &Numbers(numbers));
        } else {
            put_varint(out, prefixes.len() as u64);
            numbers.for_each(|bits| out.extend_from_slice(&bits.to_le_bytes()));
        }
    }
}

fn read_bits<P: Bits>(
    reader: &mut Reader<'_>,
    longest: u8,
    limit: u64,
) -> Result<Vec<P>, DecodeError> {
    let (mut prefixes, mut last) = (Vec::new(), None);
    for _ in 0..counted(reader)? {
        let length = reader.byte()?;
        if length > longest || last.is_some_and(|last| last >= length) {
            return Err(DecodeError::Malformed("lengths do not ascend"));
        }
        last = Some(length);
        let before = prefixes.len();
        if length <= 64 {
            let behind = 128 - u32::from(length);
            let mut numbers = Numbers(Vec::new());
            subset::decode(reader, 1 << length, reader.left(), &mut numbers)?;
            let bits = |number: u64| u128::from(number).checked_shl(behind).unwrap_or(0);
            prefixes.extend(numbers.0.into_iter().map(|n| P::from_bits(length, bits(n))));
        } else {
            read_long(reader, length, &mut prefixes)?;
        }
        fits(prefixes.len(), BYTES_OF_FRONT, limit)?;
        if prefixes.len() == before {
            return Err(DecodeError::Malformed("a length without prefixes"));
        }
    }
    Ok(prefixes)
}

/// Prefixes of more than 64 bits.
fn read_long<P: Bits>(
    reader: &mut Reader<'_>,
    length: u8,
    prefixes: &mut Vec<P>,
) -> Result<(), DecodeError> {
    let mut last = None;
    for _ in 0..counted(reader)? {
        let bits = u128::from_le_bytes(reader.array()?);
        let prefix = P::from_bits(length, bits);
        if prefix.to_bits().1 != bits || last.is_some_and(|last| last >= bits) {
            return Err(DecodeError::Malformed("prefixes do not ascend"));
        }
        last = Some(bits);
        prefixes.push(prefix);
    }
    Ok(())
}

struct Numbers(Vec<u64>);

impl Source for Numbers {
    fn each(&self, mut found: impl FnMut(u64)) {
        self.0.iter().for_each(|number| found(*number));
    }
}

impl Sink for Numbers {
    fn put(&mut self, number: u64) {
        self.0.push(number);
    }

    fn run(&mut self, numbers: Range<u64>) {
        self.0.extend(numbers);
    }
}

macro_rules! coded_bits {
    ($prefix:ty, $code:expr) => {
        #[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
        impl Coded for $prefix {
            const CODE: u8 = $code;
            type Order = (u8, u128);

            fn sorted_by(&self) -> (u8, u128) {
                self.to_bits()
            }

            fn write(prefixes: &[Self], out: &mut Vec<u8>) {
                write_bits(prefixes, out);
            }

            fn read(reader: &mut Reader<'_>, limit: u64) -> Result<Vec<Self>, DecodeError> {
                read_bits(reader, Self::LONGEST, limit)
            }
        }
    };
}

coded_bits!(Ipv4Prefix, IPV4);
coded_bits!(Ipv6Prefix, IPV6);

#[expect(private_interfaces, reason = "sealed: nobody outside can name or call this")]
impl Coded for Name {
    const CODE: u8 = NAMES;
    type Order = Self;

    fn sorted_by(&self) -> Self {
        self.clone()
    }

    fn write(names: &[Self], out: &mut Vec<u8>) {
        put_varint(out, names.len() as u64);
        let mut last: &[u8] = b"";
        for name in names {
            let text = name.as_str().as_bytes();
            let shared = text.iter().zip(last).take_while(|(a, b)| a == b).count();
            put_varint(out, shared as u64);
            put_varint(out, (text.len() - shared) as u64);
            out.extend_from_slice(&text[shared..]);
            last = text;
        }
    }

    fn read(reader: &mut Reader<'_>, limit: u64) -> Result<Vec<Self>, DecodeError> {
        let (mut names, mut last): (Vec<Self>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut text_bytes = 0;
        for _ in 0..counted(reader)? {
            let shared = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
            if shared > last.len() {
                return Err(DecodeError::Malformed("a name shares more than there is"));
            }
            last.truncate(shared);
            let rest = reader.varint()?;
            last.extend_from_slice(reader.take(rest)?);
            let name = str::from_utf8(&last).ok().and_then(|text| text.parse::<Self>().ok());
            // A name that is written in another way than its own would not be found again.
            let name = name.filter(|name| name.as_str().len() == last.len());
            let name = name.ok_or(DecodeError::Malformed("a name that is none"))?;
            if names.last().is_some_and(|before| before.as_str() >= name.as_str()) {
                return Err(DecodeError::Malformed("names do not ascend"));
            }
            text_bytes += name.as_str().len();
            names.push(name);
            fits(names.len(), text_bytes, limit)?;
        }
        Ok(names)
    }
}
