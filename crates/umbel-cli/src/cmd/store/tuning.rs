//! Options of a store that decide when its index of changes is written to disk, and its filter's
//! size.

use clap::Args;
use umbel_store::Options;

use crate::values;

/// Memory and filter of the changes.
#[derive(Args)]
pub(super) struct Tuning {
    /// Memory for the index of changes; beyond it changes are sorted to disk [default: 64M]
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    memory_budget: Option<u64>,
    /// Bits of the filter over the changes that the memory budget has room for [default: ten per change]
    #[arg(long, value_name = "M", value_parser = values::bits, allow_hyphen_values = true)]
    filter_bits: Option<u64>,
}

impl Tuning {
    pub(super) fn apply(&self, mut options: Options) -> Options {
        if let Some(bytes) = self.memory_budget {
            options = options.memory_budget(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        if let Some(bits) = self.filter_bits {
            options = options.filter_bits(bits);
        }
        options
    }
}
