//! Redis's Bloom and cuckoo commands from outside, byte by byte.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;
use umbel_node::{Host, LocalNetwork};

use crate::resp::{Port, array, ask};

/// What is wrong with a request, in RedisBloom's words where it has some.
const BAD_INPUT: &[(&str, &str)] = &[
    ("BF.ADD f", "ERR wrong number of arguments for 'bf.add' command"),
    ("BF.ADD f a b", "ERR wrong number of arguments for 'bf.add' command"),
    ("BF.MADD f", "ERR wrong number of arguments for 'bf.madd' command"),
    ("BF.EXISTS f a b", "ERR wrong number of arguments for 'bf.exists' command"),
    ("BF.ADD f \"\"", "ERR a key has 1 to 32768 bytes, not 0"),
    ("BF.MADD f a \"\"", "ERR a key has 1 to 32768 bytes, not 0"),
    (
        "BF.ADD \"a b\" x",
        "ERR a set's name has 1 to 255 bytes of printable text without spaces and direction marks",
    ),
    ("BF.ADD \"\\xff\" x", "ERR the name of a set must be UTF-8"),
    ("BF.CARD \"\\xff\"", "ERR the name of a set must be UTF-8"),
    ("BF.RESERVE f 0.1", "ERR wrong number of arguments for 'bf.reserve' command"),
    ("BF.RESERVE f x 10", "ERR bad error rate"),
    ("BF.RESERVE f nan 10", "ERR bad error rate"),
    ("BF.RESERVE f 0 10", "ERR error rate must be in the range (0.000000, 1.000000)"),
    ("BF.RESERVE f 1 10", "ERR error rate must be in the range (0.000000, 1.000000)"),
    ("BF.RESERVE f inf 10", "ERR error rate must be in the range (0.000000, 1.000000)"),
    ("BF.RESERVE f 0.1 x", "ERR bad capacity"),
    ("BF.RESERVE f 0.1 007", "ERR bad capacity"),
    ("BF.RESERVE f 0.1 0", "ERR capacity must be in the range [1, 1073741824]"),
    ("BF.RESERVE f 0.1 1073741825", "ERR capacity must be in the range [1, 1073741824]"),
    ("BF.RESERVE f 0.1 10 EXPANSION", "ERR no expansion"),
    ("BF.RESERVE f 0.1 10 EXPANSION x", "ERR bad expansion"),
    ("BF.RESERVE f 0.1 10 EXPANSION -1", "ERR expansion must be in the range [0, 32768]"),
    ("BF.RESERVE f 0.1 10 EXPANSION 32769", "ERR expansion must be in the range [0, 32768]"),
    ("BF.RESERVE f 0.1 10 EXPANSION 2 NONSCALING", "Nonscaling filters cannot expand"),
    ("BF.RESERVE f 0.1 10 NONSCALING EXPANSION 2", "Nonscaling filters cannot expand"),
    ("BF.RESERVE f 0.1 10 COLOUR", "Unknown argument received"),
    ("BF.RESERVE f 0.1 10 SEED 7", "Unknown argument received"),
    ("BF.INSERT f", "ERR wrong number of arguments for 'bf.insert' command"),
    ("BF.INSERT f ITEMS", "ERR wrong number of arguments for 'bf.insert' command"),
    ("BF.INSERT f CAPACITY 10", "ERR wrong number of arguments for 'bf.insert' command"),
    ("BF.INSERT f NOCREATE CAPACITY", "ERR wrong number of arguments for 'bf.insert' command"),
    ("BF.INSERT f COLOUR red ITEMS a", "Unknown argument received"),
    ("BF.INSERT f NOCREATE ITEMS a", "ERR not found"),
    ("BF.INSERT f CAPACITY x ITEMS a", "Bad capacity"),
    ("BF.INSERT f ERROR x ITEMS a", "Bad error rate"),
    ("BF.INSERT f EXPANSION x ITEMS a", "Bad expansion"),
    // RedisBloom has one text each for what is no number and what is outside the range.
    ("BF.INSERT f CAPACITY 0 ITEMS a", "Bad capacity"),
    ("BF.INSERT f CAPACITY 1073741825 ITEMS a", "Bad capacity"),
    ("BF.INSERT f ERROR 0 ITEMS a", "Bad error rate"),
    ("BF.INSERT f ERROR 1 ITEMS a", "Bad error rate"),
    ("BF.INSERT f ERROR nan ITEMS a", "Bad error rate"),
    ("BF.INSERT f EXPANSION -1 ITEMS a", "Bad expansion"),
    ("BF.INSERT f EXPANSION 32769 ITEMS a", "Bad expansion"),
    ("BF.INSERT f ITEMS a \"\"", "ERR a key has 1 to 32768 bytes, not 0"),
    ("BF.INFO f", "ERR not found"),
    ("BF.DEBUG f", "ERR not found"),
    ("BF.SCANDUMP f 0", "ERR not found"),
    ("BF.LOADCHUNK f x data", "ERR Second argument must be numeric"),
    ("BF.LOADCHUNK f 1 data", "ERR received bad data"),
    ("BF.LOADCHUNK f 2 data", "ERR not found"),
    ("CF.ADD f", "ERR wrong number of arguments for 'cf.add' command"),
    ("CF.ADD f \"\"", "ERR a key has 1 to 32768 bytes, not 0"),
    ("CF.RESERVE f x", "Bad capacity"),
    ("CF.RESERVE f 3", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    ("CF.RESERVE f 1073741825", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    ("CF.RESERVE f 7 BUCKETSIZE 4", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    ("CF.RESERVE f 100 BUCKETSIZE", "ERR wrong number of arguments for 'cf.reserve' command"),
    ("CF.RESERVE f 100 BUCKETSIZE x", "Couldn't parse BUCKETSIZE"),
    ("CF.RESERVE f 100 BUCKETSIZE 256", "BUCKETSIZE: value must be in the range [1, 255]"),
    ("CF.RESERVE f 100 MAXITERATIONS 0", "MAXITERATIONS: value must be in the range [1, 65535]"),
    ("CF.RESERVE f 100 EXPANSION -1", "EXPANSION: value must be in the range [0, 32768]"),
    ("CF.RESERVE f 100 COLOUR 1", "Unknown argument received"),
    ("CF.INSERT f ITEMS", "ERR wrong number of arguments for 'cf.insert' command"),
    ("CF.INSERT f COLOUR red", "Unknown argument received"),
    ("CF.INSERT f NOCREATE ITEMS a", "ERR not found"),
    ("CF.INSERTNX f CAPACITY x ITEMS a", "Bad capacity"),
    (
        "CF.INSERTNX f CAPACITY 3 ITEMS a",
        "Capacity must be in the range [cf-bucket-size * 2, 1073741824]",
    ),
    (
        "CF.INSERT f CAPACITY 1073741825 ITEMS a",
        "Capacity must be in the range [cf-bucket-size * 2, 1073741824]",
    ),
    ("CF.DEL f a", "Not found"),
    ("CF.INFO f", "ERR not found"),
    ("CF.COMPACT f", "Cuckoo filter was not found"),
    ("CF.SCANDUMP f 0", "ERR not found"),
    ("CF.SCANDUMP f x", "Invalid position"),
    ("CF.SCANDUMP f -1", "Invalid position"),
    ("CF.LOADCHUNK f x data", "Invalid position"),
    ("CF.LOADCHUNK f 0 data", "Invalid position"),
    ("CF.LOADCHUNK f 1 data", "Invalid header"),
    ("CF.LOADCHUNK f 2 data", "ERR not found"),
    ("BF.LOADCHUNK f 1 data", "ERR received bad data"),
    ("FLUSHALL NOW", "ERR syntax error"),
    ("SELECT 16", "ERR DB index is out of range: there are 0 to 15"),
    ("SELECT -1", "ERR DB index is out of range: there are 0 to 15"),
    ("SAVE", "ERR this host keeps its keys in memory: it has no folder to save them in"),
    (
        "CMS.INITBYDIM f 10 5",
        "ERR 'CMS.INITBYDIM' is not supported: umbel holds sets of keys, and no count-min sketches",
    ),
    (
        "topk.reserve f 5",
        "ERR 'topk.reserve' is not supported: umbel holds sets of keys, and no top-k lists",
    ),
    (
        "TDIGEST.CREATE f",
        "ERR 'TDIGEST.CREATE' is not supported: umbel holds sets of keys, and no t-digests",
    ),
    (
        "DUMP f",
        "ERR 'DUMP' is not supported: BF.SCANDUMP and CF.SCANDUMP dump a filter, LOADCHUNK loads it",
    ),
    (
        "RESTORE f 0 data",
        "ERR 'RESTORE' is not supported: BF.SCANDUMP and CF.SCANDUMP dump a filter, LOADCHUNK loads it",
    ),
    (
        "EXPIRE f 60",
        "ERR 'EXPIRE' is not supported: a set does not expire; its keys do, by UMBEL.ADDEX or UMBEL.RESERVE with LIFETIME",
    ),
    (
        "rename f g",
        "ERR 'rename' is not supported: other hosts know a set by its name; add its keys to another set",
    ),
    ("EXEC", "ERR EXEC without MULTI"),
    ("DISCARD", "ERR DISCARD without MULTI"),
    (
        "WATCH f",
        "ERR 'WATCH' is not supported: commands of other clients may run between those of a transaction. \
         Adding and removing keys need no WATCH: their replies say whether something changed",
    ),
];

#[test]
fn bad_input_gets_a_line_and_changes_nothing() {
    let port = Port::open();
    for (request, expected) in BAD_INPUT {
        let reply = port.ask(format!("{request}\r\nDBSIZE\r\n").as_bytes());
        assert_eq!(reply, format!("-{expected}\r\n:0\r\n"), "{request}");
    }
}

/// Each command's reply in RESP2 and in RESP3, in the order in which they are sent.
fn check(port: &Port, transcript: &[(&str, &str, &str)]) {
    for (place, (command, _, _)) in transcript.iter().enumerate() {
        let before: String =
            transcript[..place].iter().map(|(command, ..)| format!("{command}\r\n")).collect();
        for (protocol, expected) in [("2", transcript[place].1), ("3", transcript[place].2)] {
            port.ask(format!("FLUSHALL\r\n{before}").as_bytes());
            let reply = port.ask(format!("HELLO {protocol}\r\nPING\r\n{command}\r\n").as_bytes());
            let (_, reply) = reply.split_once("+PONG\r\n").expect("in a test");
            assert_eq!(reply.replace("\r\n", " "), format!("{expected} "), "{command}");
        }
    }
}

#[test]
fn bloom_filters_reply_as_each_protocol_says() {
    check(
        &Port::open(),
        &[
            ("BF.EXISTS f a", ":0", "#f"),
            ("BF.MEXISTS f a b", "*2 :0 :0", "*2 #f #f"),
            ("BF.CARD f", ":0", ":0"),
            ("BF.ADD f a", ":1", "#t"),
            ("BF.ADD f a", ":0", "#f"),
            ("BF.MADD f a b", "*2 :0 :1", "*2 #f #t"),
            ("BF.EXISTS f a", ":1", "#t"),
            ("BF.MEXISTS f a c b", "*3 :1 :0 :1", "*3 #t #f #t"),
            ("BF.CARD f", ":2", ":2"),
            ("BF.RESERVE f 0.01 100", "-ERR item exists", "-ERR item exists"),
            ("BF.INFO f CAPACITY", "*1 :100", "%1 +Capacity :100"),
            ("BF.INFO f filters", "*1 :1", "%1 +Number of filters :1"),
            ("BF.INFO f ITEMS", "*1 :2", "%1 +Number of items inserted :2"),
            ("BF.INFO f EXPANSION", "*1 :2", "%1 +Expansion rate :2"),
            ("BF.INFO f COLOUR", "-Invalid information value", "-Invalid information value"),
            ("BF.RESERVE n 0.01 2 NONSCALING", "+OK", "+OK"),
            ("BF.INFO n EXPANSION", "*1 $-1", "%1 +Expansion rate _"),
            ("BF.RESERVE z 0.01 2 EXPANSION 0", "+OK", "+OK"),
            ("BF.INFO z EXPANSION", "*1 $-1", "%1 +Expansion rate _"),
            ("BF.RESERVE y 0.01 2 NONSCALING EXPANSION 0", "+OK", "+OK"),
            ("BF.INFO y EXPANSION", "*1 $-1", "%1 +Expansion rate _"),
            ("BF.INSERT x NONSCALING EXPANSION 2 ITEMS a", "*1 :1", "*1 #t"),
            ("BF.INFO x EXPANSION", "*1 $-1", "%1 +Expansion rate _"),
            ("BF.INSERT w EXPANSION 0 ITEMS a", "*1 :1", "*1 #t"),
            ("BF.INFO w EXPANSION", "*1 $-1", "%1 +Expansion rate _"),
            (
                "BF.INSERT i CAPACITY 2 EXPANSION 4 ITEMS ITEMS b b c",
                "*4 :1 :1 :0 :1",
                "*4 #t #t #f #t",
            ),
            ("BF.INFO i CAPACITY", "*1 :10", "%1 +Capacity :10"),
            ("BF.INFO i FILTERS", "*1 :2", "%1 +Number of filters :2"),
            ("BF.INSERT i NOCREATE ITEMS d", "*1 :1", "*1 #t"),
            ("BF.INSERT j ERROR 0.1 CAPACITY 7 ITEMS a", "*1 :1", "*1 #t"),
            ("BF.INFO j CAPACITY", "*1 :7", "%1 +Capacity :7"),
            ("TYPE f", "+MBbloom--", "+MBbloom--"),
            ("TYPE none", "+none", "+none"),
        ],
    );
}

#[test]
fn cuckoo_filters_reply_as_each_protocol_says() {
    let info = "+Number of buckets :512 +Number of filters :1 +Number of items inserted :3 \
                +Number of items deleted :1 +Bucket size :2 +Expansion rate :1 +Max iterations :20";
    let port = Port::open();
    check(
        &port,
        &[
            ("CF.EXISTS f a", ":0", "#f"),
            ("CF.COUNT f a", ":0", ":0"),
            ("CF.ADD f a", ":1", "#t"),
            ("CF.ADD f a", ":1", "#t"),
            ("CF.COUNT f a", ":2", ":2"),
            ("CF.ADDNX f a", ":0", "#f"),
            ("CF.ADDNX f b", ":1", "#t"),
            ("CF.MEXISTS f a c", "*2 :1 :0", "*2 #t #f"),
            ("CF.DEL f c", ":0", "#f"),
            ("CF.DEL f a", ":1", "#t"),
            ("CF.COUNT f a", ":1", ":1"),
            ("CF.INSERT f ITEMS a c", "*2 :1 :1", "*2 #t #t"),
            ("CF.INSERTNX f ITEMS a d", "*2 :0 :1", "*2 :0 :1"),
            ("CF.COMPACT f", "+OK", "+OK"),
            ("CF.RESERVE f 1000", "-ERR item exists", "-ERR item exists"),
            ("CF.RESERVE g 8 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 0", "+OK", "+OK"),
            (
                "CF.DEBUG g",
                "$77 bktsize:4 buckets:2 items:0 deletes:0 filters:1 max_iterations:10 expansion:0",
                "$77 bktsize:4 buckets:2 items:0 deletes:0 filters:1 max_iterations:10 expansion:0",
            ),
            ("TYPE f", "+MBbloomCF", "+MBbloomCF"),
        ],
    );
    port.ask(b"FLUSHALL\r\nCF.INSERT f ITEMS a a b c\r\nCF.DEL f a\r\n");
    let reply = port.ask(b"CF.INFO f\r\n").replace("\r\n", " ");
    assert!(reply.starts_with("*16 +Size :") && reply.contains(info), "{reply}");
    let reply = port.ask(b"HELLO 3\r\nCF.INFO f\r\n").replace("\r\n", " ");
    assert!(reply.contains(" %8 +Size :") && reply.contains(info), "{reply}");
}

#[test]
fn a_full_filter_refuses_new_items_and_no_others() {
    const FULL: &str = "-ERR non scaling filter is full\r\n";
    let port = Port::open();
    let ask = |text: &str| port.ask(text.as_bytes());
    assert_eq!(ask("BF.RESERVE f 0.01 3 NONSCALING\r\nBF.ADD f a\r\n"), "+OK\r\n:1\r\n");
    // The error stands in the array and ends it; what comes after it in the command is not added.
    let reply = ask("BF.MADD f a b b c d e a\r\n");
    assert_eq!(reply, format!("*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n{FULL}"));
    // Later commands of a pipeline are executed: items that are there fit.
    let reply =
        ask("BF.ADD f d\r\nBF.ADD f a\r\nBF.MADD f b d c\r\nBF.EXISTS f d\r\nBF.CARD f\r\n");
    assert_eq!(reply, format!("{FULL}:0\r\n*2\r\n:0\r\n{FULL}:0\r\n:3\r\n"));
    let reply = ask("BF.INSERT f ITEMS a x b\r\n");
    assert_eq!(reply, format!("*2\r\n:0\r\n{FULL}"));
    // There is room again after a removal.
    assert_eq!(ask("UMBEL.REM f a\r\nBF.ADD f d\r\n"), "*1\r\n:1\r\n:1\r\n");
    // So in a command that is executed in parts.
    let keys: Vec<String> = (0..2000).map(|key| key.to_string()).collect();
    for name in ["BF.MADD large", "BF.INSERT large ITEMS"] {
        ask("DEL large\r\nBF.RESERVE large 0.01 1500 NONSCALING\r\n");
        let words: Vec<&str> = name.split(' ').chain(keys.iter().map(String::as_str)).collect();
        let reply = port.ask(&array(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()));
        assert_eq!(reply, format!("*1501\r\n{}{FULL}", ":1\r\n".repeat(1500)), "{name}");
        assert_eq!(ask("BF.CARD large\r\nBF.EXISTS large 1500\r\n"), ":1500\r\n:0\r\n");
    }
}

#[test]
fn a_full_cuckoo_filter_refuses_items() {
    let port = Port::open();
    let ask = |text: &str| port.ask(text.as_bytes());
    assert_eq!(
        ask("CF.RESERVE f 4 EXPANSION 0\r\nCF.INSERT f ITEMS a a b\r\n"),
        "+OK\r\n*3\r\n:1\r\n:1\r\n:1\r\n"
    );
    assert_eq!(ask("CF.INSERTNX f ITEMS a c d\r\n"), "*3\r\n:0\r\n:1\r\n:-1\r\n");
    assert_eq!(
        ask("CF.INSERT f ITEMS a\r\nCF.ADD f a\r\nCF.ADDNX f a\r\n"),
        "*1\r\n:-1\r\n-Filter is full\r\n:0\r\n"
    );
    assert!(ask("HELLO 3\r\nCF.INSERT f ITEMS a\r\n").ends_with("*1\r\n#f\r\n"));
    assert_eq!(ask("CF.DEL f a\r\nCF.ADD f d\r\nCF.COUNT f a\r\n"), ":1\r\n:1\r\n:1\r\n");
    // One that grows takes items until it has 32 filters, as RedisBloom's. The command that adds
    // the 32nd is executed to its end, in however many parts.
    const REFUSED: &str = "-Maximum expansions reached\r\n";
    let items = |count: u32| (0..count).map(|key| format!(" {key}")).collect::<String>();
    let first = format!("CF.INSERT g CAPACITY 4 ITEMS{}\r\nCF.ADD g more\r\n", items(31 * 4));
    let reply = ask(&format!("{first}CF.ADD g x\r\nCF.ADDNX g more\r\nCF.INSERT g ITEMS x\r\n"));
    assert_eq!(reply, format!("*124\r\n{}{}", ":1\r\n".repeat(125), REFUSED.repeat(3)));
    let large = format!("CF.INSERT h CAPACITY 4 ITEMS{}\r\nCF.ADD h x\r\n", items(2000));
    assert_eq!(ask(&large), format!("*2000\r\n{}{REFUSED}", ":1\r\n".repeat(2000)));
}

#[test]
fn keys_of_another_type_are_refused_and_unchanged() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    let port = Port::open();
    let ask = |text: &str| port.ask(format!("{text}\r\n").as_bytes());
    assert_eq!(
        ask("SET s value\r\nBF.ADD b a\r\nCF.ADD c a\r\nUMBEL.ADD u a"),
        "+OK\r\n:1\r\n:1\r\n*1\r\n:1\r\n"
    );
    for key in ["s", "c"] {
        for command in [
            "BF.ADD _ x",
            "BF.MADD _ x y",
            "BF.INSERT _ ITEMS x",
            "BF.INFO _",
            "BF.CARD _",
            "BF.DEBUG _",
            "BF.RESERVE _ 0.1 10",
            "BF.SCANDUMP _ 0",
            "BF.LOADCHUNK _ 2 x",
        ] {
            assert_eq!(ask(&command.replace('_', key)), WRONG, "{command} of {key}");
        }
        assert_eq!(ask(&format!("BF.EXISTS {key} a\r\nBF.MEXISTS {key} a")), ":0\r\n*1\r\n:0\r\n");
    }
    for key in ["s", "b", "u"] {
        for command in [
            "CF.ADD _ x",
            "CF.ADDNX _ x",
            "CF.INSERT _ ITEMS x",
            "CF.INFO _",
            "CF.RESERVE _ 10",
            "CF.SCANDUMP _ 0",
            "CF.LOADCHUNK _ 2 x",
        ] {
            assert_eq!(ask(&command.replace('_', key)), WRONG, "{command} of {key}");
        }
        assert_eq!(
            ask(&format!("CF.EXISTS {key} a\r\nCF.COUNT {key} a\r\nCF.DEL {key} a")),
            ":0\r\n:0\r\n-Not found\r\n"
        );
    }
    assert_eq!(
        ask("GET b\r\nGET s\r\nGET none\r\nTYPE s\r\nEXISTS s b none"),
        format!("{WRONG}$5\r\nvalue\r\n$-1\r\n+string\r\n:2\r\n")
    );
    assert_eq!(ask("SET b x"), "-ERR this key is a set of this host: delete it first\r\n");
    assert_eq!(
        ask("BF.CARD b\r\nCF.COUNT c a\r\nDEL s b\r\nTYPE s"),
        ":1\r\n:1\r\n:2\r\n+none\r\n"
    );
    // A set that was made otherwise is a Bloom filter that grows.
    assert_eq!(
        ask("BF.EXISTS u a\r\nBF.ADD u b\r\nBF.CARD u\r\nBF.INFO u EXPANSION\r\nTYPE u"),
        ":1\r\n:1\r\n:2\r\n*1\r\n:2\r\n+umbel\r\n"
    );
}

#[test]
fn databases_have_keys_of_their_own() {
    let port = Port::open();
    let ask = |text: &str| port.ask(format!("{text}\r\n").as_bytes());
    let reply = ask(
        "BF.ADD k a\r\nSELECT 3\r\nBF.EXISTS k a\r\nBF.ADD k b\r\nCF.ADD c x\r\nSET s 1\r\nDBSIZE\r\nEXISTS k c s\r\nCLIENT INFO",
    );
    assert!(reply.starts_with(":1\r\n+OK\r\n:0\r\n:1\r\n:1\r\n+OK\r\n:2\r\n:3\r\n"), "{reply}");
    assert!(reply.contains(" db=3 "), "{reply}");
    assert_eq!(
        ask("BF.EXISTS k b\r\nGET s\r\nDBSIZE"),
        ":0\r\n$-1\r\n:1\r\n",
        "a new connection is in database 0"
    );
    assert_eq!(ask("UMBEL.HAS @3:k b\r\nTYPE @3:c"), "*1\r\n:1\r\n+MBbloomCF\r\n");
    let scan = |database: &str, more: &str| ask(&format!("SELECT {database}\r\nSCAN 0{more}"));
    assert_eq!(scan("0", ""), "+OK\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n");
    assert_eq!(scan("3", " TYPE MBbloomCF"), "+OK\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nc\r\n");
    let keyspace = ask("INFO keyspace");
    assert!(keyspace.contains("db0:keys=1,") && keyspace.contains("db3:keys=2,"), "{keyspace}");
    assert_eq!(
        ask("SELECT 3\r\nFLUSHDB\r\nDBSIZE\r\nGET s\r\nRESET\r\nDBSIZE"),
        "+OK\r\n+OK\r\n:0\r\n$-1\r\n+RESET\r\n:1\r\n"
    );
    assert_eq!(
        ask("SELECT 1\r\nBF.ADD k a\r\nFLUSHALL ASYNC\r\nSELECT 0\r\nDBSIZE"),
        "+OK\r\n:1\r\n+OK\r\n+OK\r\n:0\r\n"
    );
}

#[test]
fn the_server_reports_what_clients_of_redis_bloom_look_for() {
    let info = Port::open().ask(b"INFO\r\n");
    for line in ["redis_version:7.", "arch_bits:64", "cluster_enabled:0", "module:name=bf,ver=2"] {
        assert!(info.contains(&format!("\r\n{line}")), "{info}");
    }
}

/// A host with its keys in a folder and a port, and the runtime it lives in.
fn durable(folder: &Path, overlay: bool) -> (Host, SocketAddr, Runtime) {
    let runtime = Runtime::new().expect("in a test");
    let builder = Host::builder().name("here").local(&LocalNetwork::new()).data(folder);
    let builder = builder.set("resp", ["127.0.0.1:0"]).set("http", ["127.0.0.1:0"]).with_ports();
    let builder = if overlay { builder.set("links", ["other"]) } else { builder };
    let host = runtime.block_on(builder.start()).expect("in a test");
    let address = host.addresses().resp.expect("in a test");
    (host, address, runtime)
}

/// Stops a host and waits until nothing of it is left.
fn end(host: Host, runtime: Runtime) {
    runtime.block_on(host.stop());
    drop(host);
    drop(runtime);
}

#[test]
fn filters_and_counts_survive_a_restart() {
    let folder = tempfile::tempdir().expect("in a test");
    let (host, address, runtime) = durable(folder.path(), false);
    let made = "BF.RESERVE n 0.001 3 NONSCALING\r\nBF.MADD n a b c\r\nBF.RESERVE g 0.01 2 EXPANSION 4\r\n\
                CF.RESERVE c 8 BUCKETSIZE 4 EXPANSION 0\r\nCF.INSERT c ITEMS a a a b b\r\nCF.DEL c b\r\n\
                CF.INSERT gone ITEMS x x\r\nDEL gone\r\nSAVE\r\nDEBUG RELOAD\r\nSET s x\r\n";
    assert!(ask(address, made.as_bytes()).ends_with("+OK\r\n+OK\r\n+OK\r\n"));
    let asked = "TYPE n\r\nBF.ADD n d\r\nBF.CARD n\r\nBF.INFO n EXPANSION\r\nBF.INFO g\r\nCF.DEBUG c\r\n\
                 CF.COUNT c a\r\nCF.COUNT c b\r\nDBSIZE\r\nCF.EXISTS gone x\r\n";
    let before = ask(address, asked.as_bytes());
    assert!(before.contains("items:4 deletes:1 "), "{before}");
    end(host, runtime);

    let (host, address, runtime) = durable(folder.path(), false);
    assert_eq!(ask(address, asked.as_bytes()), before);
    // A new set of the name has nothing of the old one.
    let reply = ask(address, b"CF.ADD gone x\r\nCF.COUNT gone x\r\nGET s\r\nFLUSHALL\r\n");
    assert_eq!(reply, ":1\r\n:1\r\n$-1\r\n+OK\r\n");
    end(host, runtime);

    let (host, address, runtime) = durable(folder.path(), false);
    assert_eq!(ask(address, b"DBSIZE\r\nCF.ADD c a\r\nCF.COUNT c a\r\n"), ":0\r\n:1\r\n:1\r\n");
    runtime.block_on(host.stop());
}

#[test]
fn keys_that_leave_a_cuckoo_filter_otherwise_are_counted_anew() {
    let port = Port::open();
    let ask = |text: &str| port.ask(format!("{text}\r\n").as_bytes());
    ask("CF.INSERT c ITEMS a a b b");
    assert_eq!(
        ask("UMBEL.REM c a\r\nCF.COUNT c a\r\nCF.ADD c a\r\nCF.COUNT c a"),
        "*1\r\n:1\r\n:0\r\n:1\r\n:1\r\n"
    );
    assert_eq!(
        ask("UMBEL.ADD c a\r\nCF.COUNT c a"),
        "*1\r\n:0\r\n:1\r\n",
        "UMBEL.ADD counts nothing"
    );
    ask("UMBEL.ADDEX c 0.001 b");
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(ask("CF.COUNT c b\r\nCF.ADD c b\r\nCF.COUNT c b"), ":0\r\n:1\r\n:1\r\n");
}

/// Dumps a filter and loads it under another name; how many chunks it took.
fn copy(address: SocketAddr, family: &str, from: &str, to: &str) -> usize {
    let (mut place, mut chunks) = (String::from("0"), 0);
    loop {
        let dumped = crate::resp::ask_bytes(
            address,
            &array(&[format!("{family}.SCANDUMP").as_bytes(), from.as_bytes(), place.as_bytes()]),
        );
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let rest = dumped.strip_prefix(b"*2\r\n:").unwrap_or_else(|| panic!("{}", text(&dumped)));
        let end = rest.iter().position(|byte| *byte == b'\r').expect("in a test");
        place = text(&rest[..end]);
        if place == "0" {
            // RedisBloom ends a Bloom filter's dump with no bytes, a cuckoo filter's with null.
            let last = if family == "BF" { "$0\r\n\r\n" } else { "$-1\r\n" };
            assert_eq!(text(&rest[end + 2..]), last);
            return chunks;
        }
        let rest = &rest[end + 3..];
        let end = rest.iter().position(|byte| *byte == b'\r').expect("in a test");
        let data = &rest[end + 2..rest.len() - 2];
        assert_eq!(data.len().to_string(), text(&rest[..end]));
        let name = format!("{family}.LOADCHUNK");
        let load = array(&[name.as_bytes(), to.as_bytes(), place.as_bytes(), data]);
        assert_eq!(ask(address, &load), "+OK\r\n", "chunk {place}");
        chunks += 1;
    }
}

#[test]
fn a_dump_is_loaded_as_the_same_filter() {
    let folder = tempfile::tempdir().expect("in a test");
    let (host, address, runtime) = durable(folder.path(), false);
    let memory = Port::open();
    for address in [address, memory.address] {
        let keys: Vec<String> =
            (0..40).map(|key| format!("{key}-{}", "x".repeat(32_000))).collect();
        for family in ["BF", "CF"] {
            let name = format!("{family}.INSERT");
            let mut words = vec![name.as_bytes(), b"from", b"CAPACITY", b"30", b"ITEMS"];
            words.extend(keys.iter().map(String::as_bytes));
            ask(address, &array(&words));
            ask(address, b"CF.INSERT from ITEMS a a b\r\nCF.DEL from b\r\n");
            assert!(copy(address, family, "from", "to") > 2, "in several chunks");
            let debug = |set: &str| ask(address, format!("{family}.DEBUG {set}\r\n").as_bytes());
            assert_eq!(debug("from"), debug("to"));
            let mut asked = vec![b"x".as_slice(), b"to"];
            asked.extend(keys.iter().map(String::as_bytes));
            let name = format!("{family}.MEXISTS");
            asked[0] = name.as_bytes();
            assert_eq!(ask(address, &array(&asked)), format!("*40\r\n{}", ":1\r\n".repeat(40)));
            if family == "CF" {
                assert_eq!(ask(address, b"CF.COUNT to a\r\n"), ":2\r\n");
            }
            // What is there is not replaced, nor mixed with what is not a chunk.
            let header = format!("{family}.LOADCHUNK to 1 x\r\n{family}.LOADCHUNK to 7 x\r\n");
            let refused = ask(address, header.as_bytes());
            let bad_chunk =
                if family == "BF" { "ERR received bad data" } else { "Couldn't load chunk!" };
            assert_eq!(refused, format!("-ERR item exists\r\n-{bad_chunk}\r\n"));
            let place = ask(address, format!("{family}.LOADCHUNK to 0 x\r\n").as_bytes());
            let no_place = if family == "BF" {
                "ERR invalid offset - no link found"
            } else {
                "Invalid position"
            };
            assert_eq!(place, format!("-{no_place}\r\n"));
            let unknown = ask(address, format!("{family}.SCANDUMP to 12345\r\n").as_bytes());
            assert_eq!(unknown, "-ERR this dump is not known any more: begin again with 0\r\n");
            let no_numbers = if family == "BF" {
                "-Second argument must be numeric\r\n-ERR Second argument must be numeric\r\n"
            } else {
                "-Invalid position\r\n-Invalid position\r\n"
            };
            let words = format!("{family}.SCANDUMP to x\r\n{family}.LOADCHUNK to x data\r\n");
            assert_eq!(ask(address, words.as_bytes()), no_numbers);
            ask(address, b"FLUSHALL\r\n");
        }
        ask(address, b"BF.RESERVE from 0.01 10\r\n");
        assert_eq!(copy(address, "BF", "from", "to"), 1, "of an empty filter the header alone");
        assert_eq!(ask(address, b"BF.INFO to CAPACITY\r\n"), "*1\r\n:10\r\n");
    }
    runtime.block_on(host.stop());
}

#[test]
fn in_an_overlay_filters_have_the_shape_of_all_sets() {
    let folder = tempfile::tempdir().expect("in a test");
    let (host, address, runtime) = durable(folder.path(), true);
    let reply = ask(
        address,
        b"BF.RESERVE n 0.001 2 NONSCALING\r\nBF.MADD n a b c\r\nCF.INSERT c ITEMS a a\r\nCF.COUNT c a\r\nBF.CARD n\r\n",
    );
    assert_eq!(
        reply,
        "+OK\r\n*3\r\n:1\r\n:1\r\n-ERR non scaling filter is full\r\n*2\r\n:1\r\n:1\r\n:2\r\n:2\r\n"
    );
    runtime.block_on(host.stop());
}

#[test]
fn another_host_finds_what_a_redis_client_added() {
    let (runtime, network) = (Runtime::new().expect("in a test"), LocalNetwork::new());
    let start = |name: &'static str| {
        let builder = Host::builder().name(name).local(&network);
        let builder = builder.set("resp", ["127.0.0.1:0"]).set("http", ["127.0.0.1:0"]);
        runtime.block_on(builder.with_ports().start()).expect("in a test")
    };
    let (one, other) = (start("one"), start("other"));
    let (here, there) = (one.addresses().resp, other.addresses().resp);
    let (here, there) = (here.expect("in a test"), there.expect("in a test"));
    assert_eq!(
        ask(here, b"BF.RESERVE seen 0.01 1000\r\nBF.ADD seen a\r\nCF.ADD kept a\r\n"),
        "+OK\r\n:1\r\n:1\r\n"
    );
    for set in ["seen", "kept"] {
        let who = format!("UMBEL.WHO {set} a\r\n");
        while ask(there, who.as_bytes()) != "*1\r\n*1\r\n$3\r\none\r\n" {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // The filter itself answers for its own host alone.
    assert_eq!(ask(there, b"BF.EXISTS seen a\r\nBF.INFO seen\r\n"), ":0\r\n-ERR not found\r\n");
    assert_eq!(ask(here, b"CF.DEL kept a\r\nUMBEL.PUBLISH kept\r\n"), ":1\r\n+OK\r\n");
    while ask(there, b"UMBEL.WHO kept a\r\n") != "*1\r\n*0\r\n" {
        std::thread::sleep(Duration::from_millis(10));
    }
    runtime.block_on(one.stop());
    runtime.block_on(other.stop());
}
