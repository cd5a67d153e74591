//! How the keys of a set are made from the names that clients ask for.

use std::fmt;
use std::str::FromStr;

use umbel::replica::Name;

use super::set_name::set_name;
use crate::Transform;

/// The transform of one set, written `pages=template:/{key}|md5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetTransform {
    set: Name,
    transform: Transform,
}

impl SetTransform {
    /// The set.
    #[must_use]
    pub fn set(&self) -> &str {
        self.set.as_str()
    }

    /// Its transform.
    #[must_use]
    pub const fn transform(&self) -> &Transform {
        &self.transform
    }
}

impl FromStr for SetTransform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (set, transform) = text.split_once('=').ok_or("SET=TRANSFORM is needed")?;
        let set = set_name(set)?;
        let transform =
            transform.parse().map_err(|error: crate::TransformError| error.to_string())?;
        Ok(Self { set, transform })
    }
}

impl fmt::Display for SetTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.set, self.transform)
    }
}
