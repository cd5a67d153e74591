//! Decodes filters from bytes, within limits.

use super::any::Kind;
use super::body::{Budget, Encodable};
use super::bytes::Reader;
use super::frame::{Ends, Frame};
use super::{AnyFilter, DecodeError};
use crate::filter::{BlockedFilter, CountingFilter, DynamicFilter, StandardFilter};
use crate::key_hash::Seed;
use crate::scheme::Scheme;

/// Decodes filters, with a memory limit and optionally a secret seed.
///
/// ```
/// use umbel::codec::{Decoder, encode};
/// use umbel::{HashId, KeyHasher, Scheme, Seed, Shape, StandardFilter};
///
/// let seed = Seed::from_secret(b"only for us");
/// let scheme = Scheme::new(Shape::new(1000, 7)?, KeyHasher::secret(HashId::SipHash13, seed));
/// let bytes = encode(&StandardFilter::new(scheme)?);
///
/// assert!(Decoder::new().filter(&bytes).is_err());
/// assert!(Decoder::new().seed(seed).filter(&bytes).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    limit: u64,
    seed: Option<Seed>,
    accept_locked: bool,
}

impl Decoder {
    /// Default limit for the memory of a decoded filter: 1 GiB.
    pub const LIMIT: u64 = 1 << 30;

    /// A decoder without a secret seed that accepts filters of up to [`Self::LIMIT`] bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: Self::LIMIT, seed: None, accept_locked: false }
    }

    /// Accepts filters of up to this many bytes of memory.
    #[must_use]
    pub const fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    /// Unlocks filters that were made with this secret seed; filters that were made with
    /// another one are refused.
    #[must_use]
    pub const fn seed(self, seed: Seed) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Accepts filters whose secret seed is not known: they can be joined, compared and
    /// asked by digest, but panic when asked by key.
    #[must_use]
    pub const fn accept_locked(self) -> Self {
        Self { accept_locked: true, ..self }
    }

    /// Decodes a filter.
    ///
    /// # Errors
    /// If the bytes are not a complete and valid filter that this decoder accepts.
    pub fn filter(&self, bytes: &[u8]) -> Result<AnyFilter, DecodeError> {
        let frame = Frame::open(bytes)?;
        if frame.delta.is_some() {
            return Err(DecodeError::Kind { expected: frame.kind, found: Kind::Delta });
        }
        let Frame { kind, mut scheme, mut body, .. } = frame;
        self.unlock(&mut scheme)?;
        let reader = &mut body;
        let filter = match kind {
            Kind::Standard => self.whole::<StandardFilter>(reader, scheme)?.into(),
            Kind::Counting => self.whole::<CountingFilter>(reader, scheme)?.into(),
            Kind::Dynamic => self.whole::<DynamicFilter>(reader, scheme)?.into(),
            Kind::Blocked => self.whole::<BlockedFilter>(reader, scheme)?.into(),
            _ => self.whole::<DynamicFilter<StandardFilter>>(reader, scheme)?.into(),
        };
        body.end()?;
        Ok(filter)
    }

    /// Applies a delta to the filter it was made against, and returns the filter it leads
    /// to. `base` is not changed.
    ///
    /// # Errors
    /// If the bytes are not a complete and valid delta against exactly this filter.
    pub fn apply(&self, base: &AnyFilter, delta: &[u8]) -> Result<AnyFilter, DecodeError> {
        let mut frame = Frame::open(delta)?;
        if frame.delta.is_none() {
            return Err(DecodeError::Kind { expected: Kind::Delta, found: frame.kind });
        }
        if frame.kind != base.kind() {
            return Err(DecodeError::Kind { expected: base.kind(), found: frame.kind });
        }
        base.scheme().check(&frame.scheme)?;
        let filter = match base {
            AnyFilter::Standard(base) => self.changed(&mut frame, base)?.into(),
            AnyFilter::Counting(base) => self.changed(&mut frame, base)?.into(),
            AnyFilter::Dynamic(base) => self.changed(&mut frame, base)?.into(),
            AnyFilter::PlainDynamic(base) => self.changed(&mut frame, base)?.into(),
            AnyFilter::Blocked(base) => self.changed(&mut frame, base)?.into(),
        };
        frame.body.end()?;
        Ok(filter)
    }

    fn whole<F: Encodable>(&self, body: &mut Reader<'_>, scheme: Scheme) -> Result<F, DecodeError> {
        F::read(body, scheme, None, &mut self.budget())
    }

    fn changed<F: Encodable>(&self, frame: &mut Frame<'_>, base: &F) -> Result<F, DecodeError> {
        let Ends { base: before, result, seed_is_public } = frame.delta.expect("it is a delta");
        let have = base.checksum();
        if before != have {
            return Err(DecodeError::WrongBase { base: before, have });
        }
        // Use the seed of the base. A delta can make a public seed secret, but not a secret seed
        // public: anybody may have made the delta.
        let own = *base.own_scheme();
        let hasher = if seed_is_public { *own.hasher() } else { own.hasher().kept_secret() };
        let scheme = Scheme::new(*own.shape(), hasher);
        let filter = F::read(&mut frame.body, scheme, Some(base), &mut self.budget())?;
        let found = filter.checksum();
        if found == result {
            Ok(filter)
        } else {
            Err(DecodeError::WrongResult { stored: result, found })
        }
    }

    const fn budget(&self) -> Budget {
        Budget { limit: self.limit, used: 0 }
    }

    fn unlock(&self, scheme: &mut Scheme) -> Result<(), DecodeError> {
        if let Some(seed) = self.seed {
            scheme.hasher_mut().unlock(seed)?;
        }
        if scheme.hasher().is_locked() && !self.accept_locked {
            return Err(DecodeError::Locked(scheme.hasher().fingerprint()));
        }
        Ok(())
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}
