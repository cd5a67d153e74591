//! Names of components, `/a/b/c`: lengths are components.
//!
//! Always true: a name begins with `/` and does not end with one, unless it is `/` alone (no
//! component); no component is empty, `.` or `..`; there is no white space or control character
//! in it. So every name has one text, and two names are equal exactly when their texts are.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use super::filters::{Group, Point, Spot, mix};
use super::kind::{Kind, Query, Store, map_bytes};
use super::simd::Asker;
use super::{ParseError, Prefix};

/// A name, or a prefix of names: whole components, such as `/video/2024`.
///
/// A slash at the end is taken off when a text is read. Nothing else is: components are compared
/// byte by byte, whatever they encode.
///
/// ```
/// use umbel::prefix::Name;
///
/// let name: Name = "/video/2024/intro/".parse()?;
/// assert_eq!(name.as_str(), "/video/2024/intro");
/// let shorter: Vec<&str> = name.prefixes().collect();
/// assert_eq!(shorter, ["/video/2024/intro", "/video/2024", "/video", "/"]);
/// # Ok::<(), umbel::prefix::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    text: Box<str>,
    length: u8,
}

impl Name {
    /// Components that a name may have.
    pub const LONGEST: u8 = 64;

    /// Bytes that a name may have.
    pub const BYTES: usize = 4096;

    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name and all its prefixes, longest first, down to `/`.
    ///
    /// Where prefixes are keys of replicated sets, a bank is asked for all of them at once, and
    /// the first one that it claims is the longest that anybody announces:
    ///
    /// ```
    /// use umbel::bank::{Bank, BatchCandidates};
    /// use umbel::prefix::Name;
    /// use umbel::{KeyHasher, StandardFilter};
    ///
    /// let mut there = StandardFilter::for_target(100, 1e-9)?;
    /// there.insert("/video");
    /// let mut bank: Bank = Bank::new(KeyHasher::default());
    /// let host = bank.add(there.scheme(), there.bits())?;
    ///
    /// let name: Name = "/video/2024/intro".parse()?;
    /// let hashes: Vec<_> = name.prefixes().map(|p| bank.hash(p.as_bytes())).collect();
    /// let mut who = BatchCandidates::new();
    /// bank.who_batch(&hashes, &mut who);
    /// let found = name.prefixes().zip(who.iter()).find(|(_, hosts)| !hosts.is_empty());
    /// assert_eq!(found, Some(("/video", &[host][..])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(&*self.text), |longer| match longer.rfind('/')? {
            0 => (longer.len() > 1).then_some("/"),
            end => Some(&longer[..end]),
        })
    }

    /// Its first components.
    fn truncate(&self, length: u8) -> &str {
        if length == 0 {
            return "/";
        }
        let mut ends = self.text.match_indices('/').map(|(end, _)| end).skip(1);
        let end = ends.nth(usize::from(length) - 1).unwrap_or(self.text.len());
        &self.text[..end]
    }
}

impl Prefix for Name {
    type Address = Self;
    const NAME: &str = "name";
    const LONGEST: u8 = Self::LONGEST;

    fn of(address: &Self, length: u8) -> Self {
        assert!(length <= address.length, "a prefix is no longer than its name");
        Self { text: address.truncate(length).into(), length }
    }

    fn length(&self) -> u8 {
        self.length
    }

    fn within(&self, _: u128) -> Self {
        self.clone()
    }

    fn query(address: &Self) -> NameQuery<'_> {
        address.as_query()
    }
}

impl Kind for Name {
    type Query<'a> = NameQuery<'a>;
    type Store<V: Default> = NameStore<V>;
    const SPANS: usize = 8;
    const FILTER_BITS: usize = 20;

    fn as_query(&self) -> NameQuery<'_> {
        let (mut ends, mut hashes) = ([1; 65], [0u64; 65]);
        let mut end = 0;
        let components = self.text[1..].split('/').take(self.length.into());
        for (index, component) in components.enumerate() {
            end += 1 + component.len() as u16;
            ends[index + 1] = end;
            hashes[index + 1] = mix(hashes[index].rotate_left(17) ^ xxh3_64(component.as_bytes()));
        }
        NameQuery { text: &self.text, length: self.length, ends, hashes }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Name {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let components = text.strip_prefix('/').ok_or(ParseError::NoSlash)?;
        let open = components.strip_suffix('/').filter(|rest| !rest.is_empty());
        let components = open.unwrap_or(components);
        let text = &text[..=components.len()];
        if text.len() > Self::BYTES {
            return Err(ParseError::TooLong);
        }
        if text.contains(|c: char| c.is_whitespace() || crate::text::is_unsafe(c)) {
            return Err(ParseError::Blank);
        }
        if components.is_empty() {
            return Ok(Self { text: text.into(), length: 0 });
        }
        let mut length = 0;
        for component in components.split('/') {
            match component {
                "" => return Err(ParseError::Empty),
                "." | ".." => return Err(ParseError::Dots),
                _ => length += 1,
            }
        }
        if length > usize::from(Self::LONGEST) {
            return Err(ParseError::TooLong);
        }
        Ok(Self { text: text.into(), length: length as u8 })
    }
}

/// A name with the end and the hash of each of its prefixes.
#[derive(Debug, Clone, Copy)]
pub struct NameQuery<'a> {
    text: &'a str,
    length: u8,
    ends: [u16; 65],
    hashes: [u64; 65],
}

impl NameQuery<'_> {
    fn truncate(&self, length: u8) -> &str {
        &self.text[..self.ends[usize::from(length)].into()]
    }
}

impl Query for NameQuery<'_> {
    /// A name has its hashes from the start.
    type Ready = ();

    fn length(&self) -> u8 {
        self.length
    }

    fn front(&self) -> Option<u16> {
        None
    }

    fn bits(&self) -> Option<u128> {
        None
    }

    fn spot(&self, _: u8, length: u8) -> Spot {
        let hash = self.hashes[usize::from(length)];
        Spot { pick: (hash >> 32) as u32, point: Point::of_hash(hash as u32) }
    }

    fn mark(&self, length: u8) -> u64 {
        self.hashes[usize::from(length)]
    }

    fn ready(&self, _: &Group) {}

    fn ask_ready(&self, _: impl Asker, group: &Group, (): ()) -> u32 {
        // Names branch without bound, so that no two lengths can share a block: eight lines,
        // for which a register is of no use.
        let base = group.lengths.base;
        let lengths = self.length.saturating_sub(base).min(8);
        (0..lengths).fold(0, |claims, lane| {
            let seat = group.blocks.seat(lane.into(), self.spot(base, base + lane + 1));
            claims | u32::from(group.blocks.claims(seat)) << lane
        })
    }

    fn prefetch(&self, group: &Group, (): ()) {
        let base = group.lengths.base;
        for lane in 0..self.length.saturating_sub(base).min(8) {
            let place = group.blocks.place(lane.into(), self.spot(base, base + lane + 1).pick);
            group.blocks.prefetch(place);
        }
    }
}

/// Names in a sorted map: crafted names cannot slow it down.
#[derive(Debug, Clone)]
pub struct NameStore<V> {
    names: BTreeMap<Box<str>, (u8, V)>,
    text_bytes: usize,
}

impl<V: Default> Store<Name, V> for NameStore<V> {
    fn with_room(_: &[usize]) -> Self {
        Self { names: BTreeMap::new(), text_bytes: 0 }
    }

    type Place = ();

    fn place(&self, _: &NameQuery<'_>, _: u8) {}

    fn find_at(&self, query: &NameQuery<'_>, length: u8, (): ()) -> Option<&V> {
        self.names.get(query.truncate(length)).map(|(_, value)| value)
    }

    fn find_mut_at(&mut self, query: &NameQuery<'_>, length: u8, (): ()) -> Option<&mut V> {
        self.names.get_mut(query.truncate(length)).map(|(_, value)| value)
    }

    fn prefetch(&self, _: u8, (): ()) {}

    fn insert_at(&mut self, prefix: &Name, (): (), value: V) {
        self.text_bytes += prefix.text.len();
        self.names.insert(prefix.text.clone(), (prefix.length, value));
    }

    fn remove_at(&mut self, prefix: &Name, (): ()) -> Option<V> {
        let (_, value) = self.names.remove(&prefix.text)?;
        self.text_bytes -= prefix.text.len();
        Some(value)
    }

    /// A sorted map grows by the node.
    fn is_crowded(&self) -> bool {
        false
    }

    fn take_some(&mut self, count: usize) -> Vec<(Name, V)> {
        let first = || self.names.pop_first();
        let taken = std::iter::from_fn(first).take(count);
        let taken = taken.map(|(text, (length, value))| (Name { text, length }, value));
        let taken: Vec<_> = taken.collect();
        self.text_bytes -= taken.iter().map(|(name, _)| name.text.len()).sum::<usize>();
        taken
    }

    fn sample(&self, _: usize) -> Vec<Name> {
        // Groups of names do not depend on what there is.
        Vec::new()
    }

    fn iter<'a>(&'a self) -> impl Iterator<Item = (Name, &'a V)>
    where
        V: 'a,
    {
        let name = |text: &str, length| Name { text: text.into(), length };
        self.names.iter().map(move |(text, (length, value))| (name(text, *length), value))
    }

    fn memory_bytes(&self) -> usize {
        self.text_bytes + map_bytes::<Box<str>, (u8, V)>(self.names.len())
    }
}
