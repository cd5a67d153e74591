//! `AUTH`, and `HELLO` with it: a command that waits until its secret has been checked.

use super::context::Context;
use super::reply::Protocol;
use crate::access::LoginError;

/// A client that shows who it is.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: Vec<u8>,
    /// What happens once it is let in.
    pub(super) then: Then,
}

/// What a login was part of.
#[derive(Debug)]
pub(super) enum Then {
    /// `AUTH`: told that it is in.
    Ok,
    /// `HELLO`: greeted.
    Greet(Greeting),
}

/// What `HELLO` asked for.
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
    /// Checks, and replies. Whoever is not let in stays who it was.
    pub(super) async fn answer(self, context: &mut Context<'_>) {
        let from = context.client.peer.ip();
        match context.host.access().login(&self.user, &self.password, from).await {
            Ok(identity) => {
                context.client.told.lock().user.clone_from(&self.user);
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
