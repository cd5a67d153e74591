//! Secured clusters: certificates, users, and what changes while hosts run.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use super::hosts::{Cluster, eventually, name};
use super::{add, named};

fn umbel(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Output {
    use std::io::Write as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_umbel"));
    command.args(arguments).envs(variables.iter().copied());
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

/// What a command prints; it must succeed.
pub(super) fn says(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> String {
    let output = umbel(arguments, variables, input);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn joined<'a>(one: &[&'a str], other: &[&'a str]) -> Vec<&'a str> {
    [one, other].concat()
}

/// What a command complains of.
fn refuses(arguments: &[&str], variables: &[(&str, &str)], message: &str) {
    let output = umbel(arguments, variables, "");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.contains(message) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
}

/// Names of peers and where they listen, put in place at once.
pub(super) fn write_peers(cluster: &Cluster, hosts: usize) {
    let lines: String = (0..hosts).map(|host| cluster.peer(host) + "\n").collect();
    let fresh = cluster.path("peers.new");
    std::fs::write(&fresh, lines).expect("written");
    std::fs::rename(fresh, cluster.path("peers")).expect("moved");
}

pub(super) fn start_secured(cluster: &mut Cluster, host: usize, more: &[&str]) {
    let [peers, certs] = ["peers", "certs"].map(|file| cluster.path(file));
    let own = |end: &str| format!("{certs}/{}.{end}", name(host));
    let (ca, cert, key) = (format!("{certs}/ca.pem"), own("pem"), own("key"));
    let flags =
        ["--peers-file", &peers, "--peer-ca", &ca, "--peer-cert", &cert, "--peer-key", &key];
    cluster.start_with(host, &[&flags[..], &["--timing-reload", "0.3"], more].concat());
}

/// Hosts with certificates, to which one more comes; nobody restarts, nobody forgets.
fn grow(hosts: usize) {
    let mut cluster = Cluster::new(hosts + 1);
    let names: Vec<String> = (0..hosts).map(name).collect();
    let certs = cluster.path("certs");
    says(
        &["config", "certs", "--localhost", "--hosts", &names.join(","), "--out", &certs],
        &[],
        "",
    );
    write_peers(&cluster, hosts);
    (0..hosts).for_each(|host| start_secured(&mut cluster, host, &[]));
    add(&cluster, 0, "images", "old", 100);
    let _: () = cluster.ask(0, &["UMBEL.PUBLISH", "images"]);
    eventually("all know", || {
        (1..hosts).all(|host| named(&cluster, host, "images", "old", 100, 0) == 100)
    });

    let new = hosts;
    says(&["config", "certs", "--localhost", "--add", &name(new), "--out", &certs], &[], "");
    start_secured(&mut cluster, new, &[]);
    let grown = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut asked = 0;
            while !grown.load(Ordering::Relaxed) {
                let found = named(&cluster, 1, "images", "old", 100, 0);
                assert_eq!(found, 100, "no replica is dropped meanwhile");
                asked += 1;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            asked
        });
        write_peers(&cluster, hosts + 1);
        add(&cluster, new, "images", "new", 100);
        let _: () = cluster.ask(new, &["UMBEL.PUBLISH", "images"]);
        eventually("the new host knows, and is known by all", || {
            watcher.is_finished()
                || (named(&cluster, new, "images", "old", 100, 0) == 100
                    && (0..hosts)
                        .all(|host| named(&cluster, host, "images", "new", 100, new) == 100))
        });
        grown.store(true, Ordering::Relaxed);
        assert!(watcher.join().expect("the watcher saw everything") > 0);
    });
    let found: Vec<String> = cluster.ask(new, &["UMBEL.LOCATE", "images", "old-7"]);
    assert_eq!(found, ["host-0"], "questions are answered too");
}

#[test]
fn a_secured_mesh_of_four_grows_by_one_while_it_runs() {
    grow(4);
}

#[test]
fn a_host_that_is_taken_out_answers_no_more_whatever_it_says() {
    let mut cluster = Cluster::new(3);
    let certs = cluster.path("certs");
    says(
        &["config", "certs", "--localhost", "--hosts", "host-0,host-1,host-2", "--out", &certs],
        &[],
        "",
    );
    write_peers(&cluster, 3);
    for host in 0..3 {
        // Neither silence nor a lost link may be what ends it.
        start_secured(&mut cluster, host, &["--timing-silence", "600", "--timing-grace", "600"]);
    }
    let publish = |host: usize, keys: &str| {
        add(&cluster, host, "images", keys, 20);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    };
    let known =
        |host: usize, keys: &str, home: usize| named(&cluster, host, "images", keys, 20, home);
    publish(1, "one");
    publish(2, "two");
    eventually("all know", || known(0, "one", 1) == 20 && known(0, "two", 2) == 20);

    write_peers(&cluster, 2);
    eventually("it answers no more", || known(0, "two", 2) == 0 && known(1, "two", 2) == 0);
    publish(2, "more");
    publish(1, "later");
    eventually("the others go on", || known(0, "later", 1) == 20);
    assert_eq!(known(0, "more", 2) + known(0, "two", 2), 0, "it still runs, and is not heard");
    assert_eq!(known(0, "one", 1), 20, "nobody else was forgotten");

    write_peers(&cluster, 3);
    eventually("it is back", || known(0, "more", 2) == 20 && known(1, "two", 2) == 20);
}

/// Twenty processes are too many for every run: `cargo xtask mesh`.
#[test]
#[ignore = "starts 21 processes"]
fn a_secured_mesh_of_twenty_grows_by_one_while_it_runs() {
    grow(20);
}

#[test]
fn the_doctor_shakes_hands_with_peers() {
    let mut cluster = Cluster::new(3);
    let [certs, others, peers] = ["certs", "others", "peers"].map(|file| cluster.path(file));
    for folder in [&certs, &others] {
        says(
            &["config", "certs", "--localhost", "--hosts", "host-0,host-1,host-2", "--out", folder],
            &[],
            "",
        );
    }
    write_peers(&cluster, 2);
    start_secured(&mut cluster, 0, &[]);
    cluster.start(1, &[]);
    let found = |ca: &str, own: &str, peer: usize| {
        let [ca, cert, key] =
            [format!("{ca}/ca.pem"), format!("{own}/host-2.pem"), format!("{own}/host-2.key")];
        let files = ["--peer-ca", &ca, "--peer-cert", &cert, "--peer-key", &key];
        let host = ["--name", "host-2", "--memory", "--http", "off", "--peers-file", &peers];
        let ports = ["--resp", "off", "--listen", "127.0.0.1:0"];
        let output = umbel(&[&["doctor"], &host[..], &ports, &files].concat(), &[], "");
        let printed = String::from_utf8(output.stdout).expect("text");
        let named = format!("peer tcp/{}", cluster.listen(peer));
        let line = printed.lines().find(|line| line.contains(&named));
        line.unwrap_or_else(|| panic!("nothing of {named}: {printed}")).to_owned()
    };
    let is_valid = found(&certs, &certs, 0);
    assert!(is_valid.starts_with("ok") && is_valid.contains("it is 'host-0'"), "{is_valid}");
    for (ca, own, peer, message) in [
        (&others, &others, 0, "another authority"),
        (&certs, &others, 0, "it refuses this host's certificate"),
        (&certs, &certs, 1, "no TLS"),
    ] {
        let line = found(ca, own, peer);
        assert!(line.starts_with("WRONG") && line.contains(message), "{line}");
    }
    // The addresses of two hosts taken for each other.
    let swapped = format!("host-1={}\n", cluster.listen(0));
    std::fs::write(&peers, swapped).expect("written");
    let line = found(&certs, &certs, 0);
    assert!(line.contains("it shows the certificate of 'host-0'"), "{line}");
}

#[test]
fn commands_log_in_and_believe_the_authority_that_is_named() {
    let mut cluster = Cluster::new(1);
    let [users, certs] = ["users.toml", "certs"].map(|file| cluster.path(file));
    let user = |rest: &[&str], input: &str| {
        let words = [&["config", "user", "--users", &users], rest].concat();
        says(&words, &[], input)
    };
    user(&["add", "alice", "--permissions", "read,write"], "a good password\n");
    let token = user(&["add", "bob", "--permissions", "read", "--token", "--no-password"], "");
    assert!(token.contains("token, not shown again: bob."), "{token}");
    let listed = user(&["list"], "");
    assert!(listed.contains("alice  read,write") && !listed.contains("argon2"), "{listed}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&users).expect("written").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    says(&["config", "certs", "--localhost", "--hosts", "host-0", "--out", &certs], &[], "");
    let [cert, key] = ["host-0.pem", "host-0.key"].map(|file| format!("{certs}/{file}"));
    cluster.start(0, &["--users", &users, "--tls-cert", &cert, "--tls-key", &key]);
    let (at, ca) = (cluster.resp(0).to_owned(), format!("{certs}/ca.pem"));
    let secret = [("UMBEL_PASSWORD", "a good password")];

    let trusted = ["--at", &at, "--ca", &ca];
    let alice = [&["--user", "alice"], &trusted[..]].concat();
    says(&joined(&["add", "images", "cat.png"], &alice), &secret, "");
    let found = says(&joined(&["who", "images", "cat.png"], &alice), &secret, "");
    assert!(found.contains("host-0"), "{found}");
    let file = cluster.path("password");
    std::fs::write(&file, "a good password\n").expect("written");
    says(&joined(&["sets", "--password-file", &file], &alice), &[], "");

    refuses(&joined(&["sets"], &alice), &[], "UMBEL_PASSWORD");
    refuses(
        &joined(&["sets"], &alice),
        &[("UMBEL_PASSWORD", "wrong")],
        "invalid username-password pair",
    );
    refuses(&joined(&["policy", "images"], &alice), &secret, "needs 'admin'");
    refuses(&[&["sets"], &trusted[..]].concat(), &[], "Give --user");
    refuses(&["sets", "--at", &at], &[], &at);
    refuses(&["sets", "--at", &at, "--ca", "no/such"], &[], "no/such");
    says(
        &["config", "certs", "--localhost", "--hosts", "other", "--out", &cluster.path("others")],
        &[],
        "",
    );
    let other = cluster.path("others/ca.pem");
    refuses(&["sets", "--at", &at, "--ca", &other], &secret, "no TLS that can be believed");

    // Who is removed is out, without a restart.
    user(&["remove", "alice"], "");
    cluster.signal(0, "HUP");
    eventually("alice is out", || !umbel(&joined(&["sets"], &alice), &secret, "").status.success());
    let log = cluster.log(0);
    assert!(!log.contains("a good password") && log.contains("users read again"), "{log}");
}

#[test]
fn a_hang_up_reads_the_configuration_again() {
    let mut cluster = Cluster::new(1);
    let file = cluster.path("umbel.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("written");
    write("[set]\npolicy = 'interval:60'\n[log]\nlevel = 'warn'\n");
    cluster.start(0, &["--config", &file]);
    add(&cluster, 0, "first", "key", 1);
    let policy = |set: &str| cluster.ask::<String>(0, &["UMBEL.POLICY", set]);
    assert_eq!(policy("first"), "interval:60s");
    write("[set]\npolicy = 'interval:30'\n[log]\nlevel = 'info'\n");
    cluster.signal(0, "HUP");
    eventually("the set follows", || policy("first") == "interval:30s");
    add(&cluster, 0, "second", "key", 1);
    assert_eq!(policy("second"), "interval:30s");
    assert!(cluster.log(0).contains("configuration read again"), "told at the new level");
    write("[set]\npolicy = 'nonsense'\n");
    cluster.signal(0, "HUP");
    eventually("a mistake is told", || cluster.log(0).contains("stays as it was"));
    assert_eq!(policy("first"), "interval:30s");

    // What only a restart can change is refused, and everything else with it.
    let changed = "users = 'users.toml'\n[set]\npolicy = 'interval:10'\n[timing]\ngrace = 9\n";
    write(changed);
    cluster.signal(0, "HUP");
    let reason = "only a restart can change users, timing";
    eventually("it says what", || cluster.log(0).contains(reason));
    assert_eq!(policy("first"), "interval:30s");
}

#[test]
fn bad_certificates_and_users_are_refused_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).to_str().expect("text").to_owned();
    let (certs, users) = (path("certs"), path("users"));
    let make = ["config", "certs", "--out", &certs];
    refuses(&joined(&make, &["--add", "a"]), &[], "--add needs the authority");
    refuses(&joined(&make, &["--hosts", "a b"]), &[], "letters, digits");
    refuses(&joined(&make, &["--hosts", "ca"]), &[], "authority");
    refuses(&joined(&make, &[]), &[], "--hosts");
    let made = says(&joined(&make, &["--hosts", "a,b=10.0.0.2"]), &[], "");
    assert!(made.contains("peer_cert = \"b.pem\"") && made.contains("ca.key safe"), "{made}");
    refuses(&joined(&make, &["--hosts", "c"]), &[], "there already");
    refuses(&joined(&make, &["--add", "a"]), &[], "there already");
    let added = says(&joined(&make, &["--add", "c", "--json"]), &[], "");
    assert!(added.contains("c.key") && !added.contains("ca.key"), "{added}");
    let names = |file: &str| {
        let pem = std::fs::read(path(file)).expect("made");
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).expect("a certificate");
        let cert = pem.parse_x509().expect("a certificate");
        format!("{:?}", cert.subject_alternative_name().expect("sound").expect("names"))
    };
    assert!(names("certs/b.pem").contains("\"b\"") && !names("certs/b.pem").contains("localhost"));
    says(&joined(&make, &["--add", "d", "--localhost"]), &[], "");
    says(&joined(&make, &["--add", "e=10.0.0.5+e.example.org"]), &[], "");
    assert!(names("certs/e.pem").contains("e.example.org") && names("certs/e.pem").contains("10"));
    refuses(&joined(&make, &["--add", "f=10.0.0.6+"]), &[], "NAME=ADDRESS+ADDRESS");
    assert!(names("certs/d.pem").contains("localhost"));
    let mode = |file: &str| {
        let found = std::fs::metadata(path(file)).expect("made").permissions();
        std::os::unix::fs::PermissionsExt::mode(&found) & 0o777
    };
    assert!(["certs/ca.key", "certs/a.key", "certs/c.key"].iter().all(|key| mode(key) == 0o600));

    let user = ["config", "user", "--users", &users];
    refuses(&joined(&user, &["list"]), &[], "users");
    refuses(&joined(&user, &["remove", "a"]), &[], "users");
    refuses(&joined(&user, &["add", "a", "--permissions", "all"]), &[], "no permission");
    refuses(&joined(&user, &["add", "a.b", "--permissions", "read"]), &[], "letters");
    refuses(&joined(&user, &["add", "a", "--permissions", "read"]), &[], "a password is needed");
    refuses(
        &joined(&user, &["add", "a", "--permissions", "read", "--no-password"]),
        &[],
        "--token",
    );
    assert!(!std::path::Path::new(&users).exists());
    says(&joined(&user, &["add", "a", "--permissions", "read"]), &[], "secret\n");
    assert_eq!(mode("users"), 0o600);
    refuses(&joined(&user, &["add", "a", "--permissions", "read"]), &[], "already");
    refuses(&joined(&user, &["token", "b"]), &[], "no user 'b'");
}
