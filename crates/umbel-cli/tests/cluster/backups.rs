//! Backups of hosts that run, and hosts that are restored from them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::run::refused;

use super::hosts::{Cluster, ask, copy, eventually, name};
use super::secured::says;
use super::{add, named};

/// A directory for backups, and the flags that tell a host of it.
fn backups(cluster: &Cluster) -> (PathBuf, Vec<String>) {
    let folder = PathBuf::from(cluster.path("backups"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let flags = vec!["--backups".to_owned(), folder.to_str().expect("text").to_owned()];
    (folder, flags)
}

fn start(cluster: &mut Cluster, host: usize, flags: &[String]) {
    cluster.start(host, &flags.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Backs up host 0 under this name.
fn back_up(cluster: &Cluster, name: &str) -> String {
    says(&["backup", name, "--at", cluster.resp(0)], &[], "")
}

fn restore(backup: &Path, data: &Path) -> String {
    let [backup, data] = [backup, data].map(|path| path.to_str().expect("text"));
    says(&["restore", backup, data], &[], "")
}

/// Names in a directory, sorted.
fn listed(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort_unstable();
    names
}

/// How many of the keys `prefix-0` … host 0 holds, and whether these are the first ones.
fn held(cluster: &Cluster, prefix: &str, count: usize) -> (usize, bool) {
    let keys: Vec<String> = (0..count).map(|key| format!("{prefix}-{key}")).collect();
    let words: Vec<&str> =
        ["UMBEL.HAS", "images"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let bits: Vec<u8> = cluster.ask(0, &words);
    let held = bits.iter().filter(|bit| **bit == 1).count();
    (held, bits[..held].iter().all(|bit| *bit == 1))
}

/// Adds keys `busy-0` … one by one, and counts those that were acknowledged.
fn write_until(cluster: &Cluster, done: &AtomicBool, acknowledged: &AtomicUsize) {
    let mut connection = cluster.connect(0);
    while !done.load(Ordering::Relaxed) {
        let key = format!("busy-{}", acknowledged.load(Ordering::SeqCst));
        let new: Vec<u8> = ask(&mut connection, &["UMBEL.ADD", "images", &key]).expect("added");
        assert_eq!(new, [1]);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_backup_under_writes_restores_a_host_that_is_not_taken_for_an_older_life() {
    let mut cluster = Cluster::new(2);
    let (folder, flags) = backups(&cluster);
    start(&mut cluster, 0, &flags);
    cluster.start(1, &[]);
    add(&cluster, 0, "images", "before", 20_000);
    let (done, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let at_least = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&cluster, &done, &acknowledged));
        eventually("it writes", || acknowledged.load(Ordering::SeqCst) > 50);
        let at_least = acknowledged.load(Ordering::SeqCst);
        let told = back_up(&cluster, "first");
        assert!(told.contains("backups/first: ") && told.contains(" records, "), "{told}");
        // Writes go on after it.
        let after = acknowledged.load(Ordering::SeqCst);
        eventually("it writes on", || acknowledged.load(Ordering::SeqCst) > after + 50);
        done.store(true, Ordering::Relaxed);
        writer.join().expect("every key was acknowledged");
        at_least
    });
    let written = acknowledged.load(Ordering::SeqCst);
    assert_eq!(listed(&folder), ["first"], "nothing else is left");
    assert_eq!(listed(&cluster.data(0)), ["catalogue"], "nothing else is left");

    // Later lives of the host, of which the backup knows nothing.
    for life in 0..2 {
        cluster.terminate(0);
        start(&mut cluster, 0, &flags);
        add(&cluster, 0, "images", &format!("after-{life}"), 500);
    }
    eventually("the new keys are found", || named(&cluster, 1, "images", "after-1", 500, 0) == 500);
    cluster.kill(0);
    std::fs::remove_dir_all(cluster.data(0)).expect("removed");
    let told = restore(&folder.join("first"), &cluster.data(0));
    assert!(told.contains("records of host host-0 as of 20"), "{told}");
    start(&mut cluster, 0, &flags);

    let (busy, is_first) = held(&cluster, "busy", written);
    assert!(is_first, "a state that there was: no key without those before it");
    assert!((at_least..written).contains(&busy), "{at_least} <= {busy} < {written}");
    assert_eq!(held(&cluster, "before", 20_000).0, 20_000);
    assert_eq!(held(&cluster, "after-1", 500).0, 0);
    eventually("the other host has what the backup has", || {
        named(&cluster, 1, "images", "before", 20_000, 0) == 20_000
            && named(&cluster, 1, "images", "busy", busy, 0) == busy
            && named(&cluster, 1, "images", "after-1", 500, 0) < 50
    });
    // It goes on as any host.
    add(&cluster, 0, "images", "again", 100);
    eventually("its new keys are found", || named(&cluster, 1, "images", "again", 100, 0) == 100);
    back_up(&cluster, "second");
}

/// A copy of a host that still runs is a second host of its name.
#[test]
fn a_host_restored_beside_the_one_that_runs_is_refused() {
    let mut cluster = Cluster::new(2);
    let (folder, flags) = backups(&cluster);
    start(&mut cluster, 0, &flags);
    cluster.start(1, &[]);
    add(&cluster, 0, "images", "key", 100);
    back_up(&cluster, "copy");
    let data = cluster.path("second");
    restore(&folder.join("copy"), Path::new(&data));
    eventually("the other one knows", || named(&cluster, 1, "images", "key", 100, 0) == 100);
    let flags = ["--peer", &cluster.peer(1), "--data", &data];
    let output = Command::new(env!("CARGO_BIN_EXE_umbel"))
        .args(["serve", "--name", &name(0), "--listen", "127.0.0.1:0"])
        .args(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"])
        .args(flags)
        .output()
        .expect("it ends by itself");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("another host is called 'host-0'"), "{told}");
    assert_eq!(named(&cluster, 1, "images", "key", 100, 0), 100);
}

#[test]
fn backups_that_cannot_be_written_are_refused_and_leave_nothing() {
    let mut cluster = Cluster::new(3);
    let (folder, flags) = backups(&cluster);
    start(&mut cluster, 0, &flags);
    add(&cluster, 0, "images", "key", 100);
    back_up(&cluster, "taken");
    std::fs::write(folder.join("file"), "").expect("written");
    let at = cluster.resp(0).to_owned();
    for (name, reason) in [
        ("taken", "there is a backup of this name already"),
        ("file", "there is a backup of this name already"),
        ("..", "letters, digits"),
        ("../elsewhere", "letters, digits"),
        ("/tmp/elsewhere", "letters, digits"),
        ("", "letters, digits"),
    ] {
        refused(&["backup", "--at", &at, name], "no backup was written", reason);
    }
    assert_eq!(listed(&folder), ["file", "taken"]);
    let json = says(&["backup", "--at", &at, "--json"], &[], "");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["name"].as_str().is_some_and(|name| name.starts_with("host-0-20")), "{json}");
    assert!(json["records"].as_u64().is_some_and(|records| records > 100), "{json}");

    // The directory is gone: it is not made, since it may be a mount point.
    std::fs::remove_dir_all(&folder).expect("removed");
    refused(&["backup", "--at", &at], "the directory of backups cannot be used", "No such file");
    assert!(!folder.exists());
    std::fs::write(&folder, "a file").expect("written");
    refused(&["backup", "--at", &at], "the directory of backups cannot be used", "Not a directory");
    assert_eq!(listed(&cluster.data(0)), ["catalogue"]);

    cluster.start(1, &[]);
    refused(&["backup", "--at", cluster.resp(1)], "give one in its setting 'backups'", "");
    cluster.start(2, &["--memory"]);
    refused(&["backup", "--at", cluster.resp(2)], "keeps its keys in memory", "");
}

/// Needs root: the directory of backups is a file system of its own, of a few kilobytes.
#[cfg(target_os = "linux")]
#[test]
fn a_backup_that_finds_no_room_leaves_nothing_and_harms_nobody() {
    let mut cluster = Cluster::new(1);
    let (folder, flags) = backups(&cluster);
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=64k none \"$0\" && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(&folder).arg(env!("CARGO_BIN_EXE_umbel"));
    cluster.start_by(0, command, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    add(&cluster, 0, "images", "key", 10_000);
    refused(&["backup", "--at", cluster.resp(0)], "no backup was written", "No space left");
    // As the host sees it.
    let seen = format!("/proc/{}/root{}", cluster.process_id(0), folder.display());
    assert_eq!(listed(Path::new(&seen)), [""; 0]);
    assert_eq!(listed(&cluster.data(0)), ["catalogue"]);
    add(&cluster, 0, "images", "more", 10_000);
    assert_eq!(held(&cluster, "key", 10_000).0, 10_000);
}

#[test]
fn what_is_no_backup_is_not_restored_and_a_catalogue_is_not_overwritten() {
    let mut cluster = Cluster::new(1);
    let (folder, flags) = backups(&cluster);
    start(&mut cluster, 0, &flags);
    add(&cluster, 0, "images", "key", 5000);
    back_up(&cluster, "good");
    cluster.terminate(0);
    let good = folder.join("good");
    let data = PathBuf::from(cluster.path("new"));
    let refuse = |backup: &Path, data: &Path, reason: &str| {
        let [backup, to] = [backup, data].map(|path| path.to_str().expect("text"));
        refused(&["restore", backup, to], reason, "");
        assert!(!data.is_dir() || listed(data).iter().all(|name| name == "catalogue"), "{reason}");
    };
    let broken = |name: &str, change: &dyn Fn(&Path)| {
        let path = folder.join(name);
        copy(&good, &path);
        change(&path);
        path
    };
    let label = |path: &Path| path.join("backup.json");
    let newer = |path: &Path| {
        let text = std::fs::read_to_string(label(path)).expect("a label");
        let text = text.replace("\"format\": 1", "\"format\": 2");
        std::fs::write(label(path), text).expect("written");
    };
    let recent_changes = |path: &Path| {
        let catalogue = path.join("catalogue");
        let file = listed(&catalogue).into_iter().find(|file| file.contains(".differential"));
        catalogue.join(file.expect("recent changes"))
    };
    let flip = |path: &Path| {
        let mut bytes = std::fs::read(recent_changes(path)).expect("read");
        bytes[200] ^= 1;
        std::fs::write(recent_changes(path), bytes).expect("written");
    };
    let cut_short = |path: &Path| {
        let bytes = std::fs::read(recent_changes(path)).expect("read");
        std::fs::write(recent_changes(path), &bytes[..bytes.len() - 4096]).expect("written");
    };
    refuse(&folder.join("none"), &data, "is no backup of a host");
    refuse(&folder, &data, "is no backup of a host");
    let unlabelled = broken("interrupted", &|path| {
        std::fs::remove_file(label(path)).expect("removed");
    });
    refuse(&unlabelled, &data, "an interrupted backup has none");
    let text = broken("text", &|path| std::fs::write(label(path), "yes").expect("written"));
    refuse(&text, &data, "expected");
    refuse(&broken("newer", &newer), &data, "in a form that this version does not know");
    refuse(&broken("flipped", &flip), &data, "damaged");
    // Before, the cut was taken for the place where writing stopped: keys were lost in silence.
    refuse(&broken("short", &cut_short), &data, "the backup is damaged");
    let without_lengths = broken("first version", &|path| {
        cut_short(path);
        let text = std::fs::read_to_string(label(path)).expect("a label");
        let mut parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        parsed.as_object_mut().expect("an object").remove("files");
        std::fs::write(label(path), parsed.to_string()).expect("written");
    });
    refuse(&without_lengths, &data, "records instead of");
    refuse(&good, &cluster.data(0), "restore into another directory");
    refuse(&good, &label(&good), "cannot make");
    assert!(std::fs::read_to_string(label(&good)).expect("a label").contains("\"files\""));

    restore(&good, &data);
    refuse(&good, &data, "restore into another directory");
    let verified =
        says(&["store", "verify", data.join("catalogue").to_str().expect("text")], &[], "");
    assert!(verified.contains("all valid"), "{verified}");
}

/// Needs root: the data directory is a file system of its own, of a few kilobytes.
#[cfg(target_os = "linux")]
#[test]
fn a_restore_that_finds_no_room_leaves_no_catalogue() {
    let mut cluster = Cluster::new(1);
    let (folder, flags) = backups(&cluster);
    start(&mut cluster, 0, &flags);
    add(&cluster, 0, "images", "key", 10_000);
    back_up(&cluster, "good");
    let (good, data) = (folder.join("good"), cluster.path("small"));
    std::fs::create_dir(&data).expect("a folder");
    let script =
        "mount -t tmpfs -o size=64k none \"$0\"; \"$1\" restore \"$2\" \"$0\"; echo $?; ls \"$0\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, &data, env!("CARGO_BIN_EXE_umbel")])
        .arg(&good)
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("No space left"), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n");
}

/// The file is replaced on every host by a copy of one file; that is all it takes.
#[test]
fn one_file_of_users_serves_all_hosts() {
    let mut cluster = Cluster::new(3);
    let source = cluster.path("users.toml");
    let own = |cluster: &Cluster, host: usize| cluster.path(&format!("users-{host}.toml"));
    let user = |words: &[&str], input: &str| {
        says(&[&["config", "user", "--users", &source], words].concat(), &[], input)
    };
    // As configuration management does it: a new file, then a rename.
    let distribute = |cluster: &Cluster| {
        for host in 0..3 {
            let fresh = cluster.path("users.new");
            std::fs::copy(&source, &fresh).expect("copied");
            std::fs::rename(fresh, own(cluster, host)).expect("moved");
        }
    };
    user(&["add", "alice", "--permissions", "read"], "a good password\n");
    let token =
        user(&["add", "bob", "--permissions", "read,admin", "--token", "--no-password"], "");
    let token = token.rsplit(' ').next().expect("a token").trim().to_owned();
    distribute(&cluster);
    for host in 0..3 {
        let users = own(&cluster, host);
        cluster.start(host, &["--users", &users, "--timing-reload", "0.2"]);
    }
    let logs_in = |host: usize, user: &str, password: &str| {
        let words = ["AUTH", user, password];
        ask::<String>(&mut cluster.connect(host), &words).is_ok()
    };
    let by_all = |user: &str, password: &str, expected: bool| {
        (0..3).all(|host| logs_in(host, user, password) == expected)
    };
    assert!(by_all("alice", "a good password", true) && by_all("alice", "another", false));
    let bob = |host: usize| {
        let request = format!("/v1/sets HTTP/1.1\r\nauthorization: Bearer {token}\r\nx: ");
        cluster.get(host, &request).0
    };
    assert_eq!([bob(0), bob(1), bob(2)], [200; 3], "a token holds at every host");

    user(&["add", "carol", "--permissions", "read"], "her password\n");
    user(&["remove", "alice"], "");
    distribute(&cluster);
    eventually("all hosts follow", || {
        (0..3).all(|host| cluster.log(host).contains("users read again"))
    });
    assert!(by_all("carol", "her password", true) && by_all("alice", "a good password", false));

    // A file that is broken changes nothing.
    std::fs::write(&source, "not a file of users").expect("written");
    distribute(&cluster);
    eventually("all say so", || (0..3).all(|host| cluster.log(host).contains("users stay")));
    assert!(by_all("carol", "her password", true));
}
