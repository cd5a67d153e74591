//! Clusters of real processes: what is promised of them holds, whatever happens to a host.

mod backups;
mod budgets;
mod build_cache;
mod cable;
mod checker;
mod coverage;
mod dashboard;
mod disturbances;
mod dns;
mod documents;
mod healing;
mod hostile;
pub(crate) mod hosts;
mod kv;
mod load;
mod names;
mod nginx;
mod oci;
#[cfg(feature = "otel")]
mod otel;
mod overlay;
mod restarts;
mod routers;
mod secured;
mod sets;
mod soak;
mod stopped;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hosts::{Cluster, ask, copy, eventually, name};

/// Adds keys `prefix-0` … to a host's set, a thousand a command; all must be new.
fn add(cluster: &Cluster, host: usize, set: &str, prefix: &str, count: usize) {
    let mut connection = cluster.connect(host);
    let keys: Vec<String> = (0..count).map(|key| format!("{prefix}-{key}")).collect();
    for keys in keys.chunks(1000) {
        let words: Vec<&str> =
            ["UMBEL.ADD", set].into_iter().chain(keys.iter().map(String::as_str)).collect();
        let new: Vec<u8> = ask(&mut connection, &words).expect("added");
        assert_eq!(new, vec![1; keys.len()]);
    }
}

/// How many of the keys `prefix-0` … a host says that `holder` may hold.
fn named(
    cluster: &Cluster,
    host: usize,
    set: &str,
    prefix: &str,
    count: usize,
    holder: usize,
) -> usize {
    let keys: Vec<String> = (0..count).map(|key| format!("{prefix}-{key}")).collect();
    let words: Vec<&str> =
        ["UMBEL.WHO", set].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let answer: redis::RedisResult<Vec<Vec<String>>> = cluster.try_ask(host, &words);
    let holder = name(holder);
    answer.unwrap_or_default().iter().filter(|hosts| hosts.contains(&holder)).count()
}

#[test]
fn keys_of_one_host_are_found_by_all_others() {
    let cluster = Cluster::running(5);
    let others = [1, 2, 3, 4];

    let _: () =
        cluster.ask(0, &["UMBEL.RESERVE", "images", "0.01", "1000", "POLICY", "interval:0.2"]);
    add(&cluster, 0, "images", "first", 100);
    eventually("all find the keys", || {
        others.iter().all(|host| named(&cluster, *host, "images", "first", 100, 0) == 100)
    });
    assert_eq!(cluster.who(0, "images", "first-7"), ["host-0"], "its own name first");
    let found: Vec<String> = cluster.ask(3, &["UMBEL.LOCATE", "images", "first-7"]);
    assert_eq!(found, ["host-0"]);
    let missing: Vec<String> = cluster.ask(2, &["UMBEL.MISSING", "images", "x", "first-1", "y"]);
    assert_eq!(missing, ["x", "y"]);

    // Removed keys, and keys whose time is over, are no longer claimed.
    let removed: Vec<u8> = cluster.ask(0, &["UMBEL.REM", "images", "first-7", "x"]);
    assert_eq!(removed, [1, 0]);
    let _: Vec<u8> = cluster.ask(0, &["UMBEL.ADDEX", "images", "5", "brief"]);
    eventually("the brief key comes", || cluster.who(4, "images", "brief") == ["host-0"]);
    eventually("both keys go", || {
        others.iter().all(|host| {
            cluster.who(*host, "images", "first-7").is_empty()
                && cluster.who(*host, "images", "brief").is_empty()
        })
    });
    let held: Vec<u8> = cluster.ask(0, &["UMBEL.HAS", "images", "brief"]);
    assert_eq!(held, [0]);

    // A set past its capacity grows everywhere.
    add(&cluster, 0, "images", "more", 30_000);
    eventually("all find the keys of a set that grew", || {
        others.iter().all(|host| named(&cluster, *host, "images", "more", 30_000, 0) == 30_000)
    });

    // Two sets of one name and different shape live side by side.
    let _: () =
        cluster.ask(1, &["UMBEL.RESERVE", "images", "0.0001", "50", "POLICY", "interval:0.2"]);
    add(&cluster, 1, "images", "other", 20);
    eventually("both hosts' keys are found", || {
        [0, 2, 3, 4].iter().all(|host| named(&cluster, *host, "images", "other", 20, 1) == 20)
            && named(&cluster, 4, "images", "more", 1000, 0) == 1000
    });

    // A set that is deleted is forgotten by all.
    let deleted: u8 = cluster.ask(1, &["DEL", "images"]);
    assert_eq!(deleted, 1);
    eventually("nobody names the deleted set's host", || {
        named(&cluster, 3, "images", "other", 20, 1) == 0
    });
}

/// The longest announced prefix that a host's memory has for a name, and who announces it.
fn matched(cluster: &Cluster, host: usize, name: &str) -> Option<(String, Vec<String>)> {
    cluster.try_ask(host, &["UMBEL.MATCH", "content", name]).unwrap_or_default()
}

#[test]
fn announced_prefixes_are_matched_by_all_and_go_with_their_host() {
    let mut cluster = Cluster::running(3);
    let found = |prefix: &str, hosts: &[usize]| {
        Some((prefix.to_owned(), hosts.iter().map(|host| name(*host)).collect::<Vec<_>>()))
    };
    for host in 0..3 {
        let policy = "interval:0.2";
        let plan = ["UMBEL.RESERVE", "content", "1e-6", "1000", "POLICY", policy];
        let _: () = cluster.ask(host, &plan);
    }
    let new: Vec<u8> = cluster.ask(0, &["UMBEL.ANNOUNCE", "content", "/video", "/video/"]);
    assert_eq!(new, [1, 0]);
    eventually("the others match it", || {
        [1, 2].iter().all(|host| matched(&cluster, *host, "/video/a/b") == found("/video", &[0]))
    });
    assert_eq!(matched(&cluster, 1, "/videos"), None);

    // A longer prefix elsewhere wins, at the host itself as well; equal ones are told together.
    let _: Vec<u8> = cluster.ask(1, &["UMBEL.ANNOUNCE", "content", "/video/a", "/video"]);
    eventually("the longer one wins", || {
        [0, 2].iter().all(|host| matched(&cluster, *host, "/video/a/b") == found("/video/a", &[1]))
            && matched(&cluster, 2, "/video/x") == found("/video", &[0, 1])
    });
    let confirmed: Option<(String, Vec<String>)> =
        cluster.ask(2, &["UMBEL.MATCH", "content", "/video/a/b", "CONFIRM", "5000"]);
    assert_eq!(confirmed, found("/video/a", &[1]));

    let gone: Vec<u8> = cluster.ask(1, &["UMBEL.WITHDRAW", "content", "/video/a", "/none"]);
    assert_eq!(gone, [1, 0]);
    eventually("what was withdrawn is gone", || {
        matched(&cluster, 2, "/video/a/b") == found("/video", &[0, 1])
    });

    // A host that dies takes its announcements along, and brings them back.
    cluster.kill(0);
    eventually("the dead host's announcements are gone", || {
        matched(&cluster, 2, "/video/x") == found("/video", &[1])
    });
    cluster.start(0, &[]);
    eventually("they come back", || matched(&cluster, 2, "/video/x") == found("/video", &[0, 1]));
}

#[test]
fn no_acknowledged_key_is_lost_and_no_answer_wrong_after_kill_and_restart() {
    let mut cluster = Cluster::running(3);
    add(&cluster, 0, "images", "before", 5000);
    cluster.kill(0);
    eventually("the others forget the dead host", || {
        named(&cluster, 1, "images", "before", 100, 0) == 0
    });
    cluster.start(0, &[]);
    let held: Vec<String> = (0..5000).map(|key| format!("before-{key}")).collect();
    let words: Vec<&str> =
        ["UMBEL.HAS", "images"].into_iter().chain(held.iter().map(String::as_str)).collect();
    assert_eq!(cluster.ask::<Vec<u8>>(0, &words), vec![1; 5000], "every key that was told");
    eventually("the others find its keys again", || {
        [1, 2].iter().all(|host| named(&cluster, *host, "images", "before", 5000, 0) == 5000)
    });

    // A host restored from an old backup is heard.
    cluster.terminate(0);
    let backup = cluster.data(9);
    copy(&cluster.data(0), &backup);
    cluster.start(0, &[]);
    add(&cluster, 0, "images", "after", 500);
    eventually("the new keys are found", || named(&cluster, 2, "images", "after", 500, 0) == 500);
    cluster.kill(0);
    std::fs::remove_dir_all(cluster.data(0)).expect("removed");
    copy(&backup, &cluster.data(0));
    cluster.start(0, &[]);
    eventually("the others have what the backup has", || {
        [1, 2].iter().all(|host| {
            named(&cluster, *host, "images", "before", 5000, 0) == 5000
                && named(&cluster, *host, "images", "after", 500, 0) < 50
        })
    });
}

#[test]
fn a_host_that_is_ended_in_good_order_is_named_no_longer() {
    let mut cluster = Cluster::new(3);
    // So long that only the farewell can take it out of the answers.
    let patient = ["--timing-grace", "600", "--timing-silence", "600"];
    (0..3).for_each(|host| cluster.start(host, &patient));
    add(&cluster, 0, "images", "key", 100);
    let named_by_all = |cluster: &Cluster, keys| {
        [1, 2].iter().all(|host| named(cluster, *host, "images", "key", 100, 0) == keys)
    };
    eventually("all know", || named_by_all(&cluster, 100));
    cluster.terminate(0);
    eventually("the others name it no longer", || named_by_all(&cluster, 0));
    cluster.start(0, &patient);
    eventually("the others find its keys again", || named_by_all(&cluster, 100));
    cluster.kill(0);
    cluster.start(0, &patient);
    eventually("killed and back, it is found", || named_by_all(&cluster, 100));
}

#[test]
fn a_host_that_hangs_harms_nobody_and_catches_up() {
    let cluster = Cluster::running(4);
    let _: () =
        cluster.ask(0, &["UMBEL.RESERVE", "images", "0.01", "1000", "POLICY", "interval:0.2"]);
    add(&cluster, 0, "images", "before", 100);
    eventually("all know", || {
        [1, 2, 3].iter().all(|host| named(&cluster, *host, "images", "before", 100, 0) == 100)
    });
    cluster.signal(3, "STOP");
    for round in 0..10 {
        add(&cluster, 0, "images", &format!("round-{round}"), 100);
        eventually("the others go on", || {
            [1, 2].iter().all(|host| {
                named(&cluster, *host, "images", &format!("round-{round}"), 100, 0) == 100
            })
        });
        std::thread::sleep(Duration::from_secs(1));
    }
    cluster.signal(3, "CONT");
    eventually("it catches up", || {
        (0..10).all(|round| named(&cluster, 3, "images", &format!("round-{round}"), 100, 0) == 100)
    });
}

#[test]
fn a_late_joiner_of_a_busy_home_gets_everything() {
    let mut cluster = Cluster::new(3);
    cluster.start(0, &[]);
    cluster.start(1, &[]);
    let _: () =
        cluster.ask(0, &["UMBEL.RESERVE", "images", "0.0001", "200000", "POLICY", "interval:0.2"]);
    add(&cluster, 0, "images", "before", 100_000);
    let busy = AtomicBool::new(true);
    let mut connection = cluster.connect(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut added = 0;
            while busy.load(Ordering::Relaxed) {
                let key = format!("busy-{added}");
                let new: Vec<u8> =
                    ask(&mut connection, &["UMBEL.ADD", "images", &key]).expect("added");
                assert_eq!(new, [1]);
                added += 1;
            }
            added
        });
        cluster.start(2, &[]);
        eventually("the joiner has all", || {
            named(&cluster, 2, "images", "before", 100_000, 0) == 100_000
        });
        busy.store(false, Ordering::Relaxed);
        let added = writer.join().expect("the writer");
        eventually("the last keys too", || named(&cluster, 2, "images", "busy", added, 0) == added);
    });
}

#[test]
fn a_set_that_is_built_again_is_answered_all_the_while() {
    let cluster = Cluster::running(2);
    add(&cluster, 0, "images", "key", 2000);
    let _: () = cluster.ask(0, &["UMBEL.PUBLISH", "images"]);
    eventually("the other knows", || named(&cluster, 1, "images", "key", 2000, 0) == 2000);
    for capacity in ["5000", "20000", "100000"] {
        let _: () = cluster.ask(0, &["UMBEL.RESERVE", "images", "0.001", capacity]);
        let _: () = cluster.ask(0, &["UMBEL.PUBLISH", "images"]);
        for _ in 0..20 {
            assert_eq!(named(&cluster, 1, "images", "key", 2000, 0), 2000, "at {capacity}");
        }
    }
}

#[test]
fn hosts_that_do_not_match_are_refused_and_both_say_why() {
    let mut cluster = Cluster::new(3);
    cluster.start(0, &[]);
    cluster.start(1, &["--cluster", "other"]);
    let secret = cluster.data(8);
    std::fs::write(&secret, "another secret, of thirty bytes or more").expect("written");
    let secret = secret.to_str().expect("text").to_owned();
    cluster.start(2, &["--hash-key-file", &secret]);
    for host in 0..3 {
        add(&cluster, host, "images", &name(host), 10);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    for (host, words) in [
        (0, "of cluster 'other', this host of 'local'"),
        (1, "of cluster 'local', this host of 'other'"),
        (0, "hash key differs"),
        (2, "hash key differs"),
    ] {
        eventually(words, || cluster.log(host).contains(words));
    }
    for host in 0..3 {
        for other in (0..3).filter(|other| *other != host) {
            assert_eq!(named(&cluster, host, "images", &name(other), 10, other), 0);
        }
    }
}

/// Needs root: the host's folder is a file system of its own, of a few megabytes.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_keys_loses_none_and_accepts_them_again_when_it_has_room() {
    let mut cluster = Cluster::new(1);
    let data = cluster.data(0);
    std::fs::create_dir_all(&data).expect("a folder");
    let mut command = std::process::Command::new("unshare");
    let script = "mount -t tmpfs -o size=5m none \"$0\" \
                  && head -c 1M /dev/zero > \"$0\"/ballast && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(&data).arg(env!("CARGO_BIN_EXE_umbel"));
    cluster.start_by(0, command, &[]);

    let mut connection = cluster.connect(0);
    let mut acknowledged = Vec::new();
    let refused = (0..10_000).find_map(|round| {
        let keys: Vec<String> = (0..1000).map(|key| format!("{round}-{key}")).collect();
        let words: Vec<&str> =
            ["UMBEL.ADD", "images"].into_iter().chain(keys.iter().map(String::as_str)).collect();
        let added: redis::RedisResult<Vec<u8>> = ask(&mut connection, &words);
        match added {
            Ok(new) => acknowledged.extend(keys.into_iter().zip(new)),
            Err(error) => return Some(error.to_string()),
        }
        None
    });
    let refused = refused.expect("four megabytes do not hold ten million keys");
    assert!(refused.contains("No space left"), "{refused}");
    assert!(acknowledged.iter().all(|(_, new)| *new == 1), "each key is new once");

    // The same connection goes on: questions are answered, changes refused.
    for keys in acknowledged.chunks(1000) {
        let keys = keys.iter().map(|(key, _)| key.as_str());
        let words: Vec<&str> = ["UMBEL.HAS", "images"].into_iter().chain(keys).collect();
        let held: Vec<u8> = ask(&mut connection, &words).expect("questions are answered");
        assert!(held.iter().all(|held| *held == 1), "an acknowledged key is held");
    }
    let mut add = |key: &str| -> redis::RedisResult<Vec<u8>> {
        ask(&mut connection, &["UMBEL.ADD", "images", key])
    };
    assert!(add("one more").is_err_and(|error| error.to_string().contains("No space left")));
    let (status, stderr) = cluster.get(0, "/healthz");
    assert!(status == 503 && stderr.contains("No space left"), "{stderr}");
    assert_eq!(cluster.get(0, "/livez").0, 200, "a restart would not help");
    let (_, metrics) = cluster.get(0, "/metrics");
    assert!(metrics.contains("umbel_host_writable 0"), "a metric shows it");

    // There is room again: nobody has to do anything at the host.
    let root = format!("/proc/{}/root", cluster.process_id(0));
    let ballast = std::path::PathBuf::from(root).join(data.strip_prefix("/").expect("absolute"));
    std::fs::remove_file(ballast.join("ballast")).expect("room is made");
    eventually("keys are accepted again", || add("one more").is_ok());
    assert_eq!(cluster.get(0, "/healthz").0, 200);
    assert!(cluster.log(0).contains("can be written again"));
}

/// Uploads and deletions are decided by such answers.
#[test]
fn a_key_of_a_host_that_does_not_answer_is_not_called_missing() {
    let cluster = Cluster::running(2);
    let _: Vec<u8> = cluster.ask(1, &["UMBEL.ADD", "images", "held"]);
    eventually("it is known", || cluster.who(0, "images", "held") == [name(1)]);
    cluster.signal(1, "STOP");
    for words in
        [&["UMBEL.MISSING", "images", "held", "nowhere"][..], &["UMBEL.LOCATE", "images", "held"]]
    {
        let stderr = cluster.try_ask::<Vec<String>>(0, words).expect_err("nobody can tell");
        assert!(stderr.to_string().contains("ask again"), "{stderr}");
    }
    // What is sure, beside what is not.
    let words = ["UMBEL.MISSINGPARTIAL", "images", "held", "nowhere"];
    let partial: (Vec<String>, Vec<String>) = cluster.ask(0, &words);
    assert_eq!(partial, (vec!["nowhere".to_owned()], vec!["held".to_owned()]));
    let missing = |more: &[&str]| umbel_missing(cluster.resp(0), more);
    let (code, stdout, stderr) = missing(&["--partial"]);
    assert_eq!((code, stdout.as_str()), (Some(1), "nowhere\n"));
    assert!(stderr.starts_with("unconfirmed: held\n"), "{stderr}");
    let (_, json, _) = missing(&["--partial", "--json"]);
    let expected = r#"{"keys":["nowhere"],"asked":2,"count":1,"unconfirmed":["held"]}"#;
    assert_eq!(json.trim_end(), expected);
    assert_eq!(missing(&[]).0, Some(2), "else it is an error");
    cluster.signal(1, "CONT");
    eventually("it answers again", || {
        let missing =
            cluster.try_ask::<Vec<String>>(0, &["UMBEL.MISSING", "images", "held", "nowhere"]);
        missing.is_ok_and(|missing| missing == ["nowhere"])
    });
}

/// `umbel missing images held nowhere`: exit code, standard output, standard error.
fn umbel_missing(at: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("the binary is built");
    umbel.args(["missing", "images", "held", "nowhere", "--at", at]).args(more);
    let output = umbel.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Once the replicas of a silent host had been dropped, its keys were called missing.
#[test]
fn a_key_of_a_host_that_is_gone_is_not_called_missing() {
    let mut cluster = Cluster::new(2);
    let soon = ["--timing-grace", "2", "--timing-silence", "6"];
    (0..2).for_each(|host| cluster.start(host, &soon));
    let _: Vec<u8> = cluster.ask(1, &["UMBEL.ADD", "images", "held"]);
    eventually("it is known", || cluster.who(0, "images", "held") == [name(1)]);
    cluster.signal(1, "STOP");
    eventually("its replicas are dropped", || cluster.who(0, "images", "held").is_empty());
    let words = ["UMBEL.MISSING", "images", "held"];
    let error = cluster.try_ask::<Vec<String>>(0, &words).expect_err("nobody can tell");
    assert!(error.to_string().contains("not known at present"), "{error}");
    // Whoever asks for what is known now gets it.
    let words = ["UMBEL.MISSINGPARTIAL", "images", "held"];
    let partial: (Vec<String>, Vec<String>) = cluster.ask(0, &words);
    assert_eq!(partial, (vec!["held".to_owned()], vec![]));
    let (code, stdout, stderr) = umbel_missing(cluster.resp(0), &["--partial"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "held\nnowhere\n"));
    assert!(stderr.contains(&format!("not complete: {}", name(1))), "{stderr}");
    cluster.signal(1, "CONT");
    eventually("it is heard again", || {
        let words = ["UMBEL.MISSING", "images", "held", "nowhere"];
        cluster.try_ask::<Vec<String>>(0, &words).is_ok_and(|missing| missing == ["nowhere"])
    });
}

/// A holder that needed longer for so many bytes than a fixed time was taken for one without the keys.
#[test]
fn long_keys_that_a_host_holds_are_not_called_missing() {
    let cluster = Cluster::running(2);
    let padding = "x".repeat(32_000);
    let keys: Vec<String> = (0..600).map(|key| format!("{key}-{padding}")).collect();
    let mut connection = cluster.connect(1);
    for keys in keys.chunks(100) {
        let words = ["UMBEL.ADD", "images"].into_iter().chain(keys.iter().map(String::as_str));
        let _: Vec<u8> = ask(&mut connection, &words.collect::<Vec<_>>()).expect("added");
    }
    eventually("they are known", || {
        keys.iter().step_by(50).all(|key| cluster.who(0, "images", key) == [name(1)])
    });
    let words = ["UMBEL.MISSINGPARTIAL", "images", "nowhere"].into_iter();
    let words: Vec<&str> = words.chain(keys.iter().map(String::as_str)).collect();
    eventually("all are confirmed", || {
        let (missing, unconfirmed): (Vec<String>, Vec<String>) = cluster.ask(0, &words);
        assert_eq!(missing, ["nowhere"], "and no key that is held is called missing");
        unconfirmed.is_empty()
    });
}

/// What would be acknowledged would be gone with the process.
#[cfg(unix)]
#[test]
fn a_host_whose_folder_is_deleted_acknowledges_nothing_more() {
    // Synced before every acknowledgement, and once an hour.
    for flags in [&[][..], &["--durability", "3600"]] {
        acknowledges_nothing_without_its_folder(flags);
    }
}

fn acknowledges_nothing_without_its_folder(flags: &[&str]) {
    let mut cluster = Cluster::new(1);
    cluster.start(0, flags);
    let _: Vec<u8> = cluster.ask(0, &["UMBEL.ADD", "images", "before"]);
    std::fs::remove_dir_all(cluster.data(0)).expect("it is deleted");
    let mut connection = cluster.connect(0);
    let added: redis::RedisResult<Vec<u8>> =
        ask(&mut connection, &["UMBEL.ADD", "images", "after"]);
    let stderr = added.expect_err("nobody keeps it").to_string();
    assert!(stderr.contains("deleted, replaced or unmounted"), "{stderr}");
    assert_eq!(cluster.get(0, "/healthz").0, 503);
    let (code, found) = cluster.doctor(0);
    assert_eq!(code, Some(1), "{found}");
    assert!(found.contains("refuses changes until its catalogue can be written"), "{found}");
    let held: Vec<u8> = ask(&mut connection, &["UMBEL.HAS", "images", "before"]).expect("answered");
    assert_eq!(held, [1]);
}
