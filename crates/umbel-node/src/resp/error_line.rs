//! Errors of filters as they are sent, in the words that Redis clients know.

use std::borrow::Cow;

use crate::filter_kind::Full;
use crate::host::FilterError;

/// An error as it is sent, its code included; nothing changed.
pub(super) type ErrorLine = Cow<'static, str>;

pub(super) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const NOT_FOUND: &str = "ERR not found";
pub(super) const FULL: &str = "Filter is full";
const MAX_EXPANSIONS: &str = "Maximum expansions reached";

/// An error in RedisBloom's words, where it has words for it.
pub(super) fn error_line(error: FilterError) -> ErrorLine {
    match error {
        FilterError::NotFound => NOT_FOUND.into(),
        FilterError::WrongType => WRONG_TYPE.into(),
        FilterError::Full(Full::MaxExpansions) => MAX_EXPANSIONS.into(),
        FilterError::Full(Full::Full) => FULL.into(),
        FilterError::Host(error) => format!("ERR {error}").into(),
    }
}
