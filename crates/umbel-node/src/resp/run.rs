//! Runs: neighbouring commands with the same operation on one set, executed as one batch of keys.
//!
//! A batch takes the set's lock once and lets the bank fetch the rows of many keys at a time: a
//! pipeline of single-key commands costs as much as one command with many keys. The replies are the
//! same: if a batch is refused, its commands are executed one by one, so that each gets its own
//! reply or error.

use std::borrow::Cow;

use super::context::Context;
use super::database::Database;
use super::error_line::{ErrorLine, error_line};
use super::reply::Replies;
use crate::filter_kind::Bloom;
use crate::host::{FilterError, FilterType};
use crate::{Host, HostError, Lifetime, Ticket};

/// An operation on keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOperation {
    Add,
    Remove,
    Has,
    Who,
    /// Adds items to a Bloom filter, which is created if it does not exist.
    AddToBloom,
    /// Tests whether items are in a filter.
    HasInFilter(FilterType),
}

impl KeyOperation {
    const fn changes(self) -> bool {
        matches!(self, Self::Add | Self::Remove | Self::AddToBloom)
    }

    /// The set for the name that a client sent: names of filters depend on the database.
    fn set_of(self, database: Database, name: &str) -> Cow<'_, str> {
        match self {
            Self::AddToBloom | Self::HasInFilter(_) => database.set_of(name),
            _ => Cow::Borrowed(name),
        }
    }
}

/// How a command's results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An array of 0 and 1.
    Bits,
    /// One boolean: the command has one key.
    Flag,
    /// An array of booleans.
    Flags,
}

/// A command of a run; its keys follow those of the previous one.
#[derive(Debug, Clone, Copy)]
struct Part {
    keys: usize,
    form: Form,
}

/// Commands that are executed together: one operation, one set.
#[derive(Debug)]
pub(super) struct Run<'bytes> {
    question: KeyOperation,
    set: &'bytes [u8],
    keys: Vec<&'bytes [u8]>,
    /// How many keys each command has.
    commands: Vec<Part>,
    /// Keys of a large command that are processed already.
    answered: usize,
    answers: Vec<bool>,
    /// Covers the changes of a large command's parts so far.
    ticket: Ticket,
}

/// The reusable memory of a finished run.
#[derive(Debug, Default)]
pub(super) struct Spare {
    keys: Vec<&'static [u8]>,
    commands: Vec<Part>,
    answers: Vec<bool>,
}

impl<'bytes> Run<'bytes> {
    /// Maximum number of keys of several commands together. A command with more keys has a run of
    /// its own, and is executed in parts of this size, so that others get their turn and replies
    /// are sent in between.
    pub(super) const BATCH: usize = 512;

    pub(super) fn new(spare: Spare) -> Self {
        let Spare { keys, commands, answers } = spare;
        // Reuses the memory with another lifetime: the vector is empty.
        let keys = keys.into_iter().map(|_| -> &'bytes [u8] { &[] }).collect();
        Self {
            question: KeyOperation::Has,
            set: &[],
            keys,
            commands,
            answered: 0,
            answers,
            ticket: Ticket::NONE,
        }
    }

    /// Its memory, for the next run.
    pub(super) fn into_spare(mut self) -> Spare {
        self.clear();
        let keys = self.keys.into_iter().map(|_| -> &'static [u8] { &[] }).collect();
        Spare { keys, commands: self.commands, answers: self.answers }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The set that it changes, if any.
    pub(super) fn changed_set(&self, database: Database) -> Option<Cow<'bytes, str>> {
        let name = str::from_utf8(self.set).ok().filter(|_| self.question.changes());
        name.map(|name| self.question.set_of(database, name))
    }

    /// Whether a command with this many keys may join.
    pub(super) fn takes(&self, question: KeyOperation, set: &[u8], keys: usize) -> bool {
        self.is_empty()
            || (self.question == question
                && self.keys.len() + keys <= Self::BATCH
                && self.set == set)
    }

    /// Adds a command for which [`takes`](Self::takes) returned true.
    pub(super) fn join(
        &mut self,
        question: KeyOperation,
        form: Form,
        set: &'bytes [u8],
        keys: impl ExactSizeIterator<Item = &'bytes [u8]>,
    ) {
        debug_assert!(self.takes(question, set, keys.len()));
        (self.question, self.set) = (question, set);
        self.commands.push(Part { keys: keys.len(), form });
        self.keys.extend(keys);
    }

    /// Executes the run or, if it is large, its next part; returns whether it is done.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> bool {
        let is_large = self.keys.len() > Self::BATCH;
        let database = context.database();
        let set = str::from_utf8(self.set).map(|name| self.question.set_of(database, name));
        let done = match set.as_deref() {
            Err(_) => self.refuse_all(context, "ERR the name of a set must be UTF-8"),
            Ok(_) if self.question == KeyOperation::AddToBloom && context.is_string(self.set) => {
                self.refuse_all(context, &error_line(FilterError::WrongType))
            }
            Ok(set) if is_large && self.question == KeyOperation::Who => {
                self.part_of_who(context, set)
            }
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

    fn refuse_all(&self, context: &mut Context<'_>, line: &str) -> bool {
        for _ in &self.commands {
            context.replies.error_line(line);
        }
        true
    }

    fn all_commands(&mut self, context: &mut Context<'_>, set: &str) -> bool {
        let Self { question, keys, commands, answers, .. } = self;
        let answered = ask(*question, set, keys, commands, answers, context).unwrap_or(0);
        // If the batch was refused, or a filter became full, execute the remaining commands one by
        // one.
        let (answered, left) = commands.split_at(answered);
        let mut rest = &keys[answered.iter().map(|command| command.keys).sum()..];
        for command in left {
            let (keys, later) = rest.split_at(command.keys);
            rest = later;
            if let Err(line) = ask(*question, set, keys, &[*command], answers, context) {
                context.replies.error_line(&line);
            }
        }
        true
    }

    /// Executes the next keys of a large command with a yes or no per key, which is alone in its
    /// run. The reply is written when all keys are done; an error after the first part reports how
    /// many were processed.
    fn part_of_bits(&mut self, context: &mut Context<'_>, set: &str) -> bool {
        let from = self.answered;
        let part = &self.keys[from..self.keys.len().min(from + Self::BATCH)];
        let (question, answers) = (self.question, &mut self.answers);
        let is_first = question.changes() && from == 0;
        let checked = if is_first { Host::check_keys(&self.keys) } else { Ok(()) };
        let outcome = checked
            .map_err(|error| error_line(error.into()))
            .and_then(|()| ask_for_bits(question, context.host, set, part, answers));
        match outcome {
            Ok(ticket) => self.ticket = self.ticket.max(ticket),
            Err(line) if from == 0 => {
                context.replies.error_line(&line);
                return true;
            }
            Err(line) => {
                context.replies.error_line(&format!("{line}; {from} keys were taken before"));
                return true;
            }
        }
        self.answered += part.len();
        let is_full = self.answers.len() < self.answered;
        if self.answered < self.keys.len() && !is_full {
            return false;
        }
        let start = context.replies.len();
        let form = self.commands.first().map_or(Form::Bits, |command| command.form);
        answer(context.replies, form, &self.answers, is_full);
        if question.changes() {
            context.wrote(self.ticket, start);
        }
        true
    }

    /// Executes the next keys of a large `WHO`. Once its reply has begun, an error is written as
    /// the answer for a key: the set may have been deleted in between.
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

/// Calls the host and writes one reply per command; returns how many commands were answered: fewer
/// than all if a filter became full before the last. On an error nothing is written.
fn ask(
    question: KeyOperation,
    set: &str,
    keys: &[&[u8]],
    commands: &[Part],
    answers: &mut Vec<bool>,
    context: &mut Context<'_>,
) -> Result<usize, ErrorLine> {
    answers.clear();
    let start = context.replies.len();
    if question == KeyOperation::Who {
        let asked = who(set, keys, commands, context);
        asked.inspect_err(|_| context.replies.truncate(start)).map_err(refused)?;
        return Ok(commands.len());
    }
    let ticket = ask_for_bits(question, context.host, set, keys, answers)?;
    let mut left = &answers[..];
    for (place, command) in commands.iter().enumerate() {
        let (own, later) = left.split_at(command.keys.min(left.len()));
        left = later;
        let (from, is_full) = (context.replies.len(), own.len() < command.keys);
        answer(context.replies, command.form, own, is_full);
        if question.changes() {
            context.wrote(ticket, from);
        }
        if is_full {
            return Ok(place + 1);
        }
    }
    Ok(commands.len())
}

/// Asks the host for a yes or no per key. Fewer answers than keys mean that the filter is full.
fn ask_for_bits(
    question: KeyOperation,
    host: &Host,
    set: &str,
    keys: &[&[u8]],
    answers: &mut Vec<bool>,
) -> Result<Ticket, ErrorLine> {
    match question {
        KeyOperation::Add => host.add(set, keys, Lifetime::Default, answers).map_err(refused),
        KeyOperation::Remove => host.remove(set, keys, answers).map_err(refused),
        KeyOperation::AddToBloom => {
            host.add_to_bloom(set, keys, Some(Bloom::default()), answers).map_err(error_line)
        }
        KeyOperation::HasInFilter(of) => {
            host.has_in_filter(set, of, keys, answers);
            Ok(Ticket::NONE)
        }
        KeyOperation::Has | KeyOperation::Who => {
            host.has(set, keys, answers).map(|()| Ticket::NONE).map_err(refused)
        }
    }
}

fn refused(error: HostError) -> ErrorLine {
    error_line(error.into())
}

/// Writes the results of one command, and an error after them if the filter is full.
fn answer(replies: &mut Replies, form: Form, answers: &[bool], is_full: bool) {
    let one: fn(&mut Replies, bool) = match form {
        Form::Bits => Replies::bit,
        Form::Flag | Form::Flags => Replies::flag,
    };
    if form != Form::Flag {
        replies.array(answers.len() + usize::from(is_full));
    }
    answers.iter().for_each(|yes| one(replies, *yes));
    if is_full {
        replies.error_line(FULL);
    }
}

/// RedisBloom's error for an item that does not fit.
pub(super) const FULL: &str = "ERR non scaling filter is full";

fn who(
    set: &str,
    keys: &[&[u8]],
    commands: &[Part],
    context: &mut Context<'_>,
) -> Result<(), HostError> {
    let replies = &mut *context.replies;
    let mut commands = commands.iter();
    let mut left = 0;
    context.host.who(set, keys, &mut |names| {
        if left == 0 {
            left = commands.next().map_or(1, |command| command.keys);
            replies.array(left);
        }
        left -= 1;
        replies.names(names);
    })
}
