//! Peers behind one name, which means other addresses as time goes by.

use std::process::Command;

use super::hosts::{Cluster, eventually, network};
use super::{add, named};

/// Needs root: each host sees a file of names that is the test's.
#[cfg(target_os = "linux")]
#[test]
fn hosts_find_each_other_by_a_name_of_several_addresses_that_change() {
    let mut cluster = Cluster::new(3);
    let network = network();
    // One name, one port; as the pods of a headless service have addresses of their own.
    let port = cluster.listen(0).rsplit(':').next().expect("a port").to_owned();
    let (names, secret) = (cluster.path("names"), cluster.path("hash-key"));
    std::fs::write(&secret, "a secret of sixteen bytes or more").expect("written");
    // In place: what is mounted is this very file.
    let write = |hosts: std::ops::Range<usize>| {
        let lines = hosts.map(|host| format!("{network}{host} caches.test\n"));
        std::fs::write(&names, "127.0.0.1 localhost\n".to_owned() + &lines.collect::<String>())
            .expect("written");
    };
    write(1..3);
    for host in 0..3 {
        cluster.move_to(host, format!("{network}{}:{port}", host + 1));
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script, &names]).arg(env!("CARGO_BIN_EXE_umbel"));
        let peers = format!("caches.test:{port}");
        cluster.run(host, command, &["--peers-dns", &peers, "--hash-key-file", &secret]);
    }
    for host in 0..3 {
        add(&cluster, host, "images", &format!("of-{host}"), 20);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    // The third is not behind the name yet, but looks it up: a link is made from one end.
    eventually("all know all", || {
        (0..3).all(|host| (0..3).all(|home| knows(&cluster, host, home)))
    });

    // It moves, and looks nothing up: the others find it by what the name means now.
    cluster.terminate(2);
    cluster.move_to(2, format!("{network}9:{port}"));
    write(1..10);
    cluster.start_with(2, &["--hash-key-file", &secret]);
    // Looked up at once, instead of within ten seconds.
    (0..2).for_each(|host| cluster.signal(host, "HUP"));
    eventually("the moved host is found", || {
        (0..2).all(|host| knows(&cluster, host, 2) && knows(&cluster, 2, host))
    });
}

fn knows(cluster: &Cluster, host: usize, home: usize) -> bool {
    named(cluster, host, "images", &format!("of-{home}"), 20, home) == 20
}
