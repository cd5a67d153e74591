//! The permissions of users.

use std::fmt;
use std::str::FromStr;

/// A permission of a user. None of them includes another: a cache that only reports what it holds
/// needs `write` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Query which hosts hold a key, and which sets and hosts there are.
    Read,
    /// Change which keys this host holds, and publish them.
    Write,
    /// Create, change and delete sets; list connected clients.
    Admin,
}

impl Permission {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Its name in configuration files and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Admin => 4,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of permissions; written as a list separated by commas.
///
/// ```
/// use umbel_node::access::{Permission, Permissions};
///
/// let both: Permissions = "read,write".parse()?;
/// assert!(both.has(Permission::Write) && !both.has(Permission::Admin));
/// assert_eq!(both.to_string(), "read,write");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(u8);

impl Permissions {
    /// All permissions.
    pub const ALL: Self = Self(7);

    /// Whether this one is among them.
    #[must_use]
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// The permissions in this set, in their order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.has(*permission))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<T: IntoIterator<Item = Permission>>(permissions: T) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission.bit()))
    }
}

impl FromStr for Permissions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |word: &str| {
            let named = Permission::ALL.into_iter().find(|one| one.as_str() == word.trim());
            named.ok_or_else(|| {
                format!("'{word}' is no permission: read, write and admin are, with commas between")
            })
        };
        text.split(',').map(one).collect()
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Permission::as_str).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_written_as_they_are_read() {
        for bits in 1..8 {
            let permissions = Permissions(bits);
            assert_eq!(permissions.to_string().parse(), Ok(permissions));
        }
        assert_eq!(" admin , read".parse(), Ok(Permissions(5)));
        for text in ["", "reads", "read write", "read,"] {
            assert!(text.parse::<Permissions>().unwrap_err().contains("no permission"), "{text}");
        }
    }
}
