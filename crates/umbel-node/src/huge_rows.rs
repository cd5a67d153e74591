//! Rows of a bank on huge pages, which take fewer page walks for the random rows of a lookup.

use memmap2::{Advice, MmapMut};
use umbel::bank::{Line, Rows};

/// Rows in a memory mapping of their own, on huge pages if the system provides them.
#[derive(Debug)]
pub(crate) struct HugeRows {
    /// `None` if there are no rows: a mapping cannot be empty.
    map: Option<MmapMut>,
    lines: usize,
}

impl Rows for HugeRows {
    fn zeroed(lines: usize) -> Option<Self> {
        let bytes = lines.checked_mul(size_of::<Line>())?;
        let map = if bytes == 0 { None } else { Some(MmapMut::map_anon(bytes).ok()?) };
        if let Some(map) = map.as_ref().filter(|map| map.len() >= HUGE) {
            // Without huge pages it is only a few percent slower.
            let _ = map.advise(Advice::HugePage);
        }
        Some(Self { map, lines })
    }

    fn lines(&self) -> &[Line] {
        let lines = self.map.as_ref().map_or(&[][..], |map| bytemuck::cast_slice(map));
        &lines[..self.lines]
    }

    fn lines_mut(&mut self) -> &mut [Line] {
        let lines = self.map.as_mut().map_or(&mut [][..], |map| bytemuck::cast_slice_mut(map));
        &mut lines[..self.lines]
    }
}

/// The smallest mapping that can use huge pages.
const HUGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_start_as_zeros_and_keep_what_is_written() {
        for lines in [0, 1, 1000, 100_000] {
            let mut rows = HugeRows::zeroed(lines).unwrap();
            assert_eq!(rows.lines().len(), lines);
            assert!(rows.lines().iter().all(|line| *line == Line::default()));
            if let Some(last) = rows.lines_mut().last_mut() {
                bytemuck::bytes_of_mut(last)[63] = 7;
                assert_eq!(bytemuck::bytes_of(&rows.lines()[lines - 1])[63], 7);
            }
        }
        assert!(HugeRows::zeroed(usize::MAX).is_none());
    }
}
