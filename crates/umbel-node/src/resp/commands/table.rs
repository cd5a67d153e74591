//! The table of commands, without those of filters.

use super::transactions;
use super::{Action, Argument, Command, Flag, Form, Group, KeyOperation, Keys, Kind, Parent};
use super::{about, chain, connection, describe, keyspace, names, server, sets, strings};

const SET: Argument = Argument::new("set", Kind::Key);
const KEY: Argument = Argument::new("key", Kind::String);
const KEYS: Argument = KEY.multiple();
const PREFIXES: Argument = Argument::new("prefix", Kind::String).multiple();
const STRING: Argument = Argument::new("key", Kind::Key);
const READ: &[Flag] = &[Flag::ReadOnly, Flag::Fast];
const READ_SLOWLY: &[Flag] = &[Flag::ReadOnly];
const WRITE: &[Flag] = &[Flag::Write, Flag::Fast];
const FAST: &[Flag] = &[Flag::Fast];

/// Maximum number of command names, patterns or sections in one request: each costs far more than
/// its bytes.
const MAX_NAMES: usize = 128;

/// The bound of commands whose cost is proportional to the length of the request.
const ONE_REQUEST: &str = "one request";
const PARTS: &str = "1,048,576 keys; in parts of 512, between which others have their turn";
const PREFIX_PARTS: &str = "1,048,576 prefixes; in parts of 512, off the threads that answer";
const ALL_SETS: &str = "all sets (`limits.sets` per host); off the threads that answer";

/// A command with default values for the remaining fields.
const fn command(
    name: &'static str,
    group: Group,
    summary: &'static str,
    action: Action,
) -> Command {
    Command {
        name,
        parent: None,
        arguments: &[],
        flags: FAST,
        keys: Keys::None,
        group,
        summary,
        complexity: "O(1)",
        bound: ONE_REQUEST,
        action,
    }
}

const fn child(
    parent: &'static str,
    group: Group,
    name: &'static str,
    arguments: &'static [Argument],
    summary: &'static str,
    action: Action,
) -> Command {
    Command { parent: Some(parent), arguments, ..command(name, group, summary, action) }
}

/// A command of umbel that takes a set.
const fn about_set(
    name: &'static str,
    arguments: &'static [Argument],
    flags: &'static [Flag],
    summary: &'static str,
    [complexity, bound]: [&'static str; 2],
    action: Action,
) -> Command {
    Command {
        arguments,
        flags,
        keys: Keys::First,
        complexity,
        bound,
        ..command(name, Group::Umbel, summary, action)
    }
}

/// A command that deletes many sets.
const fn flush(name: &'static str, summary: &'static str, handler: super::Handler) -> Command {
    Command {
        arguments: const { &[Argument::new("how", Kind::String).optional()] },
        flags: &[Flag::Write, Flag::Admin],
        complexity: "O(N) in the number of keys",
        bound: "all keys of all own sets; off the threads that answer",
        ..command(name, Group::Server, summary, Action::Plain(handler))
    }
}

const SUBCOMMAND: &[Argument] = &[
    Argument::new("subcommand", Kind::String),
    Argument::new("arg", Kind::String).multiple().optional(),
];

/// All commands, sorted by name.
pub(super) static TABLE: &[Command] = &[
    Command {
        arguments: &[
            Argument::new("username", Kind::String).optional(),
            Argument::new("password", Kind::String),
        ],
        complexity: "O(1)",
        bound: "one password hash, when it is the turn of the client's address; on a thread of the hashers",
        ..command(
            "AUTH",
            Group::Connection,
            "Logs in; without a name, as the user default.",
            Action::Login(connection::auth),
        )
    },
    Command {
        arguments: SUBCOMMAND,
        ..command(
            "CLIENT",
            Group::Connection,
            "About connections.",
            Action::Parent(&Parent { children: CLIENT, alone: None }),
        )
    },
    Command {
        arguments: &[
            Argument::new("subcommand", Kind::String).optional(),
            Argument::new("arg", Kind::String).multiple().optional(),
        ],
        ..command(
            "COMMAND",
            Group::Server,
            "Describes the commands there are.",
            Action::Parent(&Parent { children: COMMAND, alone: Some(describe::all) }),
        )
    },
    Command {
        arguments: SUBCOMMAND,
        flags: &[Flag::Admin],
        ..command(
            "CONFIG",
            Group::Server,
            "Reads what Redis clients ask of a server's configuration.",
            Action::Parent(&Parent { children: CONFIG, alone: None }),
        )
    },
    Command {
        flags: READ_SLOWLY,
        complexity: "O(N) in the number of sets",
        bound: ALL_SETS,
        ..command(
            "DBSIZE",
            Group::Server,
            "The number of sets in the selected database.",
            Action::Plain(keyspace::dbsize),
        )
    },
    Command {
        arguments: SUBCOMMAND,
        flags: &[Flag::Admin],
        ..command(
            "DEBUG",
            Group::Server,
            "What test suites of Redis clients call.",
            Action::Parent(&Parent { children: DEBUG, alone: None }),
        )
    },
    Command {
        arguments: &[SET.multiple()],
        flags: &[Flag::Write],
        keys: Keys::All,
        complexity: "O(N) in the number of keys",
        bound: "all keys of all own sets; off the threads that answer",
        ..command(
            "DEL",
            Group::Generic,
            "Deletes this host's own sets and strings of these names, with all their keys.",
            Action::Plain(keyspace::del),
        )
    },
    command(
        "DISCARD",
        Group::Transactions,
        "Ends a transaction without executing it.",
        Action::Plain(transactions::discard),
    ),
    Command {
        arguments: &[Argument::new("message", Kind::String)],
        ..command(
            "ECHO",
            Group::Connection,
            "Answers its argument.",
            Action::Plain(connection::echo),
        )
    },
    Command {
        flags: &[],
        complexity: "that of the queued commands",
        bound: "1,048,576 commands in `limits.request_bytes`, each within its own bound; large transactions share a budget with large requests",
        ..command(
            "EXEC",
            Group::Transactions,
            "Executes the commands of a transaction.",
            Action::Plain(transactions::exec),
        )
    },
    Command {
        arguments: &[SET.multiple()],
        flags: READ,
        keys: Keys::All,
        complexity: "O(N) in the number of names",
        bound: "1,048,575 names; off the threads that answer",
        ..command(
            "EXISTS",
            Group::Generic,
            "How many of these sets there are.",
            Action::Plain(keyspace::exists),
        )
    },
    flush("FLUSHALL", "Deletes all own sets of this host, with all their keys.", server::flush_all),
    flush(
        "FLUSHDB",
        "Deletes this host's own sets in the selected database, with all their keys.",
        server::flush_database,
    ),
    Command {
        arguments: &[STRING],
        flags: READ,
        keys: Keys::First,
        ..command(
            "GET",
            Group::String,
            "The string of this name, or null.",
            Action::Filter(strings::get),
        )
    },
    Command {
        arguments: &[
            Argument::new("protover", Kind::Integer).optional(),
            Argument::new("username password", Kind::String).after("AUTH"),
            Argument::new("clientname", Kind::String).after("SETNAME"),
        ],
        complexity: "O(1)",
        bound: "one password hash, when it is the turn of the client's address; on a thread of the hashers",
        ..command(
            "HELLO",
            Group::Connection,
            "Greets, logs in, and chooses RESP2 or RESP3.",
            Action::Login(connection::hello),
        )
    },
    Command {
        arguments: &[Argument::new("section", Kind::String).at_most(MAX_NAMES).optional()],
        flags: &[],
        complexity: "O(N) in the number of sets and connections",
        bound: "`limits.sets` per host, `limits.connections`; off the threads that answer",
        ..command(
            "INFO",
            Group::Server,
            "The host and its port in Redis's form.",
            Action::Plain(about::info),
        )
    },
    Command {
        arguments: &[Argument::new("pattern", Kind::Pattern)],
        flags: READ_SLOWLY,
        complexity: "O(N) in the number of sets",
        bound: "all sets (`limits.sets` per host), each matched in linear time with a pattern of 1 KiB; off the threads that answer",
        ..command(
            "KEYS",
            Group::Generic,
            "The names of all sets that fit a pattern.",
            Action::Plain(keyspace::keys),
        )
    },
    command(
        "MULTI",
        Group::Transactions,
        "Begins a transaction: commands are queued until EXEC.",
        Action::Plain(transactions::multi),
    ),
    Command {
        arguments: &[SET],
        keys: Keys::First,
        ..command(
            "PERSIST",
            Group::Generic,
            "Replies 0: no set expires.",
            Action::Plain(keyspace::persist),
        )
    },
    Command {
        arguments: &[Argument::new("message", Kind::String).optional()],
        ..command(
            "PING",
            Group::Connection,
            "Answers PONG, or its argument.",
            Action::Plain(connection::ping),
        )
    },
    Command {
        arguments: &[SET],
        flags: READ,
        keys: Keys::First,
        ..command(
            "PTTL",
            Group::Generic,
            "Replies as TTL does.",
            Action::Plain(keyspace::time_to_live),
        )
    },
    command("QUIT", Group::Connection, "Closes the connection.", Action::Plain(connection::quit)),
    command(
        "RESET",
        Group::Connection,
        "Makes the connection as it was at its beginning.",
        Action::Plain(connection::reset),
    ),
    Command {
        flags: &[Flag::Admin],
        bound: "one write to the disk, which is waited for",
        ..command(
            "SAVE",
            Group::Server,
            "Replies when everything is on disk.",
            Action::Plain(server::save),
        )
    },
    Command {
        arguments: &[
            Argument::new("cursor", Kind::Integer),
            Argument::new("pattern", Kind::Pattern).after("MATCH"),
            Argument::new("count", Kind::Integer).after("COUNT"),
            Argument::new("type", Kind::String).after("TYPE"),
        ],
        flags: READ_SLOWLY,
        complexity: "O(N log N) in the number of sets",
        bound: "all sets (`limits.sets` per host), each matched in linear time with a pattern of 1 KiB; off the threads that answer",
        ..command(
            "SCAN",
            Group::Generic,
            "Walks through the names of sets.",
            Action::Plain(keyspace::scan),
        )
    },
    Command {
        arguments: &[Argument::new("index", Kind::Integer)],
        ..command(
            "SELECT",
            Group::Connection,
            "Chooses a database, 0 to 15.",
            Action::Plain(connection::select),
        )
    },
    Command {
        arguments: &[STRING, Argument::new("value", Kind::String)],
        flags: WRITE,
        keys: Keys::First,
        bound: "1,024 strings of 1 KiB",
        ..command(
            "SET",
            Group::String,
            "Keeps a short string in memory, for tests that need a key that is no filter.",
            Action::Filter(strings::set),
        )
    },
    command(
        "TIME",
        Group::Server,
        "Seconds since 1970 and microseconds, by this host's clock.",
        Action::Plain(server::time),
    ),
    Command {
        arguments: &[SET],
        flags: READ,
        keys: Keys::First,
        ..command(
            "TTL",
            Group::Generic,
            "Replies -1 if there is such a set, since no set expires, or else -2.",
            Action::Plain(keyspace::time_to_live),
        )
    },
    Command {
        arguments: &[SET],
        flags: READ,
        keys: Keys::First,
        ..command(
            "TYPE",
            Group::Generic,
            "The type of a key: MBbloom--, MBbloomCF, umbel, string or none.",
            Action::Plain(keyspace::kind),
        )
    },
    about_set(
        "UMBEL.ADD",
        &[SET, KEYS],
        WRITE,
        "Adds keys to this host's set; 1 for each that is new.",
        ["O(N) in the number of keys", PARTS],
        Action::Run(KeyOperation::Add, Form::Bits),
    ),
    about_set(
        "UMBEL.ADDEX",
        &[SET, Argument::new("seconds", Kind::String), KEYS],
        WRITE,
        "Adds keys that leave the set after some seconds; 1 for each that is new.",
        [
            "O(N) in the number of keys",
            "1,048,576 keys; in parts of 512, off the threads that answer",
        ],
        Action::Plain(sets::addex),
    ),
    about_set(
        "UMBEL.ANNOUNCE",
        &[SET, PREFIXES],
        WRITE,
        "Announces prefixes of names such as /a/b; 1 for each that is new.",
        ["O(N) in the number of prefixes", PREFIX_PARTS],
        Action::Plain(names::announce),
    ),
    Command {
        arguments: &[Argument::new("name", Kind::String).optional()],
        flags: &[Flag::Admin],
        complexity: "O(N) in the bytes of the catalogue",
        bound: "one at a time; on a thread of its own, while others read and write",
        ..command(
            "UMBEL.BACKUP",
            Group::Umbel,
            "Writes a backup of this host's keys into its directory of backups.",
            Action::Slow(sets::backup),
        )
    },
    about_set(
        "UMBEL.CHAIN",
        &[
            SET,
            Argument::new("step", Kind::Integer).after("STEP"),
            Argument::new("hosts", Kind::Integer).after("LIMIT"),
            KEYS,
        ],
        READ,
        "How many leading keys of a chain each host holds, from memory, the deepest first.",
        [
            "O(N) in the number of keys",
            "65,536 keys, a search of them in `limits.hosts` filters; from 512 keys on off the threads that answer",
        ],
        Action::Plain(chain::chain),
    ),
    about_set(
        "UMBEL.HAS",
        &[SET, KEYS],
        READ,
        "Which of the keys this host holds itself: exact.",
        ["O(N) in the number of keys", PARTS],
        Action::Run(KeyOperation::Has, Form::Bits),
    ),
    Command {
        arguments: &[Argument::new("command-name", Kind::String).optional()],
        complexity: "O(N) in the number of commands",
        bound: "the table of commands",
        ..command(
            "UMBEL.HELP",
            Group::Umbel,
            "How a command is called and what it does; without a name, umbel's own commands.",
            Action::Plain(describe::umbel_help),
        )
    },
    Command {
        flags: READ_SLOWLY,
        complexity: "O(N) in the number of hosts and their sets",
        bound: "`limits.hosts` and `limits.sets`; off the threads that answer",
        ..command(
            "UMBEL.HOSTS",
            Group::Umbel,
            "The hosts of the cluster, this one first.",
            Action::Plain(sets::hosts),
        )
    },
    about_set(
        "UMBEL.INFO",
        &[SET.optional()],
        READ_SLOWLY,
        "All about a set, or about this host.",
        [
            "O(N) in the bits of the set's filter",
            "`limits.filter_bits`; off the threads that answer",
        ],
        Action::Plain(sets::info),
    ),
    about_set(
        "UMBEL.KEYS",
        &[
            SET,
            Argument::new("cursor", Kind::String),
            Argument::new("count", Kind::Integer).after("COUNT"),
        ],
        READ_SLOWLY,
        "Walks through the keys that this host holds.",
        [
            "O(N) in the number of keys of a page",
            "100,000 keys or about 1 MiB of them, whichever comes first; off the threads that answer",
        ],
        Action::Plain(sets::keys),
    ),
    Command {
        arguments: &[Argument::new("seconds", Kind::String)],
        flags: &[Flag::Write, Flag::Admin],
        complexity: "O(N) in the number of changed bits of all sets",
        bound: "all own sets; off the threads that answer",
        ..command(
            "UMBEL.LEAVE",
            Group::Umbel,
            "Asks others to go on naming this host for some seconds after it has stopped.",
            Action::Plain(sets::leave),
        )
    },
    about_set(
        "UMBEL.LOCATE",
        &[
            SET,
            KEY,
            Argument::new("milliseconds", Kind::Integer).after("TIMEOUT"),
            Argument::new("hops", Kind::Integer).after("HOPS"),
            Argument::flag("with-path", "WITHPATH"),
        ],
        READ_SLOWLY,
        "The hosts that hold a key, each asked and confirmed; in an overlay by a routed query.",
        [
            "O(N) in the number of candidates, a round trip to them; in an overlay O(N) in the hosts on the way",
            "an hour of waiting (TIMEOUT); 64 at a time per connection",
        ],
        Action::Slow(sets::locate),
    ),
    about_set(
        "UMBEL.MATCH",
        &[
            SET,
            Argument::new("name", Kind::String),
            Argument::new("milliseconds", Kind::Integer).after("CONFIRM"),
        ],
        READ,
        "The longest announced prefix of a name and the hosts that announce it.",
        [
            "O(N) in the number of the name's components; with CONFIRM, a round trip to candidates",
            "64 components of 4 KiB together; CONFIRM waits for an hour at most",
        ],
        Action::Either(names::longest, names::confirm),
    ),
    about_set(
        "UMBEL.MISSING",
        &[SET, KEYS],
        READ_SLOWLY,
        "Those of the keys that no host holds, claims confirmed.",
        [
            "O(N) in the number of keys, a round trip to the candidates",
            "1,048,576 keys; waits as long as their bytes take",
        ],
        Action::Slow(sets::missing),
    ),
    about_set(
        "UMBEL.MISSINGPARTIAL",
        &[SET, KEYS],
        READ_SLOWLY,
        "As UMBEL.MISSING, and beside it the keys of which nobody can tell.",
        [
            "O(N) in the number of keys, a round trip to the candidates",
            "1,048,576 keys; waits as long as their bytes take",
        ],
        Action::Slow(sets::missing_partial),
    ),
    about_set(
        "UMBEL.POLICY",
        &[SET, Argument::new("policy", Kind::String).optional()],
        WRITE,
        "Sets when this host publishes a set, or says it.",
        ["O(1)", ONE_REQUEST],
        Action::Plain(sets::policy),
    ),
    about_set(
        "UMBEL.PUBLISH",
        &[SET],
        WRITE,
        "Publishes everything of a set now, clears included.",
        [
            "O(N) in the number of changed bits",
            "`limits.filter_bits`; done by the thread that publishes, not by the caller",
        ],
        Action::Plain(sets::publish),
    ),
    about_set(
        "UMBEL.REM",
        &[SET, KEYS],
        WRITE,
        "Removes keys from this host's set; 1 for each that was there.",
        ["O(N) in the number of keys", PARTS],
        Action::Run(KeyOperation::Remove, Form::Bits),
    ),
    about_set(
        "UMBEL.RESERVE",
        &[
            SET,
            Argument::new("false_positive", Kind::Double),
            Argument::new("capacity", Kind::Integer),
            Argument::new("hosts", Kind::Integer).after("HOSTS"),
            Argument::new("policy", Kind::String).after("POLICY"),
            Argument::new("seconds", Kind::String).after("LIFETIME"),
            Argument::new("how", Kind::String).after("CONFIRM"),
            Argument::new("step", Kind::Integer).after("CHAINS"),
        ],
        &[Flag::Write],
        "Makes a set for a rate per lookup and a number of keys, or gives it a new plan.",
        [
            "O(N) in the number of keys",
            "`limits.own_bytes` of memory; built in steps by the builder's thread",
        ],
        Action::Plain(sets::reserve),
    ),
    Command {
        flags: READ_SLOWLY,
        complexity: "O(N) in the number of sets",
        bound: ALL_SETS,
        ..command(
            "UMBEL.SETS",
            Group::Umbel,
            "The names of all sets, own and heard of.",
            Action::Plain(sets::sets),
        )
    },
    about_set(
        "UMBEL.WHO",
        &[SET, KEYS],
        READ,
        "For each key the hosts that may hold it, from memory, this one first.",
        [
            "O(N) in the number of keys",
            "1,048,576 keys, each asked of `limits.hosts` filters; in parts of 512, between which others have their turn",
        ],
        Action::Run(KeyOperation::Who, Form::Bits),
    ),
    about_set(
        "UMBEL.WITHDRAW",
        &[SET, PREFIXES],
        WRITE,
        "Takes back announced prefixes; 1 for each that was announced.",
        ["O(N) in the number of prefixes", PREFIX_PARTS],
        Action::Plain(names::withdraw),
    ),
    command(
        "UNWATCH",
        Group::Transactions,
        "Replies OK: nothing is watched.",
        Action::Plain(transactions::unwatch),
    ),
    Command {
        arguments: &[SET.multiple()],
        keys: Keys::All,
        ..command(
            "WATCH",
            Group::Transactions,
            "Refused: a transaction does not depend on what other clients do.",
            Action::Plain(transactions::watch),
        )
    },
];

const CLIENT: &[Command] = &[
    child(
        "CLIENT",
        Group::Connection,
        "GETNAME",
        &[],
        "The connection's name.",
        Action::Plain(connection::name),
    ),
    child(
        "CLIENT",
        Group::Connection,
        "ID",
        &[],
        "The connection's number.",
        Action::Plain(connection::id),
    ),
    child(
        "CLIENT",
        Group::Connection,
        "INFO",
        &[],
        "All about this connection.",
        Action::Plain(connection::info),
    ),
    Command {
        complexity: "O(N) in the number of connections",
        bound: "`limits.connections`",
        ..child(
            "CLIENT",
            Group::Connection,
            "LIST",
            &[],
            "All about all connections.",
            Action::Plain(connection::list),
        )
    },
    child(
        "CLIENT",
        Group::Connection,
        "SETINFO",
        &[Argument::new("attribute", Kind::String), Argument::new("value", Kind::String)],
        "Tells the client's library: LIB-NAME or LIB-VER.",
        Action::Plain(connection::set_info),
    ),
    child(
        "CLIENT",
        Group::Connection,
        "SETNAME",
        &[Argument::new("name", Kind::String)],
        "Names the connection.",
        Action::Plain(connection::set_name),
    ),
];

const NAMES: &[Argument] =
    &[Argument::new("command-name", Kind::String).at_most(MAX_NAMES).optional()];

const COMMAND: &[Command] = &[
    child(
        "COMMAND",
        Group::Server,
        "COUNT",
        &[],
        "How many commands there are.",
        Action::Plain(describe::count),
    ),
    Command {
        complexity: "O(N) in the number of commands",
        bound: "128 names",
        ..child(
            "COMMAND",
            Group::Server,
            "DOCS",
            NAMES,
            "Commands described for people.",
            Action::Plain(describe::docs),
        )
    },
    Command {
        complexity: "O(N) in the number of commands",
        bound: "128 names",
        ..child(
            "COMMAND",
            Group::Server,
            "INFO",
            NAMES,
            "Commands described for clients.",
            Action::Plain(describe::info),
        )
    },
    Command {
        complexity: "O(N) in the number of commands",
        bound: "a pattern of 1 KiB",
        ..child(
            "COMMAND",
            Group::Server,
            "LIST",
            &[Argument::new("pattern", Kind::Pattern).after("FILTERBY PATTERN")],
            "The names of the commands.",
            Action::Plain(describe::list),
        )
    },
];

const DEBUG: &[Command] = &[Command {
    bound: "one write to the disk, which is waited for",
    ..child(
        "DEBUG",
        Group::Server,
        "RELOAD",
        &[],
        "Replies when everything that is kept on disk is there.",
        Action::Plain(server::reload),
    )
}];

const CONFIG: &[Command] = &[Command {
    complexity: "O(N) in the number of patterns",
    bound: "128 patterns of 1 KiB",
    ..child(
        "CONFIG",
        Group::Server,
        "GET",
        &[Argument::new("parameter", Kind::Pattern).at_most(MAX_NAMES)],
        "Settings whose names fit a pattern.",
        Action::Plain(about::config_get),
    )
}];
