//! The permission that every command requires: the only list, beside the table of commands.
//!
//! A command that is not listed requires `admin`; a test checks that all are listed.

use super::Command;
use crate::access::Permission;

/// The requirement of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::resp) enum Need {
    /// None: it is part of logging in, or of leaving.
    Nothing,
    /// The client must be logged in.
    Login,
    /// The user must have this permission.
    Permission(Permission),
}

const READ: Need = Need::Permission(Permission::Read);
const WRITE: Need = Need::Permission(Permission::Write);
const ADMIN: Need = Need::Permission(Permission::Admin);

/// Sorted by name; children follow their parent.
pub(super) static NEEDS: &[(&str, Need)] = &[
    ("AUTH", Need::Nothing),
    ("BF.ADD", WRITE),
    ("BF.CARD", READ),
    ("BF.DEBUG", READ),
    ("BF.EXISTS", READ),
    ("BF.INFO", READ),
    ("BF.INSERT", WRITE),
    ("BF.LOADCHUNK", WRITE),
    ("BF.MADD", WRITE),
    ("BF.MEXISTS", READ),
    ("BF.RESERVE", WRITE),
    ("BF.SCANDUMP", READ),
    ("CF.ADD", WRITE),
    ("CF.ADDNX", WRITE),
    ("CF.COMPACT", WRITE),
    ("CF.COUNT", READ),
    ("CF.DEBUG", READ),
    ("CF.DEL", WRITE),
    ("CF.EXISTS", READ),
    ("CF.INFO", READ),
    ("CF.INSERT", WRITE),
    ("CF.INSERTNX", WRITE),
    ("CF.LOADCHUNK", WRITE),
    ("CF.MEXISTS", READ),
    ("CF.RESERVE", WRITE),
    ("CF.SCANDUMP", READ),
    ("CLIENT", Need::Login),
    ("CLIENT GETNAME", Need::Login),
    ("CLIENT ID", Need::Login),
    ("CLIENT INFO", Need::Login),
    ("CLIENT LIST", ADMIN),
    ("CLIENT SETINFO", Need::Login),
    ("CLIENT SETNAME", Need::Login),
    ("COMMAND", Need::Login),
    ("COMMAND COUNT", Need::Login),
    ("COMMAND DOCS", Need::Login),
    ("COMMAND INFO", Need::Login),
    ("COMMAND LIST", Need::Login),
    ("CONFIG", Need::Login),
    ("CONFIG GET", ADMIN),
    ("DBSIZE", READ),
    ("DEBUG", Need::Login),
    ("DEBUG RELOAD", ADMIN),
    ("DEL", ADMIN),
    ("DISCARD", Need::Login),
    ("ECHO", Need::Login),
    ("EXEC", Need::Login),
    ("EXISTS", READ),
    ("FLUSHALL", ADMIN),
    ("FLUSHDB", ADMIN),
    ("GET", READ),
    ("HELLO", Need::Nothing),
    ("INFO", READ),
    ("KEYS", READ),
    ("MULTI", Need::Login),
    ("PERSIST", WRITE),
    ("PING", Need::Login),
    ("PTTL", READ),
    ("QUIT", Need::Nothing),
    ("RESET", Need::Nothing),
    ("SAVE", ADMIN),
    ("SCAN", READ),
    ("SELECT", Need::Login),
    ("SET", WRITE),
    ("TIME", Need::Login),
    ("TTL", READ),
    ("TYPE", READ),
    ("UMBEL.ADD", WRITE),
    ("UMBEL.ADDEX", WRITE),
    ("UMBEL.ANNOUNCE", WRITE),
    ("UMBEL.BACKUP", ADMIN),
    ("UMBEL.CHAIN", READ),
    ("UMBEL.HAS", READ),
    ("UMBEL.HELP", Need::Login),
    ("UMBEL.HOSTS", READ),
    ("UMBEL.INFO", READ),
    ("UMBEL.KEYS", READ),
    ("UMBEL.LEAVE", ADMIN),
    ("UMBEL.LOCATE", READ),
    ("UMBEL.MATCH", READ),
    ("UMBEL.MISSING", READ),
    ("UMBEL.MISSINGPARTIAL", READ),
    ("UMBEL.POLICY", ADMIN),
    ("UMBEL.PUBLISH", WRITE),
    ("UMBEL.REM", WRITE),
    ("UMBEL.RESERVE", ADMIN),
    ("UMBEL.SETS", READ),
    ("UMBEL.WHO", READ),
    ("UMBEL.WITHDRAW", WRITE),
    ("UNWATCH", Need::Login),
    ("WATCH", Need::Login),
];

impl Command {
    /// What it requires of the client.
    pub(in crate::resp) fn need(&self) -> Need {
        let own = || {
            let parent = self.parent.map(|parent| parent.bytes().chain([b' ']));
            parent.into_iter().flatten().chain(self.name.bytes())
        };
        let found = NEEDS.binary_search_by(|(name, _)| name.bytes().cmp(own()));
        found.map_or(ADMIN, |place| NEEDS[place].1)
    }
}
