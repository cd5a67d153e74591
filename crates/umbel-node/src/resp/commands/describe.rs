//! `COMMAND`: the table of commands, for clients and for people.

use super::{Argument, Command, Flag, Group, Keys, Kind, every, excerpt, find, glob, nearest};
use crate::resp::context::{Context, Refusal};
use crate::resp::reply::Replies;
use crate::resp::request::Arguments;

pub(super) fn all(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.array(every().count());
    every().for_each(|command| describe(command, context.replies));
    Ok(())
}

pub(super) fn count(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.count(every().count());
    Ok(())
}

pub(super) fn info(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    if arguments.len() == 2 {
        return all(context, arguments);
    }
    context.replies.array(arguments.len() - 2);
    for name in arguments.from(2) {
        match find_full(name) {
            Some(command) => describe(command, context.replies),
            None => context.replies.null(),
        }
    }
    Ok(())
}

pub(super) fn docs(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let asked: Vec<&Command> = match arguments.len() {
        2 => every().collect(),
        _ => arguments.from(2).filter_map(find_full).collect(),
    };
    context.replies.map(asked.len());
    asked.into_iter().for_each(|command| document(command, context.replies));
    Ok(())
}

pub(super) fn list(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let is = |index: usize, word: &str| {
        arguments.get(index).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    };
    let pattern: &[u8] = match arguments.len() {
        2 => b"*",
        5 if is(2, "FILTERBY") && is(3, "PATTERN") => arguments.get(4).unwrap_or_default(),
        _ => return Err("COMMAND LIST takes nothing, or FILTERBY PATTERN and a pattern".into()),
    };
    let pattern = glob(&pattern.to_ascii_uppercase())?;
    let fits = |command: &&Command| pattern.matches(command.name.as_bytes());
    let names: Vec<&Command> = every().filter(fits).collect();
    context.replies.array(names.len());
    names.iter().for_each(|command| context.replies.text(&command.full_name()));
    Ok(())
}

/// `UMBEL.HELP [command-name]`
pub(super) fn umbel_help(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let replies = &mut *context.replies;
    let Some(name) = arguments.get(1) else {
        let own: Vec<_> = every().filter(|command| command.group == Group::Umbel).collect();
        replies.array(1 + 2 * own.len());
        replies.simple("Commands of umbel; UMBEL.HELP command-name describes any other. They are:");
        own.into_iter().for_each(|command| help_lines(command, replies));
        return Ok(());
    };
    let full = name.iter().map(|byte| if *byte == b' ' { b'|' } else { *byte }).collect::<Vec<_>>();
    let own = || find(&[b"UMBEL.", name].concat());
    let command = find_full(&full).or_else(own).ok_or_else(|| {
        let name = excerpt(name);
        let meant = nearest(&name).map(|command| format!("; did you mean {}?", command.name));
        format!("unknown command '{name}'{}", meant.unwrap_or_default())
    })?;
    let children = command.children();
    replies.array(3 + 2 * children.len());
    help_lines(command, replies);
    replies.simple(&format!("    {}; at most {}.", command.complexity, command.bound));
    children.iter().for_each(|child| help_lines(child, replies));
    Ok(())
}

fn help_lines(command: &Command, replies: &mut Replies) {
    replies.simple(&command.syntax());
    replies.simple(&format!("    {}", command.summary));
}

/// Finds a command by its name, a subcommand by `parent|child`.
fn find_full(name: &[u8]) -> Option<&'static Command> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let command = find(words.next()?)?;
    let Some(child) = words.next() else { return Some(command) };
    command.children().iter().find(|own| own.name.as_bytes().eq_ignore_ascii_case(child))
}

/// The description for clients: ten elements, as in Redis 7.
fn describe(command: &Command, replies: &mut Replies) {
    replies.array(10);
    replies.text(&command.full_name());
    replies.integer(command.arity());
    replies.set(command.flags.len());
    command.flags.iter().for_each(|flag| replies.simple(flag.word()));
    let (first, last, step) = command.keys.range();
    [first, last, step].into_iter().for_each(|number| replies.integer(number));
    let categories = categories(command);
    replies.set(categories.len());
    categories.iter().for_each(|category| replies.simple(category));
    // There are neither tips nor key specifications.
    replies.array(0);
    replies.array(0);
    replies.array(command.children().len());
    command.children().iter().for_each(|child| describe(child, replies));
}

fn categories(command: &Command) -> Vec<&'static str> {
    let has = |flag| command.flags.contains(&flag);
    let speed = if has(Flag::Fast) { "@fast" } else { "@slow" };
    let named = [
        (has(Flag::Write), "@write"),
        (has(Flag::ReadOnly), "@read"),
        (has(Flag::Admin), "@admin"),
        (command.group == Group::Connection, "@connection"),
        (command.group == Group::Transactions, "@transaction"),
        (true, speed),
    ];
    named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
}

/// The documentation for people: what `redis-cli` shows as help and as hints.
fn document(command: &Command, replies: &mut Replies) {
    let children = command.children();
    let arguments = command.arguments;
    replies.text(&command.full_name());
    replies.map(4 + usize::from(!arguments.is_empty()) + usize::from(!children.is_empty()));
    for (field, value) in [
        ("summary", command.summary),
        ("since", "0.1.0"),
        ("group", command.group.word()),
        ("complexity", &format!("{}; at most {}", command.complexity, command.bound)),
    ] {
        replies.text(field);
        replies.text(value);
    }
    if !arguments.is_empty() {
        replies.text("arguments");
        replies.array(arguments.len());
        arguments.iter().for_each(|argument| document_argument(argument, replies));
    }
    if !children.is_empty() {
        replies.text("subcommands");
        replies.map(children.len());
        children.iter().for_each(|child| document(child, replies));
    }
}

fn document_argument(argument: &Argument, replies: &mut Replies) {
    let flags: Vec<&str> = [(argument.optional, "optional"), (argument.multiple, "multiple")]
        .into_iter()
        .filter_map(|(is, word)| is.then_some(word))
        .collect();
    let key = argument.kind == Kind::Key;
    let token = argument.token;
    let fields =
        3 + usize::from(key) + usize::from(token.is_some()) + usize::from(!flags.is_empty());
    replies.map(fields);
    for (field, value) in
        [("name", argument.name), ("type", argument.kind.word()), ("display_text", argument.name)]
    {
        replies.text(field);
        replies.text(value);
    }
    if key {
        replies.text("key_spec_index");
        replies.integer(0);
    }
    if let Some(token) = token {
        replies.text("token");
        replies.text(token);
    }
    if !flags.is_empty() {
        replies.text("flags");
        replies.array(flags.len());
        flags.iter().for_each(|flag| replies.simple(flag));
    }
}

impl Flag {
    const fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::ReadOnly => "readonly",
            Self::Fast => "fast",
            Self::Admin => "admin",
        }
    }
}

impl Group {
    const fn word(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Generic => "generic",
            Self::String => "string",
            Self::Transactions => "transactions",
            Self::Umbel => "umbel",
            Self::Bloom => "bf",
            Self::Cuckoo => "cf",
        }
    }
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Pattern => "pattern",
            Self::Token => "pure-token",
        }
    }
}

impl Keys {
    /// First, last and step of the arguments that name sets.
    const fn range(self) -> (i64, i64, i64) {
        match self {
            Self::None => (0, 0, 0),
            Self::First => (1, 1, 1),
            Self::All => (1, -1, 1),
        }
    }
}
