//! Neighbouring commands that ask the same of one set, executed as one batch of keys.
//!
//! A batch takes the set's lock once and lets the bank fetch the rows of many keys at a time: a
//! pipeline of single-key commands is answered at the price of one command with many keys. The
//! replies are the same: if a batch is refused, its commands are tried one by one, so that
//! each gets its own answer or error.

use super::context::Context;
use crate::{Host, HostError, Lifetime, Ticket};

/// What is asked of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Add,
    Remove,
    Has,
    Who,
}

/// Commands that wait to be executed together: one question, one set.
#[derive(Debug)]
pub(super) struct Run<'bytes> {
    question: Question,
    set: &'bytes [u8],
    keys: Vec<&'bytes [u8]>,
    /// How many of the keys are each command's.
    commands: Vec<usize>,
    /// Keys of a large command that were answered already.
    answered: usize,
    answers: Vec<bool>,
    /// When the parts of a large command that changed keys are durable.
    ticket: Ticket,
}

/// The memory of a run whose keys are gone.
#[derive(Debug, Default)]
pub(super) struct Spare {
    keys: Vec<&'static [u8]>,
    commands: Vec<usize>,
    answers: Vec<bool>,
}

impl<'bytes> Run<'bytes> {
    /// Keys of several commands together. A command with more is alone in its run, and executed in
    /// parts of this size, so that others have their turn and replies are sent in between.
    pub(super) const BATCH: usize = 512;

    pub(super) fn new(spare: Spare) -> Self {
        let Spare { keys, commands, answers } = spare;
        // The same memory with another lifetime: nothing is in it.
        let keys = keys.into_iter().map(|_| -> &'bytes [u8] { &[] }).collect();
        Self {
            question: Question::Has,
            set: &[],
            keys,
            commands,
            answered: 0,
            answers,
            ticket: Ticket::NONE,
        }
    }

    /// Its memory, for the next.
    pub(super) fn into_spare(mut self) -> Spare {
        self.clear();
        let keys = self.keys.into_iter().map(|_| -> &'static [u8] { &[] }).collect();
        Spare { keys, commands: self.commands, answers: self.answers }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The set that it changes, if it does.
    pub(super) fn changed_set(&self) -> Option<&'bytes str> {
        let changes = matches!(self.question, Question::Add | Question::Remove);
        str::from_utf8(self.set).ok().filter(|_| changes)
    }

    /// Whether a command with so many keys may join.
    pub(super) fn takes(&self, question: Question, set: &[u8], keys: usize) -> bool {
        self.is_empty()
            || (self.question == question
                && self.keys.len() + keys <= Self::BATCH
                && self.set == set)
    }

    /// Joins a command that [`takes`](Self::takes) agreed to.
    pub(super) fn join(
        &mut self,
        question: Question,
        set: &'bytes [u8],
        keys: impl ExactSizeIterator<Item = &'bytes [u8]>,
    ) {
        debug_assert!(self.takes(question, set, keys.len()));
        (self.question, self.set) = (question, set);
        self.commands.push(keys.len());
        self.keys.extend(keys);
    }

    /// Answers the run or, of a large one, the next part; whether it is done.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> bool {
        let is_large = self.keys.len() > Self::BATCH;
        let done = match str::from_utf8(self.set) {
            Err(_) => self.refuse_all(context, "the name of a set must be UTF-8"),
            Ok(set) if is_large && self.question == Question::Who => self.part_of_who(context, set),
            Ok(set) if is_large => self.part_of_bits(context, set),
            Ok(set) => self.all_commands(context, set),
        };
        if done {
            self.clear();
        }
        done
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.commands.clear();
        self.answers.clear();
        (self.answered, self.ticket) = (0, Ticket::NONE);
        self.keys.shrink_to(Self::BATCH);
        self.answers.shrink_to(Self::BATCH);
    }

    fn refuse_all(&self, context: &mut Context<'_>, reason: &str) -> bool {
        for _ in &self.commands {
            context.replies.error(reason);
        }
        true
    }

    fn all_commands(&mut self, context: &mut Context<'_>, set: &str) -> bool {
        let Self { question, keys, commands, answers, .. } = self;
        if ask(*question, set, keys, commands, answers, context).is_ok() {
            return true;
        }
        let mut rest = &keys[..];
        for &command in commands.iter() {
            let (keys, later) = rest.split_at(command);
            rest = later;
            if let Err(error) = ask(*question, set, keys, &[command], answers, context) {
                context.replies.error(&error.to_string());
            }
        }
        true
    }

    /// The next keys of a large `ADD`, `REM` or `HAS`, which is alone in its run. Its reply is written when
    /// all are done; an error after the first part says how many were.
    fn part_of_bits(&mut self, context: &mut Context<'_>, set: &str) -> bool {
        let from = self.answered;
        let part = &self.keys[from..self.keys.len().min(from + Self::BATCH)];
        let (host, answers) = (context.host, &mut self.answers);
        let changes = self.question != Question::Has;
        let checked = if changes && from == 0 { Host::check_keys(&self.keys) } else { Ok(()) };
        let outcome = checked.and_then(|()| match self.question {
            Question::Add => host.add(set, part, Lifetime::Default, answers),
            Question::Has => host.has(set, part, answers).map(|()| Ticket::NONE),
            _ => host.remove(set, part, answers),
        });
        match outcome {
            Ok(ticket) => self.ticket = self.ticket.max(ticket),
            Err(error) if from == 0 => {
                context.replies.error(&error.to_string());
                return true;
            }
            Err(error) => {
                context.replies.error(&format!("{error}; {from} keys were taken before"));
                return true;
            }
        }
        self.answered += part.len();
        if self.answered < self.keys.len() {
            return false;
        }
        let start = context.replies.len();
        context.replies.array(self.answers.len());
        self.answers.iter().for_each(|yes| context.replies.bit(*yes));
        if changes {
            context.wrote(self.ticket, start);
        }
        true
    }

    /// The next keys of a large `WHO`. Once its reply has begun, an error is the answer to a
    /// key: the set may have gone in between.
    fn part_of_who(&mut self, context: &mut Context<'_>, set: &str) -> bool {
        let from = self.answered;
        let part = &self.keys[from..self.keys.len().min(from + Self::BATCH)];
        let start = context.replies.len();
        if from == 0 {
            context.replies.array(self.keys.len());
        }
        let begun = context.replies.len();
        let replies = &mut *context.replies;
        let outcome = context.host.who(set, part, &mut |names| replies.names(names));
        if let Err(error) = outcome {
            let error = error.to_string();
            if from == 0 {
                context.replies.truncate(start);
                context.replies.error(&error);
                return true;
            }
            context.replies.truncate(begun);
            part.iter().for_each(|_| context.replies.error(&error));
        }
        self.answered += part.len();
        self.answered == self.keys.len()
    }
}

/// Asks the host, and writes a reply a command. If it refuses, nothing is written.
fn ask(
    question: Question,
    set: &str,
    keys: &[&[u8]],
    commands: &[usize],
    answers: &mut Vec<bool>,
    context: &mut Context<'_>,
) -> Result<(), HostError> {
    answers.clear();
    let (host, start) = (context.host, context.replies.len());
    let ticket = match question {
        Question::Add => host.add(set, keys, Lifetime::Default, answers)?,
        Question::Remove => host.remove(set, keys, answers)?,
        Question::Has => host.has(set, keys, answers).map(|()| Ticket::NONE)?,
        Question::Who => {
            let asked = who(set, keys, commands, context);
            return asked.inspect_err(|_| context.replies.truncate(start));
        }
    };
    debug_assert_eq!(answers.len(), keys.len());
    let mut answers = answers.iter();
    for &command in commands {
        let from = context.replies.len();
        context.replies.array(command);
        answers.by_ref().take(command).for_each(|yes| context.replies.bit(*yes));
        if question != Question::Has {
            context.wrote(ticket, from);
        }
    }
    Ok(())
}

fn who(
    set: &str,
    keys: &[&[u8]],
    commands: &[usize],
    context: &mut Context<'_>,
) -> Result<(), HostError> {
    let replies = &mut *context.replies;
    let mut commands = commands.iter();
    let mut left = 0;
    context.host.who(set, keys, &mut |names| {
        if left == 0 {
            left = commands.next().copied().unwrap_or(1);
            replies.array(left);
        }
        left -= 1;
        replies.names(names);
    })
}
