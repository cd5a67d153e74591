//! umbel's bank, with columns that change as published filters do.

use memmap2::{Advice, MmapMut};
use umbel::bank::{Bank, ColumnId, Depths, HeapRows, Line, Rows};
use umbel::bits::BitVector;
use umbel::design::chain::{ChainDesign, ChainPromise, ChainSearch};
use umbel::params::Bits;
use umbel::{KeyHash, KeyHasher, Scheme, Shape};

use crate::index::{Event, Index, Query, World};

/// Rows on huge pages, as hosts keep them.
pub(crate) struct HugeRows(MmapMut);

impl Rows for HugeRows {
    fn zeroed(lines: usize) -> Option<Self> {
        let map = MmapMut::map_anon(lines.max(1) * size_of::<Line>()).ok()?;
        // Where the system gives none, rows stand on ordinary pages.
        _ = map.advise(Advice::HugePage);
        Some(Self(map))
    }

    fn lines(&self) -> &[Line] {
        bytemuck::cast_slice(&self.0)
    }

    fn lines_mut(&mut self) -> &mut [Line] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// A router's replicas on ordinary pages.
pub(crate) type Ordinary = Ours<HeapRows>;
/// A router's replicas on huge pages.
pub(crate) type Huge = Ours<HugeRows>;

/// A router's replicas, and the counters of the homes.
pub(crate) struct Ours<R: Rows> {
    bank: Bank<R>,
    columns: Vec<ColumnId>,
    workers: Vec<usize>,
    shape: Shape,
    how: ChainSearch,
    name: &'static str,
    counters: Vec<Vec<u8>>,
    flips: Vec<(usize, Vec<u64>, Vec<u64>)>,
    chain: Vec<KeyHash>,
    found: Depths,
}

impl<R: Rows> Ours<R> {
    /// For so many workers with so many blocks each.
    pub(crate) fn new(name: &'static str, workers: usize, blocks: u64) -> (Self, ChainDesign) {
        let design = ChainPromise::default().design().expect("the default can be kept");
        let ladder = design.ladder();
        let rung = ladder.rung_for(blocks, workers as u32).expect("a rung takes the blocks");
        let shape = ladder.shape(rung);
        let mut bank = Bank::new(KeyHasher::default());
        let scheme = Scheme::new(shape, KeyHasher::default());
        let empty = BitVector::zeros(Bits::new(shape.bits()).expect("a length")).expect("memory");
        let columns = bank.add_many(&scheme, &vec![&empty; workers]).expect("there is memory");
        let mut by_column = vec![0; workers];
        for (worker, column) in columns.iter().enumerate() {
            by_column[column.get() as usize] = worker;
        }
        let ours = Self {
            bank,
            columns,
            workers: by_column,
            shape,
            how: design.search(),
            name,
            counters: vec![vec![0; shape.bits() as usize]; workers],
            flips: Vec::new(),
            chain: Vec::new(),
            found: Depths::new(),
        };
        (ours, design)
    }
}

impl<R: Rows> Index for Ours<R> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn prepare(&mut self, world: &World, events: &[Event]) {
        let positions = |shape: &Shape, key: u64| {
            KeyHash::from_raw(key).digest(shape.digest_bits()).positions(shape)
        };
        for event in events {
            let counters = &mut self.counters[event.worker];
            let (mut sets, mut clears) = (Vec::new(), Vec::new());
            for key in event.removed.iter().flat_map(|part| world.keys(*part)) {
                for position in positions(&self.shape, key) {
                    let counter = &mut counters[position as usize];
                    *counter -= 1;
                    if *counter == 0 {
                        clears.push(position);
                    }
                }
            }
            for key in event.stored.iter().flat_map(|part| world.keys(*part)) {
                for position in positions(&self.shape, key) {
                    let counter = &mut counters[position as usize];
                    if *counter == 0 {
                        sets.push(position);
                    }
                    *counter = counter.checked_add(1).expect("counters do not overflow");
                }
            }
            self.flips.push((event.worker, clears, sets));
        }
    }

    fn apply(&mut self) {
        // Clears first: a bit that is cleared and set again in one event must end as a one.
        for (worker, clears, sets) in self.flips.drain(..) {
            self.bank.clear(self.columns[worker], &clears).expect("the column is there");
            self.bank.set(self.columns[worker], &sets).expect("the column is there");
        }
    }

    fn load(&mut self, query: &Query) {
        self.chain.clear();
        self.chain.extend(query.keys.iter().map(|key| KeyHash::from_raw(*key)));
    }

    fn find(&mut self, _: &Query) {
        self.bank.chain(&self.chain, self.how, &mut self.found);
    }

    fn depths(&self, depths: &mut [u32]) {
        depths.fill(0);
        for (column, depth) in self.found.iter() {
            depths[self.workers[column.get() as usize]] = depth;
        }
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bank.memory_bytes())
    }
}
