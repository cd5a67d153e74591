//! The commands: one table lists their names, arguments and handlers.
//!
//! Everything else is derived from the table: dispatch, the number of arguments, `COMMAND`, help.
//! Handlers are small: they parse arguments, call the host, write the reply.

use super::context::{Context, Refusal};
use super::error_line::ErrorLine;
use super::glob::{MAX_PATTERN, Pattern};
use super::login::Login;
use super::reply::Replies;
use super::request::Arguments;
use super::run::{Form, KeyOperation, Run};
use super::slow::Slow;
use crate::{HostError, Ticket};

mod about;
mod chain;
mod connection;
mod describe;
mod filters;
mod keyspace;
mod names;
mod needs;
mod server;
mod sets;
mod strings;
mod table;
mod transactions;

pub(super) use needs::Need;

/// A command, or a child of one (`CLIENT LIST` is a child of `CLIENT`).
#[derive(Debug)]
pub(super) struct Command {
    /// In upper case; for a child without its parent's name.
    pub(super) name: &'static str,
    /// A child's parent.
    parent: Option<&'static str>,
    arguments: &'static [Argument],
    flags: &'static [Flag],
    keys: Keys,
    group: Group,
    summary: &'static str,
    complexity: &'static str,
    /// What limits the cost of one call, and on which threads long work runs.
    bound: &'static str,
    pub(super) action: Action,
}

/// How a command is executed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    /// At once.
    Plain(Handler),
    /// On keys of one set, in a batch with neighbouring commands.
    Run(KeyOperation, Form),
    /// At once, on a filter, with Redis's own error texts.
    Filter(FilterHandler),
    /// By asking other hosts.
    Slow(Read),
    /// At once, or by asking other hosts if an optional argument is given.
    Either(Handler, Read),
    /// By authenticating the client; `None`: the reply is written already.
    Login(fn(&mut Context<'_>, Arguments<'_, '_>) -> Result<Option<Login>, Refusal>),
    /// By one of its children.
    Parent(&'static Parent),
}

/// Executes a command and writes its reply; if it returns an error, what it wrote is removed.
pub(super) type Handler = fn(&mut Context<'_>, Arguments<'_, '_>) -> Result<(), Refusal>;

/// As [`Handler`], with error lines that include their code.
pub(super) type FilterHandler = fn(&mut Context<'_>, Arguments<'_, '_>) -> Result<(), ErrorLine>;

/// Parses a request for other hosts.
pub(super) type Read = fn(Arguments<'_, '_>) -> Result<Slow, Refusal>;

/// A command with children.
#[derive(Debug)]
pub(super) struct Parent {
    children: &'static [Command],
    /// Executed if no subcommand is given.
    pub(super) alone: Option<Handler>,
}

/// The flags of a command, as Redis clients know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    Write,
    ReadOnly,
    Fast,
    Admin,
}

/// The group under which a command is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Connection,
    Server,
    Generic,
    String,
    Transactions,
    Umbel,
    Bloom,
    Cuckoo,
}

/// Which arguments are names of sets: Redis's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    None,
    First,
    All,
}

/// An argument, perhaps after a keyword.
#[derive(Debug, Clone, Copy)]
struct Argument {
    name: &'static str,
    kind: Kind,
    token: Option<&'static str>,
    optional: bool,
    multiple: bool,
    /// How often it may be given, if it may be given more than once.
    max_count: usize,
}

/// The type of an argument, as Redis clients know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The name of a set.
    Key,
    String,
    Integer,
    Double,
    Pattern,
    /// A keyword without a value.
    Token,
}

impl Argument {
    const fn new(name: &'static str, kind: Kind) -> Self {
        let max_count = usize::MAX;
        Self { name, kind, token: None, optional: false, multiple: false, max_count }
    }

    const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    const fn multiple(self) -> Self {
        Self { multiple: true, ..self }
    }

    /// At most `max_count` times: for arguments that cost much more than their bytes.
    const fn at_most(self, max_count: usize) -> Self {
        Self { multiple: true, max_count, ..self }
    }

    const fn after(self, token: &'static str) -> Self {
        Self { token: Some(token), optional: true, ..self }
    }

    /// After a keyword that is required.
    const fn named(self, token: &'static str) -> Self {
        Self { token: Some(token), ..self }
    }

    /// An optional keyword without a value.
    const fn flag(name: &'static str, token: &'static str) -> Self {
        Self::new(name, Kind::Token).after(token)
    }

    /// The number of words that it takes if it is given: its own, and its keyword.
    fn words(&self) -> usize {
        if self.kind == Kind::Token {
            return 1;
        }
        let spaced = |text: &str| text.split(' ').count();
        spaced(self.name) + self.token.map_or(0, spaced)
    }
}

impl Command {
    /// Redis's arity: the number of words, the name included; negative: at least so many.
    pub(super) fn arity(&self) -> i64 {
        let words = 1 + i64::from(self.parent.is_some());
        let required = self.arguments.iter().filter(|argument| !argument.optional);
        let required = required.map(Argument::words).sum::<usize>() as i64;
        let open = self.arguments.iter().any(|argument| argument.optional || argument.multiple);
        if open { -(words + required) } else { words + required }
    }

    /// Whether a request of this many words may be valid.
    pub(super) fn accepts(&self, words: usize) -> bool {
        let min = usize::try_from(self.arity().abs()).unwrap_or(usize::MAX);
        words >= min && words <= self.max_words(min)
    }

    /// The maximum number of words, if `min` is the minimum.
    fn max_words(&self, min: usize) -> usize {
        let more = self.arguments.iter().map(|argument| match argument {
            Argument { multiple: true, optional: false, max_count, .. } => max_count - 1,
            Argument { multiple: true, max_count, .. } => *max_count,
            Argument { optional: true, .. } => argument.words(),
            _ => 0,
        });
        more.fold(min, usize::saturating_add)
    }

    /// Whether it waits for other hosts if it has this many words.
    pub(super) fn is_slow(&self, words: usize) -> bool {
        let optional = words as u64 > self.arity().unsigned_abs();
        self.accepts(words)
            && (matches!(self.action, Action::Slow(_))
                || matches!(self.action, Action::Either(..)) && optional)
    }

    pub(super) fn wrong_number(&self) -> Refusal {
        format!("wrong number of arguments for '{}' command", self.full_name()).into()
    }

    /// In lower case, as Redis lists it: `umbel.add`, `client|list`.
    pub(super) fn full_name(&self) -> String {
        let name = self.name.to_ascii_lowercase();
        match self.parent {
            Some(parent) => format!("{}|{name}", parent.to_ascii_lowercase()),
            None => name,
        }
    }

    /// The syntax, such as `UMBEL.ADD set key [key ...]`.
    fn syntax(&self) -> String {
        let mut text = match self.parent {
            Some(parent) => format!("{parent} {}", self.name),
            None => self.name.to_owned(),
        };
        for argument in self.arguments {
            let word = argument.token.map(|token| format!("{token} ")).unwrap_or_default();
            let repeat =
                if argument.multiple { format!(" [{} ...]", argument.name) } else { String::new() };
            let one = match (argument.kind, argument.token) {
                (Kind::Token, Some(token)) => token.to_owned(),
                _ => format!("{word}{}{repeat}", argument.name),
            };
            text += &if argument.optional { format!(" [{one}]") } else { format!(" {one}") };
        }
        text
    }

    /// Whether it is a child of another.
    pub(super) const fn is_child(&self) -> bool {
        self.parent.is_some()
    }

    fn children(&self) -> &'static [Self] {
        match self.action {
            Action::Parent(parent) => parent.children,
            _ => &[],
        }
    }
}

impl Parent {
    pub(super) fn find(&self, name: &[u8]) -> Option<&'static Command> {
        self.children.iter().find(|child| child.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Runs work that may take long: Tokio moves the other tasks of this thread to another one
/// meanwhile.
fn off_the_workers<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Runs work on this many keys; if they are many, as [`off_the_workers`] does.
fn aside_if_many<T>(keys: usize, work: impl FnOnce() -> T) -> T {
    if keys <= Run::BATCH { work() } else { off_the_workers(work) }
}

/// As [`Command::wrong_number`], for a command that counts its arguments itself.
fn wrong_number(name: &str) -> ErrorLine {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

/// Changes keys in parts, so that the set's lock is not held for all of them at once, and replies
/// for each whether it changed. An error after the first part reports how many keys were processed.
fn change_in_parts<K>(
    context: &mut Context<'_>,
    keys: &[K],
    mut change: impl FnMut(&[K], &mut Vec<bool>) -> Result<Ticket, HostError>,
) -> Result<(), Refusal> {
    let mut answers = Vec::with_capacity(keys.len());
    let mut newest = Ticket::NONE;
    let change_all = || {
        for part in keys.chunks(Run::BATCH) {
            let taken = answers.len();
            newest = newest.max(change(part, &mut answers).map_err(|error| match taken {
                0 => error.to_string(),
                taken => format!("{error}; {taken} keys were taken before"),
            })?);
        }
        Ok::<_, String>(())
    };
    aside_if_many(keys.len(), change_all)?;
    let from = context.replies.len();
    context.replies.array(answers.len());
    answers.iter().for_each(|yes| context.replies.bit(*yes));
    context.wrote(newest, from);
    Ok(())
}

/// A pattern that a client sent.
fn glob(pattern: &[u8]) -> Result<Pattern, Refusal> {
    let refused = |_| format!("a pattern may have at most {MAX_PATTERN} bytes").into();
    Pattern::new(pattern).map_err(refused)
}

/// Every command: umbel's table, then the filter commands, each sorted by name.
fn every() -> impl Iterator<Item = &'static Command> + Clone {
    table::TABLE.iter().chain(filters::TABLE)
}

/// The command of this name, in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    let order = |command: &Command| {
        let mine = command.name.bytes();
        mine.cmp(name.iter().map(u8::to_ascii_uppercase))
    };
    [table::TABLE, filters::TABLE].into_iter().find_map(|table| {
        let place = table.binary_search_by(order).ok()?;
        Some(&table[place])
    })
}

/// Whether a request must wait for other hosts.
pub(super) fn is_slow(arguments: Arguments<'_, '_>) -> bool {
    let command = arguments.get(0).and_then(find);
    command.is_some_and(|command| command.is_slow(arguments.len()))
}

/// The error for an unknown command, with Redis's text.
pub(super) fn unknown(arguments: Arguments<'_, '_>) -> Refusal {
    let mut shown = String::new();
    for argument in arguments.from(1) {
        if shown.len() >= 128 {
            break;
        }
        shown += &format!("'{}' ", excerpt(argument));
    }
    let name = excerpt(arguments.get(0).unwrap_or_default());
    if let Some(refusal) = filters::unsupported(&name) {
        return refusal;
    }
    let meant = nearest(&name).map(|command| format!("; did you mean {}?", command.name));
    let meant = meant.unwrap_or_default();
    format!("unknown command '{name}', with args beginning with: {shown}{meant}").into()
}

/// The command that was most likely meant by `name`: one with a similar name, with or without the
/// prefix `UMBEL.`.
fn nearest(name: &str) -> Option<&'static Command> {
    let written = name.to_ascii_uppercase();
    let distance = |command: &Command| {
        let own = command.name.strip_prefix("UMBEL.").unwrap_or(command.name);
        let whole = strsim::damerau_levenshtein(&written, command.name);
        whole.min(strsim::damerau_levenshtein(&written, own))
    };
    let nearest = every().min_by_key(|command| distance(command))?;
    (distance(nearest) <= (written.len() / 3).clamp(1, 3)).then_some(nearest)
}

pub(super) fn unknown_child(command: &Command, name: &[u8]) -> Refusal {
    format!("unknown subcommand '{}'. Try {} HELP.", excerpt(name), command.name).into()
}

/// The help text that lists the children of a command.
pub(super) fn help(command: &Command, parent: &Parent, replies: &mut Replies) {
    replies.array(1 + 2 * parent.children.len());
    replies.simple(&format!("{} <subcommand> [<arg> ...]. Subcommands are:", command.name));
    for child in parent.children {
        let syntax = child.syntax();
        replies.simple(syntax.split_once(' ').map_or(&*syntax, |(_, own)| own));
        replies.simple(&format!("    {}", child.summary));
    }
}

/// The beginning of what a client sent, for an error message.
fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(128)]).into_owned()
}

/// An argument that must be text.
fn text<'a>(arguments: &Arguments<'a, '_>, index: usize, what: &str) -> Result<&'a str, Refusal> {
    let bytes = arguments.get(index).unwrap_or_default();
    str::from_utf8(bytes).map_err(|_| format!("{what} must be UTF-8").into())
}

/// The name of a set.
fn set<'a>(arguments: &Arguments<'a, '_>) -> Result<&'a str, Refusal> {
    text(arguments, 1, "the name of a set")
}

/// An argument that must be a number within a range; otherwise the error is `refusal`.
fn number<T: std::str::FromStr + PartialOrd>(
    argument: &[u8],
    range: impl std::ops::RangeBounds<T>,
    refusal: &'static str,
) -> Result<T, Refusal> {
    let number = str::from_utf8(argument).ok().and_then(|text| text.parse().ok());
    number.filter(|number| range.contains(number)).ok_or(Refusal::Borrowed(refusal))
}

/// Parses the options after the required arguments: keywords, each with one value.
fn options<'a>(
    arguments: &Arguments<'a, '_>,
    from: usize,
    read: impl FnMut(&str, &'a [u8]) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    options_and_flags(arguments, from, &[], read)
}

/// As [`options`]; the keywords in `flags` have no value.
fn options_and_flags<'a>(
    arguments: &Arguments<'a, '_>,
    from: usize,
    flags: &[&str],
    mut read: impl FnMut(&str, &'a [u8]) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    let mut rest = arguments.from(from);
    while let Some(word) = rest.next() {
        let word = excerpt(word).to_ascii_uppercase();
        if flags.contains(&&*word) {
            read(&word, &[])?;
            continue;
        }
        let value =
            rest.next().ok_or_else(|| format!("{word} is the last word; its value is missing"))?;
        if !read(&word, value)? {
            return Err(format!("unknown option '{word}'").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
