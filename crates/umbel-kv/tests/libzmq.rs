//! The publisher of vLLM and SGLang, in Python with libzmq itself: `publisher.py` has their sockets and
//! message definitions. Skipped where Python has no `zmq` and `msgspec`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::live::{Running, keys};

#[test]
fn a_publisher_of_libzmq_is_followed() {
    let has_modules = Command::new("python3").args(["-c", "import zmq, msgspec"]).output();
    if !has_modules.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: `pip install pyzmq msgspec` for it");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/publisher.py");
    for form in ["arrays", "maps"] {
        let mut python = Command::new("python3")
            .arg(&script)
            .arg(form)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let (mut input, output) = (python.stdin.take().expect("a pipe"), python.stdout.take());
        let mut lines = BufReader::new(output.expect("a pipe")).lines();
        let mut next = || lines.next().expect("a line").expect("text");
        let address = |port: String| format!("127.0.0.1:{port}").parse().expect("an address");
        let (events, replay) = (address(next()), address(next()));
        let mut tell = |line: &str| writeln!(input, "{line}").expect("it listens");
        let text = |first: u32, blocks: u32| (first..first + 4 * blocks).collect::<Vec<u32>>();

        tell("store 0 1000");
        let sidecar = Running::start(events, Some(replay), Duration::from_secs(3600));
        sidecar.holds("what was before is replayed", &keys(&text(0, 1000)));
        // More messages than libzmq keeps for one peer of a ROUTER: it drops the rest.
        (0..3000).for_each(|_| tell("lose 0 1"));
        tell("store 100000 5");
        let mut expected = keys(&text(0, 1000));
        expected.extend(keys(&text(100_000, 5)));
        sidecar.holds("a gap is replayed", &expected);
        tell("clear");
        tell("store 7 2");
        sidecar.holds("cleared", &keys(&text(7, 2)));
        let totals = sidecar.end();
        assert_eq!((totals.messages.rejected, totals.messages.missed), (0, 3000));
        python.kill().expect("it runs");
        python.wait().expect("it ran");
    }
}
