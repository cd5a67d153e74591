//! Where a bank keeps its rows: cache lines, owned or supplied by the caller.
//!
//! The pure crate asks the system for nothing but ordinary memory. A host that wants huge
//! pages implements [`Rows`] over its own mapping: 1.2 times faster at 128 MB.

use std::fmt;

use bytemuck::{Pod, Zeroable};

/// One cache line of 512 bits. Rows of up to 512 columns never straddle two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Zeroable, Pod)]
#[repr(C, align(64))]
pub struct Line([u64; 8]);

/// Memory for rows: cache lines that start out as zeros.
///
/// ```
/// use umbel::KeyHasher;
/// use umbel::bank::{Bank, Line, Rows};
///
/// /// Rows of one's own; a host would map huge pages here.
/// struct Mapped(Box<[Line]>);
///
/// impl Rows for Mapped {
///     fn zeroed(lines: usize) -> Option<Self> {
///         Some(Self(vec![Line::default(); lines].into()))
///     }
///     fn lines(&self) -> &[Line] {
///         &self.0
///     }
///     fn lines_mut(&mut self) -> &mut [Line] {
///         &mut self.0
///     }
/// }
///
/// let bank: Bank<Mapped> = Bank::new(KeyHasher::default());
/// assert_eq!(bank.memory_bytes(), 0);
/// ```
pub trait Rows: Sized {
    /// `lines` zeroed lines, or `None` if there is no memory for them.
    fn zeroed(lines: usize) -> Option<Self>;

    /// The lines, as many as were requested.
    fn lines(&self) -> &[Line];

    /// The lines, as many as were requested.
    fn lines_mut(&mut self) -> &mut [Line];
}

/// Rows in ordinary memory.
#[derive(Clone)]
pub struct HeapRows(Vec<Line>);

impl Rows for HeapRows {
    fn zeroed(lines: usize) -> Option<Self> {
        let mut rows = Vec::new();
        rows.try_reserve_exact(lines).ok()?;
        rows.resize(lines, Line::default());
        Some(Self(rows))
    }

    fn lines(&self) -> &[Line] {
        &self.0
    }

    fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.0
    }
}

impl fmt::Debug for HeapRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapRows({} lines)", self.0.len())
    }
}
