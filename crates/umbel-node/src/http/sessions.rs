//! Sessions of browsers that have logged in: a random token in a cookie, and its user.
//!
//! Cookies are not separated by port, and a browser sends them to every program on the same host
//! name. So the port is part of the cookie's name: two hosts on one machine do not overwrite each
//! other's sessions.
//!
//! Always true: there are at most [`MAX_SESSIONS`] sessions, and at most [`MAX_PER_USER`] of one
//! user; a session ends after [`LIFETIME`], after [`IDLE`] without a request, by logging out, and
//! when its user is removed or has another password. Sessions are kept in memory: a restart ends
//! them all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use argon2::password_hash::try_generate_salt;
use axum::http::{HeaderMap, header};
use parking_lot::Mutex;

use crate::access::{Access, Identity};

/// Maximum number of sessions; when one more begins, the one that was idle longest ends.
const MAX_SESSIONS: usize = 1024;
/// Maximum number of sessions per user.
const MAX_PER_USER: usize = 32;
/// Maximum duration of a session.
pub(super) const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// A session ends after this time without a request.
const IDLE: Duration = Duration::from_secs(2 * 3600);
/// Characters of a token.
const TOKEN_LENGTH: usize = 64;

/// The value of a cookie: 256 random bits as text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Token(Arc<str>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// All sessions of a port.
#[derive(Debug)]
pub(super) struct Sessions {
    access: Arc<Access>,
    cookie: String,
    is_secure: bool,
    open: Mutex<HashMap<Token, Session>>,
}

#[derive(Debug)]
struct Session {
    identity: Identity,
    begun: Instant,
    used: Instant,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.begun) >= LIFETIME || now.duration_since(self.used) >= IDLE
    }
}

impl Sessions {
    /// No sessions yet, for a port with or without TLS.
    pub(super) fn new(access: Arc<Access>, port: u16, is_secure: bool) -> Arc<Self> {
        // Browsers accept this prefix only for cookies that no other site can have set.
        let prefix = if is_secure { "__Host-" } else { "" };
        let cookie = format!("{prefix}umbel_session_{port}");
        Arc::new(Self { access, cookie, is_secure, open: Mutex::default() })
    }

    /// Starts a session; returns the value of the `Set-Cookie` header. `None`: the system has no
    /// random bytes.
    pub(super) fn begin(&self, identity: Identity) -> Option<String> {
        let token = random_token()?;
        let now = Instant::now();
        let mut open = self.open.lock();
        open.retain(|_, session| !session.is_over(now));
        let of_user = |session: &Session| session.identity.user() == identity.user();
        if open.values().filter(|session| of_user(session)).count() >= MAX_PER_USER {
            end_idlest(&mut open, of_user);
        }
        if open.len() >= MAX_SESSIONS {
            end_idlest(&mut open, |_| true);
        }
        let cookie = self.set_cookie(&token.0, LIFETIME.as_secs());
        open.insert(token, Session { identity, begun: now, used: now });
        Some(cookie)
    }

    /// Ends a session; returns the value of the `Set-Cookie` header that removes the cookie.
    pub(super) fn end(&self, token: &Token) -> String {
        self.open.lock().remove(token);
        self.set_cookie("", 0)
    }

    /// The user of a session, with their current permissions.
    pub(super) fn identity(&self, token: &Token) -> Option<Identity> {
        let now = Instant::now();
        let mut open = self.open.lock();
        let session = open.get_mut(token)?;
        self.access.renew(&mut session.identity);
        if session.is_over(now) || session.identity.user().is_none() {
            open.remove(token);
            return None;
        }
        session.used = now;
        Some(session.identity.clone())
    }

    /// The token of the request's cookie, if it has one.
    pub(super) fn token_of(&self, headers: &HeaderMap) -> Option<Token> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let mut pairs = cookies.filter_map(|cookies| cookies.to_str().ok()).flat_map(|cookies| {
            cookies.split(';').filter_map(|cookie| cookie.trim().split_once('='))
        });
        let (_, value) = pairs.find(|(name, _)| *name == self.cookie)?;
        (value.len() == TOKEN_LENGTH).then(|| Token(value.into()))
    }

    fn set_cookie(&self, value: &str, seconds: u64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let name = &self.cookie;
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }
}

/// Ends the session that was idle longest, among those that `may_end` accepts.
fn end_idlest(open: &mut HashMap<Token, Session>, may_end: impl Fn(&Session) -> bool) {
    let idlest = open.iter().filter(|(_, session)| may_end(session));
    let idlest = idlest.min_by_key(|(_, session)| session.used).map(|(token, _)| token.clone());
    if let Some(token) = idlest {
        open.remove(&token);
    }
}

/// 256 random bits from the system.
fn random_token() -> Option<Token> {
    let halves = [try_generate_salt().ok()?, try_generate_salt().ok()?];
    let text: String = halves.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    debug_assert_eq!(text.len(), TOKEN_LENGTH, "two salts of 128 bits");
    Some(Token(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Users;

    fn access(folder: &std::path::Path) -> Arc<Access> {
        let mut users = Users::default();
        for name in ["alice", "bob"] {
            users.add(name, "read".parse().unwrap(), Some(name.as_bytes())).unwrap();
        }
        let path = folder.join("users");
        std::fs::write(&path, users.to_toml()).unwrap();
        Arc::new(Access::new(Some(path)).unwrap())
    }

    async fn logged_in(access: &Access, user: &str) -> Identity {
        let here = std::net::IpAddr::from([127, 0, 0, 1]);
        access.login(user, user.as_bytes(), here).await.unwrap()
    }

    fn headers(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, format!("other=1; {pair}").parse().unwrap());
        headers
    }

    #[tokio::test]
    async fn a_session_ends_when_its_user_is_removed_or_logs_out() {
        let folder = tempfile::tempdir().unwrap();
        let access = access(folder.path());
        let sessions = Sessions::new(Arc::clone(&access), 7441, true);
        let cookie = sessions.begin(logged_in(&access, "alice").await).unwrap();
        assert!(cookie.starts_with("__Host-umbel_session_7441="), "{cookie}");
        for flag in ["Path=/", "HttpOnly", "SameSite=Strict", "Secure", "Max-Age=43200"] {
            assert!(cookie.contains(flag), "{cookie}");
        }
        let alice = sessions.token_of(&headers(&cookie)).unwrap();
        assert_eq!(sessions.identity(&alice).unwrap().user(), Some("alice"));
        let cookie = sessions.begin(logged_in(&access, "bob").await).unwrap();
        let bob = sessions.token_of(&headers(&cookie)).unwrap();
        assert!(sessions.end(&bob).contains("Max-Age=0"));
        assert_eq!(sessions.identity(&bob), None);
        std::fs::write(folder.path().join("users"), Users::default().to_toml()).unwrap();
        assert!(access.reload().unwrap());
        assert_eq!(sessions.identity(&alice), None);
        assert!(sessions.open.lock().is_empty());
        let elsewhere = Sessions::new(access, 7541, true);
        assert_eq!(elsewhere.token_of(&headers(&cookie)), None, "of another port");
    }

    #[tokio::test]
    async fn one_user_takes_no_sessions_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let access = access(folder.path());
        let sessions = Sessions::new(Arc::clone(&access), 1, false);
        let cookie = sessions.begin(logged_in(&access, "bob").await).unwrap();
        let bob = sessions.token_of(&headers(&cookie)).unwrap();
        let alice = logged_in(&access, "alice").await;
        for _ in 0..2 * MAX_PER_USER {
            sessions.begin(alice.clone()).unwrap();
        }
        assert_eq!(sessions.open.lock().len(), MAX_PER_USER + 1);
        assert!(sessions.identity(&bob).is_some());
        assert!(!cookie.contains("Secure"));
    }
}
