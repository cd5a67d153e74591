//! Which columns of a bank share rows: the fewest accesses within a bound on memory.
//!
//! Columns of nested shapes (`design::ladder`) may stand in the same rows: a column of a lower rung
//! is stretched, `2^d` rows for each of its bits. The rungs in use are sorted and divided into runs
//! of neighbours. A run has the rows of its highest rung, or no rows; without rows its columns are
//! asked one by one. A bank of fewer than 8 columns has no rows at all. In a larger bank even a run
//! of fewer than 8 columns may have rows, if the bound, which grows with long columns, leaves room
//! for them.
//!
//! A division is valid if its rows take at most [`MAX_ROWS`] times the columns' bits and it
//! stretches no column by more than `2^8`. [`Layout::best`] is the valid division with the fewest
//! accesses per lookup of an absent key. There is always one: one run per rung, with rows from 8
//! columns on, keeps the bound.

use crate::design::replica::row_width;

/// Rows take at most this many times the bits of the columns.
pub(super) const MAX_ROWS: u64 = 2;
/// A column is stretched by at most two to this power.
pub(super) const MAX_STRETCH: u32 = 8;
/// A layout that saves a quarter of the accesses is worth any rows that have to be built for it.
const WORTHWHILE: f64 = 0.75;
/// A layout that saves this much is worth building once enough columns have been added to pay for
/// its rows.
const AFFORDABLE: f64 = 0.97;
/// The fewest columns for which a bank has rows, and the width of the narrowest row.
const MIN: usize = 8;

/// Accesses of a column that is asked alone: most columns deny a key at its first or second bit.
const ALONE: f64 = 1.7;
/// The fixed cost of a group per lookup, in accesses, in addition to its rows.
const GROUP: f64 = 0.5;

/// Rows of a key that are read before no column is left, on average: each row leaves some 40 %
/// of the columns.
pub(super) fn rows_read(columns: usize, hashes: u32) -> f64 {
    let rows = 1.3 + (columns.max(1) as f64).ln() / 2.5f64.ln();
    rows.min(hashes.into())
}

/// Cache lines that a lookup reads in a group of this many columns.
fn accesses(columns: usize, width: usize, hashes: u32) -> f64 {
    GROUP + rows_read(columns, hashes) * width.div_ceil(512) as f64
}

/// A rung and the number of columns on it, each of `2^exponent` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rungful {
    pub(super) exponent: u32,
    pub(super) columns: usize,
}

/// Rungs whose columns share rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Exponents of the lowest and of the highest rung.
    pub(super) lowest: u32,
    pub(super) highest: u32,
    pub(super) columns: usize,
    /// Columns that a row has room for; 0 without rows.
    pub(super) width: usize,
}

impl Run {
    /// Widths that the rows of a run may have, in a bank of `in_all` columns.
    fn widths(columns: usize, in_all: usize) -> impl Iterator<Item = usize> {
        let narrow = (columns < MIN && in_all >= MIN && columns > 1).then_some(MIN);
        [row_width(columns)].into_iter().chain(narrow)
    }

    fn rows_bits(&self) -> u64 {
        (self.width as u64) << self.highest
    }

    fn accesses(&self, hashes: u32) -> f64 {
        match self.width {
            0 => ALONE * self.columns as f64,
            width => accesses(self.columns, width, hashes),
        }
    }
}

/// The cost of some groups and some columns that are asked alone: accesses per lookup and bits of
/// rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) accesses: f64,
    pub(super) rows_bits: u64,
}

impl Cost {
    /// Adds columns that are asked alone.
    pub(super) fn add_loose(&mut self, columns: usize) {
        self.accesses += ALONE * columns as f64;
    }

    /// Adds a group of this many columns, with rows of this width.
    pub(super) fn add_group(&mut self, columns: usize, width: usize, bits: u64, hashes: u32) {
        self.accesses += accesses(columns, width, hashes);
        self.rows_bits += width as u64 * bits;
    }
}

/// Runs of rungs, lowest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layout {
    pub(super) runs: Vec<Run>,
    pub(super) cost: Cost,
}

impl Layout {
    /// The layout with the fewest accesses, for rungs in ascending order.
    ///
    /// Dynamic programming over the rungs: for every prefix of the rungs, keep all layouts that no
    /// other layout beats in both accesses and length of rows.
    pub(super) fn best(rungs: &[Rungful], hashes: u32) -> Self {
        let bits: u64 = rungs.iter().map(|rung| (rung.columns as u64) << rung.exponent).sum();
        let in_all = rungs.iter().map(|rung| rung.columns).sum();
        let mut best: Vec<Vec<Self>> = vec![vec![Self::default()]];
        for end in 0..rungs.len() {
            let mut found: Vec<Self> = Vec::new();
            for start in (0..=end).rev() {
                let (lowest, highest) = (rungs[start].exponent, rungs[end].exponent);
                let columns = rungs[start..=end].iter().map(|rung| rung.columns).sum();
                for width in Run::widths(columns, in_all) {
                    let run = Run { lowest, highest, columns, width };
                    if width == 0 || highest - lowest <= MAX_STRETCH {
                        found.extend(best[start].iter().filter_map(|layout| {
                            Some(layout.and(&run, hashes)).filter(|all| all.is_within(bits))
                        }));
                    }
                }
            }
            best.push(undominated(found));
        }
        let all = best.pop().unwrap_or_default().into_iter();
        all.min_by(|a, b| a.cost.accesses.total_cmp(&b.cost.accesses)).unwrap_or_default()
    }

    /// This layout of lower rungs, and one more run.
    fn and(&self, run: &Run, hashes: u32) -> Self {
        let accesses = self.cost.accesses + run.accesses(hashes);
        let rows_bits = self.cost.rows_bits + run.rows_bits();
        let runs = self.runs.iter().chain([run]).cloned().collect();
        Self { runs, cost: Cost { accesses, rows_bits } }
    }

    const fn is_within(&self, bits: u64) -> bool {
        self.cost.rows_bits <= MAX_ROWS * bits
    }

    /// Whether to change from a layout of cost `now` to this one, regardless of how many rows must
    /// be built. `bits` is the size of all columns.
    pub(super) fn is_worthwhile(&self, now: Cost, bits: u64) -> bool {
        now.rows_bits > MAX_ROWS * bits || self.cost.accesses < WORTHWHILE * now.accesses
    }

    /// Whether to change to this layout if few rows must be built.
    pub(super) fn is_better(&self, now: Cost) -> bool {
        self.cost.accesses < AFFORDABLE * now.accesses
    }
}

/// The layouts that no other layout beats in both accesses and length of rows.
fn undominated(mut layouts: Vec<Layout>) -> Vec<Layout> {
    layouts.sort_by(|a, b| a.cost.accesses.total_cmp(&b.cost.accesses));
    let mut shortest = u64::MAX;
    layouts.retain(|layout| {
        let kept = layout.cost.rows_bits < shortest;
        shortest = shortest.min(layout.cost.rows_bits);
        kept
    });
    layouts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rungs(counts: &[(u32, usize)]) -> Vec<Rungful> {
        counts
            .iter()
            .map(|(exponent, columns)| Rungful { exponent: *exponent, columns: *columns })
            .collect()
    }

    #[test]
    fn equal_columns_share_one_group_from_eight_on() {
        for (columns, width) in [(1, 0), (7, 0), (8, 8), (9, 16), (33, 64), (65, 128), (600, 1024)]
        {
            let layout = Layout::best(&rungs(&[(20, columns)]), 12);
            assert_eq!(layout.runs.len(), 1);
            assert_eq!(layout.runs[0].width, width, "{columns} columns");
        }
    }

    #[test]
    fn neighbouring_rungs_share_rows_where_memory_permits() {
        let layout = Layout::best(&rungs(&[(18, 4), (19, 4), (20, 8)]), 12);
        assert_eq!(layout.runs, [Run { lowest: 18, highest: 20, columns: 16, width: 16 }]);
        // A single long column would stretch the others too far.
        let layout = Layout::best(&rungs(&[(12, 20), (24, 1)]), 12);
        assert_eq!(layout.runs.iter().map(|run| run.width).collect::<Vec<_>>(), [32, 0]);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        /// Compares with an exhaustive search over all divisions.
        #[test]
        fn no_division_has_fewer_accesses(
            counts in prop::collection::btree_map(10u32..24, 1usize..60, 1..9),
        ) {
            let rungs: Vec<_> =
                counts.iter().map(|(exponent, columns)| (*exponent, *columns)).collect();
            let rungs = self::rungs(&rungs);
            let bits: u64 = rungs.iter().map(|rung| (rung.columns as u64) << rung.exponent).sum();
            let in_all = rungs.iter().map(|rung| rung.columns).sum();
            let mut min = f64::INFINITY;
            for cuts in 0u32..1 << (rungs.len() - 1) {
                let mut runs: Vec<Run> = Vec::new();
                for (index, rung) in rungs.iter().enumerate() {
                    let Rungful { exponent, columns } = *rung;
                    match runs.last_mut() {
                        Some(run) if cuts >> (index - 1) & 1 == 0 => {
                            (run.highest, run.columns) = (exponent, run.columns + columns);
                        }
                        _ => runs.push(Run { lowest: exponent, highest: exponent, columns, width: 0 }),
                    }
                }
                // Try each run with and without narrow rows, where both are allowed.
                for narrow in 0u32..1 << runs.len() {
                    for (index, run) in runs.iter_mut().enumerate() {
                        let widths: Vec<_> = Run::widths(run.columns, in_all).collect();
                        run.width = widths[(narrow >> index & 1) as usize % widths.len()];
                    }
                    let far = |run: &Run| run.width > 0 && run.highest - run.lowest > MAX_STRETCH;
                    if runs.iter().map(Run::rows_bits).sum::<u64>() <= MAX_ROWS * bits
                        && !runs.iter().any(far)
                    {
                        min = min.min(runs.iter().map(|run| run.accesses(12)).sum());
                    }
                }
            }
            let layout = Layout::best(&rungs, 12);
            prop_assert!((layout.cost.accesses - min).abs() < 1e-9);
            prop_assert!(layout.cost.rows_bits <= MAX_ROWS * bits);
            let columns: usize = layout.runs.iter().map(|run| run.columns).sum();
            prop_assert_eq!(columns, rungs.iter().map(|rung| rung.columns).sum::<usize>());
        }
    }
}
