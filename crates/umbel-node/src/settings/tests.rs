//! The promises of a configuration, layer by layer.

use std::path::Path;

use super::*;

fn file(text: &str) -> Result<Layer, SettingsError> {
    Layer::toml(Path::new("conf/umbel.toml"), text)
}

fn environment(variables: &[(&str, &str)]) -> Result<Layer, SettingsError> {
    Layer::environment(variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
}

fn flags(given: &[(&str, &str)]) -> Result<Layer, SettingsError> {
    let mut layer = Layer::flags();
    given.iter().try_for_each(|(key, value)| layer.set(key, [*value]))?;
    Ok(layer)
}

/// The error for `text`, as a file in addition to a name and `memory`.
fn error_of(text: &str) -> String {
    let base = flags(&[("name", "a"), ("memory", "true")]).unwrap();
    let outcome = file(text)
        .and_then(|file| Draft::new().with(base)?.with(file))
        .and_then(|draft| draft.settings());
    let error = outcome.unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn a_name_and_memory_are_enough() {
    let settings = Settings::in_memory("a").unwrap();
    assert_eq!(settings.storage, Storage::Memory);
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7447");
    assert_eq!(settings.http.unwrap().to_string(), "127.0.0.1:7441");
    assert_eq!(settings.set.policy, Policy::default());
    assert_eq!(settings.hash_key, HashKey::WellKnown);
    assert!(settings.peers.is_empty() && !settings.allow_remote);
}

#[test]
fn flags_overrule_the_environment_and_that_the_file() {
    let file = file("name = 'f'\ncluster = 'f'\ndata = 'd'\n[set]\ncapacity = 5\n").unwrap();
    let environment = environment(&[("UMBEL_NAME", "e"), ("UMBEL_CLUSTER", "e"), ("HOME", "/")]);
    let flags = flags(&[("name", "g")]).unwrap();
    let draft = Draft::new().with(file).unwrap().with(environment.unwrap()).unwrap();
    let draft = draft.with(flags).unwrap();
    let settings = draft.settings().unwrap();
    assert_eq!(settings.name.as_str(), "g");
    assert_eq!(settings.cluster.as_str(), "e");
    assert_eq!(settings.set.capacity, Some(5));
    assert_eq!(settings.storage, Storage::Folder("conf/d".into()), "relative to the file");

    let origin = |key: &str| {
        draft.shown().into_iter().find(|shown| shown.key == key).unwrap().origin.to_string()
    };
    assert_eq!(origin("name"), "--name");
    assert_eq!(origin("cluster"), "environment, UMBEL_CLUSTER");
    assert_eq!(origin("set.capacity"), "conf/umbel.toml, line 5");
    assert_eq!(origin("resp"), "default");
}

#[test]
fn memory_overrules_a_weaker_folder_and_the_other_way_round() {
    let draft = |file_text: &str, flag: (&str, &str)| {
        let draft = Draft::new().with(file(file_text).unwrap()).unwrap();
        draft.with(flags(&[("name", "a"), flag]).unwrap()).unwrap().settings().unwrap().storage
    };
    assert_eq!(draft("data = '/d'", ("memory", "true")), Storage::Memory);
    assert_eq!(draft("memory = true", ("data", "/d")), Storage::Folder("/d".into()));
    assert!(
        error_of("memory = true\ndata = 'd'").contains("line 1: give 'data' or 'memory', not both")
    );
}

#[test]
fn what_cannot_be_done_without_is_asked_for() {
    let refused = |layer| Draft::new().with(layer).unwrap().settings().unwrap_err().to_string();
    assert!(refused(flags(&[("memory", "true")]).unwrap()).contains("--name NAME"));
    assert!(refused(flags(&[("name", "a")]).unwrap()).contains("--data DIR, or --memory"));
}

#[test]
fn mistakes_in_a_file_are_told_with_their_line() {
    for (text, message) in [
        ("\nclutser = 'a'", "line 2: there is no key 'clutser'; did you mean 'cluster'?"),
        ("capacity = 5", "there is no key 'capacity'; did you mean 'set.capacity'?"),
        (
            "[set]\n\ncapacty = 5",
            "line 3: there is no key 'set.capacty'; did you mean 'set.capacity'?",
        ),
        ("[bananas]\nsplit = 1", "line 1: there is no key 'bananas'"),
        (
            "[set]\ncapacity = 0",
            "line 2: set capacity: 'none' is needed, or a whole number from 1 to 2^40 is needed, not '0'",
        ),
        ("resp = 7440", "line 1: resp: an address with a port"),
        ("resp = ['127.0.0.1:1']", "one value is needed, not a TOML array"),
        ("peers = 'cache-2'", "a host and a port are needed"),
        ("peers = [1]", "a list of texts is needed"),
        ("memory = 'maybe'", "true or false is needed, not 'maybe'"),
        ("name = 1979-05-27", "one value is needed, not a TOML datetime"),
        ("set = 5", "there is no key 'set'"),
        ("[name]\nx = 1", "one value is needed, not a TOML table"),
        ("a = \n", "line 1: "),
        ("name = 'a'\nname = 'b'", "line 2: "),
        ("hash_key = 'short'", "at least 16 bytes is needed"),
        (
            "hash_key = 'sixteen bytes ok'\nhash_key_file = 'f'",
            "give 'hash_key' or 'hash_key_file'",
        ),
        ("hash_key_file = 'missing'", "conf/missing: "),
        ("links = ['cache-2:7447']", "line 1: links: a name is needed, or a name and an address"),
        ("links = ['b', 'a']", "line 1: links: other hosts are needed, not this one, 'a'"),
        ("peers = ['localhost:1']\nlinks = ['b']", "line 2: give 'peers' or 'links', not both"),
        ("links = ['b']\n[overlay]\nitems = 1e12", "line 3: overlay items: fewer keys and filters"),
        ("[overlay]\nentry = 'bloom'", "line 2: overlay entry: cubf, abf or attenuated is needed"),
        (
            "[[watch]]\nset = 's'\ndir = '/d'\nkey = 'stem'\nserve = true",
            "watch serve: key = 'path' is needed for files that are served, not 'stem'",
        ),
        ("[oci]\norigin = 'https://a/b'", "line 2: oci origin: the address of a server is needed"),
        ("[oci]\nset = 'a b'", "line 2: oci set: a set's name has"),
        ("transforms = ['md5']", "line 1: transforms: SET=TRANSFORM is needed, not 'md5'"),
        ("transforms = ['s=md4']", "transforms: steps with | between them are needed"),
        ("transforms = ['a b=md5']", "transforms: a set's name has"),
        (
            "transforms = ['s=md5', 't=path', 's=sha256']",
            "transforms: one transform per set is permitted, not a second one for 's'",
        ),
        (
            "[watch]\nset = 's'",
            "line 1: watch: tables are needed, each headed [[watch]], not a TOML table",
        ),
        ("watch = ['s']", "line 1: watch: tables are needed"),
        ("[[watch]]\nset = 's'", "watch dir: a value is needed, not nothing"),
        ("[[watch]]\nset = 'a b'\ndir = '/d'", "line 2: watch set: a set's name has"),
        ("[[watch]]\nset = 's'\ndir = ''", "line 3: watch dir: "),
        (
            "[[watch]]\nset = 's'\ndir = '/d'\nevry = 5",
            "line 4: there is no key 'watch.evry'; did you mean 'watch.every'?",
        ),
        ("[[watch]]\nset = 's'\ndir = '/d'\nkey = 'name'", "line 4: watch key: 'path', 'basename'"),
        ("[[watch]]\nset = 's'\ndir = '/d'\nevery = 0", "line 4: watch every: a number of seconds"),
        ("[[watch]]\nset = 's'\ndir = '/d'\ninclude = ['']", "watch include: a pattern is needed"),
        (
            "[[watch]]\nset = 's'\ndir = '/d'\n[[watch]]\nset = 's'\ndir = '/e'",
            "line 4: watch set: one directory per set is permitted, not a second one for 's'",
        ),
        ("links = ['b@cache-2:7447']", "links: hosts of several machines need a secret"),
    ] {
        let error = error_of(text);
        assert!(error.contains(message), "{text}: {error}");
    }
    assert!(!error_of("hash_key = 'short'").contains("'short'"), "secrets are not shown");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "nam = 'a'\nresp = 'x'\n[set]\ncapacity = 'many'\n[limits]\nsets = 0";
    let error = Layer::toml(Path::new("umbel.toml"), text).unwrap_err();
    let mistakes: Vec<String> = error.mistakes().map(ToString::to_string).collect();
    let begin =
        ["line 1: there is no key 'nam'", "line 2: resp: ", "line 4: set ", "line 6: limits "];
    assert_eq!(mistakes.len(), begin.len(), "{mistakes:?}");
    for begin in begin {
        assert!(mistakes.iter().any(|mistake| mistake.contains(begin)), "{begin}: {mistakes:?}");
    }
    let error = environment(&[("UMBEL_RESP", "x"), ("UMBEL_HTTP", "y")]).unwrap_err();
    assert_eq!(error.mistakes().count(), 2);
    // Neither a name nor a storage for the catalogue is given.
    assert_eq!(Draft::new().settings().unwrap_err().mistakes().count(), 2);
}

#[test]
fn slips_in_the_environment_are_found_and_strangers_left_alone() {
    let message = environment(&[("UMBEL_CLUSTRE", "a")]).unwrap_err().to_string();
    assert!(message.contains("UMBEL_CLUSTRE") && message.contains("'UMBEL_CLUSTER'"), "{message}");
    let message = environment(&[("UMBEL_SET_CAPACITY", "x")]).unwrap_err().to_string();
    assert!(
        message.contains("UMBEL_SET_CAPACITY: set capacity: 'none' is needed, or a whole number"),
        "{message}"
    );
    let strangers = [
        ("UMBEL_AT", "a"),
        ("UMBEL_SERVICE_HOST", "10.0.0.1"),
        ("UMBEL_PORT_7440_TCP", "tcp://10.0.0.1:7440"),
        ("UMBEL_PORT", "tcp://10.0.0.1:7440"),
        ("UMBEL_CLUSTER", ""),
    ];
    assert!(environment(&strangers).unwrap().given.is_empty());
    let peers = environment(&[("UMBEL_PEERS", "localhost:1, 127.0.0.1:2")]).unwrap();
    let draft = Draft::new().with(flags(&[("name", "a"), ("memory", "true")]).unwrap()).unwrap();
    let peers = draft.with(peers).unwrap().settings().unwrap().peers;
    assert_eq!(
        peers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["tcp/localhost:1", "tcp/127.0.0.1:2"]
    );
}

#[test]
fn no_port_is_open_beyond_the_machine_unless_permitted() {
    for key in ["resp", "http", "listen"] {
        let message = error_of(&format!("{key} = '192.0.2.1:1'"));
        assert!(message.contains(key) && message.contains("allow_remote"), "{message}");
    }
    assert!(error_of("resp = '0.0.0.0:7440'").contains("allow_remote"));
    let key = "hash_key = 'a secret of many bytes'";
    let open =
        format!("name = 'a'\nmemory = true\nlisten = '192.0.2.1:1'\nallow_remote = true\n{key}");
    let settings = Draft::new().with(file(&open).unwrap()).unwrap().settings().unwrap();
    assert!(matches!(settings.hash_key, HashKey::Secret(_)));
    assert!(!format!("{settings:?}").contains("many bytes"));
}

#[test]
fn hosts_of_several_machines_need_a_secret() {
    let message = error_of("listen = '192.0.2.1:1'\nallow_remote = true");
    assert!(message.contains("secret hash key"), "{message}");
    assert!(error_of("peers = ['cache-2:7447']").contains("peers: hosts of several machines"));
}

#[test]
fn a_secret_is_the_same_in_a_file_and_inline() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "0123456789abcdef0123456789abcdef";
    let hashers = ["", "\n", "\r\n"].map(|end| {
        let path = folder.path().join("key");
        std::fs::write(&path, format!("{secret}{end}")).unwrap();
        let base = flags(&[("name", "a"), ("memory", "true")]).unwrap();
        let key = flags(&[("hash_key_file", path.to_str().unwrap())]).unwrap();
        Draft::new().with(base).unwrap().with(key).unwrap().settings().unwrap().hasher()
    });
    let base = flags(&[("name", "a"), ("memory", "true"), ("hash_key", secret)]).unwrap();
    let inline = Draft::new().with(base).unwrap().settings().unwrap().hasher();
    assert!(hashers.iter().all(|hasher| hasher.fingerprint() == inline.fingerprint()));
    assert_ne!(inline.fingerprint(), Settings::in_memory("a").unwrap().hasher().fingerprint());
}

#[test]
fn the_file_that_init_writes_works_and_says_what_holds_anyway() {
    let text = template("cache-1", "data");
    let given = Draft::new().with(file(&text).unwrap()).unwrap();
    assert_eq!(given.settings().unwrap().storage, Storage::Folder("conf/data".into()));
    // Every comment is a valid setting, except for those that exclude each other.
    let all: String = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .filter(|line| !line.starts_with("hash_key =") && !line.starts_with("hash_key_file ="))
        .filter(|line| !line.starts_with("peers =") && !line.starts_with("links ="))
        .map(|line| format!("{line}\n"))
        .collect();
    let all = Draft::new().with(file(&all).unwrap()).unwrap();
    let values = |draft: &Draft| -> Vec<_> {
        let shown = draft.shown().into_iter();
        shown
            .filter(|shown| Key::named(shown.key).is_some_and(|key| key.default.is_some()))
            .map(|s| s.value)
            .collect()
    };
    assert_eq!(values(&all), values(&given));
}

#[test]
fn directories_to_watch_come_from_tables_of_a_file() {
    let text = "name = 'a'\nmemory = true\n[[watch]]\nset = 's'\ndir = 'd'\n\
                [[watch]]\nset = 't'\ndir = '/e'\nkey = 'stem'\ninclude = ['*.png', 'x/*']\n\
                exclude = '*.log'\nmin_age = '5s'\ntemporary = true\nevery = 60\nallow_empty = true";
    let draft = Draft::new().with(file(text).unwrap()).unwrap();
    // A stronger layer without tables leaves them.
    let draft = draft.with(flags(&[("name", "b")]).unwrap()).unwrap();
    let [first, second] = &draft.settings().unwrap().watches[..] else { panic!("two tables") };
    assert_eq!((first.set.as_str(), &*first.dir), ("s", Path::new("conf/d")));
    assert!(!first.allow_empty && first.every == Duration::from_secs(600));
    assert_eq!(
        second.to_string(),
        "t = /e, key stem, every 60s, include *.png x/*, exclude *.log, min_age 5s, temporary, allow_empty"
    );
    let shown = draft.shown().into_iter().filter(|shown| shown.key == "watch");
    let origins: Vec<String> = shown.map(|shown| shown.origin.to_string()).collect();
    assert_eq!(origins, ["conf/umbel.toml, line 3", "conf/umbel.toml, line 6"]);
}

#[test]
fn links_make_an_overlay_and_overrule_weaker_peers() {
    assert_eq!(Settings::in_memory("a").unwrap().overlay, None);
    let weaker = file("name = 'a'\nmemory = true\npeers = ['localhost:1']\n[overlay]\ndepth = 4");
    let draft = Draft::new().with(weaker.unwrap()).unwrap();
    assert_eq!(draft.settings().unwrap().overlay, None, "without a link there is none");
    let links = environment(&[("UMBEL_LINKS", "b, c@127.0.0.1:7")]).unwrap();
    let settings = draft.with(links).unwrap().settings().unwrap();
    assert!(settings.peers.is_empty());
    let overlay = settings.overlay.unwrap();
    assert_eq!(overlay.to_string(), "cubf, depth 4, 64 filters of 1000 keys at 0.001");
    let links: Vec<String> = overlay.links.iter().map(ToString::to_string).collect();
    assert_eq!(links, ["b", "c@tcp/127.0.0.1:7"]);
}

#[test]
fn ports_with_users_and_certificates_need_no_permission() {
    let base = "name = 'a'\nmemory = true\nhash_key = 'a secret of many bytes'\n";
    let settings = |text: &str| {
        let layer = file(&format!("{base}{text}")).expect("sound values");
        Draft::new().with(layer).expect("one way").settings().map_err(|error| error.to_string())
    };
    let users = "users = 'u'\n";
    let tls = "tls_cert = 'c'\ntls_key = 'k'\n";
    let peer = "peer_ca = 'a'\npeer_cert = 'c'\npeer_key = 'k'\n";
    for port in ["resp", "http"] {
        let port = format!("{port} = '192.0.2.1:1'\n");
        assert!(settings(&format!("{port}{users}{tls}")).is_ok());
        for half in [users, tls, peer] {
            let message = settings(&format!("{port}{half}")).unwrap_err();
            assert!(message.contains("users, tls_cert and tls_key"), "{message}");
        }
    }
    let listen = "listen = '192.0.2.1:1'\n";
    assert!(settings(&format!("{listen}{peer}")).is_ok());
    let message = settings(&format!("{listen}{users}{tls}")).unwrap_err();
    assert!(message.contains("peer_ca, peer_cert and peer_key"), "{message}");
    assert!(settings("tls_cert = 'c'").unwrap_err().contains("both tls_cert and tls_key"));
    assert!(settings("peer_key = 'k'").unwrap_err().contains("all of peer_ca"));
    let message = settings(&format!("{peer}peers = ['127.0.0.1:7']")).unwrap_err();
    assert!(message.contains("cache-2=10.0.0.2:7447"), "{message}");
    assert!(settings(&format!("{peer}peers = ['b=127.0.0.1:7', 'cache-3:7']")).is_ok());
}
