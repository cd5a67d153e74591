//! The table of the filter commands, with RedisBloom's names.

use super::super::{
    Action, Argument, Command, FilterHandler, Flag, Form, Group, KeyOperation, Keys, Kind,
};
use super::{bloom, cuckoo, dump};
use crate::host::FilterType;

const KEY: Argument = Argument::new("key", Kind::Key);
const ITEM: Argument = Argument::new("item", Kind::String);
const ITEMS: Argument = ITEM.multiple();
const CAPACITY: Argument = Argument::new("capacity", Kind::Integer);
const EXPANSION: Argument = Argument::new("expansion", Kind::Integer).after("EXPANSION");
const NO_CREATE: Argument = Argument::flag("nocreate", "NOCREATE");
const NON_SCALING: Argument = Argument::flag("nonscaling", "NONSCALING");
const CURSOR: Argument = Argument::new("iterator", Kind::Integer);
const READ: &[Flag] = &[Flag::ReadOnly, Flag::Fast];
const WRITE: &[Flag] = &[Flag::Write];

const ONE: [&str; 2] = ["O(1)", "one request"];
const RESERVED: [&str; 2] =
    ["O(1)", "room for 1,000,000 keys, within `limits.own_bytes` of memory"];
const RUN: [&str; 2] = [
    "O(N) in the number of items",
    "1,048,576 items; in parts of 512, between which others have their turn",
];
const PARTS: [&str; 2] = [
    "O(N) in the number of items",
    "1,048,576 items; in parts of 512, off the threads that answer",
];
const CHUNK: [&str; 2] =
    ["O(N) in the number of keys of a chunk", "768 KiB of keys; off the threads that answer"];
const LOADED: [&str; 2] = [
    "O(N) in the number of keys of a chunk",
    "1 MiB of keys; in parts of 512, off the threads that answer",
];

const INSERT_BLOOM: &[Argument] = &[
    KEY,
    CAPACITY.after("CAPACITY"),
    Argument::new("error", Kind::Double).after("ERROR"),
    EXPANSION,
    NO_CREATE,
    NON_SCALING,
    ITEMS.named("ITEMS"),
];
const INSERT_CUCKOO: &[Argument] =
    &[KEY, CAPACITY.after("CAPACITY"), NO_CREATE, ITEMS.named("ITEMS")];
const LOAD: &[Argument] = &[KEY, CURSOR, Argument::new("data", Kind::String)];

/// A command about a filter.
const fn of(
    (group, name): (Group, &'static str),
    arguments: &'static [Argument],
    flags: &'static [Flag],
    summary: &'static str,
    [complexity, bound]: [&'static str; 2],
    action: Action,
) -> Command {
    Command {
        name,
        parent: None,
        arguments,
        flags,
        keys: Keys::First,
        group,
        summary,
        complexity,
        bound,
        action,
    }
}

const fn bf(name: &'static str) -> (Group, &'static str) {
    (Group::Bloom, name)
}

const fn cf(name: &'static str) -> (Group, &'static str) {
    (Group::Cuckoo, name)
}

const fn plain(handler: FilterHandler) -> Action {
    Action::Filter(handler)
}

const HAS_IN_BLOOM: KeyOperation = KeyOperation::HasInFilter(FilterType::Bloom);
const HAS_IN_CUCKOO: KeyOperation = KeyOperation::HasInFilter(FilterType::Cuckoo);

/// All filter commands, sorted by name.
pub(in super::super) static TABLE: &[Command] = &[
    of(
        bf("BF.ADD"),
        &[KEY, ITEM],
        WRITE,
        "Adds an item to a Bloom filter, which is made if there is none.",
        ONE,
        Action::Run(KeyOperation::AddToBloom, Form::Flag),
    ),
    of(
        bf("BF.CARD"),
        &[KEY],
        READ,
        "How many items a Bloom filter holds.",
        ONE,
        plain(bloom::card),
    ),
    of(
        bf("BF.DEBUG"),
        &[KEY],
        READ,
        "The numbers of a Bloom filter as lines of text.",
        ONE,
        plain(bloom::debug),
    ),
    of(
        bf("BF.EXISTS"),
        &[KEY, ITEM],
        READ,
        "Whether this host's Bloom filter holds an item: exact.",
        ONE,
        Action::Run(HAS_IN_BLOOM, Form::Flag),
    ),
    of(
        bf("BF.INFO"),
        &[KEY, Argument::new("field", Kind::String).optional()],
        READ,
        "Capacity, size, filters, items and expansion of a Bloom filter.",
        ONE,
        plain(bloom::info),
    ),
    of(
        bf("BF.INSERT"),
        INSERT_BLOOM,
        WRITE,
        "Adds items to a Bloom filter, which is made with these options if there is none.",
        PARTS,
        plain(bloom::insert),
    ),
    of(
        bf("BF.LOADCHUNK"),
        LOAD,
        WRITE,
        "Loads what BF.SCANDUMP of an umbel host replied.",
        LOADED,
        plain(dump::load_bloom),
    ),
    of(
        bf("BF.MADD"),
        &[KEY, ITEMS],
        WRITE,
        "Adds items to a Bloom filter, which is made if there is none.",
        RUN,
        Action::Run(KeyOperation::AddToBloom, Form::Flags),
    ),
    of(
        bf("BF.MEXISTS"),
        &[KEY, ITEMS],
        READ,
        "Which items this host's Bloom filter holds: exact.",
        RUN,
        Action::Run(HAS_IN_BLOOM, Form::Flags),
    ),
    of(
        bf("BF.RESERVE"),
        &[KEY, Argument::new("error_rate", Kind::Double), CAPACITY, EXPANSION, NON_SCALING],
        WRITE,
        "Makes a Bloom filter.",
        RESERVED,
        plain(bloom::reserve),
    ),
    of(
        bf("BF.SCANDUMP"),
        &[KEY, CURSOR],
        READ,
        "Dumps a Bloom filter chunk by chunk, for BF.LOADCHUNK of an umbel host.",
        CHUNK,
        plain(dump::scan_bloom),
    ),
    of(
        cf("CF.ADD"),
        &[KEY, ITEM],
        WRITE,
        "Adds an item to a cuckoo filter once more; the filter is made if there is none.",
        ONE,
        plain(cuckoo::add),
    ),
    of(
        cf("CF.ADDNX"),
        &[KEY, ITEM],
        WRITE,
        "Adds an item to a cuckoo filter unless it is there.",
        ONE,
        plain(cuckoo::add_new),
    ),
    of(
        cf("CF.COMPACT"),
        &[KEY],
        WRITE,
        "Does nothing: a set of umbel needs no compaction.",
        ONE,
        plain(cuckoo::compact),
    ),
    of(
        cf("CF.COUNT"),
        &[KEY, ITEM],
        READ,
        "How often an item was added: exact.",
        ONE,
        plain(cuckoo::count),
    ),
    of(
        cf("CF.DEBUG"),
        &[KEY],
        READ,
        "The numbers of a cuckoo filter as a line of text.",
        ONE,
        plain(cuckoo::debug),
    ),
    of(
        cf("CF.DEL"),
        &[KEY, ITEM],
        WRITE,
        "Removes an item of a cuckoo filter once.",
        ONE,
        plain(cuckoo::del),
    ),
    of(
        cf("CF.EXISTS"),
        &[KEY, ITEM],
        READ,
        "Whether this host's cuckoo filter holds an item: exact.",
        ONE,
        Action::Run(HAS_IN_CUCKOO, Form::Flag),
    ),
    of(
        cf("CF.INFO"),
        &[KEY],
        READ,
        "Size, buckets, filters, items and options of a cuckoo filter.",
        ONE,
        plain(cuckoo::info),
    ),
    of(
        cf("CF.INSERT"),
        INSERT_CUCKOO,
        WRITE,
        "Adds items to a cuckoo filter once more each.",
        PARTS,
        plain(cuckoo::insert),
    ),
    of(
        cf("CF.INSERTNX"),
        INSERT_CUCKOO,
        WRITE,
        "Adds those items to a cuckoo filter that are not there.",
        PARTS,
        plain(cuckoo::insert_new),
    ),
    of(
        cf("CF.LOADCHUNK"),
        LOAD,
        WRITE,
        "Loads what CF.SCANDUMP of an umbel host replied.",
        LOADED,
        plain(dump::load_cuckoo),
    ),
    of(
        cf("CF.MEXISTS"),
        &[KEY, ITEMS],
        READ,
        "Which items this host's cuckoo filter holds: exact.",
        RUN,
        Action::Run(HAS_IN_CUCKOO, Form::Flags),
    ),
    of(
        cf("CF.RESERVE"),
        &[
            KEY,
            CAPACITY,
            Argument::new("bucketsize", Kind::Integer).after("BUCKETSIZE"),
            Argument::new("maxiterations", Kind::Integer).after("MAXITERATIONS"),
            EXPANSION,
        ],
        WRITE,
        "Makes a cuckoo filter.",
        RESERVED,
        plain(cuckoo::reserve),
    ),
    of(
        cf("CF.SCANDUMP"),
        &[KEY, CURSOR],
        READ,
        "Dumps a cuckoo filter chunk by chunk, for CF.LOADCHUNK of an umbel host.",
        CHUNK,
        plain(dump::scan_cuckoo),
    ),
];
