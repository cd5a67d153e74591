//! Commands about the connection itself.

use super::{excerpt, number, text};
use crate::resp::clients::ClientInfo;
use crate::resp::context::{Context, Refusal};
use crate::resp::database::Database;
use crate::resp::login::{Greeting, Login, Then};
use crate::resp::reply::Protocol;
use crate::resp::request::Arguments;

/// Maximum length of the name of a client or of its library, in bytes.
const LONGEST_NAME: usize = 255;

pub(super) fn ping(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    match arguments.get(1) {
        None => context.replies.simple("PONG"),
        Some(message) => context.replies.bulk(message),
    }
    Ok(())
}

pub(super) fn echo(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.bulk(arguments.get(1).unwrap_or_default());
    Ok(())
}

/// `AUTH [username] password`
pub(super) fn auth(
    _: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<Option<Login>, Refusal> {
    let (user, password) = match (arguments.get(1), arguments.get(2)) {
        (Some(user), Some(password)) => (user, password),
        (password, _) => (&b"default"[..], password.unwrap_or_default()),
    };
    Ok(Some(login(user, password, Then::Ok)))
}

fn login(user: &[u8], password: &[u8], then: Then) -> Login {
    // A name that is not UTF-8 belongs to no user.
    let user = String::from_utf8_lossy(user).into_owned();
    Login { user, password: password.to_vec(), then }
}

/// `HELLO [protover [AUTH user password] [SETNAME name]]`
pub(super) fn hello(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<Option<Login>, Refusal> {
    let protocol = match arguments.get(1) {
        None => context.replies.protocol(),
        Some(b"2") => Protocol::Resp2,
        Some(b"3") => Protocol::Resp3,
        Some(other) => {
            let refusal = match str::from_utf8(other).map(str::parse::<i64>) {
                Ok(Ok(_)) => ("NOPROTO", "unsupported protocol version"),
                _ => ("ERR", "Protocol version is not an integer or out of range"),
            };
            context.replies.coded_error(refusal.0, refusal.1);
            return Ok(None);
        }
    };
    let (credentials, name) = wishes(&arguments)?;
    let greeting = Greeting { protocol, name };
    if let Some((user, password)) = credentials {
        return Ok(Some(login(user, password, Then::Greet(greeting))));
    }
    if !context.host.access().is_open() && context.identity.user().is_none() {
        context.replies.coded_error("NOAUTH", HELLO_NEEDS_LOGIN);
        return Ok(None);
    }
    greeting.answer(context);
    Ok(None)
}

const HELLO_NEEDS_LOGIN: &str = "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
     <user> <pass> option can be used to authenticate the client and select the RESP protocol \
     version at the same time";

/// User and password.
type Credentials<'a> = (&'a [u8], &'a [u8]);

/// The options after the protocol version.
fn wishes<'a>(
    arguments: &Arguments<'a, '_>,
) -> Result<(Option<Credentials<'a>>, Option<String>), Refusal> {
    let (mut credentials, mut name) = (None, None);
    let mut rest = arguments.from(2);
    while let Some(word) = rest.next() {
        let word = excerpt(word).to_ascii_uppercase();
        let mut value =
            || rest.next().ok_or_else(|| format!("{word} is the last word; its value is missing"));
        match &*word {
            "AUTH" => credentials = Some((value()?, value()?)),
            "SETNAME" => name = Some(checked_name(value()?)?.to_owned()),
            _ => return Err(format!("unknown option '{word}'").into()),
        }
    }
    Ok((credentials, name))
}

impl Greeting {
    /// Does what `HELLO` requested and replies.
    pub(in crate::resp) fn answer(self, context: &mut Context<'_>) {
        if let Some(name) = self.name {
            context.client.info.lock().name = name;
        }
        context.replies.set_protocol(self.protocol);
        greet(context);
    }
}

fn greet(context: &mut Context<'_>) {
    let protocol = context.replies.protocol();
    let replies = &mut *context.replies;
    replies.map(7);
    replies.text("server");
    replies.text("umbel");
    replies.text("version");
    replies.text(env!("CARGO_PKG_VERSION"));
    replies.text("proto");
    replies.integer(protocol.number());
    replies.text("id");
    replies.integer(context.client.id as i64);
    replies.text("mode");
    replies.text("standalone");
    replies.text("role");
    replies.text("master");
    replies.text("modules");
    replies.array(0);
}

pub(super) fn select(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    const REFUSAL: &str = "DB index is out of range: there are 0 to 15";
    let number: u8 = number(arguments.get(1).unwrap_or_default(), .., REFUSAL)?;
    context.client.select(Database::new(number).ok_or(REFUSAL)?);
    context.replies.ok();
    Ok(())
}

pub(super) fn quit(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.quit = true;
    context.replies.ok();
    Ok(())
}

pub(super) fn reset(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.set_protocol(Protocol::default());
    {
        let mut info = context.client.info.lock();
        info.name.clear();
        info.user.clear();
    }
    context.client.select(Database::default());
    drop(context.transaction.take());
    context.set_identity(context.host.access().stranger());
    context.replies.simple("RESET");
    Ok(())
}

pub(super) fn id(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.integer(context.client.id as i64);
    Ok(())
}

pub(super) fn name(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    let info = context.client.info.lock();
    if info.name.is_empty() {
        context.replies.null();
    } else {
        context.replies.text(&info.name);
    }
    Ok(())
}

pub(super) fn set_name(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let name = checked_name(arguments.get(2).unwrap_or_default())?;
    name.clone_into(&mut context.client.info.lock().name);
    context.replies.ok();
    Ok(())
}

pub(super) fn set_info(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let attribute = text(&arguments, 2, "an attribute")?.to_ascii_uppercase();
    let place: fn(&mut ClientInfo) -> &mut String = match &*attribute {
        "LIB-NAME" => |info| &mut info.library,
        "LIB-VER" => |info| &mut info.library_version,
        _ => return Err(format!("Unrecognized option '{}'", excerpt(attribute.as_bytes())).into()),
    };
    let value = checked_name(arguments.get(3).unwrap_or_default())?;
    value.clone_into(place(&mut context.client.info.lock()));
    context.replies.ok();
    Ok(())
}

pub(super) fn info(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.note();
    context.replies.verbatim(&(context.client.line(context.clients.local) + "\n"));
    Ok(())
}

pub(super) fn list(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.note();
    let all = context.clients.list();
    let lines: String =
        all.iter().map(|client| client.line(context.clients.local) + "\n").collect();
    context.replies.verbatim(&lines);
    Ok(())
}

/// Names are written as `key=value` pairs in a line: they must not contain spaces or unprintable
/// characters.
fn checked_name(bytes: &[u8]) -> Result<&str, Refusal> {
    let name =
        str::from_utf8(bytes).ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()));
    name.filter(|name| name.len() <= LONGEST_NAME).ok_or(Refusal::Borrowed(
        "a client's name and its library's cannot contain spaces, newlines or special characters, \
         nor be longer than 255 bytes",
    ))
}
