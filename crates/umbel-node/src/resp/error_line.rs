//! Error lines of filter commands, with the texts that Redis clients know.

use std::borrow::Cow;

use crate::host::FilterError;

/// An error line with its code; nothing changed.
pub(super) type ErrorLine = Cow<'static, str>;

pub(super) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const NOT_FOUND: &str = "ERR not found";
pub(super) const FULL: &str = "Filter is full";
const MAX_EXPANSIONS: &str = "Maximum expansions reached";

/// An error with RedisBloom's text, if RedisBloom has this error.
pub(super) fn error_line(error: FilterError) -> ErrorLine {
    match error {
        FilterError::NotFound => NOT_FOUND.into(),
        FilterError::WrongType => WRONG_TYPE.into(),
        FilterError::MaxExpansions => MAX_EXPANSIONS.into(),
        FilterError::Host(error) => format!("ERR {error}").into(),
    }
}
