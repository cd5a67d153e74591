//! Transactions: the commands between `MULTI` and `EXEC`.
//!
//! Commands are checked and queued as they arrive, and executed one after the other at `EXEC`,
//! whose reply is the array of their replies. If a command is refused while it is queued, `EXEC`
//! refuses the whole transaction. An error during execution is the reply of its command, and the
//! others continue, as in Redis.
//!
//! Unlike in Redis, commands of other connections may run between those of a transaction: a host
//! has several threads, and no lock that all commands take. `WATCH` would promise isolation and is
//! refused.
//!
//! Always true: a queue takes at most the bytes of one request, and the part beyond 64 KiB is
//! charged to the budget of large requests.

use std::sync::Arc;

use super::buffer::{Budget, ReadBuffer};
use super::request::Arguments;

/// Maximum number of commands in a transaction: as many as a request may have arguments.
const MAX_COMMANDS: usize = 1 << 20;

/// A connection's transaction, if it has begun one.
#[derive(Debug, Default)]
pub(super) struct Transaction(Option<Queue>);

/// Commands that wait for `EXEC`, encoded as RESP requests.
#[derive(Debug)]
pub(super) struct Queue {
    requests: ReadBuffer,
    commands: usize,
    max_bytes: usize,
    /// Whether a command was refused.
    is_broken: bool,
}

/// Why a transaction cannot take one more command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueueError {
    #[error("a transaction may have at most {max_bytes} bytes and 1048576 commands")]
    TooLong { max_bytes: usize },
    #[error("too many large requests at once; send smaller transactions, or try again later")]
    OverBudget,
}

impl Transaction {
    pub(super) const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn begin(&mut self, budget: &Arc<Budget>, max_bytes: usize) {
        let requests = ReadBuffer::new(budget);
        self.0 = Some(Queue { requests, commands: 0, max_bytes, is_broken: false });
    }

    /// Queues a command. If that fails, the whole transaction will be refused.
    pub(super) fn push(&mut self, arguments: Arguments<'_, '_>) -> Result<(), QueueError> {
        let Some(queue) = &mut self.0 else { return Ok(()) };
        let pushed = if queue.is_broken { Ok(()) } else { queue.push(arguments) };
        queue.is_broken |= pushed.is_err();
        pushed
    }

    /// Records that a command was refused, and drops what was queued.
    pub(super) fn refuse(&mut self) {
        if let Some(queue) = &mut self.0 {
            queue.is_broken = true;
            queue.requests.clear();
        }
    }

    /// Ends the transaction and returns its commands.
    pub(super) fn take(&mut self) -> Option<Queue> {
        self.0.take()
    }
}

impl Queue {
    /// Whether a command was refused, so that none is executed.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(super) const fn commands(&self) -> usize {
        self.commands
    }

    pub(super) fn requests(&self) -> &[u8] {
        self.requests.unread()
    }

    fn push(&mut self, arguments: Arguments<'_, '_>) -> Result<(), QueueError> {
        let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments.from(0) {
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        let is_long = self.requests().len() + request.len() > self.max_bytes;
        if is_long || self.commands == MAX_COMMANDS {
            return Err(QueueError::TooLong { max_bytes: self.max_bytes });
        }
        self.requests.append(&request).map_err(|_| QueueError::OverBudget)?;
        self.commands += 1;
        Ok(())
    }
}
