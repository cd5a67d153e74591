//! Hosts that are restored from a backup, and reloads that need a restart.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use umbel_node::settings::{Draft, Layer};
use umbel_node::{Host, LocalNetwork, Settings};
use umbel_store::{Options, Store};

async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not in time: {what}");
}

/// The store of a host that has stopped: its tasks close it a moment later.
async fn closed_store(catalogue: &Path) -> Store {
    for _ in 0..2000 {
        match Store::open(catalogue, Options::new()) {
            Err(umbel_store::Error::Locked) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return opened.expect("opened"),
        }
    }
    panic!("the store is still open");
}

/// The machine of the first life had a clock a day ahead: the life that the backup stored and the clock
/// of the new machine are both below it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_host_is_believed_though_its_clock_is_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let [data, backups] = ["data", "backups"].map(|name| folder.path().join(name));
    std::fs::create_dir(&backups).expect("a folder");
    let network = LocalNetwork::new();
    let fern = async || {
        let fern = Host::builder().name("fern").local(&network).data(&data);
        fern.set("backups", [backups.to_str().expect("text")]).start().await.expect("started")
    };
    let lily = Host::builder().name("lily").local(&network).start().await.expect("started");
    let names = |key: &str| lily.who_has("images", key.as_bytes()).unwrap_or_default() == ["fern"];

    let host = fern().await;
    host.add_key("images", b"kept").await.expect("added");
    host.backup(Some("early")).await.expect("backed up");
    host.stop().await;
    drop(host);

    // A later life, from a clock that was ahead.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64;
    let store = closed_store(&data.join("catalogue")).await;
    store.put(b"h", &(now + 86_400_000).to_le_bytes()).expect("written");
    drop(store);
    let host = fern().await;
    host.add_key("images", b"later").await.expect("added");
    host.publish("images").expect("published");
    eventually("the later life is known", || names("later")).await;
    host.stop().await;
    drop(host);
    drop(closed_store(&data.join("catalogue")).await);

    std::fs::remove_dir_all(&data).expect("removed");
    umbel_node::restore(&backups.join("early"), &data, |_| ()).expect("restored");
    let host = fern().await;
    host.publish("images").expect("published");
    eventually("it is believed", || names("kept") && !names("later")).await;
    host.add_key("images", b"new").await.expect("added");
    host.publish("images").expect("published");
    eventually("and goes on", || names("new")).await;
    host.stop().await;
    lily.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_backup_is_written_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let backups = folder.path().join("backups");
    std::fs::create_dir(&backups).expect("a folder");
    let host = Host::builder().name("fern").local(&LocalNetwork::new());
    let host =
        host.data(&folder.path().join("data")).set("backups", [backups.to_str().expect("text")]);
    let host = host.start().await.expect("started");
    host.add_key("images", b"key").await.expect("added");
    let names: Vec<String> = (0..20).map(|number| format!("number-{number}")).collect();
    let tasks: Vec<_> = names
        .iter()
        .map(|name| {
            let (host, name) = (host.clone(), name.clone());
            tokio::spawn(async move { host.backup(Some(&name)).await })
        })
        .collect();
    let mut written = Vec::new();
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(backup) => written.push(backup.name),
            Err(error) => assert!(error.to_string().contains("is being written"), "{error}"),
        }
    }
    let mut found: Vec<String> = std::fs::read_dir(&backups)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    found.sort_unstable();
    written.sort_unstable();
    assert!(!written.is_empty());
    assert_eq!(found, written, "those that were acknowledged, and nothing else");
    host.stop().await;
}

fn settings(more: &[(&str, &str)]) -> Settings {
    let mut layer = Layer::flags();
    let own = [("name", "fern"), ("memory", "true"), ("http", "off"), ("listen", "127.0.0.1:0")];
    for (key, value) in own.iter().chain(&[("resp", "127.0.0.1:0")]).chain(more) {
        layer.set(key, [*value]).expect("a setting");
    }
    Draft::new().with(layer).and_then(|draft| draft.settings()).expect("settings")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_changes_a_port_is_refused_as_a_whole() {
    let host = Host::builder().settings(settings(&[])).local(&LocalNetwork::new());
    let host = host.start().await.expect("started");
    host.add_key("images", b"key").await.expect("added");
    let policy = || host.set_info("images").expect("a set").policy.expect("an own set");
    let before = policy();
    for (key, value) in [
        ("resp", "127.0.0.1:1"),
        ("resp", "off"),
        ("http", "127.0.0.1:0"),
        ("listen", "127.0.0.1:1"),
        ("name", "lily"),
        ("cluster", "other"),
        ("durability", "each"),
        ("users", "/none"),
        ("limits.sets", "7"),
        ("timing.grace", "7"),
        ("log.format", "json"),
    ] {
        let changed = settings(&[(key, value), ("set.policy", "interval:10s")]);
        let refused = host.reload(changed).await.expect_err(key);
        let section = key.split('.').next().unwrap_or(key);
        let told = refused.to_string();
        assert!(told.starts_with("only a restart can change") && told.contains(section), "{told}");
        assert_eq!(policy(), before, "{key}: nothing has changed");
    }
    let changed = [("set.policy", "interval:10s"), ("backups", "/none"), ("log.level", "debug")];
    host.reload(settings(&changed)).await.expect("these can change");
    assert_eq!(policy(), "interval:10s");
    host.stop().await;
}
