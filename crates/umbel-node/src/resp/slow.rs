//! Slow commands: those that send requests to other hosts and wait for the replies, and backups.
//!
//! Neighbouring slow commands of a pipeline run concurrently; their replies keep the order.

use std::time::Duration;

use tokio::task::JoinSet;
#[cfg(feature = "otel")]
use tracing::Instrument as _;

use super::context::Refusal;
use super::reply::Replies;
use crate::{Announced, Fields, Host, HostError, Missing};

/// A slow command. Owns its arguments, because the buffer may be reused meanwhile.
#[derive(Debug)]
pub(super) enum Slow {
    Missing {
        set: String,
        keys: Vec<Vec<u8>>,
        /// Whether keys that could not be confirmed are listed; otherwise they cause an error.
        is_partial: bool,
    },
    Locate {
        set: String,
        key: Vec<u8>,
        limits: Limits,
        with_path: bool,
    },
    Match {
        set: String,
        name: String,
        timeout: Duration,
    },
    Backup {
        name: Option<String>,
    },
    /// A command with an error: it asks no host and only waits for its turn.
    Refused(Refusal),
}

/// How long and how far to search for a key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) timeout: Option<Duration>,
    pub(super) hops: Option<u8>,
}

/// The result of a slow command.
#[derive(Debug)]
enum Answer {
    /// Keys, or names of hosts.
    List(Vec<Vec<u8>>),
    /// Keys that are missing, and keys that could not be confirmed.
    Partial(Missing),
    /// Paths to hosts.
    Paths(Vec<Vec<String>>),
    Announced(Option<Announced>),
    Fields(Fields),
    Refused(Refusal),
}

impl Slow {
    /// Approximate size in bytes.
    fn weight(&self) -> usize {
        match self {
            Self::Missing { keys, .. } => keys.iter().map(|key| key.len() + 24).sum(),
            Self::Locate { key, .. } => key.len(),
            Self::Match { name, .. } => name.len(),
            Self::Backup { name } => name.as_ref().map_or(0, String::len),
            Self::Refused(why) => why.len(),
        }
    }

    /// The span in which it runs.
    #[cfg(feature = "otel")]
    fn span(&self) -> tracing::Span {
        let (command, set, keys) = match self {
            Self::Missing { set, keys, is_partial: false } => ("UMBEL.MISSING", set, keys.len()),
            Self::Missing { set, keys, is_partial: true } => {
                ("UMBEL.MISSINGPARTIAL", set, keys.len())
            }
            Self::Locate { set, .. } => ("UMBEL.LOCATE", set, 1),
            Self::Match { set, .. } => ("UMBEL.MATCH", set, 1),
            Self::Backup { .. } => return crate::traces::redis_command("UMBEL.BACKUP", None, 0),
            Self::Refused(_) => return tracing::Span::none(),
        };
        crate::traces::redis_command(command, Some(set), keys)
    }

    async fn ask(self, host: &Host) -> Result<Answer, HostError> {
        Ok(match self {
            Self::Missing { set, keys, is_partial: true } => {
                Answer::Partial(host.missing(&set, keys).await?)
            }
            Self::Missing { set, keys, is_partial: false } => {
                let before = host.coverage();
                let missing = host.missing(&set, keys).await?.confirmed()?;
                // A host that is not known may hold them; this reply has no place to say so.
                if !missing.is_empty() && !host.coverage().and(&before).complete {
                    return Err(HostError::Incomplete(missing.len()));
                }
                Answer::List(missing)
            }
            Self::Locate { set, key, limits: Limits { timeout, hops }, with_path } => {
                let paths = host.route(&set, &key, hops, timeout).await?;
                if with_path {
                    return Ok(Answer::Paths(paths));
                }
                let holders = paths.into_iter().filter_map(|mut path| path.pop());
                Answer::List(holders.map(String::into_bytes).collect())
            }
            Self::Match { set, name, timeout } => {
                Answer::Announced(host.match_confirmed(&set, &name, timeout).await?)
            }
            Self::Backup { name } => Answer::Fields(host.backup(name.as_deref()).await?.fields()),
            Self::Refused(why) => Answer::Refused(why),
        })
    }
}

/// Neighbouring slow commands that run concurrently.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    asked: Vec<Slow>,
    weight: usize,
}

impl Waiting {
    /// Maximum number of commands at a time.
    const MAX: usize = 64;
    /// Maximum size of these commands together; a larger command runs alone.
    const HEAVIEST: usize = 1 << 20;

    pub(super) fn push(&mut self, slow: Slow) {
        self.weight += slow.weight();
        self.asked.push(slow);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.asked.len() >= Self::MAX || self.weight >= Self::HEAVIEST
    }

    /// Waits for all and writes their replies in the order of the commands. Dropping the future
    /// cancels all of them.
    pub(super) async fn answer(&mut self, host: &Host, replies: &mut Replies) {
        self.weight = 0;
        let mut answers: Vec<_> = self.asked.iter().map(|_| None).collect();
        let mut tasks = JoinSet::new();
        for (place, slow) in self.asked.drain(..).enumerate() {
            let host = host.clone();
            #[cfg(feature = "otel")]
            let span = slow.span();
            let answer = async move { (place, slow.ask(&host).await) };
            #[cfg(feature = "otel")]
            let answer = answer.instrument(span);
            tasks.spawn(answer);
        }
        while let Some(ended) = tasks.join_next().await {
            if let Ok((place, answer)) = ended {
                answers[place] = Some(answer);
            }
        }
        for answer in answers {
            match answer {
                Some(Ok(Answer::List(found))) => list(replies, &found),
                Some(Ok(Answer::Partial(Missing { missing, unconfirmed }))) => {
                    replies.array(2);
                    list(replies, &missing);
                    list(replies, &unconfirmed);
                }
                Some(Ok(Answer::Paths(found))) => {
                    replies.array(found.len());
                    for path in found {
                        replies.array(path.len());
                        path.iter().for_each(|text| replies.text(text));
                    }
                }
                Some(Ok(Answer::Announced(found))) => replies.announced(found.as_ref()),
                Some(Ok(Answer::Fields(fields))) => replies.fields(&fields),
                Some(Ok(Answer::Refused(why))) => replies.error(&why),
                Some(Err(error)) => replies.error(&error.to_string()),
                None => replies.error("the question to other hosts broke off"),
            }
        }
    }
}

fn list(replies: &mut Replies, found: &[Vec<u8>]) {
    replies.array(found.len());
    found.iter().for_each(|bytes| replies.bulk(bytes));
}
