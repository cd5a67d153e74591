//! Names of sets in settings.

use umbel::replica::Name;

/// The text cannot be the name of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a set's name has 1 to {} bytes of printable text without spaces and direction marks",
    Name::LONGEST
)]
pub(crate) struct SetNameError;

/// The name of a set.
pub(super) fn set_name(text: &str) -> Result<Name, String> {
    Name::new(text).ok_or_else(|| SetNameError.to_string())
}
