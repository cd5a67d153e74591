//! What a host does not accept because of a limit is named, with its reason, wherever one looks.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Command;

use super::add;
use super::hosts::{Cluster, eventually, name};

#[test]
fn what_does_not_fit_into_the_budget_is_named_with_its_reason() {
    let mut cluster = Cluster::new(2);
    cluster.start(0, &["--limits-replica-bytes", "50000"]);
    cluster.start(1, &[]);
    add(&cluster, 1, "small", "key", 10);
    add(&cluster, 1, "large", "key", 20_000);
    eventually("the large set is refused", || cluster.status_number(0, "not_accepted") == 1);
    eventually("the small one is known", || cluster.who(0, "small", "key-9").contains(&name(1)));
    let stderr = |arguments: &[&str]| {
        let mut umbel = Command::new(env!("CARGO_BIN_EXE_umbel"));
        let output = umbel.args(arguments).args(["--at", cluster.resp(0)]).output().expect("runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let why = "more than half of the";
    let hosts = stderr(&["hosts"]);
    assert!(hosts.contains(&format!("not accepted of {}: large: ", name(1))), "{hosts}");
    assert!(hosts.contains(why), "{hosts}");
    let info = stderr(&["info", "large"]);
    assert!(info.contains(&format!("{}: its replica needs", name(1))), "{info}");
    assert!(!stderr(&["info", "small"]).contains(why));
    let doctor = cluster.doctor(0).1;
    assert!(doctor.contains(&format!("of '{}', large: its replica needs", name(1))), "{doctor}");
    assert!(doctor.contains("raise limits.replica_bytes"), "{doctor}");
    let feed = first_rows(cluster.http(0));
    assert!(feed.contains(&format!("large of {}: its replica needs", name(1))), "{feed}");
    let (_, metrics) = cluster.get(0, "/metrics");
    let refused = format!("umbel_refusals{{peer=\"{}\",set=\"large\",reason=\"budget\"}}", name(1));
    assert!(metrics.contains(&refused), "{metrics}");
    assert!(!metrics.contains("set=\"small\",reason"), "{metrics}");
    assert!(cluster.status_number(0, "replica_bytes") <= 50_000);
    assert_eq!(cluster.log(0).matches("more than half").count(), 1, "{}", cluster.log(0));
}

/// The first rows that the dashboard of a host sends to a browser.
fn first_rows(at: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("the host listens");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("set");
    write!(stream, "GET /dashboard/feed HTTP/1.1\r\nhost: {at}\r\n\r\n").expect("sent");
    let lines = BufReader::new(stream).lines().map(|line| line.expect("a stream of events"));
    let mut rows = lines.filter(|line| line.contains("\"refusals\""));
    rows.next().expect("rows are sent")
}
