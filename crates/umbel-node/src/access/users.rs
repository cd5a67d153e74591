//! The users file: names, permissions, and the hashes of passwords and tokens.
//!
//! ```toml
//! [alice]
//! permissions = ["read", "write"]
//! password = "$argon2id$v=19$m=19456,t=2,p=1$…"
//! tokens = ["$argon2id$v=19$m=19456,t=2,p=1$…"]
//! ```
//!
//! Always true of [`Users`]: names are safe in a log line and in a token; every hash can be checked
//! and costs at most [`MAX_MEMORY_KIB`] and [`MAX_PASSES`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, try_generate_salt};
use argon2::{Argon2, Params};
use serde::{Deserialize, Serialize};

use super::{Permission, Permissions};

/// Maximum length of a user's name, in bytes.
const LONGEST_NAME: usize = 64;
/// Maximum length of a password, in bytes; longer ones are refused before anything is computed.
pub(super) const LONGEST_PASSWORD: usize = 1024;
/// A hash that costs more is refused, so that a mistake in the file cannot stall a host.
const MAX_MEMORY_KIB: u32 = 256 << 10;
const MAX_PASSES: u32 = 16;

/// All users.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Users {
    by_name: BTreeMap<String, User>,
}

/// A user. Its debug output contains no hashes.
#[derive(Clone, PartialEq)]
pub struct User {
    permissions: Permissions,
    password: Option<PasswordHash>,
    tokens: Vec<PasswordHash>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User({}, {} tokens)", self.permissions, self.tokens.len())
    }
}

/// Why a users file, or a change to it, was refused; nothing changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// An invalid name of a user.
    #[error("a user's name has 1 to 64 letters, digits, '_' and '-', unlike '{0}'")]
    Name(String),
    /// An invalid password.
    #[error("a password has 1 to 1024 bytes, not {0}")]
    Password(usize),
    /// A user of this name exists already.
    #[error("there is a user '{0}' already: remove it first")]
    Taken(String),
    /// No user has this name.
    #[error("there is no user '{0}'")]
    Nobody(String),
    /// The system gave no random bytes, or the password could not be hashed.
    #[error("cannot hash a password: {0}")]
    Hash(String),
}

/// A user in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    permissions: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<String>,
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is not TOML, or has invalid content.
    pub fn read(path: &Path) -> Result<Self, UsersError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| UsersError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|message| UsersError::Content { path: path.to_owned(), message })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let entries: BTreeMap<String, Entry> = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            format!("line {line}: {}", error.message().replace('\n', "; "))
        })?;
        let mut by_name = BTreeMap::new();
        for (name, entry) in entries {
            check_name(&name).map_err(|error| error.to_string())?;
            let user = User::from_entry(&entry).map_err(|wrong| format!("user {name}: {wrong}"))?;
            by_name.insert(name, user);
        }
        Ok(Self { by_name })
    }

    /// The content of the users file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let entries: BTreeMap<&String, Entry> =
            self.by_name.iter().map(|(name, user)| (name, user.to_entry())).collect();
        let text = written(&entries);
        format!(
            "# Users of an umbel host; umbel config user writes it. Keep it to yourself.\n{text}"
        )
    }

    /// Adds a user.
    ///
    /// # Errors
    /// If the name is taken or invalid, or the password is empty or too long.
    pub fn add(
        &mut self,
        name: &str,
        permissions: Permissions,
        password: Option<&[u8]>,
    ) -> Result<(), UsersError> {
        check_name(name)?;
        if self.by_name.contains_key(name) {
            return Err(UsersError::Taken(name.to_owned()));
        }
        let password = password.map(hash).transpose()?;
        let user = User { permissions, password, tokens: Vec::new() };
        self.by_name.insert(name.to_owned(), user);
        Ok(())
    }

    /// Removes a user.
    ///
    /// # Errors
    /// If no user has this name.
    pub fn remove(&mut self, name: &str) -> Result<(), UsersError> {
        let removed = self.by_name.remove(name);
        removed.map(drop).ok_or_else(|| UsersError::Nobody(name.to_owned()))
    }

    /// Creates a token for a user and returns it. Only its hash is stored, so that it cannot be
    /// shown again.
    ///
    /// # Errors
    /// If no user has this name, or the system has no random bytes.
    pub fn add_token(&mut self, name: &str) -> Result<String, UsersError> {
        let user = self.by_name.get_mut(name).ok_or_else(|| UsersError::Nobody(name.to_owned()))?;
        let mut secret = String::new();
        for _ in 0..2 {
            let bytes = try_generate_salt().map_err(|error| UsersError::Hash(error.to_string()))?;
            bytes.iter().for_each(|byte| secret.push_str(&format!("{byte:02x}")));
        }
        user.tokens.push(hash(secret.as_bytes())?);
        Ok(format!("{name}.{secret}"))
    }

    /// The user of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&User> {
        self.by_name.get(name)
    }

    /// The hashes to check a secret of this kind against: always the same number, whichever user it
    /// is and even if there is none. Missing hashes are replaced by decoys, which match no secret.
    pub(super) fn hashes(&self, kind: super::Kind, name: &str) -> Vec<Check> {
        let max = self.by_name.values().map(|user| user.hashes(kind).len()).max();
        let own = self.get(name).map_or(&[][..], |user| user.hashes(kind));
        let own = own.iter().map(|hash| Check { hash: hash.clone(), is_decoy: false });
        let decoy = || Check { hash: decoy(), is_decoy: true };
        own.chain(std::iter::repeat_with(decoy)).take(max.unwrap_or(0).max(1)).collect()
    }

    /// All users, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &User)> {
        self.by_name.iter().map(|(name, user)| (name.as_str(), user))
    }
}

impl User {
    /// The user's permissions.
    #[must_use]
    pub const fn permissions(&self) -> Permissions {
        self.permissions
    }

    /// Whether the user has a password.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The number of tokens.
    #[must_use]
    pub const fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The hashes to check a secret of this kind against.
    pub(super) fn hashes(&self, kind: super::Kind) -> &[PasswordHash] {
        match kind {
            super::Kind::Password => self.password.as_slice(),
            super::Kind::Token => &self.tokens,
        }
    }

    fn from_entry(entry: &Entry) -> Result<Self, String> {
        let permissions: Permissions = entry.permissions.join(",").parse()?;
        Ok(Self {
            permissions,
            password: entry.password.as_deref().map(read_hash).transpose()?,
            tokens: entry.tokens.iter().map(|text| read_hash(text)).collect::<Result<_, _>>()?,
        })
    }

    fn to_entry(&self) -> Entry {
        Entry {
            permissions: self.permissions.iter().map(Permission::as_str).map(Into::into).collect(),
            password: self.password.as_ref().map(ToString::to_string),
            tokens: self.tokens.iter().map(ToString::to_string).collect(),
        }
    }
}

fn written(entries: &BTreeMap<&String, Entry>) -> String {
    toml::to_string(entries).expect("texts and lists of texts")
}

fn check_name(name: &str) -> Result<(), UsersError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let fits = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(plain);
    if fits { Ok(()) } else { Err(UsersError::Name(name.chars().take(80).collect())) }
}

fn hash(password: &[u8]) -> Result<PasswordHash, UsersError> {
    if !(1..=LONGEST_PASSWORD).contains(&password.len()) {
        return Err(UsersError::Password(password.len()));
    }
    Argon2::default().hash_password(password).map_err(|error| UsersError::Hash(error.to_string()))
}

/// Parses a hash that can be checked at acceptable cost. Error messages do not contain the text,
/// because it is sensitive.
fn read_hash(text: &str) -> Result<PasswordHash, String> {
    let wrong = || "a hash that umbel config user did not make".to_owned();
    let hash = PasswordHash::new(text).map_err(|_| wrong())?;
    let params = Params::try_from(&hash).map_err(|_| wrong())?;
    let bearable =
        params.m_cost() <= MAX_MEMORY_KIB && params.t_cost() <= MAX_PASSES && params.p_cost() == 1;
    let argon2 = hash.algorithm.as_str().starts_with("argon2");
    if bearable && argon2 && hash.salt.is_some() && hash.hash.is_some() {
        Ok(hash)
    } else {
        Err(wrong())
    }
}

/// A hash that a secret is checked against.
#[derive(Debug)]
pub(super) struct Check {
    hash: PasswordHash,
    /// Whether it only takes the time of a real one.
    is_decoy: bool,
}

/// Whether a secret matches one of the hashes, and how many were computed: all, on purpose, since
/// the time would reveal which users there are and which of their tokens matches.
pub(super) fn verify(secret: &[u8], hashes: &[Check]) -> (bool, u64) {
    let mut computed = 0;
    let mut fits = |check: &Check| {
        computed += 1;
        Argon2::default().verify_password(secret, &check.hash).is_ok()
    };
    let right = hashes.iter().filter(|check| fits(check) && !check.is_decoy).count();
    (right > 0, computed)
}

/// A hash of no known secret: checking against it takes as long as against any other.
fn decoy() -> PasswordHash {
    let text = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
                AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    PasswordHash::new(text).expect("a sound hash")
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    #[test]
    fn survive_their_file_without_telling_secrets() {
        let mut users = Users::default();
        users.add("alice", "read,write".parse().unwrap(), Some(b"correct horse")).unwrap();
        users.add("agent_1", "write".parse().unwrap(), None).unwrap();
        let token = users.add_token("agent_1").unwrap();
        let text = users.to_toml();
        assert!(!text.contains("correct horse") && !text.contains(&token[8..]), "{text}");
        assert_eq!(Users::parse(&text).unwrap(), users);
        assert!(!format!("{users:?}").contains("argon2"));
        let verify = |secret: &[u8], hashes: Vec<Check>| verify(secret, &hashes).0;
        assert!(verify(b"correct horse", users.hashes(Kind::Password, "alice")));
        assert!(!verify(b"correct hors", users.hashes(Kind::Password, "alice")));
        assert!(!verify(b"x", users.hashes(Kind::Password, "nobody")));
        let secret = token.strip_prefix("agent_1.").unwrap();
        assert!(verify(secret.as_bytes(), users.hashes(Kind::Token, "agent_1")));
        assert!(!verify(secret.as_bytes(), users.hashes(Kind::Token, "alice")));
    }

    #[test]
    fn bad_changes_change_nothing() {
        let mut users = Users::default();
        let read = Permissions::ALL;
        for name in ["", "a b", "a.b", "ü", &"x".repeat(65)] {
            assert!(matches!(users.add(name, read, None), Err(UsersError::Name(_))), "{name}");
        }
        assert!(matches!(users.add("a", read, Some(b"")), Err(UsersError::Password(0))));
        assert!(users.add("a", read, Some(&[b'x'; 1025])).is_err());
        assert_eq!(users, Users::default());
        users.add("a", read, None).unwrap();
        assert!(matches!(users.add("a", read, None), Err(UsersError::Taken(_))));
        assert!(matches!(users.remove("b"), Err(UsersError::Nobody(_))));
        assert!(matches!(users.add_token("b"), Err(UsersError::Nobody(_))));
        assert_eq!(users.iter().count(), 1);
    }

    #[test]
    fn bad_files_are_told_in_one_line() {
        let decoy = decoy().to_string();
        let costly = decoy.replace("m=19456", "m=4000000");
        for (text, expected) in [
            ("[a", "line 1"),
            ("[a]\npermission = ['read']", "line 2"),
            ("[a]\npassword = 'x'", "permissions"),
            ("[a]\npermissions = ['reads']", "no permission"),
            ("[a]\npermissions = []", "no permission"),
            ("['a b']\npermissions = ['read']", "letters"),
            ("[a]\npermissions = ['read']\npassword = 'secret'", "user a: a hash that"),
            (&format!("[a]\npermissions = ['read']\npassword = '{costly}'"), "a hash that"),
        ] {
            let error = Users::parse(text).unwrap_err();
            assert!(error.contains(expected) && error.lines().count() == 1, "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
