//! `AUTH`, and `HELLO` with `AUTH`: commands that wait until the password has been checked.

use super::context::Context;
use super::reply::Protocol;
use crate::access::LoginError;

/// A login attempt of a client.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: Vec<u8>,
    /// What to do after a successful login.
    pub(super) then: Then,
}

/// The command that contained the login.
#[derive(Debug)]
pub(super) enum Then {
    /// `AUTH`: reply OK.
    Ok,
    /// `HELLO`: reply with the greeting.
    Greet(Greeting),
}

/// The options of `HELLO`.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) protocol: Protocol,
    pub(super) name: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("then", &self.then).finish_non_exhaustive()
    }
}

impl Login {
    /// Checks the password and replies. After a failed login the client keeps its previous user.
    pub(super) async fn answer(self, context: &mut Context<'_>) {
        let from = context.client.peer.ip();
        match context.host.access().login(&self.user, &self.password, from).await {
            Ok(identity) => {
                context.client.info.lock().user.clone_from(&self.user);
                context.set_identity(identity);
                match self.then {
                    Then::Ok => context.replies.ok(),
                    Then::Greet(greeting) => greeting.answer(context),
                }
            }
            Err(LoginError::NoUsers) => context.replies.error(NO_USERS),
            Err(error) => context.replies.coded_error("WRONGPASS", &error.to_string()),
        }
    }
}

const NO_USERS: &str = "AUTH is refused: this host knows no passwords; leave user and password out";
