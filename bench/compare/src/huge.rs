//! Rows in huge pages: what a host gives its bank.

use memmap2::{Advice, MmapMut};
use umbel::bank::{Line, Rows};

/// Zeroed lines in an anonymous mapping that asks for huge pages.
pub(crate) struct HugeRows(MmapMut);

impl Rows for HugeRows {
    fn zeroed(lines: usize) -> Option<Self> {
        let map = MmapMut::map_anon(lines * size_of::<Line>()).ok()?;
        // Without huge pages it is slower, not wrong.
        let _ = map.advise(Advice::HugePage);
        Some(Self(map))
    }

    fn lines(&self) -> &[Line] {
        bytemuck::cast_slice(&self.0)
    }

    fn lines_mut(&mut self) -> &mut [Line] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
