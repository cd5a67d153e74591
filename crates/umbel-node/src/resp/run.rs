//! Neighbouring commands that ask the same of one set, executed as one batch of keys.
//!
//! A batch takes the set's lock once and lets the bank fetch the rows of many keys at a time: a
//! pipeline of single-key commands is answered at the price of one command with many keys. The
//! replies are the same: if a batch is refused, its commands are tried one by one, so that
//! each gets its own answer or error.

use std::borrow::Cow;

use super::context::Context;
use super::database::Database;
use super::error_line::{ErrorLine, error_line};
use super::reply::Replies;
use crate::filter_kind::Bloom;
use crate::host::{FilterError, FilterType};
use crate::{Host, HostError, Lifetime, Ticket};

/// What is asked of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Add,
    Remove,
    Has,
    Who,
    /// Adds items to a Bloom filter, which is made if it is not there.
    AddToBloom,
    /// Asks a filter for items.
    HasInFilter(FilterType),
}

impl Question {
    const fn changes(self) -> bool {
        matches!(self, Self::Add | Self::Remove | Self::AddToBloom)
    }

    /// The set that is meant by the name that a client gave: filters are in databases.
    fn set_of(self, database: Database, name: &str) -> Cow<'_, str> {
        match self {
            Self::AddToBloom | Self::HasInFilter(_) => database.set_of(name),
            _ => Cow::Borrowed(name),
        }
    }
}

/// How a command's answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An array of 0 and 1.
    Bits,
    /// One flag: the command has one key.
    Flag,
    /// An array of flags.
    Flags,
}

/// A command of a run: its keys are the next ones.
#[derive(Debug, Clone, Copy)]
struct Part {
    keys: usize,
    form: Form,
}

/// Commands that wait to be executed together: one question, one set.
#[derive(Debug)]
pub(super) struct Run<'bytes> {
    question: Question,
    set: &'bytes [u8],
    keys: Vec<&'bytes [u8]>,
    /// Which of the keys are each command's.
    commands: Vec<Part>,
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
    commands: Vec<Part>,
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
    pub(super) fn changed_set(&self, database: Database) -> Option<Cow<'bytes, str>> {
        let name = str::from_utf8(self.set).ok().filter(|_| self.question.changes());
        name.map(|name| self.question.set_of(database, name))
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
        form: Form,
        set: &'bytes [u8],
        keys: impl ExactSizeIterator<Item = &'bytes [u8]>,
    ) {
        debug_assert!(self.takes(question, set, keys.len()));
        (self.question, self.set) = (question, set);
        self.commands.push(Part { keys: keys.len(), form });
        self.keys.extend(keys);
    }

    /// Answers the run or, of a large one, the next part; whether it is done.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> bool {
        let is_large = self.keys.len() > Self::BATCH;
        let database = context.database();
        let set = str::from_utf8(self.set).map(|name| self.question.set_of(database, name));
        let done = match set.as_deref() {
            Err(_) => self.refuse_all(context, "ERR the name of a set must be UTF-8"),
            Ok(_) if self.question == Question::AddToBloom && context.is_string(self.set) => {
                self.refuse_all(context, &error_line(FilterError::WrongType))
            }
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

    fn refuse_all(&self, context: &mut Context<'_>, line: &str) -> bool {
        for _ in &self.commands {
            context.replies.error_line(line);
        }
        true
    }

    fn all_commands(&mut self, context: &mut Context<'_>, set: &str) -> bool {
        let Self { question, keys, commands, answers, .. } = self;
        let answered = ask(*question, set, keys, commands, answers, context).unwrap_or(0);
        // One by one those that were refused together, and those that came after a filter was full.
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

    /// The next keys of a large command that answers yes or no for each, which is alone in its run. Its
    /// reply is written when all are done; an error after the first part says how many were.
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

/// Asks the host, and writes a reply a command: how many were answered. Fewer than all are if a filter was
/// full before the last. If it refuses, nothing is written.
fn ask(
    question: Question,
    set: &str,
    keys: &[&[u8]],
    commands: &[Part],
    answers: &mut Vec<bool>,
    context: &mut Context<'_>,
) -> Result<usize, ErrorLine> {
    answers.clear();
    let start = context.replies.len();
    if question == Question::Who {
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

/// Asks the host for a yes or no for each key. Fewer answers than keys: the filter is full.
fn ask_for_bits(
    question: Question,
    host: &Host,
    set: &str,
    keys: &[&[u8]],
    answers: &mut Vec<bool>,
) -> Result<Ticket, ErrorLine> {
    match question {
        Question::Add => host.add(set, keys, Lifetime::Default, answers).map_err(refused),
        Question::Remove => host.remove(set, keys, answers).map_err(refused),
        Question::AddToBloom => {
            host.add_to_bloom(set, keys, Some(Bloom::default()), answers).map_err(error_line)
        }
        Question::HasInFilter(of) => {
            host.has_in_filter(set, of, keys, answers);
            Ok(Ticket::NONE)
        }
        Question::Has | Question::Who => {
            host.has(set, keys, answers).map(|()| Ticket::NONE).map_err(refused)
        }
    }
}

fn refused(error: HostError) -> ErrorLine {
    error_line(error.into())
}

/// Writes one command's answers, and that a filter was full after them.
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

/// What RedisBloom replies for an item that does not fit.
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
