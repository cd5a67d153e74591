//! Access control: users, their permissions, and how they authenticate.
//!
//! Both ports use this module: RESP with a user and a password, HTTP with a bearer token, which is
//! the user's name, a dot, and a secret. Both secrets are hashed with argon2id. A secret that was
//! verified is cached for a while under a keyed hash, so that the cost is paid once and not per
//! request. An attempt waits for its turn (`turns`); a source of failed attempts waits longer
//! (`throttle`), and failures are counted.
//!
//! Always true: without a users file everybody may do everything, and nobody can log in; with one,
//! nobody may do anything before logging in. A user who is removed, or whose secret changes, is
//! logged out at the next command. How many secrets are hashed for an attempt depends only on the
//! users file, not on the user in the attempt.

mod permission;
mod throttle;
mod turns;
mod users;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
pub use permission::{Permission, Permissions};
use turns::{Turn, Turns};
pub use users::{User, Users, UsersError};

/// Maximum number of cached secrets; beyond it the cache is cleared, and secrets are verified
/// again.
const REMEMBERED: usize = 4096;
/// How long a verified secret is cached.
const REMEMBER: Duration = Duration::from_secs(300);

/// Access control of one host.
#[derive(Debug)]
pub struct Access {
    /// The users file; `None`: there are no users, and everybody may do everything.
    path: Option<PathBuf>,
    users: RwLock<Arc<Users>>,
    /// Incremented when the users change.
    version: AtomicU64,
    verified: Mutex<HashMap<[u64; 2], Instant>>,
    keys: [RandomState; 2],
    turns: Turns,
    /// Secrets hashed since the start.
    hashed: AtomicU64,
    failures: AtomicU64,
    logins: AtomicU64,
}

/// The kind of secret used to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Password,
    Token,
}

/// The user of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    user: Option<LoggedIn>,
    permissions: Permissions,
    version: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct LoggedIn {
    name: Arc<str>,
    /// The user at the time of the login: if it has changed since, it must log in again.
    was: User,
}

impl Identity {
    /// The user's name, once logged in.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &*user.name)
    }

    /// Its permissions.
    #[must_use]
    pub const fn permissions(&self) -> Permissions {
        self.permissions
    }
}

/// Why a login was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// This host has no users.
    #[error("this host knows no users: leave user and password out, or give it a users file")]
    NoUsers,
    /// User or password is wrong; which of both is not revealed.
    #[error("invalid username-password pair or user is disabled.")]
    Wrong,
    /// There were too many failures from this source.
    #[error("too many failed logins from your address; try again in a minute")]
    TooMany,
}

impl Access {
    /// Reads the users file, if there is one.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn new(path: Option<PathBuf>) -> Result<Self, UsersError> {
        let users = path.as_deref().map(Users::read).transpose()?.unwrap_or_default();
        Ok(Self {
            path,
            users: RwLock::new(Arc::new(users)),
            version: AtomicU64::new(1),
            verified: Mutex::default(),
            keys: Default::default(),
            turns: Turns::new(),
            hashed: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            logins: AtomicU64::new(0),
        })
    }

    /// Whether everybody may do everything.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.path.is_none()
    }

    /// The number of failed and of successful logins since the start.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.failures.load(Ordering::Relaxed), self.logins.load(Ordering::Relaxed))
    }

    /// Reads the file again; returns whether anything changed. If it cannot be read or is invalid,
    /// the users stay as they were.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn reload(&self) -> Result<bool, UsersError> {
        let Some(path) = &self.path else { return Ok(false) };
        let users = Users::read(path)?;
        let mut current = self.users.write();
        if **current == users {
            return Ok(false);
        }
        *current = Arc::new(users);
        self.version.fetch_add(1, Ordering::Release);
        self.verified.lock().clear();
        Ok(true)
    }

    /// The identity of a client that has not logged in.
    #[must_use]
    pub fn stranger(&self) -> Identity {
        let permissions = if self.is_open() { Permissions::ALL } else { Permissions::default() };
        Identity { user: None, permissions, version: self.version.load(Ordering::Acquire) }
    }

    /// Logs in a user with a password.
    ///
    /// # Errors
    /// If it is wrong, or too many were from there.
    pub async fn login(
        &self,
        user: &str,
        password: &[u8],
        from: IpAddr,
    ) -> Result<Identity, LoginError> {
        self.check(Kind::Password, user, password, from).await
    }

    /// Logs in a user with a token.
    ///
    /// # Errors
    /// If it is wrong, or too many were from there.
    pub async fn bearer(&self, token: &str, from: IpAddr) -> Result<Identity, LoginError> {
        let (user, secret) = token.split_once('.').unwrap_or((token, ""));
        self.check(Kind::Token, user, secret.as_bytes(), from).await
    }

    /// Updates an identity: its user may have been removed or changed.
    pub fn renew(&self, identity: &mut Identity) {
        let version = self.version.load(Ordering::Acquire);
        if identity.version == version {
            return;
        }
        let users = Arc::clone(&self.users.read());
        let stays = identity.user.as_ref().is_some_and(|user| {
            users.get(&user.name).is_some_and(|now| {
                let of = |user: &User, kind| user.hashes(kind).to_vec();
                of(now, Kind::Password) == of(&user.was, Kind::Password)
                    && of(&user.was, Kind::Token)
                        .iter()
                        .all(|token| now.hashes(Kind::Token).contains(token))
            })
        });
        *identity = match identity.user.take().filter(|_| stays) {
            Some(user) => {
                let permissions = users.get(&user.name).map(User::permissions).unwrap_or_default();
                Identity { user: Some(user), permissions, version }
            }
            None => self.stranger(),
        };
    }

    async fn check(
        &self,
        kind: Kind,
        name: &str,
        secret: &[u8],
        from: IpAddr,
    ) -> Result<Identity, LoginError> {
        if self.is_open() {
            return Err(LoginError::NoUsers);
        }
        let remembered = self.digest(kind, name, secret);
        if let Some(identity) = self.recall(name, &remembered) {
            return Ok(identity);
        }
        let Some(turn) = self.turns.take(from).await else {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(LoginError::TooMany);
        };
        // A previous attempt may have verified the same secret.
        if let Some(identity) = self.recall(name, &remembered) {
            return Ok(identity);
        }
        let version = self.version.load(Ordering::Acquire);
        let users = Arc::clone(&self.users.read());
        if self.verify(&turn, users.hashes(kind, name), secret).await
            && let Some(user) = users.get(name)
        {
            self.remember(remembered, version);
            return Ok(self.let_in(name, user.clone(), version));
        }
        turn.failed();
        self.failures.fetch_add(1, Ordering::Relaxed);
        // The name is not logged: it may be a password typed into the wrong field.
        tracing::warn!(%from, "a login failed");
        Err(LoginError::Wrong)
    }

    /// The identity of a user whose secret was verified before.
    fn recall(&self, name: &str, remembered: &[u64; 2]) -> Option<Identity> {
        let version = self.version.load(Ordering::Acquire);
        if !self.remembers(remembered) {
            return None;
        }
        let user = self.users.read().get(name).cloned()?;
        Some(self.let_in(name, user, version))
    }

    fn let_in(&self, name: &str, user: User, version: u64) -> Identity {
        self.logins.fetch_add(1, Ordering::Relaxed);
        let permissions = user.permissions();
        Identity { user: Some(LoggedIn { name: name.into(), was: user }), permissions, version }
    }

    /// Compares with every hash, so that the time does not reveal which one is right.
    async fn verify(&self, turn: &Turn<'_>, hashes: Vec<users::Check>, secret: &[u8]) -> bool {
        if secret.len() > users::LONGEST_PASSWORD {
            return false;
        }
        let permit = turn.permit().await;
        let secret = secret.to_vec();
        let verified = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            users::verify(&secret, &hashes)
        });
        let (is_right, hashed) = verified.await.unwrap_or((false, 0));
        self.hashed.fetch_add(hashed, Ordering::Relaxed);
        is_right
    }

    /// 128 bits under keys that nobody knows: finding a collision takes as many tries as guessing.
    fn digest(&self, kind: Kind, user: &str, secret: &[u8]) -> [u64; 2] {
        [0, 1].map(|half| self.keys[half].hash_one((kind, user, secret)))
    }

    fn remembers(&self, digest: &[u64; 2]) -> bool {
        self.verified.lock().get(digest).is_some_and(|at| at.elapsed() < REMEMBER)
    }

    /// Caches a verified secret, unless the users have changed since this version:
    /// [`Access::reload`] changes the version first and clears the cache after that.
    fn remember(&self, digest: [u64; 2], version: u64) {
        let mut verified = self.verified.lock();
        if self.version.load(Ordering::Acquire) != version {
            return;
        }
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(digest, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn written(folder: &std::path::Path, users: &Users) -> PathBuf {
        let path = folder.join("users");
        std::fs::write(&path, users.to_toml()).expect("written");
        path
    }

    #[tokio::test]
    async fn logins_are_checked_once_and_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let mut users = Users::default();
        users.add("alice", "read".parse().unwrap(), Some(b"right")).unwrap();
        let token = users.add_token("alice").unwrap();
        let access = Access::new(Some(written(folder.path(), &users))).unwrap();
        assert_eq!(access.stranger().permissions(), Permissions::default());
        for _ in 0..2 {
            let alice = access.login("alice", b"right", HERE).await.unwrap();
            assert_eq!(
                (alice.user(), alice.permissions().to_string()),
                (Some("alice"), "read".into())
            );
        }
        assert_eq!(access.verified.lock().len(), 1);
        assert_eq!(access.bearer(&token, HERE).await.unwrap().user(), Some("alice"));
        for (user, password) in
            [("alice", "wrong"), ("bob", "right"), ("", ""), ("alice", &token[6..])]
        {
            let refused = access.login(user, password.as_bytes(), HERE).await;
            assert_eq!(refused, Err(LoginError::Wrong), "{user}");
        }
        assert_eq!(access.bearer("alice.right", HERE).await, Err(LoginError::Wrong));
        assert_eq!(access.counts(), (5, 3));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn simultaneous_guesses_pass_no_throttle_and_delay_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut users = Users::default();
        users.add("alice", "read".parse().unwrap(), Some(b"right")).unwrap();
        let access = Arc::new(Access::new(Some(written(folder.path(), &users))).unwrap());
        let mut guesses = tokio::task::JoinSet::new();
        for number in 0..200 {
            let access = Arc::clone(&access);
            let guess = format!("guess-{number}");
            guesses.spawn(async move { access.login("alice", guess.as_bytes(), HERE).await });
        }
        tokio::time::sleep(Duration::from_millis(600)).await;
        let elsewhere = IpAddr::V4([127, 0, 0, 2].into());
        let alice = access.login("alice", b"right", elsewhere).await;
        assert_eq!(alice.unwrap().user(), Some("alice"));
        // After three failures the waits double: a minute has room for fewer than 16.
        let hashed = access.hashed.load(Ordering::Relaxed);
        assert!(hashed <= 16, "{hashed} secrets were hashed for 200 guesses and a login");
        guesses.shutdown().await;
        while !access.turns.is_idle() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn connections_of_one_pool_log_in_with_one_hash() {
        let folder = tempfile::tempdir().unwrap();
        let mut users = Users::default();
        users.add("alice", "read".parse().unwrap(), Some(b"right")).unwrap();
        let access = Arc::new(Access::new(Some(written(folder.path(), &users))).unwrap());
        let mut pool = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let access = Arc::clone(&access);
            pool.spawn(async move { access.login("alice", b"right", HERE).await.is_ok() });
        }
        assert!(pool.join_all().await.into_iter().all(|is_in| is_in));
        assert_eq!((access.counts(), access.hashed.load(Ordering::Relaxed)), ((0, 100), 1));
    }

    #[tokio::test]
    async fn as_many_secrets_are_hashed_for_every_user_and_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let mut users = Users::default();
        for name in ["none", "one", "two"] {
            users.add(name, "read".parse().unwrap(), (name != "one").then_some(b"x")).unwrap();
        }
        let tokens = ["one", "two", "two"].map(|name| users.add_token(name).unwrap());
        let access = Access::new(Some(written(folder.path(), &users))).unwrap();
        let mut before = 0;
        let mut hashed = || {
            let all = access.hashed.load(Ordering::Relaxed);
            all - std::mem::replace(&mut before, all)
        };
        for (number, name) in ["none", "one", "two", "nobody"].into_iter().enumerate() {
            let from = IpAddr::V4([127, 0, 1, number as u8].into());
            access.login(name, b"wrong", from).await.unwrap_err();
            assert_eq!(hashed(), 1, "a password of {name}");
            access.bearer(&format!("{name}.wrong"), from).await.unwrap_err();
            assert_eq!(hashed(), 2, "a token of {name}");
        }
        // It does not matter which of the tokens is right.
        for (number, token) in tokens.iter().enumerate() {
            access.bearer(token, HERE).await.unwrap();
            assert_eq!(hashed(), 2, "token {number} is right");
        }
    }

    #[tokio::test]
    async fn a_changed_file_changes_who_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let mut users = Users::default();
        users.add("alice", "read".parse().unwrap(), Some(b"right")).unwrap();
        users.add("bob", "read".parse().unwrap(), Some(b"right")).unwrap();
        let path = written(folder.path(), &users);
        let access = Access::new(Some(path.clone())).unwrap();
        let mut alice = access.login("alice", b"right", HERE).await.unwrap();
        let mut bob = access.login("bob", b"right", HERE).await.unwrap();
        assert!(!access.reload().unwrap(), "nothing changed");
        std::fs::write(&path, users.to_toml().replacen("\"read\"", "\"read\", \"write\"", 1))
            .unwrap();
        assert!(access.reload().unwrap());
        access.renew(&mut alice);
        assert_eq!(alice.permissions().to_string(), "read,write");
        users.remove("bob").unwrap();
        written(folder.path(), &users);
        assert!(access.reload().unwrap());
        access.renew(&mut bob);
        assert_eq!(bob, access.stranger());
        assert_eq!(access.login("bob", b"right", HERE).await, Err(LoginError::Wrong));
        std::fs::write(&path, "[").unwrap();
        access.reload().unwrap_err();
        access.renew(&mut alice);
        assert_eq!(alice.user(), Some("alice"), "a bad file changes nothing");
    }

    #[tokio::test]
    async fn without_users_everybody_may_everything() {
        let access = Access::new(None).unwrap();
        assert_eq!(access.stranger().permissions(), Permissions::ALL);
        assert_eq!(access.login("a", b"b", HERE).await, Err(LoginError::NoUsers));
    }
}
