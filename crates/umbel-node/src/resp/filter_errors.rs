//! Errors of Bloom and cuckoo filters in `RedisBloom`'s words, which clients and their tests compare.

use super::context::ErrorLine;
use crate::filter_kind::Full;
use crate::host::FilterError;

pub(super) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const NOT_FOUND: &str = "ERR not found";
pub(super) const EXISTS: &str = "ERR item exists";
pub(super) const MAX_EXPANSIONS: &str = "Maximum expansions reached";
/// Of a cuckoo filter.
pub(super) const FULL: &str = "Filter is full";
/// Of a Bloom filter that may not grow.
pub(super) const NON_SCALING_FULL: &str = "ERR non scaling filter is full";

/// An error in `RedisBloom`'s words, where it has words for it.
pub(super) fn error_line(error: FilterError) -> ErrorLine {
    match error {
        FilterError::NotFound => NOT_FOUND.into(),
        FilterError::WrongType => WRONG_TYPE.into(),
        FilterError::Full(Full::MaxExpansions) => MAX_EXPANSIONS.into(),
        FilterError::Full(Full::Full) => FULL.into(),
        FilterError::Host(error) => format!("ERR {error}").into(),
    }
}
